"""The report's pages as HTML: views in, one self-contained file each out. Not here: which numbers (`overview`), tables.

Everything that a page shows of papers and models is untrusted. Jinja2 escapes all of it (`autoescape=True` for every
template, not by file name: `select_autoescape` lets `*.html.j2` through), nothing is rendered from Markdown, and the
page's policy allows no script, no picture and no resource but the one style sheet whose hash it names
(https://www.w3.org/TR/CSP3/#directive-style-src). The bytes depend on the views alone.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import quote

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from pipeline.evaluation.cited import Piece, printable
from pipeline.evaluation.g_score import CRITERIA
from pipeline.evaluation.overview import PUBLISHED, Bar, PaperLine, Step, SystemLine
from pipeline.evaluation.retrieval.picture import RetrievalView, told

TEMPLATES = Path(__file__).parent / "templates"

METRIC_NAMES: tuple[tuple[str, str], ...] = (
    ("rouge1", "ROUGE-1"),
    ("rouge2", "ROUGE-2"),
    ("rougeL", "ROUGE-L"),
    *((f"g_{criterion}", criterion.replace("_", " ").capitalize()) for criterion in CRITERIA),
    ("g_score", "G-Score, mean of the six"),
    ("g_vote", "Voted the best"),
)
_MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
    "December",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class LeftOut:
    """One thing of the ledger."""

    stage: str
    subject: str
    reason: str
    detail: str


@dataclass(frozen=True, slots=True)
class TaskLine:
    """One task in its month's list. `scores`: system → metric → value."""

    page: str
    arxiv_id: str | None
    title: str
    references: int
    outside: int
    scores: Mapping[str, Mapping[str, float]]


@dataclass(frozen=True, slots=True)
class MonthView:
    """What the page of a month shows. `small_model` is the embedded model's name where it wrote or judged, else ''."""

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
    tasks: Sequence[TaskLine] = ()
    no_task: Sequence[LeftOut] = ()
    why_no_task: Sequence[tuple[str, int]] = ()
    systems: Sequence[SystemLine] = ()
    bars: Sequence[tuple[str, Sequence[Bar]]] = ()
    unwritten: Sequence[tuple[str, int]] = ()
    unjudged: Sequence[tuple[str, int]] = ()
    judges: Sequence[str] = ()
    key_element_calls: int = 0
    small_model: str = ""


@dataclass(frozen=True, slots=True)
class DraftView:
    """One draft of a round. `parent` is the place, from 1, of the kept draft that it continues, 0 for the empty one;
    `rank` its own place among the kept, 0 where it was not kept."""

    choice: int
    parent: int
    votes: int
    rank: int
    paragraphs: Sequence[Sequence[Piece]]


@dataclass(frozen=True, slots=True)
class RoundView:
    """One step of ChatCite's search. `ballots`: the choice of each vote, None for one that named no draft."""

    reference: int
    drafts: Sequence[DraftView]
    ballots: Sequence[int | None]
    kept: int
    cut: bool


@dataclass(frozen=True, slots=True)
class TraceView:
    """How a section came about, and what of its citations does not fit the task."""

    rounds: Sequence[RoundView] = ()
    respelt: int = 0
    out_of_range: Sequence[int] = ()
    uncited: Sequence[int] = ()
    at_once: bool = False
    """Whether its one round is on all references together."""


@dataclass(frozen=True, slots=True)
class SystemView:
    """One system's section for one task; `series` is the number of its colour."""

    system: str
    series: int
    model: str
    paragraphs: Sequence[Sequence[Piece]]
    words: int
    calls: int
    prompt_tokens: int
    completion_tokens: int
    scores: Mapping[str, float]
    trace: TraceView = TraceView()


