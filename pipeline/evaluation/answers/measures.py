"""Grades of answers, which are rows of `answer_grades`, the measures of each, and the age of its
question by a knowledge cut-off.

Factual % and coverage % are those of the arXivBot report, from 0 to 1;
docs/methods/answer-grades.md says what is ours. A measure that nothing could be computed for is
absent, never 0.
"""

from __future__ import annotations

import calendar
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from statistics import fmean
from typing import Any, Literal, get_args

from pipeline import tables
from pipeline.answering.questions import Question
from pipeline.corpus.nouns import Answer
from pipeline.errors import SettingError
from pipeline.evaluation.verdicts import CLAIM_POINTS, GOLD_POINTS, verdict_shares
from pipeline.storage.data_root import DataRoot
from pipeline.tables.writers import writer_name

Grade = Mapping[str, Any]
"""A row of `answer_grades`, with its writer's name as `system` where systems are compared."""

Outcome = Literal["answered", "abstained", "claims_nothing", "unreadable"]
"""abstained: the system said so. claims_nothing: it spoke and claimed nothing ("I do not know that
paper"). unreadable: the claims of the answer could not be read; the gold claims that it holds may
still be known.
"""

FACTUAL = ("factual", "factual_full", "factual_checkable", "factual_quoted")
COVERAGE = ("coverage", "coverage_full", "coverage_quoted", "coverage_of_shown")
RETRIEVAL = ("gold_shown", "gold_shown_first_hop")
MEASURES = (*FACTUAL, *COVERAGE, *RETRIEVAL, "claims")
"""The keys of `answer_measures`: shares from 0 to 1, and one count, `claims`."""


def read_grades(root: DataRoot, month: str) -> list[Grade]:
    """The grades of a month with their writers' names; none where nothing was graded.

    The passages that judges were shown are left out: they are most of a month, and no measure reads
    them. Raises as `DataRoot.iterate` does.
    """
    if not root.file(tables.ANSWER_GRADES, month).exists():
        return []
    return [
        {
            **row,
            "system": writer_name(row),
            "model": None,
            "claims": [{**claim, "passages": ()} for claim in row["claims"]],
        }
        for row in root.iterate(tables.ANSWER_GRADES, month)
    ]


def answer_measures(grade: Grade) -> dict[str, float]:
    """Measure → value of one answer, of those that can be computed. An abstention has no factual
    measure and no count of claims; its coverage is 0.
    """
    values = factual(grade["claims"]) | coverage(grade["gold"]) | _retrieval(grade)
    if grade["outcome"] == "answered":
        values["claims"] = float(len(grade["claims"]))
    return {name: values[name] for name in MEASURES if name in values}


