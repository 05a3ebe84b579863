"""Fetch pages from arXiv's site, one after another, into the dump's folders of loose pages: of the
papers of a month that the dump lacks, or of those that a user names.

Also arXiv's terms of use, which the user sees before the first request.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote, unquote, urljoin, urlsplit
from urllib.robotparser import RobotFileParser

from pipeline.arxiv.metadata_stage import objections_of_month
from pipeline.arxiv.rate_limited_client import (
    GAP_SECONDS,
    HttpAnswer,
    OutOfBounds,
    Pace,
    RateLimitedClient,
    Service,
)
from pipeline.corpus.dump.catalogue import papers_in_dump
from pipeline.corpus.dump.loose_pages import (
    PageLedger,
    PageRecord,
    dump_folder_to_write,
    fault_of_page,
    page_file,
    write_page,
)
from pipeline.corpus.dump.member import LARGEST_PAGE
from pipeline.corpus.parse.source import as_utf8, is_html
from pipeline.engine.locks import file_lock
from pipeline.engine.progress import Notice, StageAdvanced, publish
from pipeline.engine.stage import Workspace
from pipeline.errors import PermanentFailure, SettingError, TransientFailure
from pipeline.identity.identifiers import month_of, normalize_arxiv_id
from pipeline.identity.months import parse_month
from pipeline.settings import Settings
from pipeline.text import number_of

# Sources: https://info.arxiv.org/help/api/tou.html, https://info.arxiv.org/help/bulk_data.html,
# https://info.arxiv.org/help/robots.html, read in the versions of 2025.
TERMS = """\
Fetching pages from arXiv is off until you accept its terms. In short:
- At most one request in three seconds over one connection, for all machines
  under your control together: citeloom keeps to that on this machine, and you
  on the others.
- No indiscriminate automated downloads: fetch new months, never the whole
  corpus. arXiv denies access to those who go on.
- Copyright stays with the authors or their publishers; arXiv cannot pass it
  on. You may keep and use what you fetch for personal use or research. You
  must not store and serve it to others, or republish it, unless the paper's
  own licence or its copyright holder allows that. What you build from full
  texts must link back to arXiv.
- Set CITELOOM_ARXIV_USER_AGENT to a contact, so that arXiv can reach you. For
  harvesting, arXiv asks for its mirror export.arxiv.org: if that serves the
  pages, set CITELOOM_HTML_URL=https://export.arxiv.org/html.
