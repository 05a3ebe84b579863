"""What the tables of some months hold on questions and answers, read once for all tables of a report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pipeline import tables
from pipeline.answering.question_rows import PosedQuestion, read_posed_questions
from pipeline.engine.parts import statistics_name
from pipeline.evaluation.answers.grades import Grade, grade_of
from pipeline.evaluation.answers.grading import HALF, OTHER, OWN
from pipeline.evaluation.answers.measures import Age, age_of
from pipeline.evaluation.answers.results import ALL, Group, SystemResult, results
from pipeline.evaluation.judge_check.record import JudgeChecks, read_checks
from pipeline.evaluation.report.corpus import rows_out
from pipeline.evaluation.report.found import Accounts, Cost, PriceList, read_or_none, shown_writers
from pipeline.evaluation.report.grid import Form, Value
from pipeline.llm.models import is_small_model
from pipeline.storage.data_root import DataRoot
from pipeline.storage.provenance import read_provenance
from pipeline.tables import parse_writer, with_writer_names

CONTROLS = (OWN, HALF, OTHER)
_SPENT = ["calls", "prompt_tokens", "completion_tokens"]
_ANSWER_COLUMNS = ["question_id", "system", "model", "hops", *_SPENT]
_GRADE_COLUMNS = ["system", "model", "judge", *_SPENT]
# As the report's Table 1 goes: the model alone, sites, WikiChat, arXivBot.
_PLACES = {"direct": 0, "wikichat": 2, "arxivbot_report": 3, "arxivbot": 4}
_IMPORTED_PLACE = 1
_NAMES = {
    "direct": "the model alone",
    "wikichat": "WikiChat",
    "arxivbot_report": "arXivBot as reported",
    "arxivbot": "arXivBot",
}
# Colours go by name, so that a system has the same one in every month; those elsewhere share what is left.
_SERIES = {"arxivbot": 1, "direct": 2, "wikichat": 3, "arxivbot_report": 4}
_LAST_SERIES = 8


def name_of(system: str) -> str:
    """A system as the report's tables name it, with its model where that is shown; one of an imported file as the
    file names it."""
    writer = parse_writer(system)
    shown = _NAMES.get(writer.system, writer.system)
    return shown if writer.model is None else f"{shown} ({writer.model})"


def order_of(system: str) -> tuple[int, str]:
    """Where a system stands among others."""
    return _PLACES.get(parse_writer(system).system, _IMPORTED_PLACE), system


def series_of(system: str, systems: Sequence[str]) -> int:
    """The number of a system's colour, the same for each of its models. systems: all that stand beside it."""
    if (own := parse_writer(system).system) in _SERIES:
        return _SERIES[own]
    others = sorted(other for other in systems if parse_writer(other).system not in _SERIES)
    return min(len(_SERIES) + 1 + others.index(system), _LAST_SERIES)


@dataclass
class AnswersFound(Accounts):
    """Questions and answers of one month or several. cutoff: the knowledge cut-off by which questions are old or
    recent; wanted: the judges in the order in which they are told."""

    wanted: Sequence[str] = ()
    cutoff: str = ""
    shown: Mapping[str, str] = field(default_factory=dict)
    """Name of a writer → the name by which the report shows it, which is the `system` of everything below."""
    months: list[str] = field(default_factory=list)
    papers: int = 0
    """Papers of the corpus that the last of the months was asked over."""
    posed: list[PosedQuestion] = field(default_factory=list)
    grades: list[Grade] = field(default_factory=list)
    """Of systems; those of controls stand apart."""
    controls: list[Grade] = field(default_factory=list)
    written: dict[str, Cost] = field(default_factory=dict)
    """System → its answers."""
    grading: Cost = field(default_factory=Cost)
    trying: Cost = field(default_factory=Cost)
    """What grading the controls took."""
    hops: dict[str, Counter[int]] = field(default_factory=dict)
    """System → how many questions it searched so often for."""
    judge_checks: JudgeChecks = field(default_factory=JudgeChecks)
    why_none: str = ""
    """Why nothing is asked, where nothing is."""

    @property
    def systems(self) -> list[str]:
        """Systems that answered, in the order of Table 1."""
        return sorted((system for system, cost in self.written.items() if cost.done), key=order_of)

    @property
    def costs_anything(self) -> bool:
        """Whether a model was asked."""
        return any(cost.calls for cost in (*self.written.values(), self.grading))

    @cached_property
    def judges(self) -> list[str]:
        """Models that graded, the first judge first."""
        there = {grade.judge for grade in (*self.grades, *self.controls)}
        return [judge for judge in self.wanted if judge in there] + sorted(there - set(self.wanted))

    @property
    def judge(self) -> str:
        """The model whose verdicts the main tables show; '' where nobody graded."""
        return next(iter(self.judges), "")

    def age(self, grade: Grade) -> Age | None:
        """Whether a question is old or recent; None where no cut-off is set."""
        return age_of(grade.date, self.cutoff)

    @cached_property
    def by_group(self) -> dict[tuple[str, str, Group], SystemResult]:
        """(Judge, system, group of questions) → results."""
        return {(each.judge, each.system, each.group): each for each in results(self.grades, self.age)}

    @cached_property
    def by_control(self) -> dict[tuple[str, str], SystemResult]:
        """(Judge, control) → results over all of its questions."""
        return {(each.judge, each.system): each for each in results(self.controls) if each.group == ALL}

    def result(self, system: str, group: Group = ALL, judge: str | None = None) -> SystemResult | None:
        """The results of a system over a group of questions, by the first judge unless another is named."""
        return self.by_group.get((self.judge if judge is None else judge, system, group))

    @property
    def small_model(self) -> str:
        """The embedded model's name where it answered or graded, else ''."""
        models = {model for cost in (*self.written.values(), self.grading, self.trying) for model in cost.models}
        return min(filter(is_small_model, models), default="")