def factual(claims: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """Of an answer's claims with a verdict, the share of points: one for correct, a half for
    partly, none for wrong and for what could not be checked.

    full: correct ones alone. checkable: among those that could be checked. quoted: points only
    where the quote was found. Nothing where no claim has a verdict.
    """
    measures = _shares("factual", claims, CLAIM_POINTS)
    checkable = [
        CLAIM_POINTS[claim["verdict"]]
        for claim in claims
        if claim["verdict"] not in (None, "not_checkable")
    ]
    if checkable:
        measures["factual_checkable"] = fmean(checkable)
    return measures


def coverage(gold: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """Of the gold claims with a verdict, the share of points: one for held, a half for partly.

    full: held ones alone. quoted: points only where the quote is in the answer. Nothing where none
    has a verdict.
    """
    return _shares("coverage", gold, GOLD_POINTS)


def _shares(
    name: str, claims: Sequence[Mapping[str, Any]], points: Mapping[str, float]
) -> dict[str, float]:
    shares = verdict_shares(claims, points, "quoted")
    return dict(zip((name, f"{name}_full", f"{name}_quoted"), shares or (), strict=False))


def _retrieval(grade: Grade) -> dict[str, float]:
    """Share of gold claims one of whose passages was shown, by the first hop and by the last, among
    those that have passages; and the coverage of those that were shown: what the model made of what
    it had.
    """
    shares = grade["hops_shown"]
    if not shares:
        return {}
    measures = {"gold_shown": shares[-1], "gold_shown_first_hop": shares[0]}
    points = [
        GOLD_POINTS[claim["verdict"]]
        for claim in grade["gold"]
        if claim["shown_in_hop"] is not None and claim["verdict"] is not None
    ]
    if points:
        measures["coverage_of_shown"] = fmean(points)
    return measures


def gold_shown_by_hop(
    question: Question, answer: Answer, gold_passages: Mapping[int, Sequence[str]]
) -> tuple[list[float] | None, dict[int, int | None]]:
    """Which gold claims had one of their passages shown: the share of them after each hop, and the
    first hop of each.

    gold_passages: place of a claim from 0 → ids of its passages, as `questions.gold_passages` gives
    it. The shares are of the claims that have passages: None for an answer that searched for
    nothing, empty where no claim has any. The hops are from 1, by the claim's place; None for
    never.
    """
    if not answer.shown and not answer.queries:
        return None, {}
    hops = [{passage.passage_id for passage in hop} for hop in answer.shown] or [set()]
    first: dict[int, int | None] = {}
    for place in range(len(question.claims)):
        ids = set(gold_passages.get(place, ()))
        if ids:
            first[place] = next((hop for hop, shown in enumerate(hops, 1) if ids & shown), None)
    if not first:
        return [], {}
    shares = [
        sum(first_hop is not None and first_hop <= hop for first_hop in first.values()) / len(first)
        for hop in range(1, len(hops) + 1)
    ]
    return shares, first


Age = Literal["old", "recent"]
AGES: tuple[Age, ...] = get_args(Age)
_MONTH = re.compile(r"(\d{4})-(\d{2})")


def latest_cutoff(cutoffs: Iterable[str]) -> str:
    """The latest of several models' cut-offs; empty for none. Raises as `age_of`."""
    return max(cutoffs, key=lambda cutoff: _last_day(cutoff, "knowledge cut-off"), default="")


def age_of(question_date: str, cutoff: str) -> Age | None:
    """old where the newest paper of a question first appeared up to a knowledge cut-off, recent
    after it; None for an empty cut-off.

    Both are `YYYY-MM-DD`, or `YYYY-MM` for the month's last day: the report's "December 2023" is
    all of December, and a paper of which the month alone is known is taken to be as new as it may
    be. Raises SettingError for anything else.
    """
    if not cutoff.strip():
        return None
    newest = _last_day(question_date, "date of a question")
    return "old" if newest <= _last_day(cutoff, "knowledge cut-off") else "recent"


def _last_day(text: str, what: str) -> date:
    month = _MONTH.fullmatch(text.strip())
    try:
        if month is None:
            return date.fromisoformat(text.strip())
        year, number = int(month[1]), int(month[2])
        return date(year, number, calendar.monthrange(year, number)[1])
    except (ValueError, calendar.IllegalMonthError):
        raise SettingError(f"{text!r} is no {what}: write it as YYYY-MM or YYYY-MM-DD") from None


def hop_gains(grades: Iterable[Grade]) -> list[dict[str, Any]]:
    """Gains by `judge`, `system` and `hop`, over the questions that took the hop; none for a system
    that searched for nothing.

    questions: how many took it. known: gold claims of these that have a gold passage. shown: those
    of which this hop showed one first. held: points that the answers have for these (one for held,
    a half for partly). helped: ids of the questions where the answer has points for a claim that
    this hop showed first.
    """
    took: dict[tuple[str, str, int], dict[str, Grade]] = defaultdict(dict)
    for grade in grades:
        for hop in range(1, len(grade["hops_shown"] or ()) + 1):
            took[grade["judge"], grade["system"], hop][grade["question_id"]] = grade
    gains = []
    for judge, system, hop in sorted(took):
        by_question = dict(sorted(took[judge, system, hop].items()))
        points = {
            question: [
                GOLD_POINTS.get(gold["verdict"], 0.0)
                for gold in grade["gold"]
                if gold["shown_in_hop"] == hop
            ]
            for question, grade in by_question.items()
        }
        gains.append(
            {
                "judge": judge,
                "system": system,
                "hop": hop,
                "questions": len(by_question),
                "known": sum(
                    gold["has_passage"] for grade in by_question.values() for gold in grade["gold"]
                ),
                "shown": sum(map(len, points.values())),
                "held": sum(map(sum, points.values())),
                "helped": [question for question, earned in points.items() if any(earned)],
            }
        )
    return gains
