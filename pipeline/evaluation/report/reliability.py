"""What the paper never asked of its marks, or asked on a few runs: order, judge, length, repeats,
people's agreement.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import TYPE_CHECKING

from pipeline.evaluation.annotation.rating_results import MEAN, RatingResults
from pipeline.evaluation.judging import ALONE, TOGETHER
from pipeline.evaluation.report.comparison import FEW, name_of
from pipeline.evaluation.report.figures import Box, BoxFigure, box, series_of
from pipeline.evaluation.report.filters import number_of, words
from pipeline.evaluation.report.found import Found, Row
from pipeline.evaluation.report.grid import Grid, Rows, Section, Value
from pipeline.evaluation.statistics import Interval
from pipeline.tables import CRITERIA, STABILITY

if TYPE_CHECKING:
    from pipeline.evaluation.stability import Spread

# The paper's figure is of the first; the second is a question of ours.
_VARIED = {"samples": "other samples, references in their order", "order": "references in other orders"}
_STABLE = (
    ("g_score", "G-Score"),
    *((f"g_{criterion}", name_of(criterion)) for criterion in CRITERIA),
    ("rouge1", "R-1"),
    ("coverage", "Coverage"),
)
_TICKS = [((mark - 1) / 4, str(mark)) for mark in range(1, 6)]


def stability_section(found: Found) -> Section:
    """Figure 3: how far repeats lie apart, with reflection and without; how to measure it where it was not."""
    if not found.stability:
        why = found.off.get(STABILITY.name) or "the table stability has no rows"
        said = (
            f"Not measured: {why}. Set CITELOOM_STABILITY_TASKS to the number of tasks that are to be written again "
            "and again (CITELOOM_STABILITY_REPEATS times with other samples, and as often with their references in "
            "another order); what that costs, citeloom estimate says first."
        )
        return Section("stability", "Stability (Figure 3)", (said,))
    tasks = {row["task_id"] for row in found.stability}
    said = (
        f"{number_of(len(tasks), 'task')} written again and again by {_named(found, 'model')}, each section marked by "
        f"itself, by {_named(found, 'judge')}. A run is one repeat over all these tasks; its value is their mean. The "
        "paper shows such box plots and does not say how many runs they are of, or on which tasks; it varies the "
        "samples alone."
    )
    figures = [
        _stability_figure(found.stability, varied)
        for varied in _VARIED
        if any(row["varied"] == varied and row["g_score"] is not None for row in found.stability)
    ]
    return Section("stability", "Stability (Figure 3)", (said,), (*figures, _stability_grid(found)))


def _named(found: Found, column: str) -> str:
    return ", ".join(sorted({row[column] for row in found.stability if row[column]})) or "nobody"


def _spreads(rows: Sequence[Row], metric: str) -> list[Spread]:
    """What was varied in the order of `_VARIED`, systems by name within."""
    from pipeline.evaluation.stability import spread

    known = list(_VARIED)
    return sorted(
        spread(rows, metric), key=lambda each: known.index(each.varied) if each.varied in known else len(known)
    )


def _stability_figure(rows: Sequence[Row], varied: str) -> BoxFigure:
    """Boxes of the G-Score and of each of its six marks over the runs, as in the paper's figure."""
    groups: list[tuple[str, list[Box]]] = []
    for metric, name in _STABLE:
        if metric.startswith("g_"):
            spreads = [spread for spread in _spreads(rows, metric) if spread.varied == varied]
            boxes = [box(words(item.system), series_of(item.system), item.runs, 1.0, 5.0) for item in spreads]
            groups += [(name, boxes)] if boxes else []
    about = "Runs on an axis from 1 to 5: box between quartiles, line at the median, a dot for each run."
    return BoxFigure(
        f"Figure 3: G-Score and its six marks over repeated runs, {_VARIED[varied]}", groups, _TICKS, about
    )


