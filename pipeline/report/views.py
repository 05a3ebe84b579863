"""What the pages of a report show, as frozen values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pipeline.evaluation.cited import Piece
from pipeline.evaluation.retrieval.picture import RetrievalView
from pipeline.report.figures import Bar
from pipeline.report.grid import Grid, Section

Paragraphs = Sequence[Sequence[Piece]]


@dataclass(frozen=True, slots=True)
class LeftOut:
    """One thing of the ledger. `page`: of the task that it belongs to, where there is one."""

    stage: str
    subject: str
    reason: str
    detail: str
    page: str = ""


@dataclass(frozen=True, slots=True)
class Step:
    """One step of the corpus's way into the index: how many come out, and what was left out before it, by reason."""

    name: str
    counted: str
    rows: int
    left_out: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class PaperLine:
    """One paper of the month. `kept` is the share of visible characters that were kept, 0 to 1; None for no text."""

    arxiv_id: str
    title: str
    subset: str
    category: str
    sections: int
    passages: int
    references: int
    resolved: int
    kept: float | None
    truncated: bool


@dataclass(frozen=True, slots=True)
class RelatedView:
    """The related work of a month, or of all: its sections in order. `small_model` is the embedded model's name where
    it wrote or judged, else ''."""

    tasks: int = 0
    systems: Sequence[str] = ()
    sections: Sequence[Section] = ()
    small_model: str = ""

    def grids(self) -> list[Grid]:
        return [grid for section in self.sections for grid in section.grids()]


@dataclass(frozen=True, slots=True)
class AnswersView:
    """The answers of a month, or of all: its sections in order. why_none: why nothing was asked, where `questions` is
    0; short: what the month's own page shows of them; small_model as for `RelatedView`."""

    questions: int = 0
    systems: Sequence[str] = ()
    sections: Sequence[Section] = ()
    short: Grid | None = None
    why_none: str = ""
    small_model: str = ""

    def grids(self) -> list[Grid]:
        return [grid for section in self.sections for grid in section.grids()]


@dataclass(frozen=True, slots=True)
class MonthView:
    """What the page of a month shows."""

    month: str
    pages: int
    papers_in_all: int
    passages: int
    steps: Sequence[Step]
    receipts: Sequence[Mapping[str, Any]] = ()
    left_out: Sequence[LeftOut] = ()
    left_out_in_all: int = 0
    papers: Sequence[PaperLine] = ()
    lengths: Sequence[Bar] = ()
    retrieval: RetrievalView = field(default_factory=RetrievalView)
    no_task: Sequence[LeftOut] = ()
    why_no_task: Sequence[tuple[str, int]] = ()
    related: RelatedView = field(default_factory=RelatedView)
    answers: AnswersView = field(default_factory=AnswersView)
    failed: int = 0
    """How many things the page of failures lists."""


@dataclass(frozen=True, slots=True)
class FailedView:
    """What the page of failures shows: counts by stage and reason, then one by one."""

    month: str
    counts: Grid
    items: Sequence[LeftOut] = ()
    items_in_all: int = 0
    recovered: Sequence[LeftOut] = ()
    recovered_in_all: int = 0


@dataclass(frozen=True, slots=True)
class RunView:
    """What the page of runs shows, which differs from run to run where no other page does. answers: of the runs that
    answered and graded, where there are some; costs: (address, what it is) of where calls and money stand."""

    month: str
    section: Section
    answers: Section | None = None
    costs: Sequence[tuple[str, str]] = ()


@dataclass(frozen=True, slots=True)
class PassageView:
    """One passage that a judge was shown: its text around the quote, and where it can be read."""

    before: str
    quote: str
    after: str
    url: str
    holds_quote: bool


@dataclass(frozen=True, slots=True)
class CitationView:
    """One citation of one sentence as judged. `verdict`: supported, partly, not, or unjudged; `why` it was not."""

    number: int
    title: str
    known: bool
    source: str
    verdict: str
    why: str = ""
    quote: str = ""
    quote_found: bool = False
    judge: str = ""
    passages: Sequence[PassageView] = ()


@dataclass(frozen=True, slots=True)
class SentenceView:
    """One sentence. `verdict`: what its citations come to together, '' where nothing is told of them; `own`: what the
    system's own judge found, and `own_passages` what the system rested it on."""

    place: int
    pieces: Sequence[Piece]
    verdict: str = ""
    citations: Sequence[CitationView] = ()
    own: str = ""
    own_passages: Sequence[PassageView] = ()

    @property
    def opens(self) -> bool:
        """Whether there is something to show for it."""
        return bool(self.citations or self.own_passages)


