"""State that the requests of one server share: the workspace, limits, and an overview."""

from __future__ import annotations

import queue
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from pipeline import tables
from pipeline.answering.rendering import StepRenderer
from pipeline.doors.search import search
from pipeline.engine.stage import Workspace
from pipeline.engine.status import month_status
from pipeline.errors import TransientFailure
from pipeline.ops.run_months import loading_note, months_of_status
from pipeline.report import FUNNEL, page_of_month
from pipeline.report import publish as reports
from pipeline.report.frames import rows_out
from pipeline.report.pages import reasons_text
from pipeline.stages import STAGES

if TYPE_CHECKING:
    from pipeline.answering.session import StepObserver
    from pipeline.corpus.nouns import Answer, Passage, Results
    from pipeline.doors.search import Of
    from pipeline.index.search_options import SearchOptions

T = TypeVar("T")

# A month takes 0.1 s to look at.
_OVERVIEW_SECONDS = 60.0
# A zip takes 0.3 ms.
_LOADING_SECONDS = 5.0
_MOST_IN_BATCH = 16
# Each holds a thread until its last step.
MOST_QUESTIONS = 8
# Tables whose rows the overview counts.
_COUNTED = (
    tables.DUMP_MEMBERS,
    tables.PAPERS,
    tables.PASSAGES,
    tables.REFERENCES,
    tables.CITATIONS,
)


class Recent(Generic[T]):
    """A value as it was at most some seconds ago; one thread computes it while others wait."""

    def __init__(self, compute: Callable[[], T], seconds: float) -> None:
        self._compute, self._seconds = compute, seconds
        self._lock = threading.Lock()
        self._computed: tuple[float, T] | None = None

    def __call__(self) -> T:
        """The value. Raises as what computes it does."""
        with self._lock:
            if self._computed is None or time.monotonic() - self._computed[0] > self._seconds:
                value = self._compute()
                self._computed = time.monotonic(), value
            return self._computed[1]


@dataclass(frozen=True, slots=True)
class WaitingSearch:
    """A search that is to be done, and its page of results once it is."""

    query: str
    options: SearchOptions
    of: Of
    page: Future[Results] = field(default_factory=Future)


class SearchQueue:
    """Searches of all requests, in the order in which they come, one batch at a time.

    Those that wait with equal options are a batch, for which the model reads its weights once: in
    fours, searches take two thirds of their time. Two threads would wait for each other: of 20
    searches a second, 95 % came within 190 to 300 ms, with one thread within 160.
    """

    def __init__(self, workspace: Workspace, waiting: Sequence[WaitingSearch] = ()) -> None:
        self._workspace = workspace
        self._thread = ThreadPoolExecutor(1, "search")
        self._waiting = list(waiting)
        self._lock = threading.Lock()

    def search(self, query: str, options: SearchOptions, of: Of) -> Results:
        """A page of results. Raises as `search` does."""
        waiting = WaitingSearch(query, options, of)
        with self._lock:
            self._waiting.append(waiting)
        self._thread.submit(self.search_next)
        return waiting.page.result()

    def search_next(self) -> None:
        """Search for what waits longest, and for what waits with the same options."""
        with self._lock:
            if not self._waiting:
                return
            first = self._waiting[0]
            alike = [
                waiting
                for waiting in self._waiting
                if (waiting.options, waiting.of) == (first.options, first.of)
            ]
            batch = alike[:_MOST_IN_BATCH]
            self._waiting = [waiting for waiting in self._waiting if waiting not in batch]
        self._search(batch)

    def _search(self, batch: Sequence[WaitingSearch]) -> None:
        queries = [waiting.query for waiting in batch]
        try:
            pages = search(self._workspace, queries, batch[0].options, batch[0].of)
        except Exception as error:
            if len(batch) == 1:
                batch[0].page.set_exception(error)
                return
            # Only one of them may be at fault.
            for waiting in batch:
                self._search([waiting])
            return
        for waiting, page in zip(batch, pages, strict=True):
            waiting.page.set_result(page)


class Site:
    """A data root as a server shows it."""

    def __init__(self, workspace: Workspace) -> None:
        self.workspace = workspace
        self.searches = SearchQueue(workspace)
        self.questions = threading.Semaphore(MOST_QUESTIONS)
        """Taken for a question while it is answered."""
        self.overview = Recent(partial(_read_corpus, workspace), _OVERVIEW_SECONDS)
        """All months of the data root and the dump. Raises PermanentFailure for a broken table."""
        self.loading = Recent(partial(loading_note, workspace), _LOADING_SECONDS)
        """How many months can be searched, while a load runs."""

    def has_reports(self) -> bool:
        """Whether the page over all months is there, which every run of the stage writes."""
        return (self.workspace.root.path / reports.FOLDER / "index.html").is_file()

    def months(self) -> list[str]:
        """The months that can be searched, oldest first."""
        return self.workspace.root.months(tables.PASSAGES)


