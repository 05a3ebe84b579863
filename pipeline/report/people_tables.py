"""What people say: ratings of sections and grades of answers, their agreement, and the judge beside
them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from pipeline.evaluation.answers.measures import Grade
from pipeline.evaluation.answers.people import VERDICTS, Part
from pipeline.evaluation.answers.people_measures import (
    COMPARED,
    GradeResults,
    MonthGrades,
    SystemComparison,
    pool_months,
    read_month_grades,
)
from pipeline.evaluation.g_score.people_measures import MEAN, RatingResults
from pipeline.evaluation.statistics import Estimate
from pipeline.report.answers_data import answering_order
from pipeline.report.formatting import answering_system, criterion_name, number_of, words
from pipeline.report.grid import Cell, Grid, Row, RowGroup, Section, mean_cell, percent_cell
from pipeline.report.related_work_data import RelatedWorkData
from pipeline.report.related_work_tables import FEW
from pipeline.storage.data_root import DataRoot

_PARTS: Mapping[Part, str] = {"claim": "Claims of answers", "gold": "Gold claims"}
_ALPHA: Mapping[Part, str] = {
    "claim": "Krippendorff's alpha, nominal",
    "gold": "Krippendorff's alpha, ordinal",
}


def ratings_section(data: RelatedWorkData) -> Section:
    """Agreement of raters, and of the judge with them, for a month; how to have ratings where there
    are none.
    """
    outdated = _outdated(data.outdated_ratings)
    if data.people is None:
        text = (
            "Nobody has rated sections of this month yet: citeloom annotate export ratings makes"
            " blind sheets, citeloom annotate import reads them."
        )
        return Section("people", "People", (text, *outdated))
    text = (
        f"{number_of(len(data.people.raters), 'rater')} on {number_of(data.people.tasks, 'task')},"
        " who did not know which system wrote which section. Figure 4 has their marks, Figure 5"
        " their choices. citeloom annotate results ratings pools all months of a study."
    )
    return Section("people", "People", (text, *outdated), _rating_grids(data.people))


def _outdated(ratings: int) -> list[str]:
    return (
        [f"{number_of(ratings, 'rating')} of sections that have changed since are left out."]
        if ratings
        else []
    )


def rating_results_section(people: RatingResults) -> Section:
    """Ratings of several months: mean marks and preference by system, agreement, the judge beside
    people.
    """
    outdated = _outdated(people.outdated)
    if not people.ratings:
        return Section(
            "people", "People", ("Nobody has rated these sections as they are now.", *outdated)
        )
    raters, tasks = number_of(len(people.raters), "rater"), number_of(people.tasks, "task")
    text = f"{raters}, {tasks}, {number_of(people.ratings, 'rating')}."
    rows: list[Row] = []
    for name in people.systems[0].marks:
        marks = [mean_cell(system.marks[name], "two") for system in people.systems]
        rows.append([_mark_name(name), *marks])
    rows.append(
        ["Preferred", *(mean_cell(system.preferred, "percent") for system in people.systems)]
    )
    columns = ["Mark", *(words(each.system) for each in people.systems)]
    about = (
        "Mean marks from 1 to 5, and the share of choices that preferred the system, with 95 %"
        " intervals; each task has the same weight however many rated it."
    )
    return Section(
        "people",
        "People",
        (text, *outdated),
        [
            Grid("people_marks", "Marks by people", columns, rows, about=about),
            *_rating_grids(people),
        ],
    )


def _rating_grids(people: RatingResults) -> list[Grid]:
    agreed = [
        (criterion_name(name), "Krippendorff's alpha, ordinal", alpha)
        for name, alpha in people.alpha.items()
    ]
    agreed.append(("Preference", "Krippendorff's alpha, nominal", people.preference))
    agreement = _agreement_grid(
        "people", "Agreement of raters", "rated", "task", people.tasks, agreed
    )
    groups = []
    for judge in people.judges:
        rows = [
            [
                _mark_name(name),
                each.spearman,
                percent_cell(each.same_order),
                each.mean_difference,
                each.sections,
            ]
            for name, each in judge.marks.items()
            if each is not None
        ]
        if rows:
            about = (
                f"the same best section in {judge.same} of {judge.votes} tasks"
                if judge.votes
                else ""
            )
            groups.append(RowGroup(rows, judge.judge, about))
    columns = ["Marks", "Spearman", "Same order", "People less judge", "Sections"]
    about = (
        "A section's mark is the mean over raters. Same order: of two sections of one task, the"
        " share that both put in one order."
    )
    compared = (
        [Grid("judge_and_people", "The judge against people", columns, groups=groups, about=about)]
        if groups
        else []
    )
    return [agreement, *compared]


def _mark_name(name: str) -> str:
    return "Mean of the six" if name == MEAN else criterion_name(name)


def _agreement_grid(
    key: str,
    title: str,
    verb: str,
    noun: str,
    items: int,
    agreed: Iterable[tuple[str, str, Estimate]],
) -> Grid:
    """Rows of (what was rated or graded, measure, agreement)."""
    rows = [
        [name, measure, mean_cell(alpha, "two"), alpha.count] for name, measure, alpha in agreed
    ]
    columns = [f"What was {verb}", "Measure", "Agreement", f"{verb.capitalize()} twice or more"]
    about = (
        "1 is perfect agreement, 0 what chance would give; below it the 95 % interval over"
        f" {noun}s. By its author's advice an alpha below 0.667 supports no conclusion."
    )
    notes = (
        [f"With {number_of(items, noun)} the intervals are too narrow."] if 1 < items < FEW else []
    )
    return Grid(key, title, columns, rows, about=about, notes=notes)


def month_grades_section(
    root: DataRoot, month: str, grades: Sequence[Grade], names: Mapping[str, str] | None = None
) -> Section | None:
    """People's grades of a month beside those of its judges; how to have them where judges alone
    graded; None where
    nobody graded an answer. names: as for `read_month_grades`. Raises as `DataRoot.iterate` does.
    """
    people = pool_months({month: read_month_grades(root, month, grades, shown=names)})
    return None if people.empty and not grades else grades_section(people)


def pooled_grades_section(months: Mapping[str, MonthGrades]) -> Section | None:
    """The same of several months; None where nobody graded in any."""
    people = pool_months(months)
    return None if people.empty else grades_section(people)


def grades_section(people: GradeResults) -> Section:
    """People's grades: agreement of graders, accuracy of the judge, Table 1 by people."""
    key, title = "answer_people", "People's grades"
    outdated = (
        [
            f"{number_of(people.outdated, 'verdict')} on answers or claims that have changed since"
            " are left out."
        ]
        if people.outdated
        else []
    )
    if not people.graders:
        text = (
            "Nobody has graded these answers yet: citeloom annotate export grades makes blind"
            " sheets, citeloom annotate import reads them."
        )
        return Section(key, title, (text, *outdated))
    what = (
        "claims into which the judge had split the answers"
        if people.accuracy
        else "sentences of the answers"
    )
    text = (
        f"{number_of(len(people.graders), 'grader')}, {number_of(people.verdicts, 'verdict')} on"
        f" {number_of(people.answers, 'answer')} to {number_of(people.questions, 'question')},"
        f" without knowing the systems. They graded the {what}, and could add none."
    )
    agreed = [
        (_PARTS[part], _ALPHA[part], alpha)
        for part, alpha in people.agreement.items()
        if alpha.count
    ]
    grids = [
        _agreement_grid(
            "answer_graders", "Agreement of graders", "graded", "question", people.questions, agreed
        )
    ]
    grids = grids if agreed else []
    return Section(
        key, title, (text, *outdated), [*grids, *_accuracy_grids(people), *_table_by_people(people)]
    )


