"""What people's grades say of a month or several: agreement, the judge beside them, and Table 1 by people.

Rows of `human_grades` and grades of judges in, numbers out; what cannot be computed is absent. People and judge are
compared on the same claims alone.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from pipeline.evaluation import statistics
from pipeline.evaluation.answers.grades import Grade
from pipeline.evaluation.answers.measures import answer_measures
from pipeline.evaluation.answers.people import (
    SILENT,
    Accuracy,
    Mark,
    Part,
    Unit,
    graded_by_people,
    graders_agreement,
    judge_accuracy,
    verdicts_of,
)
from pipeline.evaluation.answers.results import Measured, measured
from pipeline.evaluation.answers.texts import shown_in
from pipeline.evaluation.human.agreement import Agreement
from pipeline.storage.data_root import DataRoot
from pipeline.storage.writing import Row
from pipeline.tables import HUMAN_GRADES

COMPARED = ("factual", "coverage")
_COLUMNS = [name for name in HUMAN_GRADES.schema.names if name not in ("label", "number")]


@dataclass(frozen=True, slots=True)
class Beside:
    """One system by people and by one judge: measure → mean over the questions that people graded it on, of the same
    claims; those measures that there are. difference: people less judge, None for fewer than two questions."""

    judge: str
    system: str
    people: Mapping[str, Measured]
    judged: Mapping[str, Measured]
    difference: Mapping[str, statistics.Interval | None]


@dataclass(frozen=True, slots=True)
class PeopleResults:
    """What people gave. outdated: verdicts and comments on answers or claims that are no longer there, left out;
    agreement: of the graders; accuracy: judge → part → how often it is right."""

    studies: tuple[str, ...]
    graders: tuple[str, ...]
    questions: int
    answers: int
    verdicts: int
    comments: int
    outdated: int
    agreement: Mapping[Part, Agreement]
    accuracy: Mapping[str, Mapping[Part, Accuracy]]
    systems: tuple[Beside, ...]

    def as_json(self) -> dict[str, Any]:
        """The results as a JSON document; a table of mistakes as a list of its cells."""
        told = asdict(self)
        for judge, parts in self.accuracy.items():
            for part, each in parts.items():
                cells = [{"people": p, "judge": j, "units": units} for (p, j), units in each.confusion.items()]
                told["accuracy"][judge][part]["confusion"] = cells
        return told


@dataclass(frozen=True, slots=True)
class GradedByPeople:
    """A month's rows of people on what is still there, and the grades of its judges. outdated: rows on what is not."""

    rows: Sequence[Row]
    grades: Sequence[Grade]
    outdated: int = 0

    def of(self, month: str) -> GradedByPeople:
        """The same with the month before each question's id."""
        return replace(
            self,
            rows=[{**row, "question_id": f"{month} {row['question_id']}"} for row in self.rows],
            grades=[replace(grade, question_id=f"{month} {grade.question_id}") for grade in self.grades],
        )


def read_people(root: DataRoot, grades: Mapping[str, Iterable[Grade]], study: str | None = None) -> PeopleResults:
    """The results of some months' rows, of one grading or of all. grades: month → those of its judges.

    Raises as `DataRoot.iterate` does.
    """
    return pooled({month: read_month(root, month, list(mine), study) for month, mine in grades.items()})


def pooled(months: Mapping[str, GradedByPeople]) -> PeopleResults:
    """The results of some months. Of several, ids of questions get the month before them: sets that were changed
    between may have the same."""
    read = [each.of(month) if len(months) > 1 else each for month, each in months.items()]
    return people_results(
        [row for each in read for row in each.rows],
        [grade for each in read for grade in each.grades],
        sum(each.outdated for each in read),
    )


def read_month(root: DataRoot, month: str, grades: Sequence[Grade], study: str | None = None) -> GradedByPeople:
    """What people gave in a month, in one grading or in all. Raises as `DataRoot.iterate` does."""
    if not root.file(HUMAN_GRADES, month).exists():
        return GradedByPeople((), grades)
    there, digests = {unit for grade in grades for unit in _units(grade)}, _digests(root, month)
    rows = [row for row in root.iterate(HUMAN_GRADES, month, _COLUMNS) if study in (None, row["study"])]
    current: list[Row] = [
        row
        for row in rows
        if digests.get((row["question_id"], row["system"])) == row["text_sha256"] and _unit(row) in there
    ]
    return GradedByPeople(current, grades, len(rows) - len(current))


