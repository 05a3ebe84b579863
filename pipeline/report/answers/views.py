"""What the pages of answers show, as frozen values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pipeline.report.grid import Grid, Value
from pipeline.report.views import AnswersView, PassageView


@dataclass(frozen=True, slots=True)
class ReadView:
    """One passage that a system read. where: title and sections; gold: numbers of the gold claims that it holds."""

    where: str
    passage: PassageView
    gold: Sequence[int] = ()


@dataclass(frozen=True, slots=True)
class HopView:
    """One search: its query, '' for passages that were looked up otherwise, and what the model read of its findings."""

    number: int
    query: str
    read: Sequence[ReadView]


@dataclass(frozen=True, slots=True)
class ClaimView:
    """One claim that an answer rests on. source: '' where it was read in its passage, else how it came about."""

    number: int
    text: str
    source: str
    hop: int
    read: ReadView | None
    used: bool


@dataclass(frozen=True, slots=True)
class SaidView:
    """One sentence of an answer, and the claims that it rests on."""

    place: int
    text: str
    claims: Sequence[ClaimView]


@dataclass(frozen=True, slots=True)
class ClaimGradeView:
    """A judge's verdict on one claim; '' where it could not be read, for `failure`. where: what holds the quote."""

    claim: str
    verdict: str
    quote: str
    where: str
    failure: str
    cut: bool
    passages: Sequence[PassageView]


@dataclass(frozen=True, slots=True)
class GoldGradeView:
    """A judge's verdict on whether the answer holds a gold claim. quoted: whether the quote stands in the answer."""

    number: int
    claim: str
    verdict: str
    quote: str
    quoted: bool
    failure: str


@dataclass(frozen=True, slots=True)
class GradeView:
    """One judge's grading of one answer; failures: parts of the answer that could not be taken apart."""

    judge: str
    outcome: str
    factual: Value
    coverage: Value
    claims: Sequence[ClaimGradeView]
    gold: Sequence[GoldGradeView]
    failures: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class AnswerView:
    """One system's answer. anchor: its place on the page; series: the number of its colour; paragraphs: its text,
    where no sentence rests on a claim; steps: the trace in words, step by step."""

    system: str
    anchor: str
    series: int
    model: str
    abstained: bool
    paragraphs: Sequence[str]
    sentences: Sequence[SaidView]
    claims: Sequence[ClaimView]
    hops: Sequence[HopView]
    steps: Sequence[Sequence[str]]
    calls: int
    prompt_tokens: int
    completion_tokens: int
    grades: Sequence[GradeView] = ()
    failures: Sequence[tuple[str, str]] = ()
    """Answers of the model that could not be read and were done without: (at which step, why)."""


@dataclass(frozen=True, slots=True)
class GoldPlace:
    """Where a gold claim stands."""

    url: str
    anchor: str


@dataclass(frozen=True, slots=True)
class GoldView:
    """One claim of the standard answer. evidence: phrases of its paper that say so."""

    number: int
    claim: str
    arxiv_id: str
    evidence: Sequence[str]
    places: Sequence[GoldPlace]


@dataclass(frozen=True, slots=True)
class QuestionView:
    """What the page of a question shows. papers: (arXiv id, address of its text)."""

    month: str
    page: str
    question_id: str
    question: str
    kind: str
    date: str
    age: str
    reviewed: bool
    papers: Sequence[tuple[str, str]]
    gold: Sequence[GoldView]
    held: Grid | None
    answers: Sequence[AnswerView]
    small_model: str = ""
    judge_notes: Sequence[str] = ()
    """How good the judges are whose verdicts it shows."""


@dataclass(frozen=True, slots=True)
class AnswersPage:
    """What the page of a month's answers shows."""

    month: str
    answers: AnswersView
