"""Results of people's grades of answers: agreement, the judge beside them, and Table 1 by people.

Rows of `human_grades` and grades of judges in, numbers out; what cannot be computed is absent. A
person's verdict is on the very claim or gold claim that the judge had a verdict on, so both are
compared one by one, on the same claims.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import NamedTuple

from pipeline.evaluation.annotation.study import Part
from pipeline.evaluation.answers.measures import Grade, read_grades
from pipeline.evaluation.answers.people import (
    NO_JUDGE,
    SILENT,
    VERDICTS,
    gradable_answers,
)
from pipeline.evaluation.marks import (
    CLAIM_POINTS,
    GOLD_POINTS,
    overall_verdict,
    split_verdicts,
)
from pipeline.evaluation.statistics import (
    Estimate,
    Level,
    alpha,
    clear_winner,
    estimate,
    mean_ends,
    paired_difference,
)
from pipeline.storage.data_root import DataRoot
from pipeline.storage.writing import Row
from pipeline.tables import HUMAN_GRADES
from pipeline.tables.writers import writer_name

COMPARED: Mapping[Part, tuple[str, Mapping[str, float]]] = {
    "claim": ("factual", CLAIM_POINTS),
    "gold": ("coverage", GOLD_POINTS),
}
"""Part → its measure in `answer_measures`, and the points of its verdicts."""
# `not_checkable` is neither more nor less than the other verdicts on claims; those on gold claims
# have an order.
_LEVELS: Mapping[Part, Level] = {"claim": "nominal", "gold": "ordinal"}
_COLUMNS = [name for name in HUMAN_GRADES.schema.names if name not in ("label", "number")]


class ClaimKey(NamedTuple):
    """A claim of a system's answer, or a gold claim beside it."""

    question_id: str
    system: str
    part: Part
    text: str


Verdicts = Mapping[ClaimKey, Mapping[str, str]]
"""Claim → grader → verdict, or several as `split_verdicts` reads them."""
Shares = dict[str, dict[str, list[float]]]
"""Measure → question → a value for each grader."""


@dataclass(frozen=True, slots=True)
class Accuracy:
    """How often a judge's verdicts are those of most graders.

    units: claims with a verdict of both. same: share with the same one, its interval over questions
    in `low` and `high`, None for one question. alpha: nominal, of graders and judge. undecided:
    claims on which graders are split. confusion: how many claims have these verdicts of `people`
    and `judge`.
    """

    part: Part
    units: int
    same: float | None
    low: float | None
    high: float | None
    alpha: Estimate
    undecided: int
    confusion: Sequence[Mapping[str, str | int]]


@dataclass(frozen=True, slots=True)
class SystemComparison:
    """One system by people and by one judge: measure → mean over the questions that people graded
    it on, of the same claims. difference: people less judge, None for fewer than two questions and
    for NO_JUDGE, whose `judged` are empty.
    """

    judge: str
    system: str
    people: Mapping[str, Estimate]
    judged: Mapping[str, Estimate]
    difference: Mapping[str, Estimate | None]


@dataclass(frozen=True, slots=True)
class GradeResults:
    """Results of people's grades. outdated: rows on answers or claims that have changed since, left
    out; agreement: of the graders; accuracy: judge → part → how often it is right.
    """

    studies: tuple[str, ...]
    graders: tuple[str, ...]
    questions: int
    answers: int
    verdicts: int
    comments: int
    outdated: int
    agreement: Mapping[Part, Estimate]
    accuracy: Mapping[str, Mapping[Part, Accuracy]]
    systems: tuple[SystemComparison, ...]

    @property
    def empty(self) -> bool:
        """Whether there are no grades, outdated ones included."""
        return not (self.graders or self.outdated)


@dataclass(frozen=True, slots=True)
class MonthGrades:
    """A month's rows of people on answers that are still there, and the grades of its judges.
    outdated: how many rows are on others.
    """

    rows: Sequence[Row]
    grades: Sequence[Grade]
    outdated: int = 0