def _stability_grid(found: Found) -> Grid:
    rows = []
    for metric, name in _STABLE:
        for each in _spreads(found.stability, metric):
            form = "percent" if metric == "coverage" else "two"
            numbers = [Value(value, form) for value in (each.mean, each.low, each.median, each.high)]  # type: ignore[arg-type]
            deviations = [Value(value, "three") for value in (each.sd, each.sd_of_a_task)]
            counts = [Value(len(each.runs), "count"), Value(each.tasks, "count")]
            rows.append([Value(name), Value(words(each.system)), Value(each.varied), *numbers, *deviations, *counts])
    head = (
        "Metric",
        "System",
        "Varied",
        "Mean",
        "Least",
        "Median",
        "Most",
        "SD of runs",
        "SD of a task",
        "Runs",
        "Tasks",
    )
    return Grid(
        "stability",
        "Spread of repeated runs",
        head,
        [Rows(rows)],
        "SD: standard deviation, of whole runs and of one task's repeats, which is what a single section may differ "
        "by. Coverage: references cited, of the task's. Tasks of which a repeat lacks the metric are left out of it.",
    )


def asked_section(found: Found) -> Section | None:
    """Order, judging alone, a second judge, length, disorder of votes; None where nothing was judged."""
    if not found.judgements:
        return None
    grids = (_ways(found), _differences(found), _disorder(found), _positions(found), _judges(found), _lengths(found))
    return Section(
        "asked",
        "What the paper never asked of its G-Score",
        ("Whether it holds where the order changes, where each section is marked by itself, and with another judge.",),
        [grid for grid in grids if grid is not None],
    )


def _settings(found: Found) -> list[tuple[str, str, str]]:
    """(mode, judge, name) of each way in which sections were marked."""
    names = {TOGETHER: "together", ALONE: "alone"}
    return [
        (mode, judge, f"{judge}, {name}")
        for judge in found.scores.judges()
        for mode, name in names.items()
        if any(found.scores.by_task(system, "g_score", mode, judge) for system in found.systems)
    ]


def _ways(found: Found) -> Grid:
    ways = _settings(found)
    rows = [
        [
            Value(words(system)),
            *(found.scores.mean(system, "g_score", mode, judge).cell("two") for mode, judge, _ in ways),
        ]
        for system in found.systems
    ]
    repeats = 1 + max((row["repeat"] for row in found.judgements if row["mode"] == TOGETHER), default=0)
    about = (
        f"Together: all systems of a task in one conversation, {number_of(repeats, 'time')}, each time in another "
        "order (the mean of them). Alone: each section by itself."
    )
    return Grid("ways", "G-Score by way of judging", ("System", *(name for _, _, name in ways)), [Rows(rows)], about)


def _differences(found: Found) -> Grid | None:
    """Each system less ChatCite, over the tasks that both wrote: an interval without 0 tells them apart."""
    from pipeline.evaluation.statistics import paired_difference

    own = _lists(found.scores.by_task("chatcite", "g_score"))
    if not own:
        return None
    rows = []
    for system in (each for each in found.systems if each != "chatcite"):
        cells = []
        for metric, times in (("g_score", 1), ("rouge1", 1), ("citation_precision", 100), ("citation_recall", 100)):
            other, mine = (_lists(found.scores.by_task(each, metric), times) for each in (system, "chatcite"))
            cells.append(_interval(paired_difference(other, mine)))
        rows.append([Value(words(system)), *cells])
    head = ("System less ChatCite", "G-Score", "R-1", "Citation precision", "Citation recall")
    about = (
        f"Mean differences over the tasks that both wrote, with 95 % intervals: where one holds 0, the tasks do not "
        f"tell the two apart. G-Score in marks ({found.scores.judge}, together), the others in percentage points."
    )
    known = any(cell.value is not None for row in rows for cell in row[1:])
    return Grid("differences", "Differences from ChatCite", head, [Rows(rows)], about) if known else None


def _lists(by_task: Mapping[str, float], times: float = 1) -> dict[str, list[float]]:
    return {task: [value * times] for task, value in by_task.items()}


def _interval(found: Interval | None) -> Value:
    return Value(found.mean, "two", found.low, found.high) if found else Value(None, "two")


