"""How far the verdicts carry: systems against each other, a second judge, and answers whose grade is
known beforehand.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from statistics import fmean

from pipeline.evaluation.answers.grading import HALF, OTHER, OWN, expected_coverage
from pipeline.evaluation.answers.measures import answer_measures
from pipeline.evaluation.answers.results import answers_agreement, difference
from pipeline.evaluation.report.answers.found import CONTROLS, AnswersFound, cell, name_of
from pipeline.evaluation.report.grid import Grid, Rows, Section, Value

_MEASURES = ("factual", "coverage")
_CONTROL_NAMES = {
    OWN: "all gold claims of the question",
    HALF: "the first half of them",
    OTHER: "gold claims of a question on other papers",
}
# A judge that gives the whole answer not even this much more than one on other papers tells nothing apart.
_APART = 0.5


def differences_section(found: AnswersFound) -> Section | None:
    """Each pair of systems over the questions that both have the measure for; None for fewer than two systems."""
    rows = [_difference_row(found, first, second) for first, second in combinations(reversed(found.systems), 2)]
    there = [row for row in rows if any(cell.value is not None for cell in row[2:])]
    if not there:
        return None
    about = (
        "Percentage points, the first system less the second, over the questions for which both have the measure: for "
        "factual that leaves out what either abstained from. Where an interval holds 0, the two are not told apart."
    )
    head = ("First", "Second", "Factual", "Coverage")
    grid = Grid("answers_differences", "Differences between systems", head, [Rows(there)], about)
    return Section("differences", "Systems against each other", (), (grid,))


def _difference_row(found: AnswersFound, first: str, second: str) -> list[Value]:
    told = [difference(found.grades, found.judge, first, second, measure) for measure in _MEASURES]
    cells = [Value(each.mean, "percent", each.low, each.high) if each else Value(None, "percent") for each in told]
    return [Value(name_of(first)), Value(name_of(second)), *cells]


def judges_section(found: AnswersFound) -> Section | None:
    """The judges side by side, and how far they agree; None for a single one."""
    if len(found.judges) < 2:
        return None
    groups = [Rows(_judge_rows(found, judge), judge) for judge in found.judges]
    head = ("System", "Factual", "Coverage", "Answered")
    about = (
        "No mean mixes the verdicts of two judges. Both had the same claims before them: the first took the answers "
        "apart."
    )
    beside = Grid("answers_judges", "Each judge", head, [each for each in groups if each.rows], about)
    return Section("judges", "A second judge", (), (beside, _agreement_grid(found)))


def _judge_rows(found: AnswersFound, judge: str) -> list[list[Value]]:
    results = [(system, found.result(system, judge=judge)) for system in found.systems]
    return [
        [
            Value(name_of(system)),
            *(cell(result, measure) for measure in _MEASURES),
            Value(result.outcomes.get("answered", 0), "count"),
        ]
        for system, result in results
        if result is not None
    ]


def _agreement_grid(found: AnswersFound) -> Grid:
    first, second = found.judges[:2]
    rows = []
    for measure in _MEASURES:
        told = answers_agreement(
            (each for each in found.grades if each.judge == first),
            (each for each in found.grades if each.judge == second),
            measure,
        )
        if told is not None:
            counts = [Value(told.sections, "count"), Value(told.spearman, "two"), Value(told.same_order, "percent")]
            more = [Value(told.compared, "count"), Value(told.mean_difference, "percent")]
            rows.append([Value(measure.capitalize()), *counts, *more])
    head = ("Measure", "Answers", "Rank correlation", "Same order", "Of pairs", "Second less first")
    about = (
        f"{first} against {second}, answer by answer. Same order: of two answers to one question that neither judge "
        "gives the same, how often both put them in one order. The difference is in percentage points."
    )
    return Grid("answers_agreement", "Agreement of judges on answers", head, [Rows(rows)], about)


def controls_section(found: AnswersFound) -> Section | None:
    """Answers made of gold claims, whose coverage is known; None where none was graded."""
    if not found.controls:
        return None
    groups = [Rows(_control_rows(found, judge), judge) for judge in found.judges]
    head = (
        "Answer made of", "Coverage it should have", "Coverage given", "Off by", "With a quote found", "Factual",
        "Questions",
    )  # fmt: skip
    about = (
        "Off by: how far the coverage given to an answer lies from what a judge without mistakes gives, on average, in "
        "percentage points. Nothing in gold claims of other papers is borne out by the question's own."
    )
    grid = Grid("answers_controls", "Answers whose grade is known", head, [row for row in groups if row.rows], about)
    return Section("controls", "Can the judge be believed?", _doubts(found), (grid,))


def _control_rows(found: AnswersFound, judge: str) -> list[list[Value]]:
    rows = []
    for control in CONTROLS:
        result = found.by_control.get((judge, control))
        if result is not None:
            expected, off = _expected(found, judge, control)
            given = [cell(result, "coverage"), off, cell(result, "coverage_quoted"), cell(result, "factual")]
            rows.append([Value(_CONTROL_NAMES[control]), expected, *given, Value(result.questions, "count")])
    return rows


def _expected(found: AnswersFound, judge: str, control: str) -> tuple[Value, Value]:
    """The coverage that the graded answers of a control should have, and by how much those given miss it."""
    known = expected_coverage([each.question for each in found.posed])[control]
    mine = [each for each in found.controls if (each.judge, each.system) == (judge, control)]
    given = {each.question_id: answer_measures(each).get("coverage") for each in mine}
    judged = [(known[name], share) for name, share in given.items() if share is not None and name in known]
    if not judged:
        return Value(None, "percent"), Value(None, "percent")
    off = fmean(abs(should - share) for should, share in judged)
    return Value(fmean(should for should, _ in judged), "percent"), Value(off, "percent")


def _doubts(found: AnswersFound) -> Sequence[str]:
    """Judges that do not tell a whole answer from one on other papers."""
    return [
        f"{judge} does not tell a full answer from one on other papers: its figures on this page mean nothing."
        for judge in found.judges
        if not _tells_apart(found, judge)
    ]


def _tells_apart(found: AnswersFound, judge: str) -> bool:
    results = [found.by_control.get((judge, control)) for control in (OWN, OTHER)]
    own, other = (result.measures.get("coverage") if result else None for result in results)
    return own is None or other is None or own.value - other.value >= _APART