def read_month_grades(
    root: DataRoot, month: str, grades: Sequence[Grade], study: str | None = None
) -> MonthGrades:
    """A month's rows, of one study or of all, on claims of judges or on sentences of answers.

    Raises as `DataRoot.iterate` does.
    """
    if not root.file(HUMAN_GRADES, month).exists():
        return MonthGrades((), grades)
    answers = gradable_answers(root, month)
    of_sentences = [answer.sentence_grade() for answer in answers.values()]
    judged = {key for grade in grades for key in _verdicts_of(grade)}
    claims = judged.union(*map(_verdicts_of, of_sentences))
    current: list[Row] = []
    outdated = 0
    for stored in root.iterate(HUMAN_GRADES, month, _COLUMNS):
        if study not in (None, stored["study"]):
            continue
        row = {**stored, "system": writer_name(stored)}
        answer = answers.get((row["question_id"], row["system"]))
        if answer and answer.digest == row["text_sha256"] and _key(row) in claims:
            current.append(row)
        else:
            outdated += 1
    if any(_key(row) not in judged for row in current):
        grades = [*grades, *of_sentences]
    return MonthGrades(current, grades, outdated)


def read_grade_results(
    root: DataRoot, months: Iterable[str], study: str | None = None
) -> GradeResults:
    """The results of the months' grades, of one study or of all. Raises as `read_month_grades`."""
    return pool_months(
        {month: read_month_grades(root, month, read_grades(root, month), study) for month in months}
    )


def pool_months(months: Mapping[str, MonthGrades]) -> GradeResults:
    """The results of some months together."""
    rows: list[Row] = []
    grades: list[Grade] = []
    for month, read in months.items():
        # Two sets of questions may use one id.
        prefix = f"{month} " if len(months) > 1 else ""
        rows += [{**row, "question_id": prefix + row["question_id"]} for row in read.rows]
        grades += [{**grade, "question_id": prefix + grade["question_id"]} for grade in read.grades]
    return grade_results(rows, grades, sum(month.outdated for month in months.values()))


def grade_results(rows: Sequence[Row], grades: Sequence[Grade], outdated: int = 0) -> GradeResults:
    """The results of rows of `human_grades` beside grades of judges."""
    verdicts: dict[ClaimKey, dict[str, str]] = defaultdict(dict)
    for row in sorted(rows, key=lambda row: (_key(row), _grader(row))):
        if row["verdict"] is not None:
            verdicts[_key(row)][_grader(row)] = row["verdict"]
    by_judge = {
        judge: [grade for grade in grades if grade["judge"] == judge]
        for judge in sorted({grade["judge"] for grade in grades})
    }
    answers = {(row["question_id"], row["system"]) for row in rows}
    return GradeResults(
        studies=tuple(sorted({row["study"] for row in rows})),
        graders=tuple(sorted({_grader(row) for row in rows})),
        questions=len({question_id for question_id, _ in answers}),
        answers=len(answers),
        verdicts=sum(
            len(split_verdicts(verdict))
            for by_grader in verdicts.values()
            for verdict in by_grader.values()
        ),
        comments=sum(row["comment"] is not None for row in rows),
        outdated=outdated,
        agreement=_graders_agreement(verdicts),
        accuracy={
            judge: _judge_accuracy(mine, verdicts)
            for judge, mine in by_judge.items()
            if rows and judge
        },
        systems=tuple(
            system
            for judge, mine in by_judge.items()
            for system in _compare_systems(judge, mine, verdicts)
        ),
    )


def _grader(row: Row) -> str:
    """Graders of two studies that have one name, such as annotator-1, may be two people."""
    return f"{row['study']}: {row['grader']}"


def _key(row: Row) -> ClaimKey:
    return ClaimKey(row["question_id"], row["system"], row["part"], row["text"])


def _verdicts_of(grade: Grade) -> dict[ClaimKey, str | None]:
    """Claim → the judge's verdict, of every claim and gold claim of a grade."""
    parts: tuple[tuple[Part, Sequence[Row]], ...] = (
        ("claim", grade["claims"]),
        ("gold", grade["gold"]),
    )
    return {
        ClaimKey(grade["question_id"], grade["system"], part, claim["claim"]): claim["verdict"]
        for part, claims in parts
        for claim in claims
    }


def _graders_agreement(verdicts: Verdicts) -> dict[Part, Estimate]:
    """Part → Krippendorff's alpha of the graders, with intervals over questions."""
    agreement: dict[Part, Estimate] = {}
    for part, names in VERDICTS.items():
        mine = {key: by_grader for key, by_grader in verdicts.items() if key.part == part}
        codes = [
            [names.index(overall_verdict(verdict)) for verdict in by_grader.values()]
            for by_grader in mine.values()
        ]
        agreement[part] = alpha(codes, [key.question_id for key in mine], _LEVELS[part])
    return agreement