def asks_model(site: Site, system: str | None = None) -> bool:
    """Whether a system answers by a language model, which may cost money. Raises SettingError for
    an unknown system.
    """
    from pipeline.answering.systems import ANSWERING_WRITERS

    _, answering = ANSWERING_WRITERS.lookup(system, site.workspace.settings)
    return answering.calls_model


def ask(
    site: Site, question: str, system: str | None = None, observer: StepObserver | None = None
) -> Answer:
    """The answer to a question. system: None for the default of the settings.

    Raises SettingError for an unknown system or an empty question, TransientFailure if too many
    questions are being answered, IndexInUse if another process has the index, and as
    `Conversation.ask` does.
    """
    if not site.questions.acquire(blocking=False):
        raise TransientFailure(
            f"{MOST_QUESTIONS} questions are being answered: try again in a few seconds"
        )
    try:
        from pipeline.answering.session import open_conversation

        return open_conversation(site.workspace, system).ask(question, observer)
    finally:
        site.questions.release()


class LiveAnswer:
    """A question that is being answered: `progress` yields each step, then `answer` or `error` is
    set. steps: the lines of the steps so far.
    """

    def __init__(self, site: Site, question: str) -> None:
        self._site, self._question = site, question
        self._lines: queue.SimpleQueue[list[str] | None] = queue.SimpleQueue()
        self.steps: list[list[str]] = []
        self.answer: Answer | None = None
        self.error: Exception | None = None

    def progress(self) -> Iterator[str]:
        """The first line of each step, until the answer is there."""
        threading.Thread(target=self._run, daemon=True).start()
        while (lines := self._lines.get()) is not None:
            self.steps.append(lines)
            yield lines[0]

    def _run(self) -> None:
        def observe(step: Mapping[str, Any], passages: Mapping[str, Passage]) -> None:
            self._lines.put(render_step(step, passages))

        render_step = StepRenderer()
        try:
            self.answer = ask(self._site, self._question, observer=observe)
        except Exception as error:  # the page shows it: the response has begun
            self.error = error
        self._lines.put(None)


@dataclass(frozen=True, slots=True)
class CorpusMonth:
    """A month of the corpus.

    counts: rows by table. left_out: what the stages of the corpus left out, in words.
    points_expected, points_present: of the last audited load into the index. stages: how many are
    done, stale and failed. failures: messages.
    """

    month: str
    counts: Mapping[str, int]
    left_out: str
    points_expected: int
    points_present: int
    stages: Mapping[str, int]
    failures: tuple[str, ...]
    has_report: bool


@dataclass(frozen=True, slots=True)
class CorpusView:
    """All months, oldest first."""

    months: tuple[CorpusMonth, ...]

    def total(self, table: str) -> int:
        """Rows of a table over all months."""
        return sum(month.counts[table] for month in self.months)

    @property
    def points_expected(self) -> int:
        return sum(month.points_expected for month in self.months)

    @property
    def points_present(self) -> int:
        return sum(month.points_present for month in self.months)


def _read_corpus(workspace: Workspace) -> CorpusView:
    months, _ = months_of_status(workspace, "all")
    return CorpusView(tuple(_read_month(workspace, month) for month in months))


def _read_month(workspace: Workspace, month: str) -> CorpusMonth:
    root = workspace.root
    receipts = []
    if month in root.months(tables.INDEX_RECEIPTS):
        receipts = root.rows(tables.INDEX_RECEIPTS, month)
    status = [row for row in month_status(STAGES, workspace, month) if not row["off"]]
    states = [row["state"] for row in status]
    reasons = Counter[str]()
    for table, *_ in FUNNEL:
        provenance = root.provenance(table, month)
        reasons.update(provenance.left_out if provenance else {})
    return CorpusMonth(
        month=month,
        counts={table.name: rows_out(root, month, table) for table in _COUNTED},
        left_out=reasons_text(reasons),
        points_expected=sum(row["expected"] for row in receipts),
        points_present=sum(row["present"] for row in receipts),
        stages={state: states.count(state) for state in ("done", "stale", "failed")},
        failures=tuple(f"{row['stage']}: {row['failure']}" for row in status if row["failure"]),
        has_report=page_of_month(root, month).is_file(),
    )
