"""The form of people who grade answers: what a sheet asks, as a page that works from disk."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pipeline.evaluation.answers.people import VERDICTS, Part
from pipeline.evaluation.answers.sheets import Key, Shown, order
from pipeline.evaluation.cited import parted
from pipeline.evaluation.human.forms import content_digest, render

MEANINGS: Mapping[Part, Mapping[str, str]] = {
    "claim": {
        "correct": "the papers say all of it, be it in other words",
        "partly": "they say some of it and nothing against the rest, or it is a little off",
        "wrong": "they say otherwise",
        "not_checkable": "they say nothing of it",
    },
    "gold": {
        "held": "it says all of the fact, be it in other words or in more detail",
        "partly": "it says some of the fact, or something less exact",
        "not": "it does not say it, or it says otherwise",
    },
}
"""What each verdict means, in the words that the judge is told."""


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer as a grader sees it. lines: part → the texts that are marked, in order."""

    label: str
    paragraphs: Sequence[str]
    lines: Mapping[Part, Sequence[str]]


@dataclass(frozen=True, slots=True)
class Question:
    """A question with its answers. papers: title and address of those that it is about."""

    text: str
    papers: Sequence[str]
    answers: Sequence[Answer]


def form(key: Key, shown: Mapping[str, Shown], grader: str = "") -> bytes:
    """The form that a grader gets, its questions in the order of that grader's sheet; it gives a CSV as the sheet is.

    shown: question id → its words and those of its answers.
    """
    questions = _questions(key, shown, grader)
    return render(
        "grades.html.j2", "grades.js", name=key.study, content=content_digest(sorted(map(repr, questions))),
        questions=questions, verdicts=VERDICTS, meanings=MEANINGS,
    )  # fmt: skip


def _questions(key: Key, shown: Mapping[str, Shown], grader: str) -> list[Question]:
    of_question: dict[str, list[Answer]] = {}
    for label in order(key, grader):
        of = key.labels[label]
        words = shown[of.question_id].answers[of.system]
        answer = Answer(label, parted(words), {"claim": of.claims, "gold": of.gold})
        of_question.setdefault(of.question_id, []).append(answer)
    return [Question(shown[each].question, shown[each].papers, answers) for each, answers in of_question.items()]
