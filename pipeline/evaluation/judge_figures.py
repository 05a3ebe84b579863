"""How good the judges are: committed figures, measured by `python -m benchmarks.judges` on claims
that people labelled.

A report prints them beside the verdicts of a judge, and "not verified" where a judge, or its prompt
of today, has none.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, TypeAdapter

from pipeline.evaluation.answers.judge import CLAIM
from pipeline.evaluation.answers.sample import PROMPTS as ANSWER_PROMPTS
from pipeline.evaluation.citation_support import overlap_judge
from pipeline.evaluation.citation_support.judge import PROMPT
from pipeline.evaluation.citation_support.judge import PROMPTS as CITATION_PROMPTS
from pipeline.settings.validators import OVERLAP_JUDGE

FILE = Path(__file__).with_name("judge_figures.json")
NOT_VERIFIED = "not verified"
TaskName = Literal["citation_support", "claim_grade"]


class MacroF1(NamedTuple):
    """Macro-F1 with the ends of its 95 % interval over documents."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.2f} ({self.low:.2f} to {self.high:.2f})"


class SetFigures(BaseModel):
    """A judge on a labelled set. three_classes: None if its verdicts do not separate the labels."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    set: str
    claims: int
    supported_or_not: MacroF1
    three_classes: MacroF1 | None = None


class JudgeFigures(BaseModel):
    """A judge at one task. prompt: digest of the prompt, or of the fitted constants of the judge
    without a model.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    judge: str
    task: TaskName
    prompt: str
    date: str
    source: str
    sets: tuple[SetFigures, ...]


_ALL: TypeAdapter[list[JudgeFigures]] = TypeAdapter(list[JudgeFigures])


def prompt_digest(judge: str, task: TaskName) -> str:
    """The digest of a judge's prompt at a task, or of its fitted constants."""
    if judge == OVERLAP_JUDGE:
        return overlap_judge.fingerprint()
    if task == "claim_grade":
        return ANSWER_PROMPTS.digest(CLAIM)
    return CITATION_PROMPTS.digest(PROMPT)


def read_figures(file: Path = FILE) -> list[JudgeFigures]:
    """The figures of a file, of earlier prompts too."""
    return _ALL.validate_json(file.read_bytes())


def write_figures(figures: Sequence[JudgeFigures], file: Path = FILE) -> None:
    """Write figures in place of earlier ones of the same judge and task; the others stay."""
    by_key = {(entry.judge, entry.task): entry for entry in (*read_figures(file), *figures)}
    file.write_bytes(_ALL.dump_json([by_key[key] for key in sorted(by_key)], indent=1) + b"\n")


def figures_digest() -> str:
    """SHA-256 of the committed figures, for the fingerprint of what shows them."""
    return hashlib.sha256(FILE.read_bytes()).hexdigest()


def judge_label(judge: str, task: TaskName) -> str:
    """The judge's name with its figures, or with "not verified"."""
    figures = _current_figures().get((judge, task))
    if figures is None:
        return f"{judge} ({NOT_VERIFIED})"
    parts = []
    for on_set in figures.sets:
        score, classes = next(_scores(on_set))
        parts.append(f"macro-F1 {score.value:.2f} on {on_set.set}, {classes}")
    return f"{judge} ({', '.join(parts)})"


def judge_sentences(judges: Sequence[str], task: TaskName) -> list[str]:
    """For each judge a sentence on how good it is at a task."""
    sentences = []
    for judge in judges:
        figures = _current_figures().get((judge, task))
        if figures is None:
            sentences.append(
                f"The judge {judge} is {NOT_VERIFIED}: no figures on labelled claims are known of"
                " it and its prompt."
            )
            continue
        parts = []
        for on_set in figures.sets:
            scores = ", ".join(f"{score} for {classes}" for score, classes in _scores(on_set))
            parts.append(f"macro-F1 {scores} on {on_set.claims:,} claims of {on_set.set}")
        sentences.append(
            f"On claims that other people labelled, {judge} reaches, with 95 % intervals:"
            f" {'; '.join(parts)} (measured on {figures.date})."
        )
    return sentences


@cache
def _current_figures() -> dict[tuple[str, str], JudgeFigures]:
    """(Judge, task) → the committed figures of the prompts that are in use."""
    return {
        (figures.judge, figures.task): figures
        for figures in read_figures()
        if figures.prompt == prompt_digest(figures.judge, figures.task)
    }


def _scores(figures: SetFigures) -> Iterator[tuple[MacroF1, str]]:
    if figures.three_classes is not None:
        yield figures.three_classes, "three classes"
    yield figures.supported_or_not, "supported or not"
