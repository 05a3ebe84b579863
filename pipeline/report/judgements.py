"""Sections on judges and people: marks and votes of sections, grades of answers, and agreement."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pipeline.evaluation.annotation.grades import COMPARED, NO_JUDGE, GradeResults
from pipeline.evaluation.annotation.ratings import MEAN, RatedSet, RatedSystem, RatingResults
from pipeline.evaluation.annotation.study import Part
from pipeline.evaluation.g_score.measures import vote_shares, votes_by_task
from pipeline.evaluation.statistics import Agreement, Estimate
from pipeline.report.data import CandidateSet, RelatedWorkData, answering_order
from pipeline.report.figures import bar_figure, system_colour
from pipeline.report.formatting import (
    FEW,
    MISSING,
    answering_system,
    criterion_name,
    words,
)
from pipeline.report.grid import (
    Cell,
    Grid,
    GridRow,
    PageSection,
    RowGroup,
    mean_cell,
    percent_cell,
    with_rows,
)
from pipeline.report.measures import (
    CRITERIA_MEASURES,
    G_SCORE,
    MeasuredRow,
    basis,
    mean_cells,
    measure_table,
    select,
)
from pipeline.tables import CRITERIA
from pipeline.text import number_of

_PEOPLE = "People"
_PARTS: Mapping[Part, str] = {"claim": "Claims of answers", "gold": "Gold claims"}
_ALPHA: Mapping[Part, str] = {
    "claim": "Krippendorff's alpha, nominal",
    "gold": "Krippendorff's alpha, ordinal",
}
_SAME_ORDER = (
    "Spearman: rank correlation over all sections. Same order: of two sections of one task that are"
    " not marked equally, the share that both put in one order. Mean difference: the second less"
    " the first."
)


def criteria(data: RelatedWorkData) -> PageSection | None:
    """Figure 4: the six criteria, the judge beside people where people marked, a figure for each
    candidate set; None where nothing was marked.
    """
    parts: list[Any] = []
    for candidates in data.sets:
        rated = data.people.of_set(candidates.name)
        people = _marks_by_people(rated.systems) if rated else []
        raters = number_of(len(rated.raters), "rater") if rated else ""
        groups = [
            RowGroup(_marks_by_judge(candidates), f"Judge {candidates.scores.judge}"),
            RowGroup(people, _PEOPLE, raters),
        ]
        grid = measure_table(
            f"criteria{_key_suffix(data, candidates)}",
            f"Marks by criterion{candidates.suffix}",
            [*CRITERIA_MEASURES, G_SCORE, *select("tasks")],
            groups=groups,
            about=(
                "Mean marks from 1 to 5; the judge saw these systems of a task in one conversation."
                f" {basis(data)}."
            ),
        )
        if not grid.rows:
            continue
        figure = bar_figure(
            f"Figure 4: the six criteria{candidates.suffix}",
            grid,
            {measure.title: measure.axis for measure in CRITERIA_MEASURES},
            {words(system): system_colour(system) for system in data.systems},
            "On an axis from 0 to 5; whiskers are 95 % intervals."
            f"{' Outlined: people.' if people else ''}",
            outlined=_PEOPLE,
        )
        parts += [figure, grid]
    return PageSection("criteria", "The six criteria", (), parts) if parts else None


def _key_suffix(data: RelatedWorkData, candidates: CandidateSet) -> str:
    """The end of a table's key, empty for the first set."""
    return "" if candidates is data.sets[0] else f"_{candidates.name}"


def _marks_by_judge(candidates: CandidateSet) -> list[MeasuredRow]:
    rows = []
    for system in candidates.systems:
        tasks = len(candidates.scores.by_task(system, G_SCORE.metric))
        cells = mean_cells(candidates.scores, system, [*CRITERIA_MEASURES, G_SCORE])
        if tasks:
            rows.append(MeasuredRow(words(system), cells | {"tasks": tasks}))
    return rows


def _marks_by_people(systems: Sequence[RatedSystem]) -> list[MeasuredRow]:
    rows = []
    for rated in systems:
        marks = {f"g_{criterion}": rated.marks[criterion] for criterion in CRITERIA}
        marks[G_SCORE.metric] = rated.marks[MEAN]
        tasks = max(mean.count for mean in marks.values())
        cells = {metric: mean_cell(mean, "two") for metric, mean in marks.items()}
        if tasks:
            rows.append(MeasuredRow(words(rated.system), {**cells, "tasks": tasks}))
    return rows


def preference(data: RelatedWorkData) -> PageSection | None:
    """Figure 5: whose section was voted best, by the judge and by people, a figure for each
    candidate set; None where there was no vote.
    """
    parts: list[Any] = []
    for candidates in data.sets:
        shares_by_voter = _votes_of_judge(candidates) | _votes_of_people(
            data.people.of_set(candidates.name)
        )
        if not shares_by_voter:
            continue
        voted = {system for shares in shares_by_voter.values() for system in shares}
        rows = [
            [
                words(system),
                *(mean_cell(shares.get(system), "percent") for shares in shares_by_voter.values()),
            ]
            for system in sorted(voted)
        ]
        all_on_offer = all(shares.keys() == voted for shares in shares_by_voter.values())
        grid = Grid(
            f"preference{_key_suffix(data, candidates)}",
            f"Votes{candidates.suffix}",
            ["System", *shares_by_voter],
            rows,
            about="" if all_on_offer else f"{MISSING}: the system was not on offer.",
        )
        figure = bar_figure(
            f"Figure 5: preference{candidates.suffix}",
            grid,
            dict.fromkeys(shares_by_voter, 1.0),
            {words(system): system_colour(system) for system in data.systems},
            "Share of the votes for the best section of a task, each task with the same weight;"
            " whiskers are 95 % intervals. In the paper people voted, on 10 samples.",
        )
        parts += [figure, grid]
    return PageSection("preference", "Preference", (), parts) if parts else None