def _disorder(found: Found) -> Grid | None:
    from pipeline.evaluation.statistics import vote_disorder

    who: list[tuple[str, str | None]] = [(judge, judge) for judge in found.scores.judges()]
    asked = [*who, ("all judges together", None)] if len(who) > 1 else who
    rows = []
    for name, judge in asked:
        told = vote_disorder(found.judgements, judge)
        if told is not None:
            numbers = [Value(told.bits, "two"), Value(told.share, "percent"), Value(told.unanimous, "percent")]
            rows.append([Value(name), *numbers, Value(told.tasks, "count")])
    head = ("Judge", "Entropy, bits", "Of the highest", "Tasks with one choice", "Tasks")
    about = (
        "Entropy of the votes for the best section of one task over the orders, mean over tasks: 0 bits where all fall "
        "on one system; the highest is that of votes spread as evenly as so many can be."
    )
    return Grid("votes", "Disorder of votes", head, [Rows(rows)], about) if rows else None


def _positions(found: Found) -> Grid | None:
    from pipeline.evaluation.statistics import position_effect

    groups = []
    for judge in found.scores.judges():
        effect = position_effect(found.judgements, judge)
        if effect is None:
            continue
        rows = [
            [Value(str(place.place)), Value(place.votes, "percent"), Value(place.expected, "percent"),
             Value(place.lift, "two"), Value(place.shown, "count")]
            for place in effect.places
        ]  # fmt: skip
        ends = effect.first_less_last
        told = f"; first less last {_interval(ends).plain()}" if ends else ""
        groups.append(Rows(rows, judge, f"over the same sections in several orders{told}"))
    head = ("Place", "Voted best", "Expected", "Lift of G-Score", "Sections")
    about = (
        "Voted best: of the sections that stood in this place; expected: if place did not matter. Lift: G-Score in "
        "this place less the same section's mean over all its orders."
    )
    return Grid("places", "What standing first does", head, groups, about) if groups else None


def _judges(found: Found) -> Grid | None:
    """Agreement of every two ways of judging: judges with one another, together with alone."""
    from pipeline.evaluation.statistics import agreement, exact_agreement, section_scores, values_by_system

    rows = []
    for (mode, judge, name), (other_mode, other, other_name) in combinations(_settings(found), 2):
        if mode != other_mode and judge != other:
            continue
        first, second = (
            section_scores(values_by_system(found.judgements, each, who))
            for each, who in ((mode, judge), (other_mode, other))
        )
        told = agreement(first, second)
        if told is None:
            continue
        same = exact_agreement([row for row in found.judgements if row["mode"] == mode], judge, other)
        exact = same.same_mark if judge != other else None
        rows.append(
            [
                Value(f"{name} and {other_name}"), Value(told.spearman, "two"), Value(told.same_order, "percent"),
                Value(told.mean_difference, "two"), Value(exact, "percent"), Value(told.sections, "count"),
            ]
        )  # fmt: skip
    head = ("Two ways of judging", "Spearman", "Same order", "Mean difference", "Same mark", "Sections")
    about = (
        "Spearman: rank correlation over all sections. Same order: of two sections of one task that neither marks "
        "alike, the share that both put in one order. Mean difference: the second's G-Score less the first's. Same "
        "mark: single marks that are equal, of the same section in the same order; only two judges have such."
    )
    return Grid("agreement", "Agreement of judges", head, [Rows(rows)], about) if rows else None


def _lengths(found: Found) -> Grid | None:
    from pipeline.evaluation.statistics import correlation_within_tasks, rank_correlation

    rows = []
    words_of = _by_section(found, "words", TOGETHER, "")
    for mode, judge, name in _settings(found):
        marks = _by_section(found, "g_score", mode, judge)
        both = sorted(words_of.keys() & marks.keys())
        rho = rank_correlation([words_of[key] for key in both], [marks[key] for key in both])
        within = correlation_within_tasks(words_of, marks)
        rows.append(
            [Value(name), Value(rho.value if rho else None, "two"), _interval(within), Value(len(both), "count")]
        )
    head = ("Way of judging", "Over all sections", "Within a task, mean", "Sections")
    about = (
        "Spearman's correlation of a section's words with its G-Score: above 0 where the longer is thought the better."
    )
    return Grid("length", "Length and G-Score", head, [Rows(rows)], about) if rows else None


def _by_section(found: Found, metric: str, mode: str, judge: str) -> dict[tuple[str, str], float]:
    return {
        (task, system): value
        for system in found.systems
        for task, value in found.scores.by_task(system, metric, mode, judge).items()
    }