The whole terms: https://info.arxiv.org/help/api/tou.html, https://info.arxiv.org/help/bulk_data.html
To accept them: give the option --accept-terms"""

# Some papers have no HTML, but not twenty in a row of a month that arXiv converts: the site is at
# fault then, or has never had these pages, and further requests are useless.
MOST_WITHOUT_PAGE = 20
FETCHED = "fetched"
# A later request may succeed: the server was down, or the page was incomplete.
_RETRYABLE = frozenset({"cut", "unanswered"})
_NAME = "fetch_html"
_KINDS = ("text/html", "application/xhtml+xml")
_GONE = (404, 410)


@dataclass(frozen=True, slots=True)
class Selection:
    """Papers to fetch, the folder of the dump, and counts of papers left out by reason."""

    ids: tuple[str, ...]
    dump: Path
    left_out: dict[str, int]


def select_papers(workspace: Workspace, month: str | None, named: Sequence[str] = ()) -> Selection:
    """The named papers, else those of a month in the metadata whose categories the settings
    include; without those that the dump has in any subset.

    Raises SettingError where the dump is no folder that pages can be written to, neither month nor
    paper is named, a name is no arXiv id or of another month, or there is no metadata of the month.
    """
    dump = dump_folder_to_write(workspace.settings)
    if "unrated" not in workspace.settings.subsets:
        raise SettingError(
            "CITELOOM_SUBSETS leaves out unrated, which fetched pages are: add it, else none is"
            " read"
        )
    if named:
        ids, left_out = _named(named, month), Counter[str]()
    elif month:
        objections = objections_of_month(workspace, parse_month(month))
        ids = sorted(name for name, why in objections.items() if not why)
        left_out = Counter(filter(None, objections.values()))
    else:
        raise SettingError("name what to fetch: --month 2026-10, or papers by --ids")
    in_dump = papers_in_dump(workspace.settings, {month_of(name) or "" for name in ids})
    left_out["in_dump"] = len(in_dump.intersection(ids))
    return Selection(
        tuple(name for name in ids if name not in in_dump), dump, dict(sorted((+left_out).items()))
    )


def _named(texts: Sequence[str], month: str | None) -> list[str]:
    ids = {text: normalize_arxiv_id(text) for text in texts}
    wrong = [text for text, identifier in ids.items() if identifier is None]
    if wrong:
        raise SettingError(
            f"--ids: {', '.join(wrong)}: no arXiv id such as 2610.00001 or cs/0112017"
        )
    names = sorted(set(filter(None, ids.values())))
    others = [name for name in names if month and month_of(name) != parse_month(month)]
    if others:
        raise SettingError(
            f"--ids: {', '.join(others)} is not of {month}: leave --month out, or the paper"
        )
    return names


@dataclass(frozen=True, slots=True)
class FetchReport:
    """Outcome of a fetch. left_out: papers without a page, and papers not requested, by reason.

    waiting: how many are still to be requested. The command prints these names with --json.
    """

    fetched: int
    left_out: dict[str, int]
    waiting: int
    requests: int
    bytes: int
    folder: str

    def __str__(self) -> str:
        pages = number_of(self.fetched, "page")
        parts = [
            f"{pages} fetched in {self.requests:,} requests, {self.bytes:,} bytes, into"
            f" {self.folder}"
        ]
        if self.left_out:
            counts = [f"{count:,} {reason}" for reason, count in self.left_out.items()]
            parts.append(f"left out: {', '.join(counts)}")
        if self.waiting:
            parts.append(f"{self.waiting:,} still to fetch: run the same again")
        return "; ".join(parts)


def fetch(
    workspace: Workspace,
    selection: Selection,
    *,
    limit: int | None = None,
    again: bool = False,
    pace: Pace | None = None,
    largest: int = LARGEST_PAGE,
) -> FetchReport:
    """Fetch the pages of a selection, at most `limit`, by identifier; earlier failures come last.

    A paper known to have no page is requested only with `again`. Each page is written whole, and
    each outcome saved before the next request, so that the next call continues after a kill.
    largest: in bytes; tests alone set it and a pace. Raises TransientFailure where the site answers
    with errors or another fetch runs, PermanentFailure where it denies access, its robots.txt
    closes the pages to programs, or they cannot be written, SettingError where the base URL is
    invalid.
    """
    settings, folder = workspace.settings, workspace.cache("html_pages")
    ledger, lock = PageLedger(folder / "fetched.jsonl"), folder / "fetch.lock"
    service = Service(
        "arXiv's site",
        settings.html_url,
        "CITELOOM_HTML_URL",
        "run citeloom fetch-html again to go on",
    )
    busy = f"another run fetches pages and holds {lock}: wait for its end"
    with (
        file_lock(lock, "the folder of pages", if_busy=busy),
        RateLimitedClient(service, settings, pace=pace, largest=largest, same_host=True) as client,
    ):
        records = ledger.read()
        ids = _ids_to_request(selection.ids, records, again=again)
        requested = ids[:limit]
        outcomes, size = _fetch_pages(client, settings, ledger, selection.dump, requested)
    fetched = outcomes.pop(FETCHED, 0)
    not_requested = Counter(records[name].reason for name in set(selection.ids) - set(ids))
    left_out = dict(sorted((Counter(selection.left_out) + not_requested + outcomes).items()))
    waiting = len(ids) - len(requested)
    return FetchReport(fetched, left_out, waiting, client.requests, size, str(selection.dump))


def _ids_to_request(
    ids: Sequence[str], records: dict[str, PageRecord], *, again: bool
) -> list[str]:
    """The papers to request: new ones, then those whose page is missing or failed."""
    new, retryable, final = [], [], []
    for name in ids:
        if name not in records:
            new.append(name)
        elif records[name].reason in {*_RETRYABLE, FETCHED}:
            retryable.append(name)
        elif again:
            final.append(name)
    return [*new, *retryable, *final]


def _fetch_pages(
    client: RateLimitedClient,
    settings: Settings,
    ledger: PageLedger,
    dump: Path,
    ids: Sequence[str],
) -> tuple[Counter[str], int]:
    """Fetch pages in order; how many papers had which outcome, and the bytes of the pages."""
    outcomes: Counter[str] = Counter()
    size = without = 0
    if not ids:
        return outcomes, size
    for folder in {page_file(dump, name).parent for name in ids}:
        for partial_page in folder.glob(".*.html.*.tmp"):  # of a fetch that was killed
            partial_page.unlink(missing_ok=True)
    agent = next(iter(settings.arxiv_user_agent.split()), "citeloom")
    robots = _read_robots(client, settings.html_url)
    delay = float(robots.crawl_delay(agent) or 0)
    client.slow_down(delay)
    if delay > GAP_SECONDS:
        message = f"robots.txt asks for {delay:g} s between two requests: this run waits as long"
        publish(Notice(message))
    for done, name in enumerate(ids):
        publish(StageAdvanced(_NAME, month_of(name) or "", done, len(ids)))
        address = f"{settings.html_url.rstrip('/')}/{quote(name)}"
        if not robots.can_fetch(agent, address):
            raise PermanentFailure(f"robots.txt closes {address} to programs: fetch no pages there")
        try:
            reason, detail, body = _request_page(client, address, name)
        except TransientFailure as failure:
            ledger.save(name, "unanswered", str(failure))
            raise
        if reason == FETCHED:
            write_page(page_file(dump, name), body)
            size += len(body)
        ledger.save(name, reason, detail)
        outcomes[reason] += 1
        without = 0 if reason == FETCHED else without + 1
        if without >= MOST_WITHOUT_PAGE:
            raise TransientFailure(
                f"{without} papers in a row have no page, the last of them {name} ({detail}): the"
                " site may be in trouble, CITELOOM_HTML_URL wrong, or the month older than arXiv's"
                " HTML; look at one in a browser, then run citeloom fetch-html again to go on"
                " after them, or with --again to ask for them too"
            )
    return outcomes, size


def _read_robots(client: RateLimitedClient, base: str) -> RobotFileParser:
    """The rules of the site of an address; a site without robots.txt has none.

    Raises as `RateLimitedClient.get` does, and PermanentFailure where the site denies access to the
    file (401, 403).
    """
    address = urljoin(base, "/robots.txt")

    def read(answer: HttpAnswer) -> str:
        if answer.status in (401, 403):
            raise PermanentFailure(
                f"{address} answers with status {answer.status}: this site wants no programs"
            )
        return answer.body.decode("utf-8", "replace") if answer.status == 200 else ""

    robots = RobotFileParser()
    robots.parse(client.get(address, read).splitlines())
    return robots


def _request_page(client: RateLimitedClient, address: str, name: str) -> tuple[str, str, bytes]:
    """The outcome of a request, its detail, and the page."""
    try:
        return client.get(address, lambda answer: (*check_answer(answer, name), answer.body))
    except OutOfBounds as refusal:
        return refusal.reason, refusal.detail, b""


def check_answer(answer: HttpAnswer, arxiv_id: str) -> tuple[str, str]:
    """Whether an answer is the complete page of a paper, as a reason and its detail.

    `fetched` with the page's address, or no_html, not_html, not_latexml, elsewhere or cut with a
    description: a paper without HTML is a valid outcome. Raises PermanentFailure where the site
    denies access or answers with another error.
    """
    if answer.status in _GONE:
        return "no_html", f"arXiv has no HTML of it (status {answer.status})"
    if answer.status in (401, 403):
        raise PermanentFailure(
            f"{answer.address} denies access (status {answer.status}): stop, because arXiv treats"
            " further requests as an attack; set CITELOOM_ARXIV_USER_AGENT to a contact and write"
            " to arXiv's support"
        )
    if answer.status != 200:
        raise PermanentFailure(
            f"{answer.address} answers with status {answer.status}: check CITELOOM_HTML_URL"
        )
    if arxiv_id not in unquote(urlsplit(answer.address).path):
        return "elsewhere", f"the answer is of another address, {answer.address}"
    kind, page = answer.kind.partition(";")[0].strip().lower(), as_utf8(answer.body)
    if (kind and kind not in _KINDS) or not is_html(page):
        return "not_html", f"it is not an HTML page (Content-Type: {kind or 'none'})"
    return fault_of_page(page) or (FETCHED, answer.address)
