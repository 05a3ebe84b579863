"""People's grades beside a judge's: how far graders agree, how often a judge is right, and what graders' marks say.

A person's mark is on the very claim or gold claim that the judge had a verdict on, so both can be compared one by one,
and people's marks can stand in a grade in place of the judge's.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, NamedTuple, cast

from pipeline.answering.prompting import NOTHING
from pipeline.evaluation import statistics
from pipeline.evaluation.answers.grades import (
    CLAIM_VERDICTS,
    GOLD_VERDICTS,
    ClaimGrade,
    ClaimVerdict,
    GoldGrade,
    GoldVerdict,
    Grade,
)
from pipeline.evaluation.answers.measures import answer_measures
from pipeline.evaluation.human.agreement import Agreement, Level, alpha, kappa

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Part = Literal["claim", "gold"]
VERDICTS: Mapping[Part, tuple[str, ...]] = {"claim": CLAIM_VERDICTS, "gold": GOLD_VERDICTS}
_LEVELS: Mapping[Part, Level] = {"claim": "nominal", "gold": "ordinal"}
SILENT = ("abstained", "claims_nothing")
"""Outcomes that leave a grader nothing to mark."""
PEOPLE = "people"
"""In place of a judge's name: the verdicts that most graders gave."""


class Unit(NamedTuple):
    """What is marked: a claim of a system's answer, or a gold claim beside it."""

    question_id: str
    system: str
    part: Part
    text: str


@dataclass(frozen=True, slots=True)
class Mark:
    """One person's verdict on one unit: one of VERDICTS for its part, None where they only commented."""

    grader: str
    unit: Unit
    verdict: str | None
    comment: str | None = None


def graders_agreement(marks: Iterable[Mark]) -> dict[Part, Agreement]:
    """Krippendorff's alpha of the graders, intervals over questions: of claims' verdicts as names, since what cannot be
    checked is neither more nor less than the rest, of gold claims' verdicts in their order."""
    units = _by_unit(marks)
    return {part: _alpha(units, part) for part in VERDICTS}


def _alpha(units: Mapping[Unit, Mapping[str, str]], part: Part) -> Agreement:
    mine = {unit: given for unit, given in units.items() if unit.part == part}
    codes = [[VERDICTS[part].index(verdict) for verdict in given.values()] for given in mine.values()]
    return alpha(codes, [unit.question_id for unit in mine], _LEVELS[part])


def _by_unit(marks: Iterable[Mark]) -> dict[Unit, dict[str, str]]:
    """Unit → grader → verdict, in order; a grader's last verdict counts."""
    found: dict[Unit, dict[str, str]] = defaultdict(dict)
    for mark in sorted(marks, key=lambda mark: (mark.unit, mark.grader)):
        if mark.verdict is not None:
            found[mark.unit][mark.grader] = mark.verdict
    return dict(found)


def majority(marks: Iterable[Mark]) -> dict[Unit, str]:
    """Unit → the verdict of most graders; a unit on which two verdicts are given equally often is left out."""
    counted = {unit: Counter(given.values()).most_common(2) for unit, given in _by_unit(marks).items()}
    return {unit: top[0][0] for unit, top in counted.items() if len(top) == 1 or top[0][1] > top[1][1]}


@dataclass(frozen=True, slots=True)
class Accuracy:
    """How often a judge's verdicts are those of most graders.

    units: those with a verdict of both. same: the share that is one, with its interval over questions in `low` and
    `high`, None for one question. kappa: over what chance would give. undecided: units on which graders are split.
    confusion: (graders' verdict, judge's) → how many units.
    """

    part: Part
    units: int
    same: float | None
    low: float | None
    high: float | None
    kappa: Agreement
    undecided: int
    confusion: Mapping[tuple[str, str], int]


