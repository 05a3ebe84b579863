"""Results of people's grades of answers: agreement, the judge beside them, and Table 1 by people.

Rows of `human_grades` and grades of judges in, numbers out; what cannot be computed is absent. A person's verdict is on
the very claim or gold claim that the judge had a verdict on, so both are compared one by one, on the same claims.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, NamedTuple

from pipeline.evaluation import statistics
from pipeline.evaluation.annotation.grades import SILENT, VERDICTS, Part, digests
from pipeline.evaluation.answers.grades import Grade
from pipeline.evaluation.answers.measures import answer_measures
from pipeline.evaluation.statistics import Level, alpha
from pipeline.storage.data_root import DataRoot
from pipeline.storage.writing import Row
from pipeline.tables import HUMAN_GRADES
from pipeline.tables.writers import with_shown_name

COMPARED = ("factual", "coverage")
# What cannot be checked is neither more nor less than the other verdicts on claims; those on gold claims have an order.
_LEVELS: Mapping[Part, Level] = {"claim": "nominal", "gold": "ordinal"}
_COLUMNS = [name for name in HUMAN_GRADES.schema.names if name not in ("label", "number")]


class ClaimKey(NamedTuple):
    """What is graded: a claim of a system's answer, or a gold claim beside it."""

    question_id: str
    system: str
    part: Part
    text: str


Verdicts = Mapping[ClaimKey, Mapping[str, str]]
"""Claim → grader → verdict."""


@dataclass(frozen=True, slots=True)
class Accuracy:
    """How often a judge's verdicts are those of most graders.

    units: claims with a verdict of both. same: share with the same one, its interval over questions in `low` and
    `high`, None for one question. alpha: nominal, of graders and judge. undecided: claims on which graders are split.
    confusion: (graders' verdict, judge's) → claims.
    """

    part: Part
    units: int
    same: float | None
    low: float | None
    high: float | None
    alpha: statistics.Estimate
    undecided: int
    confusion: Mapping[tuple[str, str], int]


@dataclass(frozen=True, slots=True)
class SystemComparison:
    """One system by people and by one judge: measure → mean over the questions that people graded it on, of the same
    claims. difference: people less judge, None for fewer than two questions."""

    judge: str
    system: str
    people: Mapping[str, statistics.Estimate]
    judged: Mapping[str, statistics.Estimate]
    difference: Mapping[str, statistics.Estimate | None]


@dataclass(frozen=True, slots=True)
class GradeResults:
    """What people's grades say. outdated: rows on answers or claims that have changed since, left out; agreement: of
    the graders; accuracy: judge → part → how often it is right."""

    studies: tuple[str, ...]
    graders: tuple[str, ...]
    questions: int
    answers: int
    verdicts: int
    comments: int
    outdated: int
    agreement: Mapping[Part, statistics.Estimate]
    accuracy: Mapping[str, Mapping[Part, Accuracy]]
    systems: tuple[SystemComparison, ...]

    @property
    def empty(self) -> bool:
        """Whether nobody graded anything, be it outdated."""
        return not (self.graders or self.outdated)

    def as_json(self) -> dict[str, Any]:
        """The results as a JSON document; a confusion matrix as a list of its cells."""
        document = asdict(self)
        for judge, parts in self.accuracy.items():
            for part, accuracy in parts.items():
                cells = [{"people": p, "judge": j, "units": units} for (p, j), units in accuracy.confusion.items()]
                document["accuracy"][judge][part]["confusion"] = cells
        return document


@dataclass(frozen=True, slots=True)
class MonthGrades:
    """A month's rows of people on what is still there, and the grades of its judges. outdated: rows on what is not."""

    rows: Sequence[Row]
    grades: Sequence[Grade]
    outdated: int = 0

    def qualified(self, month: str) -> MonthGrades:
        """The same with the month before each question's id: two sets of questions may use one id."""
        return replace(
            self,
            rows=[{**row, "question_id": f"{month} {row['question_id']}"} for row in self.rows],
            grades=[{**grade, "question_id": f"{month} {grade['question_id']}"} for grade in self.grades],
        )