def _judge_accuracy(grades: Iterable[Grade], verdicts: Verdicts) -> dict[Part, Accuracy]:
    """Part → how often one judge is right about the claims that people graded too."""
    judged = {
        key: verdict
        for grade in grades
        for key, verdict in _verdicts_of(grade).items()
        if verdict is not None
    }
    decided: dict[ClaimKey, str] = {}
    for key, by_grader in verdicts.items():
        majority = clear_winner(map(overall_verdict, by_grader.values()))
        if majority is not None:
            decided[key] = majority
    return {part: _accuracy(part, judged, decided, verdicts) for part in VERDICTS}


def _accuracy(
    part: Part, judged: Mapping[ClaimKey, str], decided: Mapping[ClaimKey, str], verdicts: Verdicts
) -> Accuracy:
    import numpy as np

    both = sorted(key for key in judged.keys() & decided.keys() if key.part == part)
    split = (verdicts.keys() & judged.keys()) - decided.keys()
    questions = [key.question_id for key in both]
    pairs = [(decided[key], judged[key]) for key in both]
    same = np.array([people == judge for people, judge in pairs], dtype=float)
    low, high = mean_ends(same, questions) if pairs else (None, None)
    return Accuracy(
        part=part,
        units=len(pairs),
        same=float(same.mean()) if pairs else None,
        low=low,
        high=high,
        alpha=alpha(pairs, questions, "nominal"),
        undecided=sum(key.part == part for key in split),
        confusion=[
            {"people": people, "judge": judge, "units": units}
            for (people, judge), units in sorted(Counter(pairs).items())
        ],
    )


def _compare_systems(
    judge: str, grades: Sequence[Grade], verdicts: Verdicts
) -> Iterator[SystemComparison]:
    """Each system that was graded. Every grader's verdicts count alike: an answer's share is the
    mean over those who graded it, and the judge's is that of the same claims.

    No sheet has answers that abstain or claim nothing, and yet they hold no gold claim: they count
    for questions of which the grader graded gold claims in another answer.
    """
    people: dict[str, Shares] = defaultdict(_no_shares)
    judged: dict[str, Shares] = defaultdict(_no_shares)
    for grader in sorted({name for by_grader in verdicts.values() for name in by_grader}):
        mine = {
            key: by_grader[grader] for key, by_grader in verdicts.items() if grader in by_grader
        }
        systems = {key.system for key in mine}
        for grade in grades:
            if grade["system"] in systems:
                of_people, of_judge = _verdicts_on_the_same(grade, mine)
                _add_shares(people[grade["system"]], grade["question_id"], of_people)
                _add_shares(judged[grade["system"]], grade["question_id"], of_judge)
    for system, measures in sorted(people.items()):
        if not measures:
            continue
        by_judge = judged[system]
        yield SystemComparison(
            judge=judge,
            system=system,
            people={name: estimate(values) for name, values in measures.items()},
            judged={name: estimate(by_judge[name]) for name in measures},
            difference={
                name: paired_difference(values, by_judge[name]) for name, values in measures.items()
            },
        )


def _add_shares(shares: Shares, question_id: str, verdicts: Mapping[ClaimKey, str]) -> None:
    """Add the share of points that one person's, or the judge's, verdicts give an answer."""
    for part, (measure, points) in COMPARED.items():
        marks = [
            points[verdict]
            for key, line in verdicts.items()
            if key.part == part
            for verdict in split_verdicts(line)
        ]
        if marks:
            shares[measure][question_id].append(fmean(marks))


def _verdicts_on_the_same(
    grade: Grade, mine: Mapping[ClaimKey, str]
) -> tuple[Mapping[ClaimKey, str], Mapping[ClaimKey, str]]:
    """A grader's verdicts on an answer, and the judge's on the same claims; none of NO_JUDGE."""
    claims = _verdicts_of(grade)
    judged = {key: verdict for key, verdict in claims.items() if verdict is not None}
    if grade["outcome"] in SILENT:
        question_id = grade["question_id"]
        graded = any(key.part == "gold" and key.question_id == question_id for key in mine)
        of_people = judged if graded else {}
    else:
        known = claims if grade["judge"] == NO_JUDGE else judged
        of_people = {key: mine[key] for key in known if key in mine}
    if grade["judge"] == NO_JUDGE:
        return of_people, {}
    return of_people, {key: judged[key] for key in of_people}


def _no_shares() -> Shares:
    return defaultdict(lambda: defaultdict(list))
