"""Sections on people's ratings of sections and grades of answers, and how far judges agree."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pipeline.evaluation.annotation.grades import NO_JUDGE, SHARES, GradeResults
from pipeline.evaluation.annotation.ratings import MEAN, RatedSet, RatingResults
from pipeline.evaluation.annotation.study import Part
from pipeline.evaluation.statistics import Estimate
from pipeline.report.formatting import FEW, answering_system, criterion_name, words
from pipeline.report.frames import answering_order
from pipeline.report.grid import (
    Cell,
    Grid,
    GridRow,
    PageSection,
    RowGroup,
    mean_cell,
    percent_cell,
    with_values,
)
from pipeline.text import number_of

_PARTS: Mapping[Part, str] = {"claim": "Claims of answers", "gold": "Gold claims"}


def ratings_section(people: RatingResults, *, with_marks: bool = True) -> PageSection:
    """Ratings of sections by candidate set: agreement of raters, and of the judge with them;
    with_marks: mean marks and preference by system too.
    """
    texts = [] if people.sets else ["Nobody has rated these sections as they are now."]
    grids: list[Grid] = []
    for rated in people.sets:
        named = f", candidate set {rated.candidate_set}" if rated.candidate_set else ""
        texts.append(
            f"Study {', '.join(rated.studies)}{named}: {number_of(len(rated.raters), 'rater')},"
            f" {number_of(rated.tasks, 'task')}, {number_of(rated.ratings, 'rating')}, systems"
            " unnamed."
        )
        key = "" if rated is people.sets[0] else f"_{rated.candidate_set}"
        title = f" ({rated.candidate_set})" if len(people.sets) > 1 else ""
        grids += [_marks_grid(rated, key, title)] if with_marks else []
        grids += _rating_grids(rated, key, title)
    if people.outdated:
        ratings = number_of(people.outdated, "rating")
        texts.append(f"{ratings} of sections that have changed since are left out.")
    return PageSection("people", "People", texts, grids)


def _marks_grid(rated: RatedSet, key: str, title: str) -> Grid:
    rows: list[GridRow] = [
        [_mark_name(name), *(mean_cell(system.marks[name], "two") for system in rated.systems)]
        for name in rated.systems[0].marks
    ]
    rows.append(["Preferred", *(mean_cell(item.preferred, "percent") for item in rated.systems)])
    columns = ["Mark", *(words(system.system) for system in rated.systems)]
    about = "Mean marks from 1 to 5, and the share of choices; each task has the same weight."
    return Grid(f"people_marks{key}", f"Marks by people{title}", columns, rows, about=about)


def _mark_name(name: str) -> str:
    return "Mean of the six" if name == MEAN else criterion_name(name)


def _rating_grids(people: RatedSet, key: str, suffix: str) -> list[Grid]:
    alphas = [(criterion_name(name), "ordinal", alpha) for name, alpha in people.alpha.items()]
    alphas.append(("Preference", "nominal", people.preference))
    agreement = _agreement_grid(
        f"people{key}", f"Agreement of raters{suffix}", "rated", "task", people.tasks, alphas
    )
    groups = []
    for judge in people.judges:
        rows = [
            [
                _mark_name(name),
                agreed.spearman,
                percent_cell(agreed.same_order),
                agreed.mean_difference,
                agreed.sections,
            ]
            for name, agreed in judge.marks.items()
            if agreed
        ]
        votes = f"same best section in {judge.same} of {judge.votes} tasks" if judge.votes else ""
        groups.append(RowGroup(rows, judge.judge, votes))
    about = (
        "Spearman: rank correlation over all sections. Same order: of two sections of one task that"
        " are not marked equally, the share that both put in one order."
    )
    columns = ["Marks", "Spearman", "Same order", "People less judge", "Sections"]
    title = f"The judge against people{suffix}"
    compared = Grid(f"judge_and_people{key}", title, columns, groups=groups, about=about)
    return [agreement, *with_values(compared)]


def _agreement_grid(
    key: str,
    title: str,
    verb: str,
    noun: str,
    items: int,
    agreed: Sequence[tuple[str, str, Estimate]],
) -> Grid:
    """agreed: (what was rated or graded, level, agreement)."""
    rows = [
        [name, f"Krippendorff's alpha, {level}", mean_cell(alpha, "two"), alpha.count]
        for name, level, alpha in agreed
    ]
    columns = [f"What was {verb}", "Measure", "Agreement", f"{verb.capitalize()} twice or more"]
    about = "1 is perfect agreement, 0 what chance would give; below 0.667 no conclusion is safe."
    few = (
        [f"With {number_of(items, noun)} the intervals are too narrow."] if 1 < items < FEW else []
    )
    return Grid(key, title, columns, rows, about=about, notes=few)


def grades_section(people: GradeResults, names: Mapping[str, str] | None = None) -> PageSection:
    """People's grades: agreement of graders, accuracy of the judge, Table 1 by people; how to have
    them where there are none.

    names: name of a writer → its name in the report.
    """
    texts = [
        "Nobody has graded these answers yet: citeloom annotate export grades makes blind sheets,"
        " citeloom annotate import reads them."
    ]
    grids: list[Grid] = []
    if people.graders:
        own = {s.judge == NO_JUDGE for s in people.systems if "factual" in s.people}
        own_claims = "sentences, which they split into claims themselves"
        units = {True: own_claims, False: "claims that a judge split"}
        texts = [
            f"{number_of(len(people.graders), 'grader')}, {number_of(people.verdicts, 'verdict')}"
            f" on {number_of(people.answers, 'answer')} to"
            f" {number_of(people.questions, 'question')}, without knowing the systems. They graded"
            f" {' and '.join(units[alone] for alone in sorted(own or {False}))}."
        ]
        agreed = [
            (_PARTS[part], SHARES[part].level, alpha)
            for part, alpha in people.agreement.items()
            if alpha.count
        ]
        agreement = _agreement_grid(
            "answer_graders", "Agreement of graders", "graded", "question", people.questions, agreed
        )
        grids = with_values(agreement, _accuracy(people), _table_by_people(people, names or {}))
    if people.outdated:
        verdicts = number_of(people.outdated, "verdict")
        texts.append(f"{verdicts} on answers or claims that have changed since are left out.")
    return PageSection("answer_people", "People's grades", texts, grids)


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
        groups.append(RowGroup(rows, judge))
    columns = ["What was graded", "Same verdict", "Alpha", "Compared", "Graders split"]
    about = (
        "Same verdict: how often the judge agrees with most graders. Alpha: beyond chance."
        " Claims on which graders are split, or that the judge could not grade, are left out."
    )
    return Grid("judge_accuracy", "The judge against people", columns, groups=groups, about=about)


def _table_by_people(people: GradeResults, names: Mapping[str, str]) -> Grid:
    groups = []
    in_order = sorted(people.systems, key=lambda system: answering_order(system.system))
    for judge in dict.fromkeys(system.judge for system in people.systems):
        rows = [
            [
                measure.capitalize(),
                answering_system(names.get(system.system, system.system)),
                mean_cell(system.people[measure], "percent"),
                mean_cell(system.judged.get(measure), "percent"),
                mean_cell(system.difference[measure], "one", 100),
                system.people[measure].count,
            ]
            for measure, *_ in SHARES.values()
            for system in in_order
            if system.judge == judge and measure in system.people
        ]
        groups.append(RowGroup(rows, judge or "No judge"))
    columns = ["Share", "System", "People", "Judge", "Difference", "Questions"]
    about = (
        "The shares of arXivBot's Table 1 by people (mean over graders) and by the judge, for the"
        " same claims. Difference: people less judge, in percentage points. Answers that abstain or"
        " claim nothing count as they do for the judge."
    )
    return Grid("people_table_1", "Table 1 by people", columns, groups=groups, about=about)