def read_month_grades(
    root: DataRoot,
    month: str,
    grades: Sequence[Grade],
    study: str | None = None,
    shown: Mapping[str, str] | None = None,
) -> MonthGrades:
    """A month's rows, of one study or of all. shown: name of a writer → the name that stands for it in the grades.

    Raises as `DataRoot.iterate` does.
    """
    if not root.file(HUMAN_GRADES, month).exists():
        return MonthGrades((), grades)
    names = shown or {}
    claims = {key for grade in grades for key in claims_of(grade)}
    current = {(question, names.get(name, name)): digest for (question, name), digest in digests(root, month).items()}
    found = (row for row in root.iterate(HUMAN_GRADES, month, _COLUMNS) if study in (None, row["study"]))
    rows = [with_shown_name(row, shown) for row in found]
    up_to_date: list[Row] = [
        row
        for row in rows
        if current.get((row["question_id"], row["system"])) == row["text_sha256"] and _key(row) in claims
    ]
    return MonthGrades(up_to_date, grades, len(rows) - len(up_to_date))


def pool_months(months: Mapping[str, MonthGrades]) -> GradeResults:
    """The results of some months together."""
    read = [grades.qualified(month) if len(months) > 1 else grades for month, grades in months.items()]
    return grade_results(
        [row for month in read for row in month.rows],
        [grade for month in read for grade in month.grades],
        sum(month.outdated for month in read),
    )


def grade_results(rows: Sequence[Row], grades: Sequence[Grade], outdated: int = 0) -> GradeResults:
    """What rows of `human_grades` say beside grades of judges."""
    verdicts = verdicts_by_claim(rows)
    by_judge: dict[str, list[Grade]] = {name: [] for name in sorted({grade["judge"] for grade in grades})}
    for grade in grades:
        by_judge[grade["judge"]].append(grade)
    keys = {_key(row) for row in rows}
    return GradeResults(
        studies=tuple(sorted({row["study"] for row in rows})),
        graders=tuple(sorted({_grader(row) for row in rows})),
        questions=len({key.question_id for key in keys}),
        answers=len({key[:2] for key in keys}),
        verdicts=sum(len(by_grader) for by_grader in verdicts.values()),
        comments=sum(row["comment"] is not None for row in rows),
        outdated=outdated,
        agreement=graders_agreement(verdicts),
        accuracy={judge: judge_accuracy(mine, verdicts) for judge, mine in by_judge.items()} if rows else {},
        systems=tuple(system for judge, mine in by_judge.items() for system in compare_systems(judge, mine, verdicts)),
    )


def _grader(row: Row) -> str:
    """Graders of two studies that have one name, such as annotator-1, may be two people."""
    return f"{row['study']}: {row['grader']}"


def _key(row: Row) -> ClaimKey:
    return ClaimKey(row["question_id"], row["system"], row["part"], row["text"])


def verdicts_by_claim(rows: Iterable[Row]) -> dict[ClaimKey, dict[str, str]]:
    """Claim → grader → verdict, sorted; rows that only comment are passed over."""
    verdicts: dict[ClaimKey, dict[str, str]] = defaultdict(dict)
    for row in sorted(rows, key=lambda row: (_key(row), _grader(row))):
        if row["verdict"] is not None:
            verdicts[_key(row)][_grader(row)] = row["verdict"]
    return dict(verdicts)


def claims_of(grade: Grade) -> dict[ClaimKey, str | None]:
    """Claim → the judge's verdict, of every claim and gold claim of a grade."""
    return {_claim_key(grade, part, claim): claim["verdict"] for part, claims in _parts(grade) for claim in claims}


def _parts(grade: Grade) -> tuple[tuple[Part, Sequence[Row]], ...]:
    return ("claim", grade["claims"]), ("gold", grade["gold"])


def _claim_key(grade: Grade, part: Part, claim: Row) -> ClaimKey:
    return ClaimKey(grade["question_id"], grade["system"], part, claim["claim"])


def graders_agreement(verdicts: Verdicts) -> dict[Part, statistics.Estimate]:
    """Part → Krippendorff's alpha of the graders, with intervals over questions."""
    agreement: dict[Part, statistics.Estimate] = {}
    for part, names in VERDICTS.items():
        mine = {key: by_grader for key, by_grader in verdicts.items() if key.part == part}
        codes = [[names.index(verdict) for verdict in by_grader.values()] for by_grader in mine.values()]
        agreement[part] = alpha(codes, [key.question_id for key in mine], _LEVELS[part])
    return agreement