@dataclass(frozen=True, slots=True)
class GapView:
    """Text between sentences, or all of a paragraph whose sentences were not found in it."""

    pieces: Sequence[Piece]


Runs = Sequence[SentenceView | GapView]


@dataclass(frozen=True, slots=True)
class DraftView:
    """One draft of a round. `parent` is the place, from 1, of the kept draft that it continues, 0 for the empty one;
    `rank` its own place among the kept, 0 where it was not kept; `whole` whether its text is shown to its end."""

    choice: int
    parent: int
    votes: int
    rank: int
    paragraphs: Paragraphs
    whole: bool = True


@dataclass(frozen=True, slots=True)
class RoundView:
    """One step of ChatCite's search. `ballots`: the choice of each vote, None for one that named no draft.

    earlier: references of the rounds before; lost: those of them that the best kept draft does not cite. guards: what
    became of each kept draft, as (what was done, missing, out of range), where the system keeps its references.
    """

    reference: int
    drafts: Sequence[DraftView]
    ballots: Sequence[int | None]
    kept: int
    cut: bool
    earlier: int = 0
    lost: Sequence[int] = ()
    guards: Sequence[tuple[str, str]] = ()


@dataclass(frozen=True, slots=True)
class TraceView:
    """How a section came about, and what of its citations does not fit the task."""

    rounds: Sequence[RoundView] = ()
    respelt: int = 0
    bare: int = 0
    out_of_range: Sequence[int] = ()
    uncited: Sequence[int] = ()
    plan: Sequence[tuple[str, Sequence[int]]] = ()
    groups: Sequence[tuple[str, Sequence[int]]] = ()
    revised: Sequence[tuple[int, str]] = ()
    summaries: Sequence[str] = ()
    notes: Sequence[str] = ()
    """What had to be mended or cut on the way, one sentence each."""
    failures: Sequence[tuple[str, str]] = ()
    """Answers that could not be read and were done without: (at what, why)."""

    @property
    def tells(self) -> bool:
        """Whether there is more to show than the section."""
        return bool(self.rounds or self.plan or self.groups or self.summaries or self.notes or self.failures)


@dataclass(frozen=True, slots=True)
class SystemView:
    """One system's section for one task; `series` is the number of its colour."""

    system: str
    series: int
    model: str
    paragraphs: Sequence[Runs]
    words: int
    calls: int
    prompt_tokens: int
    completion_tokens: int
    tag: str = ""
    trace: TraceView = TraceView()
    support: Sequence[tuple[str, int]] = ()
    """Citations by verdict."""


@dataclass(frozen=True, slots=True)
class ElementsView:
    """The seven answers for one paper of a task; `number` is 0 for the target."""

    number: int
    title: str
    content_cut: bool
    answers: Sequence[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class TaskView:
    """What the two pages of a task show."""

    month: str
    page: str
    written_page: str
    arxiv_id: str | None
    title: str
    section_title: str
    outside: int
    references: Sequence[Mapping[str, Any]]
    gold: Paragraphs
    gold_words: int
    systems: Sequence[SystemView] = ()
    scores: Grid | None = None
    judgements: Grid | None = None
    elements: Sequence[ElementsView] = ()
    small_model: str = ""
    judge_notes: Sequence[str] = ()
    """How good the judges are whose verdicts it shows."""

    @property
    def judged_support(self) -> bool:
        """Whether citations of any system were looked at."""
        return any(system.support for system in self.systems)

    @property
    def tells_more(self) -> bool:
        """Whether there is anything for the page of how the sections were written."""
        return bool(self.elements or any(system.trace.tells for system in self.systems))


@dataclass(frozen=True, slots=True)
class MonthLine:
    """One month in the overall index. `remark` says why it has no page yet, where `linked` is false."""

    month: str
    linked: bool
    remark: str = ""
    pages: int = 0
    papers: int = 0
    passages: int = 0
    indexed: int = 0
    references: int = 0
    tasks: int = 0


@dataclass(frozen=True, slots=True)
class IndexView:
    """What the overall index shows."""

    months: Sequence[MonthLine]
    papers: int
    passages: int
    tasks: int
    related: RelatedView = field(default_factory=RelatedView)
    answers: AnswersView = field(default_factory=AnswersView)
    changes: bool = False
    """Whether a refresh has told of changes, which have a page of their own."""


@dataclass(frozen=True, slots=True)
class ChangesView:
    """What a page of changes shows. month: of which it tells; empty for the page over all months."""

    month: str
    paragraphs: Sequence[str]
    grids: Sequence[Grid]