def human_section(found: Found) -> Section:
    """How far people agree with one another and with the judge; how to ask them where nobody did."""
    people = found.people
    left_out = (
        f"{number_of(found.outdated, 'rating')} of sections that were written anew since are left out."
        if found.outdated
        else ""
    )
    if people is None:
        said = (
            "Nobody has rated sections of this month yet: citeloom annotate export ratings makes blind sheets, "
            "citeloom annotate import takes them back."
        )
        return Section("people", "People", tuple(filter(None, (said, left_out))))
    who = f"{number_of(len(people.raters), 'rater')} on {number_of(people.tasks, 'task')}"
    said = (
        f"{who}, not told which system wrote which section. Their marks stand in Figure 4, their choices in Figure 5. "
        "This is of one month; citeloom annotate results ratings takes all months of a study together."
    )
    grids = [grid for grid in (_agreement_grid(people), _judge_and_people(people)) if grid is not None]
    return Section("people", "People", tuple(filter(None, (said, left_out))), grids)


def ratings_section(people: RatingResults) -> Section:
    """Ratings of several months together: mean marks and preference by system, agreement, the judge beside people."""
    who = f"{number_of(len(people.raters), 'rater')}, {number_of(people.tasks, 'task')}, {people.ratings} ratings."
    grids = (_marks_grid(people), _agreement_grid(people), _judge_and_people(people))
    return Section("people", "People", (who,), [grid for grid in grids if grid is not None])


def _marks_grid(people: RatingResults) -> Grid:
    rows = []
    for name in people.systems[0].marks:
        marks = [system.marks[name] for system in people.systems]
        label = "Mean of the six" if name == MEAN else name_of(name)
        rows.append([Value(label), *(Value(mean.value, "two", mean.low, mean.high) for mean in marks)])
    shares = [system.preferred for system in people.systems]
    rows.append([Value("Preferred"), *(Value(share.value, "percent", share.low, share.high) for share in shares)])
    head = ("Mark", *(words(system.system) for system in people.systems))
    about = (
        "Mean marks from 1 to 5, and the share of choices in which the system was preferred, each with its 95 % "
        "interval; a task weighs the same however many rated it."
    )
    return Grid("people_marks", "Marks by people", head, [Rows(rows)], about)


def _agreement_grid(people: RatingResults) -> Grid:
    told = [(name_of(name), "Krippendorff's alpha, ordinal", each) for name, each in people.alpha.items()]
    told.append(("Preference", "Fleiss' kappa", people.kappa))
    rows = [
        [Value(name), Value(measure), Value(each.value, "two", each.low, each.high), Value(each.units, "count")]
        for name, measure, each in told
    ]
    head = ("What was rated", "Measure", "Agreement", "Rated twice or more")
    about = (
        "1 for perfect agreement, 0 for what chance would give; under it the 95 % interval over tasks. By its "
        "author's advice an alpha below 0.667 carries no conclusion."
    )
    few = number_of(people.tasks, "task")
    notes = [f"With {few} the intervals are too narrow."] if 1 < people.tasks < FEW else []
    return Grid("people", "Agreement of raters", head, [Rows(rows)], about, notes)


def _judge_and_people(people: RatingResults) -> Grid | None:
    """How far each judge's marks go with people's, criterion by criterion, and its votes with their choices."""
    groups = []
    for judge in people.judges:
        rows = [
            [
                Value("Mean of the six" if name == MEAN else name_of(name)), Value(told.spearman, "two"),
                Value(told.same_order, "percent"), Value(told.mean_difference, "two"), Value(told.sections, "count"),
            ]
            for name, told in judge.marks.items()
            if told is not None
        ]  # fmt: skip
        if rows:
            voted = f"the same best in {judge.same} of {judge.votes}" if judge.votes else ""
            groups.append(Rows(rows, f"{judge.judge}, {judge.mode}", voted))
    head = ("Marks", "Spearman", "Same order", "People less judge", "Sections")
    about = "A section's mark is the mean over raters. Same order: of two sections of one task, both in one order."
    return Grid("judge_and_people", "The judge against people", head, groups, about) if groups else None
