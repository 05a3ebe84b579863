"""Sections on people's ratings of sections and grades of answers, and how far judges agree."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pipeline.evaluation.annotation.results import (
    MEAN,
    SHARES,
    GradeResults,
    RatedSet,
    RatingResults,
)
from pipeline.evaluation.annotation.study import Part
from pipeline.evaluation.statistics import Estimate
from pipeline.report.formatting import FEW, answering_system, criterion_name
from pipeline.report.frames import answering_order
from pipeline.report.grid import (
    Grid,
    PageSection,
    RowGroup,
    mean_cell,
    percent_cell,
    with_values,
)
from pipeline.text import number_of

_PARTS: Mapping[Part, str] = {"claim": "Claims of answers", "gold": "Gold claims"}
_SHARES: Mapping[Part, str] = {"claim": "Factual", "gold": "Coverage"}


def ratings_section(people: RatingResults) -> PageSection | None:
    """Ratings of sections by candidate set: agreement of raters, and of the judge with them; None
    where nobody rated.
    """
    if not people.sets and not people.outdated:
        return None
    texts = [] if people.sets else ["Nobody has rated these sections as they are now."]
    grids: list[Grid] = []
    for candidate_set, rated in people.sets.items():
        named = f", candidate set {candidate_set}" if candidate_set else ""
        texts.append(
            f"Study {', '.join(rated.studies)}{named}: {number_of(rated.raters, 'rater')},"
            f" {number_of(rated.tasks, 'task')}, {number_of(rated.ratings, 'rating')}, systems"
            " unnamed."
        )
        key = f"_{candidate_set}" if grids else ""
        grids += _rating_grids(rated, key, f" ({candidate_set})" if len(people.sets) > 1 else "")
    if people.outdated:
        ratings = number_of(people.outdated, "rating")
        texts.append(f"{ratings} of sections that have changed since are left out.")
    return PageSection("people", "People", texts, grids)


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
                "Mean of the six" if name == MEAN else criterion_name(name),
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


def grades_section(people: GradeResults, names: Mapping[str, str]) -> PageSection | None:
    """People's grades: agreement of graders, accuracy of the judge, Table 1 by people; None where
    nobody graded.

    names: name of a writer → its name in the report.
    """
    if not people.graders and not people.outdated:
        return None
    texts = ["Nobody has graded these answers as they are now."]
    grids: list[Grid] = []
    if people.graders:
        texts = [
            f"{number_of(people.graders, 'grader')}, {number_of(people.verdicts, 'verdict')} on the"
            f" claims of answers to {number_of(people.questions, 'question')}, without knowing the"
            " systems."
        ]
        agreed = [
            (_PARTS[part], SHARES[part].level, alpha)
            for part, alpha in people.agreement.items()
            if alpha.count
        ]
        agreement = _agreement_grid(
            "answer_graders", "Agreement of graders", "graded", "question", people.questions, agreed
        )
        grids = with_values(agreement, _accuracy(people), _table_by_people(people, names))
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
                mean_cell(accuracy.same, "percent"),
                mean_cell(accuracy.alpha, "two"),
                accuracy.same.count,
                accuracy.undecided,
            ]
            for part, accuracy in parts.items()
            if accuracy.same.count or accuracy.undecided
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
    for judge, systems in people.systems.items():
        in_order = sorted(systems, key=lambda each: (each.part, answering_order(each.system)))
        rows = [
            [
                _SHARES[each.part],
                answering_system(names.get(each.system, each.system)),
                mean_cell(each.people, "percent"),
                mean_cell(each.judged, "percent"),
                mean_cell(each.difference, "one", 100),
                each.people.count,
            ]
            for each in in_order
        ]
        groups.append(RowGroup(rows, judge))
    columns = ["Share", "System", "People", "Judge", "Difference", "Questions"]
    about = (
        "The shares of arXivBot's Table 1 by people (mean over graders) and by the judge, for the"
        " same claims. Difference: people less judge, in percentage points. Answers that abstain or"
        " claim nothing count as they do for the judge."
    )
    return Grid("people_table_1", "Table 1 by people", columns, groups=groups, about=about)