def cell(result: SystemResult | None, measure: str, form: Form = "percent") -> Value:
    """A mean with its interval; a dash where it could not be computed."""
    found = result.measures.get(measure) if result else None
    return Value(None, form) if found is None else Value(found.value, form, found.low, found.high)


@dataclass(frozen=True, slots=True)
class ReadAnswers:
    """What of a month's tables is wanted; none of it where they are not there."""

    posed: Sequence[PosedQuestion]
    answers: pa.Table
    grades: Sequence[Grade]
    spent: pa.Table
    why_none: str


def find_answers(root: DataRoot, month: str, judges: Sequence[str], prices: PriceList, cutoff: str) -> AnswersFound:
    """One month. Raises as `read_answers`."""
    shown = shown_writers(root, tables.ANSWERS, [month])
    found = AnswersFound(prices=prices, wanted=judges, cutoff=cutoff, shown=shown)
    add_answers(found, root, month, read_answers(root, month, shown))
    return found


def read_answers(root: DataRoot, month: str, shown: Mapping[str, str]) -> ReadAnswers:
    """The questions, answers and grades of a month; old data roots have none of these tables.

    shown: name of a writer → the name to show.

    Raises as `DataRoot.read` does for a file that is damaged or of another version: before anything is counted.
    """
    posed = read_posed_questions(_rows(root, tables.QUESTIONS, month))
    return ReadAnswers(
        posed,
        with_writer_names(read_or_none(root, tables.ANSWERS, month, _ANSWER_COLUMNS), shown),
        [grade_of(row) for row in _rows(root, tables.ANSWER_GRADES, month)],
        with_writer_names(read_or_none(root, tables.ANSWER_GRADES, month, _GRADE_COLUMNS), shown),
        "" if posed else _why_none(root, month),
    )


def _rows(root: DataRoot, table: tables.Table, month: str) -> Iterable[dict[str, Any]]:
    return root.iterate(table, month) if read_provenance(root.file(table, month)) is not None else ()


def _why_none(root: DataRoot, month: str) -> str:
    """Why a month has no question, as its file tells."""
    written = read_provenance(root.file(tables.QUESTIONS, month))
    if written is None:
        return "the month has no table of questions"
    if written.notes.get("off"):
        return str(written.notes["off"])
    return "none of the question set is asked in this month" if not written.left_out else "all of it was left out"


def add_answers(found: AnswersFound, root: DataRoot, month: str, read: ReadAnswers, *, apart: bool = False) -> None:
    """Count a month, as `read_answers` read it. apart: whether ids get the month before them, as several months may
    have the same, of question sets that were changed between."""
    found.judge_checks = read_checks(root)
    found.months.append(month)
    found.posed += read.posed
    found.why_none = found.why_none or read.why_none
    if read.posed:
        found.papers = max(found.papers, papers_up_to(root, month))
    named = [
        replace(
            grade,
            question_id=f"{month} {grade.question_id}" if apart else grade.question_id,
            system=found.shown.get(grade.system, grade.system),
        )
        for grade in read.grades
    ]
    found.controls += [grade for grade in named if grade.system in CONTROLS]
    found.grades += [grade for grade in named if grade.system not in CONTROLS]
    _add_table(found, read.answers)
    tried = pc.is_in(read.spent["system"], value_set=pa.array(CONTROLS))
    found.grading.add(read.spent.filter(pc.invert(tried)), ("judge",))
    found.trying.add(read.spent.filter(tried), ("judge",))
    parts = [statistics_name(tables.ANSWERS.name, name) for name in found.shown]
    found.add_accounts(root, month, (*parts, tables.ANSWER_GRADES.name))


def _add_table(found: AnswersFound, table: pa.Table) -> None:
    for system in sorted(set(table["system"].to_pylist())):
        mine = table.filter(pc.equal(table["system"], system))
        found.written.setdefault(system, Cost()).add(mine, ("model",))
        found.hops.setdefault(system, Counter()).update(mine["hops"].to_pylist())


def papers_up_to(root: DataRoot, month: str) -> int:
    """Papers of the months up to this one, over which its questions are asked."""
    return sum(rows_out(root, each, tables.PAPERS) for each in root.months(tables.PAPERS) if each <= month)