@dataclass(frozen=True, slots=True)
class ElementsView:
    """The seven answers for one paper of a task; `number` is 0 for the target."""

    number: int
    title: str
    content_cut: bool
    answers: Sequence[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class TaskView:
    """What the page of a task shows."""

    month: str
    arxiv_id: str | None
    title: str
    section_title: str
    outside: int
    references: Sequence[Mapping[str, Any]]
    gold: Sequence[Sequence[Piece]]
    gold_words: int
    systems: Sequence[SystemView] = ()
    judge: str = ""
    order: Sequence[str] = ()
    elements: Sequence[ElementsView] = ()
    small_model: str = ""


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
    g_scores: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class IndexView:
    """What the overall index shows."""

    months: Sequence[MonthLine]
    papers: int
    passages: int
    tasks: int
    systems: Sequence[SystemLine] = ()
    bars: Sequence[tuple[str, Sequence[Bar]]] = ()
    small_model: str = ""


def month_page(view: MonthView) -> bytes:
    """The page of a month, UTF-8."""
    return _page("month.html.j2", view)


def task_page(view: TaskView) -> bytes:
    """The page of a task, UTF-8."""
    return _page("task.html.j2", view)


def index_page(view: IndexView) -> bytes:
    """The page over all months, UTF-8."""
    return _page("index.html.j2", view)


def task_file(task_id: str) -> str:
    """The name of a task's page: safe on every file system, one per task, readable as far as that goes."""
    readable = re.sub(r"[^A-Za-z0-9.]+", "-", task_id).strip("-.")[:60]
    return f"task-{readable}-{hashlib.sha256(task_id.encode()).hexdigest()[:8]}.html"


def templates_digest() -> str:
    """SHA-256 over the templates and the style sheet: what a page is made of besides tables."""
    files = sorted(TEMPLATES.iterdir(), key=lambda file: file.name)
    parts = [f"{file.name}\0{hashlib.sha256(file.read_bytes()).hexdigest()}" for file in files if file.is_file()]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def _page(template: str, view: object) -> bytes:
    return _environment().get_template(template).render(view=view).encode()


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_finalize,
    )
    style = (TEMPLATES / "style.css").read_text()
    environment.globals.update(
        style=Markup(style),  # noqa: S704 - our own file, between style tags, named in the policy by its hash
        policy=_policy(style),
        metric_names=METRIC_NAMES,
        published=PUBLISHED,
    )
    environment.filters.update(
        abs_url=abs_url, fixed=fixed, percent=percent, count=count, number_of=number_of, words=words,
        month_name=month_name, reference=reference, told=told,
    )  # fmt: skip
    return environment


def _finalize(value: object) -> object:
    return printable(value) if type(value) is str else value


def _policy(style: str) -> str:
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    return f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"


def abs_url(arxiv_id: str) -> str:
    """The abstract page of a paper. Whatever the identifier holds, the address stays on arxiv.org."""
    return f"https://arxiv.org/abs/{quote(arxiv_id, safe='/')}"


def fixed(number: float, digits: int) -> str:
    """A number with a fixed count of decimals."""
    return f"{number:.{digits}f}"


def percent(share: float) -> str:
    """A share, 0 to 1, in whole percent; never 100 % for what is not all, nor 0 % for what is not nothing."""
    whole = round(100 * share)
    if share < 1 and whole == 100:
        return "over 99 %"
    return "under 1 %" if share > 0 and whole == 0 else f"{whole} %"


def count(number: int) -> str:
    """A count with commas between thousands."""
    return f"{number:,}"


def number_of(number: int, noun: str) -> str:
    """A count with its noun."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def words(name: str) -> str:
    """A name of the code as words: `not_in_corpus` → `not in corpus`; ChatCite and LitLLM as they write themselves."""
    return {"chatcite": "ChatCite", "litllm": "LitLLM", "zero_shot": "zero-shot", "few_shot": "few-shot"}.get(
        name, name.replace("_", " ")
    )


def reference(number: int) -> str:
    """A reference as texts name it: `[Reference 3]`."""
    return f"[Reference {number}]"


def month_name(month: str) -> str:
    """`2024-03` → `March 2024`."""
    year, number = month.split("-")
    return f"{_MONTHS[int(number) - 1]} {year}"