def people_results(rows: Sequence[Row], grades: Sequence[Grade], outdated: int = 0) -> PeopleResults:
    """What rows of `human_grades` say beside grades of judges."""
    marks = [_mark(row) for row in rows]
    by_judge: dict[str, list[Grade]] = {name: [] for name in sorted({grade.judge for grade in grades})}
    for grade in grades:
        by_judge[grade.judge].append(grade)
    return PeopleResults(
        studies=tuple(sorted({row["study"] for row in rows})),
        graders=tuple(sorted({mark.grader for mark in marks})),
        questions=len({mark.unit.question_id for mark in marks}),
        answers=len({mark.unit[:2] for mark in marks}),
        verdicts=sum(mark.verdict is not None for mark in marks),
        comments=sum(mark.comment is not None for mark in marks),
        outdated=outdated,
        agreement=graders_agreement(marks),
        accuracy={judge: judge_accuracy(mine, marks) for judge, mine in by_judge.items()} if marks else {},
        systems=tuple(each for judge, mine in by_judge.items() for each in _beside(judge, mine, marks)),
    )


def _mark(row: Row) -> Mark:
    """Graders of two gradings that have one name, such as grader-1, may be two people."""
    return Mark(f"{row['study']}: {row['grader']}", _unit(row), row["verdict"], row["comment"])


def _unit(row: Row) -> Unit:
    return Unit(row["question_id"], row["system"], row["part"], row["text"])


def _units(grade: Grade) -> Iterator[Unit]:
    yield from (Unit(grade.question_id, grade.system, "claim", each.claim) for each in grade.claims)
    yield from (Unit(grade.question_id, grade.system, "gold", each.claim) for each in grade.gold)


def _digests(root: DataRoot, month: str) -> dict[tuple[str, str], str]:
    """(Question, system) → digest of what is there now."""
    return {
        (question, system): words.digest(system)
        for question, words in shown_in(root, month).items()
        for system in words.answers
    }


def _beside(judge: str, grades: Sequence[Grade], marks: Sequence[Mark]) -> Iterator[Beside]:
    """Each system that was graded. Every grader's verdicts count alike: an answer's share is the mean over those who
    graded it, and the judge's is that of the same claims."""
    values: dict[str, dict[str, _Values]] = defaultdict(lambda: {name: _Values() for name in COMPARED})
    for grader in sorted({mark.grader for mark in marks}):
        mine = [mark for mark in marks if mark.grader == grader]
        for people, same in _graded_by(mine, grades):
            first, second = answer_measures(people), answer_measures(same)
            for name in COMPARED:
                if name in first and name in second:
                    values[people.system][name].add(people.question_id, first[name], second[name])
    for system, of in sorted(values.items()):
        some = {name: each for name, each in of.items() if each.people}
        yield Beside(
            judge=judge,
            system=system,
            people={name: measured(each.people) for name, each in some.items()},
            judged={name: measured(each.judged) for name, each in some.items()},
            difference={name: statistics.paired_difference(each.people, each.judged) for name, each in some.items()},
        )


@dataclass(slots=True)
class _Values:
    """A measure of one system: question → one value for each grader, theirs and the judge's of the same claims."""

    people: dict[str, list[float]] = field(default_factory=dict)
    judged: dict[str, list[float]] = field(default_factory=dict)

    def add(self, question: str, people: float, judged: float) -> None:
        self.people.setdefault(question, []).append(people)
        self.judged.setdefault(question, []).append(judged)


def _graded_by(marks: Sequence[Mark], grades: Sequence[Grade]) -> Iterator[tuple[Grade, Grade]]:
    """Answers as one grader graded them, and as the judge did on the same claims.

    No sheet holds answers that abstain or claim nothing, and yet they hold no gold claim: they count for questions of
    which the grader marked gold claims in another answer.
    """
    marked = {mark.unit.question_id for mark in marks if mark.unit.part == "gold" and mark.verdict is not None}
    systems = {mark.unit.system for mark in marks}
    mine = [
        grade
        for grade in grades
        if grade.system in systems and (grade.outcome not in SILENT or grade.question_id in marked)
    ]
    judged = {unit for grade in mine for unit in verdicts_of(grade)}
    both = {mark.unit: mark.verdict for mark in marks if mark.verdict is not None and mark.unit in judged}
    by_answer = {(grade.question_id, grade.system): grade for grade in mine}
    for people in graded_by_people(mine, both):
        yield people, _only(by_answer[people.question_id, people.system], both)


def _only(grade: Grade, units: Collection[Unit]) -> Grade:
    """A judge's grade with the verdicts on these units alone; as it is where nobody had to grade it."""
    if grade.outcome in SILENT:
        return grade
    claim, gold = ((grade.question_id, grade.system, part) for part in ("claim", "gold"))
    return replace(
        grade,
        claims=tuple(each if (*claim, each.claim) in units else replace(each, verdict=None) for each in grade.claims),
        gold=tuple(each if (*gold, each.claim) in units else replace(each, verdict=None) for each in grade.gold),
    )
