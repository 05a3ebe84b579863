"""Questions and answers of one or several months, read from the tables for a report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import pyarrow as pa

from pipeline import tables
from pipeline.answering.questions import PosedQuestion, read_posed_questions
from pipeline.evaluation.answers.measures import Grade, age_of, read_grades
from pipeline.evaluation.answers.results import ALL, QuestionGroup, SystemResult, results
from pipeline.llm.messages import Prices
from pipeline.report.costs import USAGE, Cost
from pipeline.report.month_data import MonthData, preferred_first, read_or_empty, writer_names
from pipeline.storage.data_root import DataRoot
from pipeline.storage.provenance import read_provenance
from pipeline.system_names import ANSWERING_SYSTEMS
from pipeline.tables.writers import parse_writer, with_writer_names

_ANSWER_COLUMNS = ["question_id", "system", "model", "hops", *USAGE]
_GRADE_COLUMNS = ["system", "model", "judge", *USAGE]
# The order of the arXivBot report's Table 1: the model alone, sites (imported answers), WikiChat,
# arXivBot.
_ORDER = {"direct": 0, "wikichat": 2, "arxivbot_report": 3, "arxivbot": 4}
_IMPORTED = 1


def answering_order(system: str) -> tuple[int, str]:
    """The position of a system among others."""
    return _ORDER.get(parse_writer(system).system, _IMPORTED), system


@dataclass(frozen=True, slots=True)
class MonthAnswers:
    """What a report needs of a month's questions and answers; empty where their tables are
    missing.
    """

    questions: Sequence[PosedQuestion]
    answers: pa.Table
    grades: Sequence[Grade]
    grading: pa.Table
    why_none: str


@dataclass
class AnswersData(MonthData):
    """Questions and answers of one or several months.

    preferred_judges: judges in order of preference. cutoff: the knowledge cut-off that divides old
    from recent questions.
    """

    systems_known = ANSWERING_SYSTEMS
    preferred_judges: Sequence[str] = ()
    cutoff: str = ""
    questions: list[PosedQuestion] = field(default_factory=list)
    grades: list[Grade] = field(default_factory=list)
    grading: Cost = field(default_factory=Cost)
    hops: dict[str, Counter[int]] = field(default_factory=dict)
    """System → number of searches → questions."""
    why_none: str = ""
    """Why there is no question."""

    @property
    def systems(self) -> list[str]:
        """Systems that answered, in the order of Table 1."""
        return sorted(
            (system for system, cost in self.written.items() if cost.items), key=answering_order
        )

    @property
    def called_model(self) -> bool:
        """Whether a model was called."""
        return any(cost.calls for cost in (*self.written.values(), self.grading))

    @cached_property
    def judges(self) -> list[str]:
        """Models that graded, the preferred ones first."""
        return preferred_first({grade["judge"] for grade in self.grades}, self.preferred_judges)

    @property
    def judge(self) -> str:
        """The model whose verdicts the main tables show; '' where none graded."""
        return next(iter(self.judges), "")

    @cached_property
    def by_group(self) -> dict[tuple[str, str, QuestionGroup], SystemResult]:
        """(Judge, system, group of questions) → results."""
        measured = results(self.grades, lambda grade: age_of(grade["date"], self.cutoff))
        return {(each.judge, each.system, each.group): each for each in measured}

    def result(
        self, system: str, group: QuestionGroup = ALL, judge: str | None = None
    ) -> SystemResult | None:
        """The results of a system over a group of questions, by the first judge unless another is
        named.
        """
        return self.by_group.get((self.judge if judge is None else judge, system, group))

    def costs(self) -> Iterator[Cost]:
        yield from (*self.written.values(), self.grading)

    def add_month(self, month: str, read: MonthAnswers, *, qualify: bool = False) -> None:
        """Add a month as `read_answers` read it. qualify: put the month before each question's id,
        since several months may use one id.
        """
        self.months.append(month)
        self.questions += read.questions
        self.why_none = self.why_none or read.why_none
        for grade in read.grades:
            system = self.names.get(grade["system"], grade["system"])
            question_id = f"{month} {grade['question_id']}" if qualify else grade["question_id"]
            self.grades.append({**grade, "question_id": question_id, "system": system})
        self.add_written(read.answers)
        for system, hops in zip(
            read.answers["system"].to_pylist(), read.answers["hops"].to_pylist(), strict=True
        ):
            self.hops.setdefault(system, Counter())[hops] += 1
        self.grading.add(read.grading, "judge")


def read_month_answers(
    root: DataRoot, month: str, judges: Sequence[str], prices: Mapping[str, Prices], cutoff: str
) -> AnswersData:
    """One month. Raises as `read_answers` does."""
    names = writer_names(root, [month], tables.ANSWERS)
    data = AnswersData(prices, names, preferred_judges=judges, cutoff=cutoff)
    data.add_month(month, read_answers(root, month, data.names))
    return data


def read_answers(root: DataRoot, month: str, names: Mapping[str, str]) -> MonthAnswers:
    """The questions, answers and grades of a month; old data roots have none of these tables.

    names: name of a writer → its name in the report.

    Raises as `DataRoot.read` does for a file that is damaged or of another version, before anything
    is counted.
    """
    questions = read_posed_questions(_rows(root, tables.QUESTIONS, month))
    return MonthAnswers(
        questions,
        with_writer_names(read_or_empty(root, tables.ANSWERS, month, _ANSWER_COLUMNS), names),
        read_grades(root, month),
        with_writer_names(read_or_empty(root, tables.ANSWER_GRADES, month, _GRADE_COLUMNS), names),
        "" if questions else _why_none(root, month),
    )


def _rows(root: DataRoot, table: tables.Table, month: str) -> Iterable[dict[str, Any]]:
    return (
        root.iterate(table, month) if read_provenance(root.file(table, month)) is not None else ()
    )


def _why_none(root: DataRoot, month: str) -> str:
    provenance = read_provenance(root.file(tables.QUESTIONS, month))
    if provenance is None:
        return "the month has no table of questions"
    if provenance.notes.get("off"):
        return str(provenance.notes["off"])
    return (
        "the question set has no question for this month"
        if not provenance.left_out
        else "all were left out"
    )