def majority(verdicts: Verdicts) -> dict[ClaimKey, str]:
    """Claim → the verdict of most graders; a claim with two most frequent verdicts is left out."""
    winners = {key: statistics.clear_winner(by_grader.values()) for key, by_grader in verdicts.items()}
    return {key: verdict for key, verdict in winners.items() if verdict is not None}


def judge_accuracy(grades: Iterable[Grade], verdicts: Verdicts) -> dict[Part, Accuracy]:
    """Part → how often one judge is right about the claims that people graded too."""
    judged = {key: verdict for grade in grades for key, verdict in claims_of(grade).items() if verdict is not None}
    decided = majority(verdicts)
    return {part: _accuracy(part, judged, decided, verdicts) for part in VERDICTS}


def _accuracy(
    part: Part, judged: Mapping[ClaimKey, str], decided: Mapping[ClaimKey, str], verdicts: Verdicts
) -> Accuracy:
    import numpy as np

    both = sorted(key for key in judged.keys() & decided.keys() if key.part == part)
    questions = [key.question_id for key in both]
    same = np.array([decided[key] == judged[key] for key in both], dtype=float)
    low, high = statistics.mean_ends(same, questions) if both else (None, None)
    return Accuracy(
        part=part,
        units=len(both),
        same=float(same.mean()) if both else None,
        low=low,
        high=high,
        alpha=alpha([(decided[key], judged[key]) for key in both], questions, "nominal"),
        undecided=sum(key.part == part for key in (verdicts.keys() & judged.keys()) - decided.keys()),
        confusion=dict(sorted(Counter((decided[key], judged[key]) for key in both).items())),
    )


@dataclass(slots=True)
class _Values:
    """A measure of one system: question → one value for each grader, theirs and the judge's on the same claims."""

    people: dict[str, list[float]] = field(default_factory=dict)
    judged: dict[str, list[float]] = field(default_factory=dict)


def compare_systems(judge: str, grades: Sequence[Grade], verdicts: Verdicts) -> Iterator[SystemComparison]:
    """Each system that was graded. Every grader's verdicts count alike: an answer's share is the mean over those who
    graded it, and the judge's is that of the same claims."""
    values: dict[str, dict[str, _Values]] = defaultdict(lambda: defaultdict(_Values))
    for grader in sorted({name for by_grader in verdicts.values() for name in by_grader}):
        mine = {key: by_grader[grader] for key, by_grader in verdicts.items() if grader in by_grader}
        for people, judged in _pairs(grades, mine):
            first, second = answer_measures(people), answer_measures(judged)
            for name in (name for name in COMPARED if name in first and name in second):
                measure = values[people["system"]][name]
                measure.people.setdefault(people["question_id"], []).append(first[name])
                measure.judged.setdefault(people["question_id"], []).append(second[name])
    for system, measures in sorted(values.items()):
        yield SystemComparison(
            judge=judge,
            system=system,
            people={name: statistics.estimate(of.people) for name, of in measures.items()},
            judged={name: statistics.estimate(of.judged) for name, of in measures.items()},
            difference={name: statistics.paired_difference(of.people, of.judged) for name, of in measures.items()},
        )


def _pairs(grades: Sequence[Grade], mine: Mapping[ClaimKey, str]) -> Iterator[tuple[Grade, Grade]]:
    """Answers as one grader graded them, and as the judge did on the same claims.

    No sheet has answers that abstain or claim nothing, and yet they hold no gold claim: they count for questions of
    which the grader graded gold claims in another answer.
    """
    systems = {key.system for key in mine}
    with_gold = {key.question_id for key in mine if key.part == "gold"}
    for grade in (grade for grade in grades if grade["system"] in systems):
        if grade["outcome"] in SILENT:
            if grade["question_id"] in with_gold:
                yield grade, grade
            continue
        judged = {key: verdict for key, verdict in claims_of(grade).items() if verdict is not None and key in mine}
        if judged:
            yield regraded(grade, {key: mine[key] for key in judged}), regraded(grade, judged)


def regraded(grade: Grade, verdicts: Mapping[ClaimKey, str]) -> Grade:
    """A grade with these verdicts alone, without quotes; what has none of them has no verdict."""
    claims_by_part = {
        part: [
            {**claim, "verdict": verdicts.get(_claim_key(grade, part, claim)), "quote": "", "quoted": None}
            for claim in claims
        ]
        for part, claims in _parts(grade)
    }
    return {**grade, "claims": claims_by_part["claim"], "gold": claims_by_part["gold"]}
