"""Asking arXiv's site for pages, one after another, into the dump's folders of loose pages."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote

from filelock import FileLock, Timeout

from pipeline.arxiv.identifiers import month_of
from pipeline.arxiv.pace import GAP_SECONDS, Pace
from pipeline.arxiv.rate_limited_client import Answer, OutOfBounds, Patience, RateLimitedClient, Service
from pipeline.corpus.dump.member import LARGEST_PAGE
from pipeline.corpus.fetching.ledger import FETCHED, PASSING, Asked, PageLedger
from pipeline.corpus.fetching.robots import Robots, ask_robots
from pipeline.corpus.fetching.vet import vet
from pipeline.corpus.fetching.wanted import Choice
from pipeline.engine import progress
from pipeline.engine.stage import Workspace
from pipeline.errors import PermanentFailure, TransientFailure
from pipeline.settings import Settings
from pipeline.storage.writing import write_whole

# Some papers have no HTML, but not twenty in a row of a month that arXiv converts: then the site is at fault, or asked
# for what it never had, and each further request would be one too many.
MOST_WITHOUT_PAGE = 20
_NAME = "fetch_html"


@dataclass(frozen=True, slots=True)
class FetchReport:
    """What came of a fetch. left_out: papers without a page by reason, and why others were not asked for.

    `asked` has each paper asked for now, with its reason; `waiting` is how many are still to be asked for.
    """

    fetched: int
    left_out: dict[str, int]
    waiting: int
    requests: int
    bytes: int
    folder: str
    asked: tuple[Asked, ...]

    def __str__(self) -> str:
        left = ", ".join(f"{count:,} {reason}" for reason, count in self.left_out.items())
        waiting = f"; {self.waiting:,} still to ask for: run the same again" if self.waiting else ""
        pages = "1 page" if self.fetched == 1 else f"{self.fetched:,} pages"
        told = f"{pages} fetched in {self.requests:,} requests, {self.bytes:,} bytes, into {self.folder}"
        return f"{told}{f'; left out: {left}' if left else ''}{waiting}"


def fetch(
    workspace: Workspace,
    choice: Choice,
    *,
    limit: int | None = None,
    again: bool = False,
    pace: Pace | None = None,
    patience: Patience | None = None,
    largest: int = LARGEST_PAGE,
) -> FetchReport:
    """Ask for the pages of a choice, at most `limit` of them, in order of identifier; those that failed before last.

    A paper that arXiv was found to have no page of is asked for only `again`. Each page is put in place whole, and
    each answer kept before the next request, so that the next call goes on after a kill. `largest` is in bytes; another
    one than the parser's, as a pace or patience other than arXiv's rules, is for tests. Raises TransientFailure where
    the site does not answer well or others fetch too, PermanentFailure where it denies access, its robots.txt closes
    the pages to programs, or they cannot be written, SettingError where the base URL is none.
    """
    ledger = PageLedger(workspace.cache("html_pages"))
    try:
        with FileLock(ledger.lock, timeout=0):
            known = ledger.find(choice.ids)
            ids = _in_turn(choice.ids, known, again=again)
            run = _Run(workspace.settings, ledger, choice.dump, pace, patience, largest)
            run.ask_all(ids if limit is None else ids[:limit])
    except Timeout as error:
        raise TransientFailure(f"another run fetches pages and holds {ledger.lock}: wait for its end") from error
    before = Counter(known[name].reason for name in set(choice.ids) - set(ids))
    return run.report(Counter(choice.left_out) + before, len(ids) - len(run.asked))


def _in_turn(ids: Sequence[str], known: dict[str, Asked], *, again: bool) -> list[str]:
    """The papers to ask for: never asked first, then those whose page is gone or may come another time."""
    never = [name for name in ids if name not in known]
    passing = [name for name in ids if name in known and known[name].reason in {*PASSING, FETCHED}]
    settled = [name for name in ids if name in known and name not in passing]
    return [*never, *passing, *(settled if again else [])]


@dataclass(slots=True)
class _Run:
    """One fetch from its first request to its last."""

    settings: Settings
    ledger: PageLedger
    dump: Path
    pace: Pace | None
    patience: Patience | None
    largest: int
    asked: list[Asked] = field(default_factory=list)
    requests: int = 0

    def ask_all(self, ids: Sequence[str]) -> None:
        if not ids:
            return
        self._forget_leftovers(ids)
        with self._client() as client:
            try:
                self._ask_in_turn(client, ids)
            finally:
                self.requests = client.requests

    def _ask_in_turn(self, client: RateLimitedClient, ids: Sequence[str]) -> None:
        robots = ask_robots(client, self.settings.html_url, self.settings.arxiv_user_agent)
        client.slow_down(robots.delay)
        if robots.delay > GAP_SECONDS:
            progress.noted(f"robots.txt asks for {robots.delay:g} s between two requests, which this run keeps")
        without = 0
        for done, name in enumerate(ids):
            progress.advanced(_NAME, month_of(name) or "", done, len(ids))
            without = 0 if self._ask(client, robots, name) else without + 1
            if without >= MOST_WITHOUT_PAGE:
                raise self._useless(without)

    def report(self, left_out: Counter[str], waiting: int) -> FetchReport:
        """What came of it all; left_out: what was not asked for, by reason."""
        now = Counter(each.reason for each in self.asked)
        fetched = now.pop(FETCHED, 0)
        size = sum(each.bytes for each in self.asked)
        told = dict(sorted((left_out + now).items()))
        return FetchReport(fetched, told, waiting, self.requests, size, str(self.dump), tuple(self.asked))

    def _client(self) -> RateLimitedClient:
        way_out = "run citeloom fetch-html again to go on"
        return RateLimitedClient(
            Service("arXiv's site", self.settings.html_url, "CITELOOM_HTML_URL", way_out),
            self.settings,
            pace=self.pace,
            patience=self.patience,
            largest=self.largest,
            same_host=True,
        )

    def _ask(self, client: RateLimitedClient, robots: Robots, name: str) -> bool:
        """Whether there is a page of the paper now; what came of it is kept."""
        address = f"{self.settings.html_url.rstrip('/')}/{quote(name)}"
        if not robots.allows(address):
            raise PermanentFailure(f"robots.txt closes {address} to programs: fetch no pages there")
        try:
            answer, fault = client.get(address, lambda answer: (answer, vet(answer, name)))
        except OutOfBounds as refusal:
            return self._keep(Asked(name, refusal.reason, refusal.detail))
        except TransientFailure as failure:
            self._keep(Asked(name, "unanswered", str(failure)))
            raise
        return self._keep(Asked(name, fault.reason, fault.detail) if fault else self._put(name, answer))

    def _put(self, name: str, answer: Answer) -> Asked:
        file = page_file(self.dump, name)
        try:
            write_whole(file, answer.body)
        except OSError as error:
            raise PermanentFailure(
                f"{file} cannot be written ({error.strerror}): make room there, or set another CITELOOM_DUMP_DIR; the "
                "pages before it are in place"
            ) from error
        return Asked(name, FETCHED, answer.address, len(answer.body), hashlib.sha256(answer.body).hexdigest())

    def _keep(self, asked: Asked) -> bool:
        self.ledger.keep(asked)
        self.asked.append(asked)
        return asked.reason == FETCHED

    def _useless(self, count: int) -> TransientFailure:
        last = self.asked[-1]
        return TransientFailure(
            f"{count} papers in a row have no page, the last of them {last.arxiv_id} ({last.detail}): the site may be "
            "in trouble, CITELOOM_HTML_URL wrong, or the month older than arXiv's HTML; look at one in a browser, then "
            "run citeloom fetch-html again to go on after them, or with --again to ask for them too"
        )

    def _forget_leftovers(self, ids: Sequence[str]) -> None:
        """Take away what a killed fetch left beside the pages: files of no name that anybody reads."""
        for folder in {page_file(self.dump, name).parent for name in ids}:
            for file in folder.glob(".*.html.*.tmp"):
                file.unlink(missing_ok=True)


def page_file(dump: Path, arxiv_id: str) -> Path:
    """Where the page of a paper goes: `<yymm>/<id>.html`, an old identifier without its slash."""
    month = month_of(arxiv_id) or ""
    return dump / f"{month[2:4]}{month[5:]}" / f"{arxiv_id.replace('/', '')}.html"