def _accuracy_grids(people: GradeResults) -> list[Grid]:
    """How often each judge is right, and which verdicts it confuses."""
    groups = []
    for judge, parts in people.accuracy.items():
        rows = [
            [
                _PARTS[part],
                Cell(accuracy.same, "percent", accuracy.low, accuracy.high),
                mean_cell(accuracy.alpha, "two"),
                accuracy.units,
                accuracy.undecided,
            ]
            for part, accuracy in parts.items()
            if accuracy.units or accuracy.undecided
        ]
        groups += [RowGroup(rows, judge)] if rows else []
    if not groups:
        return []
    columns = ["What was graded", "Same verdict", "Alpha", "Compared", "Graders split"]
    about = (
        "Same verdict: how often the judge agrees with most graders, with its 95 % interval over"
        " questions. Alpha: Krippendorff's, nominal: agreement beyond chance, at most 1. Left out:"
        " claims on which graders are split, and claims without a readable verdict of the judge."
    )
    grids = [
        Grid("judge_accuracy", "The judge against people", columns, groups=groups, about=about)
    ]
    for part, verdicts in VERDICTS.items():
        confused = []
        for judge, parts in people.accuracy.items():
            if parts[part].units:
                matrix = parts[part].confusion
                rows = [
                    [words(mine), *(matrix.get((mine, judged), 0) for judged in verdicts)]
                    for mine in verdicts
                ]
                confused.append(RowGroup(rows, judge))
        if confused:
            columns = ["People say", *(f"Judge: {words(verdict)}" for verdict in verdicts)]
            grids.append(
                Grid(
                    f"judge_mistakes_{part}",
                    f"{_PARTS[part]}: verdicts of people and judge",
                    columns,
                    groups=confused,
                    about="Claims by the verdict of most graders.",
                )
            )
    return grids


def _table_by_people(people: GradeResults) -> list[Grid]:
    groups = []
    for judge in dict.fromkeys(system.judge for system in people.systems):
        mine = sorted(
            (system for system in people.systems if system.judge == judge),
            key=lambda each: answering_order(each.system),
        )
        rows = [
            _comparison_row(each, measure)
            for measure, _ in COMPARED.values()
            for each in mine
            if measure in each.people
        ]
        groups += [RowGroup(rows, judge or "No judge")] if rows else []
    columns = ["Share", "System", "People", "Judge", "Difference", "Questions"]
    about = (
        "The two shares of arXivBot's Table 1 by people (mean over graders) and by the judge, for"
        " the same claims of the same answers, with 95 % intervals over questions. Difference:"
        " people less judge, in percentage points. Answers that abstain or claim nothing count as"
        " they do for the judge; nobody had to grade them."
    )
    return (
        [Grid("people_table_1", "Table 1 by people", columns, groups=groups, about=about)]
        if groups
        else []
    )


def _comparison_row(comparison: SystemComparison, measure: str) -> Row:
    people = comparison.people[measure]
    return [
        measure.capitalize(),
        answering_system(comparison.system),
        mean_cell(people, "percent"),
        mean_cell(comparison.judged.get(measure), "percent"),
        mean_cell(comparison.difference[measure], "one", 100),
        people.count,
    ]