def judge_accuracy(grades: Iterable[Grade], marks: Sequence[Mark]) -> dict[Part, Accuracy]:
    """Of one judge's grades, those that people marked too. Raises ValueError for grades of several judges."""
    mine = list(grades)
    if len({grade.judge for grade in mine}) > 1:
        raise ValueError(f"grades of several judges: {sorted({grade.judge for grade in mine})}")
    judged = {unit: verdict for grade in mine for unit, verdict in verdicts_of(grade).items()}
    decided, marked = majority(marks), {mark.unit for mark in marks if mark.verdict is not None}
    return {part: _accuracy(part, judged, decided, marked) for part in VERDICTS}


def verdicts_of(grade: Grade) -> dict[Unit, str]:
    """Unit → verdict, of those that a grade has."""
    parts: list[tuple[Part, Sequence[ClaimGrade | GoldGrade]]] = [("claim", grade.claims), ("gold", grade.gold)]
    return {
        Unit(grade.question_id, grade.system, part, each.claim): each.verdict
        for part, grades in parts
        for each in grades
        if each.verdict is not None
    }


def _accuracy(part: Part, judged: Mapping[Unit, str], decided: Mapping[Unit, str], marked: set[Unit]) -> Accuracy:
    both = sorted(unit for unit in judged.keys() & decided.keys() if unit.part == part)
    same = {unit: decided[unit] == judged[unit] for unit in both}
    drawn = statistics.Draws([unit.question_id for unit in both])
    low, high = drawn.interval(_array(same.values())) if both else (None, None)
    counts = [[(decided[unit], judged[unit]).count(verdict) for verdict in VERDICTS[part]] for unit in both]
    return Accuracy(
        part=part,
        units=len(both),
        same=sum(same.values()) / len(both) if both else None,
        low=low,
        high=high,
        kappa=kappa(counts, [unit.question_id for unit in both]),
        undecided=sum(unit.part == part for unit in (marked & judged.keys()) - decided.keys()),
        confusion=dict(sorted(Counter((decided[unit], judged[unit]) for unit in both).items())),
    )


def _array(values: Iterable[bool]) -> NDArray[np.float64]:
    import numpy as np

    return np.array(list(values), dtype=float)


def graded_by_people(grades: Iterable[Grade], verdicts: Mapping[Unit, str], name: str = PEOPLE) -> list[Grade]:
    """The grades that people marked, with their verdicts in place of the judge's, and their name in place of its own.

    verdicts: of `majority`, or of one grader. What they did not mark has no verdict; quotes and costs, which are the
    judge's, are gone. Answers of which nothing was marked are left out, but for those that abstained or claim nothing,
    whose grade needs nobody.
    """
    found = []
    for grade in grades:
        claims = tuple(ClaimGrade(each.claim, _claim_verdict(grade, each, verdicts)) for each in grade.claims)
        gold = tuple(GoldGrade(each.claim, _gold_verdict(grade, each, verdicts)) for each in grade.gold)
        if grade.outcome in SILENT:
            found.append(replace(grade, judge=name))
        elif any(each.verdict for each in claims) or any(each.verdict for each in gold):
            split = replace(grade.split, spent=NOTHING)
            found.append(replace(grade, judge=name, claims=claims, gold=gold, split=split))
    return found


def _claim_verdict(grade: Grade, claim: ClaimGrade, verdicts: Mapping[Unit, str]) -> ClaimVerdict | None:
    return cast("ClaimVerdict | None", verdicts.get(Unit(grade.question_id, grade.system, "claim", claim.claim)))


def _gold_verdict(grade: Grade, gold: GoldGrade, verdicts: Mapping[Unit, str]) -> GoldVerdict | None:
    return cast("GoldVerdict | None", verdicts.get(Unit(grade.question_id, grade.system, "gold", gold.claim)))


def answers_agreement(first: Iterable[Grade], second: Iterable[Grade], measure: str) -> statistics.Agreement | None:
    """How far two judges, or a judge and people, agree in a measure of whole answers; None where they have none in
    common. mean_difference: of the second less the first."""
    return statistics.agreement(_scores(first, measure), _scores(second, measure))


def _scores(grades: Iterable[Grade], measure: str) -> dict[tuple[str, str], float]:
    told = {(grade.question_id, grade.system): answer_measures(grade) for grade in grades}
    return {key: measures[measure] for key, measures in told.items() if measure in measures}
