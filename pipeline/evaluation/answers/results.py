"""Results of each system: means with intervals by kind and age, and gains of hops.

Pure: grades in, numbers out; what cannot be computed is absent. A question weighs the same however
many claims its answer makes, and intervals draw whole questions.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from pipeline.answering.questions import KINDS
from pipeline.evaluation import statistics
from pipeline.evaluation.answers.measures import (
    AGES,
    MEASURES,
    Grade,
    Outcome,
    age_of,
    answer_measures,
)
from pipeline.evaluation.marks import GOLD_POINTS


@dataclass(frozen=True, slots=True)
class QuestionGroup:
    """Which questions: all of them, those of a kind, or those of an age."""

    by: Literal["all", "kind", "age"] = "all"
    name: str = ""


ALL = QuestionGroup()


@dataclass(frozen=True, slots=True)
class SystemResult:
    """One system, graded by one judge, over one group of questions. outcomes: how many answers came
    to what; measures: those that any answer has.
    """

    judge: str
    system: str
    group: QuestionGroup
    questions: int
    outcomes: Mapping[Outcome, int]
    measures: Mapping[str, statistics.Estimate]


def results(grades: Iterable[Grade], cutoff: str = "") -> list[SystemResult]:
    """Results by judge, system and group: all questions first, then each kind and each age that
    there is.

    cutoff: the date that divides old from recent questions, as of `age_of`. Raises as `age_of`, and
    ValueError where a judge graded a system's answer to one question twice.
    """
    of_groups = []
    for (judge, system), mine in _by_judge_and_system(grades).items():
        groups: dict[QuestionGroup, list[Grade]] = {ALL: mine}
        groups |= {
            QuestionGroup("kind", kind): [grade for grade in mine if grade["kind"] == kind]
            for kind in KINDS
        }
        groups |= {
            QuestionGroup("age", age): [
                grade for grade in mine if age_of(grade["date"], cutoff) == age
            ]
            for age in AGES
        }
        of_groups += [_result(judge, system, group, some) for group, some in groups.items() if some]
    return of_groups


def _by_judge_and_system(grades: Iterable[Grade]) -> dict[tuple[str, str], list[Grade]]:
    """Grades by judge and system, each in the order of the questions' ids."""
    by_question: dict[tuple[str, str], dict[str, Grade]] = defaultdict(dict)
    for grade in grades:
        judge, system, question_id = grade["judge"], grade["system"], grade["question_id"]
        if question_id in by_question[judge, system]:
            raise ValueError(f"{judge} graded {system}'s answer to {question_id} twice")
        by_question[judge, system][question_id] = grade
    return {
        key: [answers[name] for name in sorted(answers)]
        for key, answers in sorted(by_question.items())
    }


def _result(judge: str, system: str, group: QuestionGroup, grades: Sequence[Grade]) -> SystemResult:
    values = {grade["question_id"]: answer_measures(grade) for grade in grades}
    measures = {}
    for name in MEASURES:
        by_question = {
            question: [measured[name]] for question, measured in values.items() if name in measured
        }
        if by_question:
            measures[name] = statistics.estimate(by_question)
    outcomes: Mapping[Outcome, int] = Counter(grade["outcome"] for grade in grades)
    return SystemResult(judge, system, group, len(grades), dict(sorted(outcomes.items())), measures)


def difference(
    grades: Iterable[Grade], judge: str, first: str, second: str, measure: str
) -> statistics.Estimate | None:
    """The first system less the second in one measure; None for under two common questions."""
    by_system: dict[str, dict[str, list[float]]] = {first: {}, second: {}}
    for grade in grades:
        if grade["judge"] == judge and grade["system"] in by_system:
            value = answer_measures(grade).get(measure)
            by_system[grade["system"]][grade["question_id"]] = [] if value is None else [value]
    return statistics.paired_difference(by_system[first], by_system[second])


@dataclass(frozen=True, slots=True)
class HopGain:
    """Gains of one hop of a system, over the questions that took it.

    known: gold claims of these questions that have a gold passage. shown: those of which this hop
    showed one first. held: points that the answers have for these (one for held, a half for
    partly). helped: ids of the questions where the answer has points for a claim that this hop
    showed first.
    """

    judge: str
    system: str
    hop: int
    questions: int
    known: int
    shown: int
    held: float
    helped: tuple[str, ...]


def hop_gains(grades: Iterable[Grade]) -> list[HopGain]:
    """Gains by judge, system and hop; none for a system that searched for nothing."""
    gains = []
    for (judge, system), mine in _by_judge_and_system(grades).items():
        most = max(len(grade["hops_shown"] or ()) for grade in mine)
        gains += [_gain(judge, system, hop, mine) for hop in range(1, most + 1)]
    return gains


def _gain(judge: str, system: str, hop: int, grades: Iterable[Grade]) -> HopGain:
    took = [grade for grade in grades if len(grade["hops_shown"] or ()) >= hop]
    points = {
        grade["question_id"]: [
            GOLD_POINTS.get(gold["verdict"], 0.0)
            for gold in grade["gold"]
            if gold["shown_in_hop"] == hop
        ]
        for grade in took
    }
    return HopGain(
        judge=judge,
        system=system,
        hop=hop,
        questions=len(took),
        known=sum(gold["has_passage"] for grade in took for gold in grade["gold"]),
        shown=sum(map(len, points.values())),
        held=sum(map(sum, points.values())),
        helped=tuple(question for question, earned in points.items() if any(earned)),
    )
