"""People's grades of answers in a report: how far graders agree, how often the judge is right, Table 1 by people."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from pipeline.evaluation.annotation.grade_results import (
    COMPARED,
    Accuracy,
    GradeResults,
    MonthGrades,
    SystemComparison,
    pool_months,
    read_month_grades,
)
from pipeline.evaluation.annotation.grades import VERDICTS, Part
from pipeline.evaluation.answers.grades import Grade
from pipeline.evaluation.answers.results import Measured
from pipeline.evaluation.statistics import Interval
from pipeline.report.answers.found import name_of, order_of
from pipeline.report.filters import number_of, words
from pipeline.report.grid import Grid, Rows, Section, Value
from pipeline.storage.data_root import DataRoot

KEY, TITLE = "answer_people", "People's grades"
_PARTS: Mapping[Part, str] = {"claim": "Claims of answers", "gold": "Gold claims"}
_ALPHA: Mapping[Part, str] = {"claim": "Krippendorff's alpha, nominal", "gold": "Krippendorff's alpha, ordinal"}
# Percentiles of fewer questions make too narrow an interval; the report says so of tasks from the same number on.
_FEW = 20


def people_section(
    root: DataRoot, month: str, grades: Sequence[Grade], shown: Mapping[str, str] | None = None
) -> Section | None:
    """People's grades of a month beside those of its judges; how to have them where there are none; None where no
    answer was graded at all. shown: as for `read_month_grades`. Raises as `DataRoot.iterate` does."""
    return section_of(pool_months({month: read_month_grades(root, month, grades, shown=shown)})) if grades else None


def pooled_people(months: Mapping[str, MonthGrades]) -> Section | None:
    """The same of several months; None where nobody graded in any."""
    found = pool_months(months)
    return section_of(found) if found.graders or found.outdated else None


def section_of(people: GradeResults) -> Section:
    """The section of what people gave in some months."""
    left_out = (
        [f"{number_of(people.outdated, 'verdict')} on answers or claims that were made anew since are left out."]
        if people.outdated
        else []
    )
    if not people.graders:
        said = (
            "Nobody has graded answers yet, or none of these: citeloom annotate export grades makes blind sheets for "
            "several graders, citeloom annotate import takes them back."
        )
        return Section(KEY, TITLE, (said, *left_out))
    grids = (_agreement(people), _accuracy(people), *_mistakes(people), _table(people))
    return Section(KEY, TITLE, (_who(people), *left_out), [grid for grid in grids if grid is not None])


def _who(people: GradeResults) -> str:
    said = (
        f"{number_of(len(people.graders), 'grader')}, {number_of(people.verdicts, 'verdict')} on "
        f"{number_of(people.answers, 'answer')} to {number_of(people.questions, 'question')}, not told which system "
        "gave which. They graded the claims into which the judge had split the answers, and could add none."
    )
    few = f" With {number_of(people.questions, 'question')} the intervals are too narrow."
    return said + few if 1 < people.questions < _FEW else said


def _agreement(people: GradeResults) -> Grid | None:
    """None where no two graders met: there is nothing to agree on."""
    rows = [
        [
            Value(_PARTS[part]), Value(_ALPHA[part]), Value(each.value, "two", each.low, each.high),
            Value(each.units, "count"),
        ]
        for part, each in people.agreement.items()
        if each.units
    ]  # fmt: skip
    head = ("What was graded", "Measure", "Agreement", "Graded twice or more")
    about = (
        "1 for perfect agreement, 0 for what chance would give; under it the 95 % interval over questions. By its "
        "author's advice an alpha below 0.667 carries no conclusion."
    )
    return Grid("answer_graders", "Agreement of graders", head, [Rows(rows)], about) if rows else None


def _accuracy(people: GradeResults) -> Grid | None:
    groups = []
    for judge, parts in people.accuracy.items():
        rows = [_accuracy_row(part, each) for part, each in parts.items() if each.units or each.undecided]
        groups += [Rows(rows, judge)] if rows else []
    head = ("What was graded", "Same verdict", "Kappa", "Compared", "Graders split")
    about = (
        "How often the judge has the verdict of most graders, with its 95 % interval over questions, and kappa: by how "
        "much that is more than chance would give, 1 at most. Left out is what graders are split on, and what has no "
        "verdict of the judge that could be read."
    )
    return Grid("judge_accuracy", "The judge against people", head, groups, about) if groups else None


def _accuracy_row(part: Part, each: Accuracy) -> list[Value]:
    return [
        Value(_PARTS[part]), Value(each.same, "percent", each.low, each.high),
        Value(each.kappa.value, "two", each.kappa.low, each.kappa.high), Value(each.units, "count"),
        Value(each.undecided, "count"),
    ]  # fmt: skip


def _mistakes(people: GradeResults) -> Iterable[Grid]:
    """For claims and for gold claims, which verdict of people the judge takes for which."""
    for part, verdicts in VERDICTS.items():
        groups = [
            Rows([_mistake_row(verdict, verdicts, parts[part]) for verdict in verdicts], judge)
            for judge, parts in people.accuracy.items()
            if parts[part].units
        ]
        head = ("People say", *(f"Judge: {words(verdict)}" for verdict in verdicts))
        if groups:
            title = f"{_PARTS[part]}: which verdict is taken for which"
            yield Grid(f"judge_mistakes_{part}", title, head, groups, "Claims by the verdict of most graders.")


def _mistake_row(verdict: str, verdicts: Sequence[str], told: Accuracy) -> list[Value]:
    counts = [told.confusion.get((verdict, judged), 0) for judged in verdicts]
    return [Value(words(verdict)), *(Value(units, "count") for units in counts)]


def _table(people: GradeResults) -> Grid | None:
    groups = []
    for judge in people.accuracy:
        mine = sorted((each for each in people.systems if each.judge == judge), key=lambda each: order_of(each.system))
        rows = [_system_row(each, measure) for measure in COMPARED for each in mine if measure in each.people]
        groups += [Rows(rows, judge)] if rows else []
    head = ("Share", "System", "People", "Judge", "Difference", "Questions")
    about = (
        "The two shares of arXivBot's Table 1, by people (the mean over graders) and by the judge, of the same "
        "claims of the same answers, with 95 % intervals over questions. Difference: people less judge, in points of a "
        "hundred. Answers that abstain or claim nothing count as they do for the judge, and nobody had to grade them."
    )
    return Grid("people_table_1", "Table 1 by people", head, groups, about) if groups else None


def _system_row(each: SystemComparison, measure: str) -> list[Value]:
    people = each.people[measure]
    return [
        Value(measure.capitalize()), Value(name_of(each.system)), _share(people), _share(each.judged.get(measure)),
        _points(each.difference[measure]), Value(people.questions, "count"),
    ]  # fmt: skip


def _share(told: Measured | None) -> Value:
    return Value(None, "percent") if told is None else Value(told.value, "percent", told.low, told.high)


def _points(told: Interval | None) -> Value:
    if told is None:
        return Value(None, "one")
    return Value(100 * told.mean, "one", 100 * told.low, 100 * told.high)
