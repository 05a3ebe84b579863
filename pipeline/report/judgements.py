"""Sections on judges and people: marks and votes of sections, grades of answers, and agreement."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

from pipeline.evaluation.answers.people import VERDICTS, Part
from pipeline.evaluation.answers.people_measures import COMPARED, GradeResults
from pipeline.evaluation.g_score.measures import votes_by_task
from pipeline.evaluation.g_score.people_measures import MEAN, RatedSystem, RatingResults
from pipeline.evaluation.statistics import Agreement, Estimate, agreement, estimate
from pipeline.report.data import RelatedWorkData, answering_order
from pipeline.report.figures import Bar, BarFigure, bar, system_colour
from pipeline.report.formatting import (
    FEW,
    MISSING,
    answering_system,
    criterion_name,
    number_of,
    words,
)
from pipeline.report.grid import (
    Cell,
    Grid,
    GridRow,
    RowGroup,
    Section,
    mean_cell,
    percent_cell,
    with_rows,
)
from pipeline.report.measures import (
    CRITERIA_MEASURES,
    G_SCORE,
    Measure,
    MeasuredRow,
    basis,
    mean_cells,
    measure_table,
    select,
)
from pipeline.tables import CRITERIA

_PARTS: Mapping[Part, str] = {"claim": "Claims of answers", "gold": "Gold claims"}
_ALPHA: Mapping[Part, str] = {
    "claim": "Krippendorff's alpha, nominal",
    "gold": "Krippendorff's alpha, ordinal",
}


def criteria(data: RelatedWorkData) -> Section | None:
    """Figure 4: the six criteria, the judge beside people where people marked; None where nothing
    was marked.
    """
    by_judge, by_people = _marks_by_judge(data), _marks_by_people(data)
    if not by_judge and not by_people:
        return None
    caption = (
        "Marks from 1 to 5, mean over tasks, on an axis from 0 to 5; whiskers are 95 % intervals."
    )
    caption += f" Filled: {data.scores.judge} as judge." if by_judge else ""
    if by_people and data.people:
        raters = number_of(len(data.people.raters), "rater")
        tasks = number_of(data.people.tasks, "task")
        caption += f" Outlined: people ({raters} on {tasks}), for the systems that they were shown."
    bars = [
        (measure.title, _criterion_bars(measure, by_judge, by_people))
        for measure in CRITERIA_MEASURES
    ]
    grid = measure_table(
        "criteria",
        "Marks by criterion",
        [*CRITERIA_MEASURES, G_SCORE, *select("tasks")],
        groups=[
            RowGroup(list(by_judge.values()), f"Judge {data.scores.judge}"),
            RowGroup(list(by_people.values()), "People"),
        ],
        about=(
            "Marks from 1 to 5; the judge saw all systems of a task in one conversation."
            f" {basis(data)}."
        ),
    )
    figure = BarFigure("Figure 4: the six criteria", bars, caption)
    return Section("criteria", "The six criteria", (), (figure, grid))


def _marks_by_judge(data: RelatedWorkData) -> dict[str, MeasuredRow]:
    """System → its marks by the first judge."""
    rows = {}
    for system in data.systems:
        tasks = len(data.scores.by_task(system, G_SCORE.metric))
        cells = mean_cells(data, system, [*CRITERIA_MEASURES, G_SCORE])
        if tasks:
            rows[system] = MeasuredRow(words(system), cells | {"tasks": tasks})
    return rows


def _marks_by_people(data: RelatedWorkData) -> dict[str, MeasuredRow]:
    """System → its marks by the raters."""
    rows = {}
    for rated in data.people.systems if data.people else ():
        marks = {f"g_{criterion}": rated.marks[criterion] for criterion in CRITERIA}
        marks[G_SCORE.metric] = rated.marks[MEAN]
        if any(mean.value is not None for mean in marks.values()):
            cells = {metric: mean_cell(mean, "two") for metric, mean in marks.items()}
            tasks = max(mean.count for mean in marks.values())
            rows[rated.system] = MeasuredRow(words(rated.system), {**cells, "tasks": tasks})
    return rows


def _criterion_bars(
    measure: Measure,
    by_judge: Mapping[str, MeasuredRow],
    by_people: Mapping[str, MeasuredRow],
) -> list[Bar]:
    bars = []
    for system in sorted({*by_judge, *by_people}):
        colour = system_colour(system)
        if system in by_judge:
            cell = by_judge[system].cells[measure.metric]
            bars.append(bar(words(system), cell, colour, measure.axis))
        if system in by_people:
            cell = by_people[system].cells[measure.metric]
            if cell.value is not None:
                bars.append(bar("by people", cell, colour, measure.axis, hollow=True))
    return bars


@dataclass(frozen=True, slots=True)
class _Voters:
    """A judge or the raters. votes, tasks: how many; shares: system → share of the votes, of
    systems on offer.
    """

    name: str
    votes: int
    tasks: int
    shares: Mapping[str, Estimate]
    people: bool = False

    @property
    def heading(self) -> str:
        return f"{self.name}, {number_of(self.votes, 'vote')} on {number_of(self.tasks, 'task')}"

    def bars(self) -> list[Bar]:
        return [
            bar(
                words(system),
                mean_cell(share, "percent"),
                system_colour(system),
                hollow=self.people,
            )
            for system, share in self.shares.items()
        ]


def preference(data: RelatedWorkData) -> Section | None:
    """Figure 5: whose section was voted best, by each judge and by people; None where there was no
    vote.
    """
    voters = [*_judges_as_voters(data), *_raters_as_voters(data)]
    if not voters:
        return None
    figure = BarFigure(
        "Figure 5: preference",
        [(voter.heading, voter.bars()) for voter in voters],
        "Share of the votes for the best section of a task, each task with the same weight;"
        " whiskers are 95 % intervals. In the paper people voted, on 10 samples.",
    )
    rows = [
        [words(system), *(mean_cell(voter.shares.get(system), "percent") for voter in voters)]
        for system in data.systems
    ]
    rows.append(["Votes", *(Cell(voter.votes, "count") for voter in voters)])
    columns = ["System", *(voter.name for voter in voters)]
    about = f"{MISSING}: the system was not on offer."
    grid = Grid("preference", "Votes", columns, rows, about=about, totals=("Votes",))
    return Section("preference", "Preference", (), (figure, grid))


def _judges_as_voters(data: RelatedWorkData) -> Iterator[_Voters]:
    for judge in data.scores.judges:
        votes = votes_by_task(data.judgements, judge)
        cast = [row for row in data.judgements if row["judge"] == judge and row["best"]]
        on_offer = sorted({name for row in cast for name in row["order"]})
        shares = {
            system: estimate(
                {task: [vote == system for vote in of_task] for task, of_task in votes.items()}
            )
            for system in on_offer
        }
        if votes:
            yield _Voters(f"Judge {judge}", len(cast), len(votes), shares)


def _raters_as_voters(data: RelatedWorkData) -> Iterator[_Voters]:
    if data.people is not None and data.people.choices:
        shares = {
            rated.system: rated.preferred
            for rated in data.people.systems
            if rated.preferred.value is not None
        }
        tasks = {row["task_id"] for row in data.ratings if row["preferred"]}
        yield _Voters("People", data.people.choices, len(tasks), shares, people=True)


def second_judge(data: RelatedWorkData) -> Section | None:
    """The judges side by side, and their agreement; None for a single one."""
    judges = data.scores.judges
    if len(judges) < 2:
        return None
    rows = []
    for system in data.systems:
        marks = {judge: data.scores.mean(system, G_SCORE.metric, judge) for judge in judges}
        cells = {judge: G_SCORE.cell(mark) for judge, mark in marks.items()}
        rows.append(MeasuredRow(words(system), cells))
    columns = [replace(G_SCORE, metric=judge, title=judge) for judge in judges]
    about = "The G-Score, mean over tasks. No mean mixes marks of two judges."
    beside = measure_table("judges", "G-Score by judge", columns, rows, about=about)
    return Section("judging", "A second judge", (), (beside, _agreement_of_judges(data, judges)))


def _agreement_of_judges(data: RelatedWorkData, judges: Sequence[str]) -> Grid:
    """Agreement of every two judges on the G-Scores of sections."""
    marks = {
        judge: {
            (task, system): mark
            for system in data.systems
            for task, mark in data.scores.by_task(system, G_SCORE.metric, judge).items()
        }
        for judge in judges
    }
    pairs = [
        (f"{first} and {second}", agreement(marks[first], marks[second]))
        for first, second in combinations(judges, 2)
    ]
    rows = [_agreement_row(pair, agreed) for pair, agreed in pairs if agreed]
    columns = ["Two judges", "Spearman", "Same order", "Mean difference", "Sections"]
    about = (
        "Spearman: rank correlation over all sections. Same order: of two sections of one task that"
        " neither marks equally, the share that both put in one order. Mean difference: the second"
        " G-Score less the first."
    )
    return Grid("agreement", "Agreement of judges", columns, rows, about=about)


def _agreement_row(name: str, agreed: Agreement) -> GridRow:
    return [
        name,
        agreed.spearman,
        percent_cell(agreed.same_order),
        agreed.mean_difference,
        agreed.sections,
    ]


def ratings_section(data: RelatedWorkData) -> Section:
    """Agreement of raters, and of the judge with them, for a month; how to have ratings where there
    are none.
    """
    key, title, outdated = "people", "People", _outdated_ratings(data.outdated_ratings)
    if data.people is None:
        text = (
            "Nobody has rated sections of this month yet: citeloom annotate export ratings makes"
            " blind sheets, citeloom annotate import reads them."
        )
        return Section(key, title, (text, *outdated))
    text = (
        f"{number_of(len(data.people.raters), 'rater')} on {number_of(data.people.tasks, 'task')},"
        " who did not know which system wrote which section. Figure 4 has their marks, Figure 5"
        " their choices. citeloom annotate results ratings pools all months of a study."
    )
    return Section(key, title, (text, *outdated), _rating_grids(data.people))


def rating_results_section(people: RatingResults) -> Section:
    """Ratings of several months: mean marks and preference by system, agreement, the judge beside
    people.
    """
    key, title, outdated = "people", "People", _outdated_ratings(people.outdated)
    if not people.ratings:
        none = "Nobody has rated these sections as they are now."
        return Section(key, title, (none, *outdated))
    raters, tasks = number_of(len(people.raters), "rater"), number_of(people.tasks, "task")
    text = f"{raters}, {tasks}, {number_of(people.ratings, 'rating')}."
    grids = [_marks_grid(people.systems), *_rating_grids(people)]
    return Section(key, title, (text, *outdated), grids)


def _outdated_ratings(ratings: int) -> list[str]:
    if not ratings:
        return []
    return [f"{number_of(ratings, 'rating')} of sections that have changed since are left out."]


def _marks_grid(systems: Sequence[RatedSystem]) -> Grid:
    rows: list[GridRow] = [
        [_mark_name(name), *(mean_cell(system.marks[name], "two") for system in systems)]
        for name in systems[0].marks
    ]
    rows.append(["Preferred", *(mean_cell(system.preferred, "percent") for system in systems)])
    columns = ["Mark", *(words(rated.system) for rated in systems)]
    about = (
        "Mean marks from 1 to 5, and the share of choices that preferred the system, with 95 %"
        " intervals; each task has the same weight however many rated it."
    )
    return Grid("people_marks", "Marks by people", columns, rows, about=about)


def _mark_name(name: str) -> str:
    return "Mean of the six" if name == MEAN else criterion_name(name)


def _rating_grids(people: RatingResults) -> list[Grid]:
    alphas = [
        (criterion_name(name), "Krippendorff's alpha, ordinal", alpha)
        for name, alpha in people.alpha.items()
    ]
    alphas.append(("Preference", "Krippendorff's alpha, nominal", people.preference))
    agreement = _agreement_of_people(
        "people", "Agreement of raters", "rated", "task", people.tasks, alphas
    )
    groups = []
    for judge in people.judges:
        rows = [
            _agreement_row(_mark_name(name), agreed)
            for name, agreed in judge.marks.items()
            if agreed
        ]
        votes = (
            f"the same best section in {judge.same} of {judge.votes} tasks" if judge.votes else ""
        )
        groups += [RowGroup(rows, judge.judge, votes)] if rows else []
    columns = ["Marks", "Spearman", "Same order", "People less judge", "Sections"]
    about = (
        "A section's mark is the mean over raters. Same order: of two sections of one task, the"
        " share that both put in one order."
    )
    title = "The judge against people"
    compared = Grid("judge_and_people", title, columns, groups=groups, about=about)
    return [agreement, *with_rows(compared)]


def _agreement_of_people(
    key: str,
    title: str,
    verb: str,
    noun: str,
    items: int,
    agreed: Sequence[tuple[str, str, Estimate]],
) -> Grid:
    """agreed: (what was rated or graded, measure, agreement)."""
    rows = [
        [name, measure, mean_cell(alpha, "two"), alpha.count] for name, measure, alpha in agreed
    ]
    columns = [f"What was {verb}", "Measure", "Agreement", f"{verb.capitalize()} twice or more"]
    about = (
        "1 is perfect agreement, 0 what chance would give; below it the 95 % interval over"
        f" {noun}s. By its author's advice an alpha below 0.667 supports no conclusion."
    )
    few = f"With {number_of(items, noun)} the intervals are too narrow."
    return Grid(key, title, columns, rows, about=about, notes=[few] if 1 < items < FEW else [])


def grades_section(people: GradeResults, names: Mapping[str, str] | None = None) -> Section:
    """People's grades: agreement of graders, accuracy of the judge, Table 1 by people; how to have
    them where there are none.

    names: name of a writer → its name in the report.
    """
    key, title = "answer_people", "People's grades"
    changed = (
        f"{number_of(people.outdated, 'verdict')} on answers or claims that have changed since are"
        " left out."
    )
    outdated = [changed] if people.outdated else []
    if not people.graders:
        text = (
            "Nobody has graded these answers yet: citeloom annotate export grades makes blind"
            " sheets, citeloom annotate import reads them."
        )
        return Section(key, title, (text, *outdated))
    units = (
        "claims into which the judge had split the answers"
        if people.accuracy
        else "sentences of the answers"
    )
    text = (
        f"{number_of(len(people.graders), 'grader')}, {number_of(people.verdicts, 'verdict')} on"
        f" {number_of(people.answers, 'answer')} to {number_of(people.questions, 'question')},"
        f" without knowing the systems. They graded the {units}, and could add none."
    )
    agreed = [
        (_PARTS[part], _ALPHA[part], alpha)
        for part, alpha in people.agreement.items()
        if alpha.count
    ]
    agreement = _agreement_of_people(
        "answer_graders", "Agreement of graders", "graded", "question", people.questions, agreed
    )
    grids = with_rows(
        agreement, _accuracy(people), *_mistakes(people), _table_by_people(people, names or {})
    )
    return Section(key, title, (text, *outdated), grids)


def _accuracy(people: GradeResults) -> Grid:
    """How often each judge is right."""
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
    columns = ["What was graded", "Same verdict", "Alpha", "Compared", "Graders split"]
    about = (
        "Same verdict: how often the judge agrees with most graders, with its 95 % interval over"
        " questions. Alpha: Krippendorff's, nominal: agreement beyond chance, at most 1. Left out:"
        " claims on which graders are split, and claims without a readable verdict of the judge."
    )
    return Grid("judge_accuracy", "The judge against people", columns, groups=groups, about=about)


def _mistakes(people: GradeResults) -> list[Grid]:
    """Which verdicts each judge confuses."""
    grids = []
    for part, verdicts in VERDICTS.items():
        groups = []
        for judge, parts in people.accuracy.items():
            confusion = parts[part].confusion
            rows = [
                [words(mine), *(confusion.get((mine, judged), 0) for judged in verdicts)]
                for mine in verdicts
            ]
            groups += [RowGroup(rows, judge)] if parts[part].units else []
        columns = ["People say", *(f"Judge: {words(verdict)}" for verdict in verdicts)]
        title = f"{_PARTS[part]}: verdicts of people and judge"
        about = "Claims by the verdict of most graders."
        grids.append(Grid(f"judge_mistakes_{part}", title, columns, groups=groups, about=about))
    return grids


def _table_by_people(people: GradeResults, names: Mapping[str, str]) -> Grid:
    groups = []
    for judge in dict.fromkeys(system.judge for system in people.systems):
        mine = sorted(
            (system for system in people.systems if system.judge == judge),
            key=lambda compared: answering_order(compared.system),
        )
        rows = [
            [
                measure.capitalize(),
                answering_system(names.get(system.system, system.system)),
                mean_cell(system.people[measure], "percent"),
                mean_cell(system.judged.get(measure), "percent"),
                mean_cell(system.difference[measure], "one", 100),
                system.people[measure].count,
            ]
            for measure, _ in COMPARED.values()
            for system in mine
            if measure in system.people
        ]
        groups += [RowGroup(rows, judge or "No judge")] if rows else []
    columns = ["Share", "System", "People", "Judge", "Difference", "Questions"]
    about = (
        "The two shares of arXivBot's Table 1 by people (mean over graders) and by the judge, for"
        " the same claims of the same answers, with 95 % intervals over questions. Difference:"
        " people less judge, in percentage points. Answers that abstain or claim nothing count as"
        " they do for the judge; nobody had to grade them."
    )
    return Grid("people_table_1", "Table 1 by people", columns, groups=groups, about=about)