def _votes_of_judge(candidates: CandidateSet) -> dict[str, dict[str, Estimate]]:
    """Judge with its number of votes → system → share of the votes, of systems on offer; empty
    where it cast none.
    """
    judge = candidates.scores.judge
    votes = votes_by_task(candidates.judgements, judge)
    if not votes:
        return {}
    cast = [row for row in candidates.judgements if row["judge"] == judge and row["best"]]
    on_offer = sorted({name for row in cast for name in row["order"]})
    return {_voter(f"Judge {judge}", len(cast), len(votes)): vote_shares(votes, on_offer)}


def _votes_of_people(rated: RatedSet | None) -> dict[str, dict[str, Estimate]]:
    if rated is None or not rated.choices:
        return {}
    return {
        _voter(_PEOPLE, rated.choices, rated.voted): {
            system.system: system.preferred for system in rated.systems
        }
    }


def _voter(name: str, votes: int, tasks: int) -> str:
    return f"{name}, {number_of(votes, 'vote')} on {number_of(tasks, 'task')}"


def agreement_row(name: str, agreed: Agreement) -> GridRow:
    """Two who scored the same, beside their name: rank correlation, the share of pairs in the same
    order, the mean difference, and how many both scored.
    """
    return [
        name,
        agreed.spearman,
        percent_cell(agreed.same_order),
        agreed.mean_difference,
        agreed.sections,
    ]


def rating_results_section(people: RatingResults, *, with_marks: bool = True) -> PageSection:
    """Ratings of sections by candidate set: agreement of raters, and of the judge with them;
    with_marks: mean marks and preference by system too.
    """
    paragraphs = [_who_rated(rated) for rated in people.sets]
    grids: list[Grid] = []
    for rated in people.sets:
        is_first = rated is people.sets[0]
        key = "" if is_first else f"_{rated.candidate_set}"
        title = f" ({rated.candidate_set})" if len(people.sets) > 1 else ""
        grids += [_marks_grid(rated.systems, key, title)] if with_marks else []
        grids += _rating_grids(rated, key, title)
    if people.outdated:
        ratings = number_of(people.outdated, "rating")
        paragraphs.append(f"{ratings} of sections that have changed since are left out.")
    if not people.sets:
        paragraphs.insert(0, "Nobody has rated these sections as they are now.")
    return PageSection("people", "People", paragraphs, grids)


def _who_rated(rated: RatedSet) -> str:
    raters, tasks = number_of(len(rated.raters), "rater"), number_of(rated.tasks, "task")
    studies = "Studies" if len(rated.studies) > 1 else "Study"
    named = f", candidate set {rated.candidate_set}" if rated.candidate_set else ""
    return (
        f"{studies} {', '.join(rated.studies)}{named}: {raters}, {tasks},"
        f" {number_of(rated.ratings, 'rating')}, systems unnamed."
    )


def _marks_grid(systems: Sequence[RatedSystem], key: str, title: str) -> Grid:
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
    return Grid(f"people_marks{key}", f"Marks by people{title}", columns, rows, about=about)


def _mark_name(name: str) -> str:
    return "Mean of the six" if name == MEAN else criterion_name(name)


def _rating_grids(people: RatedSet, key: str, suffix: str) -> list[Grid]:
    alphas = [
        (criterion_name(name), "Krippendorff's alpha, ordinal", alpha)
        for name, alpha in people.alpha.items()
    ]
    alphas.append(("Preference", "Krippendorff's alpha, nominal", people.preference))
    agreement = _agreement_of_people(
        f"people{key}", f"Agreement of raters{suffix}", "rated", "task", people.tasks, alphas
    )
    groups = []
    for judge in people.judges:
        rows = [
            agreement_row(_mark_name(name), agreed)
            for name, agreed in judge.marks.items()
            if agreed
        ]
        votes = (
            f"the same best section in {judge.same} of {judge.votes} tasks" if judge.votes else ""
        )
        groups += [RowGroup(rows, judge.judge, votes)] if rows else []
    columns = ["Marks", "Spearman", "Same order", "People less judge", "Sections"]
    about = f"A section's mark is the mean over raters. {_SAME_ORDER}"
    title = f"The judge against people{suffix}"
    compared = Grid(f"judge_and_people{key}", title, columns, groups=groups, about=about)
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


def grades_section(people: GradeResults, names: Mapping[str, str] | None = None) -> PageSection:
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
        return PageSection(key, title, (text, *outdated))
    of_judges = "claims into which the judge had split the answers"
    own = "sentences of the answers, which they split into claims themselves"
    without_judge = {
        system.judge == NO_JUDGE for system in people.systems if "factual" in system.people
    }
    units = " and ".join(own if alone else of_judges for alone in sorted(without_judge))
    text = (
        f"{number_of(len(people.graders), 'grader')}, {number_of(people.verdicts, 'verdict')} on"
        f" {number_of(people.answers, 'answer')} to {number_of(people.questions, 'question')},"
        f" without knowing the systems. They graded the {units or of_judges}."
    )
    agreed = [
        (_PARTS[part], _ALPHA[part], alpha)
        for part, alpha in people.agreement.items()
        if alpha.count
    ]
    agreement = _agreement_of_people(
        "answer_graders", "Agreement of graders", "graded", "question", people.questions, agreed
    )
    grids = with_rows(agreement, _accuracy(people), _table_by_people(people, names or {}))
    return PageSection(key, title, (text, *outdated), grids)


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
