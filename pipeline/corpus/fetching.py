"""Fetch pages from arXiv's site, one after another, into the dump's folders of loose pages."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote, unquote, urljoin, urlsplit
from urllib.robotparser import RobotFileParser

from pipeline.arxiv.identifiers import month_of
from pipeline.arxiv.rate_limited_client import (
    GAP_SECONDS,
    HttpAnswer,
    OutOfBounds,
    Pace,
    RateLimitedClient,
    Service,
)
from pipeline.corpus.dump.member import LARGEST_PAGE
from pipeline.corpus.fetch_selection import Selection
from pipeline.corpus.parse.source import as_utf8, is_html
from pipeline.engine.locks import file_lock
from pipeline.engine.progress import Notice, StageAdvanced, publish
from pipeline.engine.stage import Workspace
from pipeline.errors import PermanentFailure, TransientFailure
from pipeline.settings import Settings
from pipeline.storage.writing import write_whole
from pipeline.text import number_of

# Some papers have no HTML, but not twenty in a row of a month that arXiv converts: the site is at
# fault then, or has never had these pages, and further requests are useless.
MOST_WITHOUT_PAGE = 20
FETCHED = "fetched"
# A later request may succeed: the server was down, or the page was incomplete.
_RETRYABLE = frozenset({"cut", "unanswered"})
_NAME = "fetch_html"
_KINDS = ("text/html", "application/xhtml+xml")
_GONE = (404, 410)
_END_BYTES = 2048  # where LaTeXML's pages have their </html>, with nothing or a comment after it


class PageRecord(NamedTuple):
    """Outcome of the last request for a paper's page.

    reason: `fetched`, or why there is no page. detail: the page's address, or the fault.
    requested_at: ISO 8601, UTC.
    """

    arxiv_id: str
    reason: str
    detail: str
    requested_at: str


class PageLedger:
    """The outcomes of all requests, a line of JSON each, so that no page is requested twice.

    Raises PermanentFailure where the file cannot be read or written.
    """

    def __init__(self, file: Path) -> None:
        self._file = file

    def read(self) -> dict[str, PageRecord]:
        """The last record of each paper, by identifier; a line that a kill cut off is ignored."""
        records: dict[str, PageRecord] = {}
        if not self._file.exists():
            return records
        try:
            content = self._file.read_text("utf-8", "replace")
        except OSError as error:
            raise self._failure(error) from error
        for line in content.splitlines():
            try:
                record = PageRecord(**json.loads(line))
            except (ValueError, TypeError):
                continue
            records[record.arxiv_id] = record
        return records

    def save(self, arxiv_id: str, reason: str, detail: str) -> None:
        """Save the outcome of a request with the present time, durably."""
        now = datetime.now(UTC).isoformat(timespec="seconds")
        record = PageRecord(arxiv_id, reason, detail, now)
        try:
            with self._file.open("a", encoding="utf-8") as file:
                # The line break goes first: the line before may be cut off.
                file.write("\n" + json.dumps(record._asdict()))
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise self._failure(error) from error

    def _failure(self, error: OSError) -> PermanentFailure:
        return PermanentFailure(
            f"the ledger of fetched pages, {self._file}, cannot be read or written"
            f" ({error.strerror}): make room there, or move the file away and run again"
        )


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
            _write_page(page_file(dump, name), body)
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
    if b"</html>" not in page[-_END_BYTES:].lower():
        return "cut", f"it breaks off after {len(answer.body):,} bytes, without </html>"
    if b"ltx_document" not in page:
        return "not_latexml", "it is HTML, and not a paper that LaTeXML converted"
    return FETCHED, answer.address


def page_file(dump: Path, arxiv_id: str) -> Path:
    """The file of a paper's page: `<yymm>/<id>.html`, an old identifier without its slash."""
    month = month_of(arxiv_id) or ""
    return dump / f"{month[2:4]}{month[5:]}" / f"{arxiv_id.replace('/', '')}.html"


def _write_page(file: Path, content: bytes) -> None:
    try:
        write_whole(file, content)
    except OSError as error:
        raise PermanentFailure(
            f"{file} cannot be written ({error.strerror}): make room there, or set another"
            " CITELOOM_DUMP_DIR; the pages before it are in place"
        ) from error
