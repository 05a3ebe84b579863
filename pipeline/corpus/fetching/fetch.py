"""Fetch pages from arXiv's site, one after another, into the dump's folders of loose pages."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote

from filelock import FileLock, Timeout

from pipeline.arxiv.identifiers import month_of
from pipeline.arxiv.rate_limited_client import GAP_SECONDS, Answer, OutOfBounds, Pace, RateLimitedClient, Service
from pipeline.corpus.dump.member import LARGEST_PAGE
from pipeline.corpus.fetching.ledger import FETCHED, RETRYABLE, PageLedger, PageRecord
from pipeline.corpus.fetching.page_check import check_answer
from pipeline.corpus.fetching.robots import Robots, fetch_robots
from pipeline.corpus.fetching.selection import Selection
from pipeline.engine import progress
from pipeline.engine.stage import Workspace
from pipeline.errors import PermanentFailure, TransientFailure
from pipeline.settings import Settings
from pipeline.storage.writing import write_whole

# Some papers have no HTML, but not twenty in a row of a month that arXiv converts: the site is at fault then, or has
# never had these pages, and further requests are useless.
MOST_WITHOUT_PAGE = 20
_NAME = "fetch_html"


@dataclass(frozen=True, slots=True)
class FetchReport:
    """Outcome of a fetch. left_out: papers without a page, and papers not requested, by reason.

    asked: a record of each paper requested in this run. waiting: how many are still to be requested. The command prints
    these names with --json.
    """

    fetched: int
    left_out: dict[str, int]
    waiting: int
    requests: int
    bytes: int
    folder: str
    asked: tuple[PageRecord, ...]

    def __str__(self) -> str:
        left = ", ".join(f"{count:,} {reason}" for reason, count in self.left_out.items())
        remaining = f"; {self.waiting:,} still to fetch: run the same again" if self.waiting else ""
        pages = "1 page" if self.fetched == 1 else f"{self.fetched:,} pages"
        summary = f"{pages} fetched in {self.requests:,} requests, {self.bytes:,} bytes, into {self.folder}"
        return f"{summary}{f'; left out: {left}' if left else ''}{remaining}"


def fetch(
    workspace: Workspace,
    selection: Selection,
    *,
    limit: int | None = None,
    again: bool = False,
    pace: Pace | None = None,
    largest: int = LARGEST_PAGE,
) -> FetchReport:
    """Fetch the pages of a selection, at most `limit` of them, in order of identifier; earlier failures come last.

    A paper known to have no page is requested only with `again`. Each page is written whole, and each outcome saved
    before the next request, so that the next call continues after a kill. largest: in bytes; tests alone set it and a
    pace. Raises TransientFailure where the site answers with errors or another fetch runs, PermanentFailure
    where it denies access, its robots.txt closes the pages to programs, or they cannot be written, SettingError where
    the base URL is invalid.
    """
    ledger = PageLedger(workspace.cache("html_pages"))
    try:
        with FileLock(ledger.lock, timeout=0):
            records = ledger.find(selection.ids)
            ids = _ids_to_request(selection.ids, records, again=again)
            run = _Run(workspace.settings, ledger, selection.dump, pace, largest)
            run.fetch_all(ids if limit is None else ids[:limit])
    except Timeout as error:
        raise TransientFailure(f"another run fetches pages and holds {ledger.lock}: wait for its end") from error
    not_requested = Counter(records[name].reason for name in set(selection.ids) - set(ids))
    return run.report(Counter(selection.left_out) + not_requested, len(ids) - len(run.requested))


def _ids_to_request(ids: Sequence[str], records: dict[str, PageRecord], *, again: bool) -> list[str]:
    """The papers to request: new ones first, then those whose page is missing from the dump or failed to arrive."""
    new = [name for name in ids if name not in records]
    retryable = [name for name in ids if name in records and records[name].reason in {*RETRYABLE, FETCHED}]
    final = [name for name in ids if name in records and name not in retryable]
    return [*new, *retryable, *(final if again else [])]


@dataclass(slots=True)
class _Run:
    """The state of one fetch."""

    settings: Settings
    ledger: PageLedger
    dump: Path
    pace: Pace | None
    largest: int
    requested: list[PageRecord] = field(default_factory=list)
    requests: int = 0

    def fetch_all(self, ids: Sequence[str]) -> None:
        if not ids:
            return
        self._remove_partial_files(ids)
        with self._client() as client:
            try:
                self._fetch_in_order(client, ids)
            finally:
                self.requests = client.requests

    def _fetch_in_order(self, client: RateLimitedClient, ids: Sequence[str]) -> None:
        robots = fetch_robots(client, self.settings.html_url, self.settings.arxiv_user_agent)
        client.slow_down(robots.delay)
        if robots.delay > GAP_SECONDS:
            progress.noted(f"robots.txt asks for {robots.delay:g} s between two requests: this run waits as long")
        without = 0
        for done, name in enumerate(ids):
            progress.advanced(_NAME, month_of(name) or "", done, len(ids))
            without = 0 if self._fetch_page(client, robots, name) else without + 1
            if without >= MOST_WITHOUT_PAGE:
                raise self._failure_without_pages(without)

    def report(self, left_out: Counter[str], waiting: int) -> FetchReport:
        """The outcome; left_out: papers that were not requested, by reason."""
        reasons = Counter(record.reason for record in self.requested)
        fetched = reasons.pop(FETCHED, 0)
        size = sum(record.bytes for record in self.requested)
        by_reason = dict(sorted((left_out + reasons).items()))
        records = tuple(self.requested)
        return FetchReport(fetched, by_reason, waiting, self.requests, size, str(self.dump), records)

    def _client(self) -> RateLimitedClient:
        advice = "run citeloom fetch-html again to go on"
        return RateLimitedClient(
            Service("arXiv's site", self.settings.html_url, "CITELOOM_HTML_URL", advice),
            self.settings,
            pace=self.pace,
            largest=self.largest,
            same_host=True,
        )

    def _fetch_page(self, client: RateLimitedClient, robots: Robots, name: str) -> bool:
        """Fetch one page and record the outcome; whether the page is in place."""
        address = f"{self.settings.html_url.rstrip('/')}/{quote(name)}"
        if not robots.allows(address):
            raise PermanentFailure(f"robots.txt closes {address} to programs: fetch no pages there")
        try:
            answer, fault = client.get(address, lambda answer: (answer, check_answer(answer, name)))
        except OutOfBounds as refusal:
            return self._record(PageRecord(name, refusal.reason, refusal.detail))
        except TransientFailure as failure:
            self._record(PageRecord(name, "unanswered", str(failure)))
            raise
        return self._record(PageRecord(name, fault.reason, fault.detail) if fault else self._write_page(name, answer))

    def _write_page(self, name: str, answer: Answer) -> PageRecord:
        file = page_file(self.dump, name)
        try:
            write_whole(file, answer.body)
        except OSError as error:
            raise PermanentFailure(
                f"{file} cannot be written ({error.strerror}): make room there, or set another CITELOOM_DUMP_DIR; the "
                "pages before it are in place"
            ) from error
        return PageRecord(name, FETCHED, answer.address, len(answer.body), hashlib.sha256(answer.body).hexdigest())

    def _record(self, record: PageRecord) -> bool:
        self.ledger.save(record)
        self.requested.append(record)
        return record.reason == FETCHED

    def _failure_without_pages(self, count: int) -> TransientFailure:
        last = self.requested[-1]
        return TransientFailure(
            f"{count} papers in a row have no page, the last of them {last.arxiv_id} ({last.detail}): the site may be "
            "in trouble, CITELOOM_HTML_URL wrong, or the month older than arXiv's HTML; look at one in a browser, then "
            "run citeloom fetch-html again to go on after them, or with --again to ask for them too"
        )

    def _remove_partial_files(self, ids: Sequence[str]) -> None:
        """Remove the temporary files that a killed fetch left beside the pages."""
        for folder in {page_file(self.dump, name).parent for name in ids}:
            for file in folder.glob(".*.html.*.tmp"):
                file.unlink(missing_ok=True)


def page_file(dump: Path, arxiv_id: str) -> Path:
    """The file of a paper's page: `<yymm>/<id>.html`, an old identifier without its slash."""
    month = month_of(arxiv_id) or ""
    return dump / f"{month[2:4]}{month[5:]}" / f"{arxiv_id.replace('/', '')}.html"
