"""Tables and figures of related work: the ChatCite paper's beside ours, citations, stability, and a
second judge.

The published values are those of arXiv 2403.02574v1.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import fmean
from typing import Any

from pipeline.evaluation.g_score.measures import Spread, spread
from pipeline.evaluation.g_score.people_measures import MEAN
from pipeline.evaluation.judge_figures import judge_label, judge_sentences
from pipeline.evaluation.rouge import FLOOR
from pipeline.evaluation.statistics import Estimate, estimate
from pipeline.report.figures import (
    Bar,
    BarFigure,
    BoxFigure,
    LineFigure,
    bar,
    box,
    line,
    step_ticks,
    system_colour,
)
from pipeline.report.formatting import (
    MISSING,
    count,
    criterion_name,
    month_range,
    number_of,
    percent,
    words,
)
from pipeline.report.grid import (
    Cell,
    Form,
    Grid,
    Row,
    RowGroup,
    Section,
    mean_cell,
    percent_cell,
    with_rows,
)
from pipeline.report.related_work_data import RelatedWorkData
from pipeline.system_names import RELATED_WORK_SYSTEMS
from pipeline.tables import CITATION_SUPPORT, CRITERIA
from pipeline.tables.writers import by_system, parse_writer

PUBLISHED, OURS = "As published", "Ours"
FEW = 20
"""Bootstrap intervals over fewer tasks or questions are too narrow."""

_JUDGE, _WRITER = "gpt-4-turbo-preview", "gpt-3.5-turbo-1106"
_DATA = "50 computer-science papers (NudtRwG-Citation, cited 63.59 times each on average)"
# Name, model, R-1, R-2, R-L in percent, G-Score from 1 to 5, preference in percent.
Published = tuple[str, str, float, float, float, float, float]
_TABLE_1: tuple[Published, ...] = (
    ("zero-shot", _WRITER, 26.01, 6.11, 24.02, 3.4102, 2.21),
    ("few-shot", _WRITER, 25.84, 6.01, 23.55, 3.5968, 10.80),
    ("zero-shot", _JUDGE, 30.02, 8.03, 27.97, 3.5076, 26.40),
    ("few-shot", _JUDGE, 15.52, 1.78, 14.20, 1.6621, 0.21),
    ("LitLLM", _JUDGE, 27.08, 6.07, 24.94, 3.5448, 24.51),
    ("ChatCite", _WRITER, 25.30, 6.36, 23.13, 4.0642, 35.86),
)
_TABLE_2: tuple[Published, ...] = (
    ("few-shot", _WRITER, 25.84, 6.01, 23.55, 3.2426, 2.84),
    ("ChatCite without key elements", _WRITER, 24.38, 5.81, 22.36, 4.0016, 22.11),
    ("ChatCite without incremental steps", _WRITER, 24.72, 5.93, 22.40, 3.8195, 35.34),
    ("ChatCite", _WRITER, 25.30, 6.36, 23.13, 4.1064, 39.71),
)
# Our systems beside each table; grounded ChatCite, ChatCite without reflection and the systems
# without a model are in neither of the paper's tables, and are listed where they are compared.
_SYSTEMS_1 = (
    "zero_shot",
    "few_shot",
    "litllm",
    "chatcite",
    "chatcite_grounded",
    "extractive",
    "lead",
    "lexrank",
)
_SYSTEMS_2 = (
    "few_shot",
    "chatcite_no_elements",
    "chatcite_no_incremental",
    "chatcite_no_reflection",
    "chatcite",
)
# Where our system differs from the paper's row of that name, or has none.
_SYSTEM_NOTES = {
    "table_1": {"chatcite_grounded": "Grounded ChatCite is ours; the paper has no such system."},
    "table_2": {
        "chatcite_no_incremental": (
            "ChatCite without incremental steps is what the paper ran: summaries, then few-shot "
            "with the writing guidelines. It has no key elements and no votes either."
        ),
        "chatcite_no_reflection": (
            "For ChatCite without reflection the paper has box plots only (Figure 3)."
        ),
    },
}
_ROUGE = ("rouge1", "rouge2", "rougeLsum", "rougeL")
_TABLE_COLUMNS = [
    "System",
    "Model",
    "R-1",
    "R-2",
    "R-L by sentence",
    "R-L of the whole",
    "G-Score",
    "Best, %",
    "Tasks",
]
_BEST_OF = ("R-1", "R-2", "R-L by sentence", "R-L of the whole", "G-Score", "Best, %")
_CITATION_MEASURES: tuple[tuple[str, str, Form], ...] = (
    ("citation_precision", "Precision", "percent"),
    ("citation_precision_partly", "Precision, partly as half", "percent"),
    ("citation_precision_quoted", "Precision, quote found", "percent"),
    ("citation_recall", "Recall", "percent"),
    ("reference_coverage", "Coverage", "percent"),
    ("retention", "Retention", "percent"),
    ("citation_exact", "Exact format", "percent"),
    ("citation_out_of_range", "Out of range", "one"),
)
_CITATION_DEFINITIONS = (
    (
        "Precision: of the judged citations, the share whose sentence is supported by the cited"
        " work's passages. Partly as half counts partial support as half; quote found counts only"
        " what the judge could quote word for word."
    ),
    (
        "Recall: of all sentences, the share with a citation that supports them; 100 % is not the"
        " aim. Sentences whose citations could not be judged count as supported as often as the"
        " others."
    ),
    (
        "Coverage: the share of the task's references that are cited. Retention: the share of"
        " earlier references still cited after a step of the search, mean over steps, for systems"
        " that write step by step."
    ),
    (
        "Exact format: the share of citations written as [Reference i] by the system itself. Out of"
        " range: citations of references that the task does not have, mean per section."
    ),
)
_VERDICTS = {"supported": "Supported", "partly": "Partly supported", "not": "Not supported"}
_STABILITY_METRICS = (
    ("g_score", "G-Score"),
    *((f"g_{criterion}", criterion_name(criterion)) for criterion in CRITERIA),
    ("rouge1", "R-1"),
    ("reference_coverage", "Coverage"),
)
_DIFFERENCE_METRICS: tuple[tuple[str, str, float], ...] = (
    ("g_score", "G-Score", 1),
    ("rouge1", "R-1", 1),
    ("rouge2", "R-2", 1),
    ("rougeLsum", "R-L by sentence", 1),
    ("citation_precision", "Citation precision", 100),
    ("citation_recall", "Citation recall", 100),
)


def paper_section(data: RelatedWorkData) -> Section:
    """Tables 1 and 2 of the ChatCite paper beside ours."""
    paragraphs = [
        (
            "Compare rankings, not absolute scores: models, papers and reference lists differ. The"
            " best value of each group is bold."
        ),
        *interval_notes(data.tasks, "task", "tasks", bool(data.systems)),
    ]
    definitions = (
        (
            "R-1, R-2 and R-L are ROUGE F1 in percent against the gold section, with stemming. R-L"
            " by sentence is rouge-score's rougeLsum, R-L of the whole its rougeL. The paper's R-L"
            " is 0.91 to 0.93 of its R-1, which on real sections only R-L by sentence reaches, so"
            " it is in that column."
        ),
        (
            "The floor is a random section: the gold section of another task of the month. It shows"
            " what ROUGE gives for text that has nothing to do with the task."
        ),
        (
            "G-Score, 1 to 5: the mean of a judge's six marks. It compares only systems that were"
            " marked in one conversation. Best: the share of the same judge's votes for the best"
            " section."
        ),
    )
    tables = (
        _paper_table("table_1", "Table 1: ChatCite and other methods", _TABLE_1, _SYSTEMS_1, data),
        _paper_table("table_2", "Table 2: ChatCite with parts removed", _TABLE_2, _SYSTEMS_2, data),
    )
    return Section("tables", "The paper's tables and ours", paragraphs, tables, definitions)


def interval_notes(items: int, noun: str, nouns: str, measured: bool) -> list[str]:
    """What the intervals of means are, and a warning where there are few tasks or questions."""
    if not measured:
        return []
    notes = [
        "Small numbers below a mean are its 95 % interval, from 10,000 bootstrap draws of the"
        f" {nouns}. A single {noun}, or {nouns} that all have one value, give no interval."
    ]
    if 1 < items < FEW:
        notes.append(
            f"With {number_of(items, noun)} the intervals are too narrow: differences are only"
            " hints."
        )
    return notes


def _paper_table(
    key: str,
    title: str,
    published: Sequence[Published],
    systems: Sequence[str],
    data: RelatedWorkData,
) -> Grid:
    """The paper's rows, then ours by each model, in Table 1 also sections written elsewhere, and
    the floor.
    """
    mine = by_system(data.systems, systems)
    if key == "table_1":
        mine += [
            name for name in data.systems if parse_writer(name).system not in RELATED_WORK_SYSTEMS
        ]
    missing = [words(system) for system in systems if not by_system(data.systems, [system])]
    notes = [f"Not run here (CITELOOM_SYSTEMS): {', '.join(missing)}."] if missing else []
    notes += [
        text for system, text in _SYSTEM_NOTES[key].items() if by_system(data.systems, [system])
    ]
    rows = [
        [name, model, r1, r2, r_l, None, g_score, preference, 50]
        for name, model, r1, r2, r_l, g_score, preference in published
    ]
    groups = [RowGroup(rows, PUBLISHED, f"{_DATA}; judge {_JUDGE}")]
    if mine:
        notes += _unmarked_sections(data, mine)
        groups.append(RowGroup([_main_row(data, name) for name in mine], OURS, basis(data)))
        means = [mean_cell(data.scores.mean(FLOOR, metric), "two") for metric in _ROUGE]
        tasks = len(data.scores.by_task(FLOOR, "rouge1"))
        if tasks:
            row = [words(FLOOR), "another task's gold section", *means, None, None, tasks]
            groups.append(RowGroup([row], "Floor"))
    return Grid(key, title, _TABLE_COLUMNS, groups=groups, notes=notes, best_of=_BEST_OF)


def _unmarked_sections(data: RelatedWorkData, systems: Sequence[str]) -> list[str]:
    marked = {system: len(data.scores.by_task(system, "g_score")) for system in systems}
    fewer = [
        f"{words(system)} {count(number)} of {count(data.sections[system])}"
        for system, number in marked.items()
        if number < data.sections[system]
    ]
    return (
        [f"G-Score and best are of fewer tasks: {', '.join(fewer)}."]
        if fewer and data.scores.judge
        else []
    )


def leaderboard(data: RelatedWorkData) -> Grid:
    """Every system with its main measures and intervals; the best by the main measure first."""
    best_first = sorted(
        data.systems, key=lambda system: (-(main_mean(data, system).value or 0), system)
    )
    measures: list[tuple[str, str, Form]] = [
        (metric, name, "percent" if scale == 100 else "two")
        for metric, name, scale in _DIFFERENCE_METRICS
        if any(data.scores.by_task(system, metric) for system in data.systems)
    ]
    rows = [
        [
            words(system),
            data.model_of(system),
            *_means(data, system, measures),
            data.sections[system],
        ]
        for system in best_first
    ]
    names = [name for _, name, _ in measures]
    floor = mean_cell(data.scores.mean(FLOOR, "rouge1"), "two")
    notes = (
        []
        if floor.value is None
        else [f"A random section reaches R-1 {floor.plain()}, the floor of ROUGE."]
    )
    return Grid(
        "leaderboard",
        "Related work: leaderboard",
        ["System", "Model", *names, "Tasks"],
        rows,
        about=f"{basis(data)}.",
        notes=notes,
        best_of=names,
        sortable=True,
    )


def _means(
    data: RelatedWorkData, system: str, measures: Iterable[tuple[str, str, Form]]
) -> list[Cell]:
    """The means of a system. measures: metric, name, form."""
    return [mean_cell(data.scores.mean(system, metric), form) for metric, _, form in measures]


def main_metric(data: RelatedWorkData) -> tuple[str, str]:
    """The metric that ranks systems, with its name: the G-Score where a judge gave marks, else
    ROUGE-1.
    """
    return ("g_score", "G-Score") if data.scores.judge else ("rouge1", "R-1")


def main_mean(data: RelatedWorkData, system: str) -> Estimate:
    """A system's mean of the metric that ranks systems."""
    return data.scores.mean(system, main_metric(data)[0])


def published_figures(data: RelatedWorkData) -> list[BarFigure]:
    """R-1, R-L and G-Score as published beside ours."""
    groups = []
    for title, place, metric, most in (
        ("R-1", 2, "rouge1", 60.0),
        ("R-L by sentence", 4, "rougeLsum", 60.0),
        ("G-Score", 5, "g_score", 5.0),
    ):
        means = [(system, data.scores.mean(system, metric)) for system in data.systems]
        ours = [
            bar(f"{words(system)}, ours", mean_cell(mean, "two"), system_colour(system), most)
            for system, mean in means
            if mean.value is not None
        ]
        colours = {words(system): system_colour(system) for system in RELATED_WORK_SYSTEMS}
        published = [
            bar(f"{row[0]} ({row[1]})", Cell(row[place], "two"), colours[row[0]], most, hollow=True)
            for row in _TABLE_1
        ]
        groups += [(title, published + ours)] if ours else []
    about = (
        "Outlined: Table 1 of the ChatCite paper. Filled: ours, with 95 % intervals. ROUGE on an"
        " axis from 0 to 60, G-Score from 0 to 5. Compare rankings, not absolute scores: models and"
        " papers differ."
    )
    return [BarFigure("Published and ours", groups, about)] if groups else []


def basis(data: RelatedWorkData, judges: str | None = None) -> str:
    """What our rows rest on: data and judge, which is that of the G-Score unless others are
    given.
    """
    judges = data.scores.judge if judges is None else judges
    judged = f"judge {judges}" if judges else "nothing was judged"
    small = (
        f"; not a measure of the methods, as {data.small_model} wrote or judged"
        if data.small_model
        else ""
    )
    return f"{number_of(data.tasks, 'task')} of {month_range(data.months)}; {judged}{small}"


def _main_row(data: RelatedWorkData, system: str) -> Row:
    metrics = (*_ROUGE, "g_score")
    means = [mean_cell(data.scores.mean(system, metric), "two") for metric in metrics]
    vote = mean_cell(data.scores.mean(system, "g_vote"), "two", 100)
    return [words(system), data.model_of(system), *means, vote, data.sections[system]]


def criteria_section(data: RelatedWorkData) -> Section | None:
    """Figure 4: the six criteria, the judge beside people where people marked; None where nothing
    was marked.
    """
    judged = [system for system in data.systems if data.scores.by_task(system, "g_score")]
    people = {
        result.system: result.marks
        for result in (data.people.systems if data.people else ())
        if any(mean.value is not None for mean in result.marks.values())
    }
    if not judged and not people:
        return None
    caption = (
        "Marks from 1 to 5, mean over tasks, on an axis from 0 to 5; whiskers are 95 % intervals."
    )
    caption += f" Filled: {data.scores.judge} as judge." if judged else ""
    if people and data.people:
        raters = (
            f"{number_of(len(data.people.raters), 'rater')} on"
            f" {number_of(data.people.tasks, 'task')}"
        )
        caption += f" Outlined: people ({raters}), for the systems that they were shown."
    bars: list[tuple[str, list[Bar]]] = []
    for criterion in CRITERIA:
        group = []
        for system in sorted({*judged, *people}):
            if system in judged:
                cell = mean_cell(data.scores.mean(system, f"g_{criterion}"), "two")
                group.append(bar(words(system), cell, system_colour(system), 5))
            mark = people.get(system, {}).get(criterion)
            if mark is not None and mark.value is not None:
                group.append(
                    bar("by people", mean_cell(mark, "two"), system_colour(system), 5, hollow=True)
                )
        bars.append((criterion_name(criterion), group))
    by_judge = [
        [
            words(system),
            *(
                mean_cell(data.scores.mean(system, f"g_{name}"), "two")
                for name in (*CRITERIA, "score")
            ),
            len(data.scores.by_task(system, "g_score")),
        ]
        for system in judged
    ]
    by_people = [
        [
            words(system),
            *(mean_cell(marks[name], "two") for name in (*CRITERIA, MEAN)),
            max(mean.count for mean in marks.values()),
        ]
        for system, marks in sorted(people.items())
    ]
    groups = [RowGroup(by_judge, f"Judge {data.scores.judge}")] if by_judge else []
    groups += [RowGroup(by_people, "People")] if by_people else []
    columns = ["System", *(criterion_name(name) for name in CRITERIA), "G-Score", "Tasks"]
    about = (
        "Marks from 1 to 5; the judge saw all systems of a task in one conversation."
        f" {basis(data)}."
    )
    grid = Grid(
        "criteria", "Marks by criterion", columns, groups=groups, about=about, best_of=columns[1:-1]
    )
    return Section(
        "criteria",
        "The six criteria",
        (),
        (BarFigure("Figure 4: the six criteria", bars, caption), grid),
    )


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


def preference_section(data: RelatedWorkData) -> Section | None:
    """Figure 5: whose section was voted best, by each judge and by people; None where there was no
    vote.
    """
    from pipeline.evaluation.g_score.measures import votes_by_task

    voters = []
    for judge in data.scores.judges():
        votes = votes_by_task(data.judgements, judge)
        if votes:
            cast = [row for row in data.judgements if row["judge"] == judge and row["best"]]
            on_offer = sorted({name for row in cast for name in row["order"]})
            shares: dict[str, Estimate] = {
                system: estimate(
                    {task: [vote == system for vote in of_task] for task, of_task in votes.items()}
                )
                for system in on_offer
            }
            voters.append(_Voters(f"Judge {judge}", len(cast), len(votes), shares))
    if data.people is not None and data.people.choices:
        shares = {
            each.system: each.preferred
            for each in data.people.systems
            if each.preferred.value is not None
        }
        tasks = {row["task_id"] for row in data.ratings if row["preferred"]}
        voters.append(_Voters("People", data.people.choices, len(tasks), shares, people=True))
    if not voters:
        return None
    groups = []
    for voter in voters:
        bars = [
            bar(
                words(system),
                mean_cell(share, "percent"),
                system_colour(system),
                hollow=voter.people,
            )
            for system, share in voter.shares.items()
        ]
        heading = (
            f"{voter.name}, {number_of(voter.votes, 'vote')} on {number_of(voter.tasks, 'task')}"
        )
        groups.append((heading, bars))
    figure = BarFigure(
        "Figure 5: preference",
        groups,
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


def differences_section(data: RelatedWorkData) -> Section | None:
    """Paired differences from ChatCite, and between the models of each system; None where there is
    none.
    """
    chatcite = by_system(data.systems, ["chatcite"])
    from_chatcite = [
        RowGroup(
            _difference_rows(data, [(system, base) for system in data.systems if system != base]),
            words(base),
        )
        for base in chatcite
    ]
    models = [
        (first, second)
        for first, second in combinations(data.systems, 2)
        if parse_writer(first).system == parse_writer(second).system
    ]
    columns = ["System", "Less", *(name for _, name, _ in _DIFFERENCE_METRICS), "Common tasks"]
    about = (
        "Mean differences over the tasks that both wrote, with 95 % intervals; where an interval"
        " includes 0, the tasks do not separate the two. G-Score in marks, the others in percentage"
        " points."
    )
    groups = [group for group in from_chatcite if group.rows]
    rows = _difference_rows(data, models)
    grids = with_rows(
        Grid("differences", "Differences from ChatCite", columns, groups=groups, about=about),
        Grid("model_differences", "Differences between models", columns, rows, about=about),
    )
    return Section("paired", "Paired differences", (), grids) if grids else None


def _difference_rows(data: RelatedWorkData, pairs: Iterable[tuple[str, str]]) -> list[Row]:
    """A row for each pair of systems with any difference: the first less the second."""
    from pipeline.evaluation.statistics import paired_difference

    rows: list[Row] = []
    for first, second in pairs:
        cells, tasks = [], set()
        for metric, _, scale in _DIFFERENCE_METRICS:
            one, other = (
                {task: [value] for task, value in data.scores.by_task(system, metric).items()}
                for system in (first, second)
            )
            cells.append(mean_cell(paired_difference(one, other), "two", scale))
            tasks |= one.keys() & other.keys()
        if any(cell.value is not None for cell in cells):
            rows.append([words(first), words(second), *cells, len(tasks)])
    return rows


def tasks_section(data: RelatedWorkData, tasks: Sequence[Mapping[str, Any]], most: int) -> Section:
    """The month's tasks with their main score by system. tasks: page, arxiv_id, title, references,
    outside, task_id.
    """
    metric, name = main_metric(data)
    columns = ["Target", "arXiv", "References", "Not used", *map(words, data.systems)]
    notes = (
        [f"The other {count(len(tasks) - most)} are in the tables; each has its page."]
        if len(tasks) > most
        else []
    )
    by_judge = (
        f" by {data.scores.judge}, all systems in one conversation; best: most votes"
        if data.scores.judge
        else ""
    )
    about = (
        f"Below each system: {name}{by_judge}. {MISSING}: no score. Not used: works cited in the"
        " removed section that are no reference of the task."
    )
    rows = []
    for task in tasks[:most]:
        values = data.scores.of_task(task["task_id"], data.systems, metric)
        best = best_voted(data, task["task_id"], data.systems)
        scores = [
            Cell(values.get(name), "two", tag="best" if name in best else "")
            for name in data.systems
        ]
        head = [
            Cell(task["title"], page=task["page"]),
            Cell(task["arxiv_id"], arxiv_id=task["arxiv_id"]),
        ]
        rows.append([*head, task["references"], task["outside"], *scores])
    return Section(
        "tasks",
        "Tasks",
        (),
        (Grid("tasks", "Tasks", columns, rows, about=about, notes=notes, stacked=True),),
    )


def best_voted(data: RelatedWorkData, task_id: str, systems: Sequence[str]) -> set[str]:
    """The systems with most votes for a task."""
    votes = data.scores.of_task(task_id, systems, "g_vote")
    most = max(votes.values(), default=0.0)
    return {system for system, share in votes.items() if share == most and share > 0}


def citation_section(data: RelatedWorkData) -> Section:
    """Citation support by measure and by verdict, and retention by step."""
    judges = data.support_judges
    paragraphs: list[str] = []
    if judges:
        paragraphs.append(
            f"For each citation a judge ({', '.join(judges)}) was shown the passages of the cited"
            " work that are nearest to the sentence. The task pages lead from each sentence to"
            " these passages."
        )
        paragraphs += judge_sentences(judges, "citation_support")
    else:
        reason = data.off.get(CITATION_SUPPORT.name) or (
            "no citation could be judged"
            if data.verdicts
            else "the table citation_support has no rows"
        )
        paragraphs.append(f"Citation support was not judged: {reason}.")
    measures = [
        measure
        for measure in _CITATION_MEASURES
        if any(data.scores.by_task(system, measure[0]) for system in data.systems)
    ]
    parts: list[Any] = []
    if measures:
        columns = ["System", *(name for _, name, _ in measures), "Tasks"]
        rows = [
            [words(system), *_means(data, system, measures), data.sections[system]]
            for system in data.systems
        ]
        labels = ", ".join(judge_label(judge, "citation_support") for judge in judges)
        best_of = [name for _, name, form in measures if form == "percent"]
        about = f"Means over tasks; {basis(data, labels)}."
        parts.append(
            Grid("support", "Citations by measure", columns, rows, about=about, best_of=best_of)
        )
    parts += [*with_rows(_verdict_grid(data)), *_retention_parts(data)]
    title = "Do the cited works support the sentences?"
    return Section("support", title, paragraphs, parts, _CITATION_DEFINITIONS if measures else ())


def _verdict_grid(data: RelatedWorkData) -> Grid:
    reasons = sorted(
        {
            name
            for counts in data.verdicts.values()
            for name in counts
            if name.startswith("unjudged")
        }
    )
    names = [
        *_VERDICTS.values(),
        *(f"Not judged: {words(name.removeprefix('unjudged: '))}" for name in reasons),
    ]
    columns = ["System", *names, "Supported, quote not found"]
    rows: list[Row] = []
    for system, counts in sorted(data.verdicts.items()):
        unquoted = data.quotes.get(system, Counter())[False]
        rows.append(
            [words(system), *(counts[verdict] for verdict in (*_VERDICTS, *reasons)), unquoted]
        )
    about = (
        "All citations; a number counts once per sentence. The last column is part of the supported"
        " ones."
    )
    return Grid("verdicts", "Citations by verdict", columns, rows, about=about)


def _retention_parts(data: RelatedWorkData) -> list[Any]:
    """Retention by step of the search as a figure with its numbers."""
    steps = sorted({step for rounds in data.retention.values() for step in rounds})
    if not steps:
        return []
    shares = {
        system: {step: fmean(values) for step, values in rounds.items()}
        for system, rounds in data.retention.items()
    }
    last = steps[-1]
    lines = [
        line(
            words(system),
            system_colour(system),
            {
                step: (
                    share,
                    f"step {step}: {percent(share)} (n = {len(data.retention[system][step])})",
                )
                for step, share in rounds.items()
            },
            last,
        )
        for system, rounds in sorted(shares.items())
    ]
    x_ticks = [((step - 1) / max(last - 1, 1), str(step)) for step in step_ticks(last)]
    y_ticks = [(share, percent(share)) for share in (0.0, 0.5, 1.0)]
    about = (
        "Horizontal: the step, one for each reference. Vertical: the share of the references of"
        " earlier steps that the draft which became the section still cites; mean over tasks. Equal"
        " lines cover one another."
    )
    columns = ["System", *(str(step) for step in steps)]
    rows = [
        [words(system), *(percent_cell(rounds.get(step)) for step in steps)]
        for system, rounds in sorted(shares.items())
    ]
    return [
        LineFigure("Retention by step of the search", lines, x_ticks, y_ticks, about),
        Grid("retention", "Retention by step", columns, rows),
    ]


def stability_section(data: RelatedWorkData) -> Section:
    """Figure 3: the spread of repeated runs, with reflection and without; how to measure it where
    it was not.
    """
    title = "Stability (Figure 3)"
    rows = [row for row in data.repeats if row["judge"] in (None, data.scores.judge)]
    spreads = {metric: spread(rows, metric) for metric, _ in _STABILITY_METRICS}
    systems = sorted({each.system for of_metric in spreads.values() for each in of_metric})
    if not systems:
        text = (
            "Not measured: no section was written repeatedly. Set CITELOOM_SUMMARY_REPEATS to the"
            " number of times that each system which calls a model is to write the first"
            " CITELOOM_REPEATED_TASKS tasks, and name chatcite and chatcite_no_reflection among"
            " CITELOOM_SYSTEMS. citeloom estimate tells the cost first."
        )
        return Section("stability", title, (text,))
    tasks = {row["task_id"] for row in rows}
    models = ", ".join(sorted({data.model_of(system) for system in systems}))
    marked = f", each section marked alone by {data.scores.judge}" if spreads["g_score"] else ""
    text = (
        f"{number_of(len(tasks), 'task')} written repeatedly by {models}{marked}. A run is one"
        " repeat over all these tasks; its value is their mean. The paper shows such box plots"
        " without saying how many runs or which tasks they cover."
    )
    return Section(
        "stability", title, (text,), (*_stability_figures(spreads), _stability_grid(spreads))
    )


def _stability_figures(spreads: Mapping[str, Sequence[Spread]]) -> list[BoxFigure]:
    """Boxes of the G-Score and of its six marks over the runs; none where nothing was marked."""
    groups = []
    for metric, heading in _STABILITY_METRICS:
        if metric.startswith("g_") and (of_metric := spreads[metric]):
            boxes = [
                box(words(each.system), system_colour(each.system), each.runs, 1.0, 5.0)
                for each in of_metric
            ]
            groups.append((heading, boxes))
    ticks = [((mark - 1) / 4, str(mark)) for mark in range(1, 6)]
    about = (
        "Axis from 1 to 5. The box spans the quartiles, the line is the median, each dot is a run."
    )
    return (
        [BoxFigure("Figure 3: G-Score and its six marks over repeated runs", groups, ticks, about)]
        if groups
        else []
    )


def _stability_grid(spreads: Mapping[str, Sequence[Spread]]) -> Grid:
    rows = []
    for metric, name in _STABILITY_METRICS:
        form: Form = "percent" if metric == "reference_coverage" else "two"
        for each in spreads[metric]:
            numbers = [Cell(value, form) for value in (each.mean, each.low, each.median, each.high)]
            deviations = [Cell(value, "three") for value in (each.sd, each.sd_of_a_task)]
            rows.append(
                [name, words(each.system), *numbers, *deviations, len(each.runs), each.tasks]
            )
    columns = [
        "Metric", "System", "Mean", "Least", "Median", "Most", "SD of runs", "SD of a task",
        "Runs", "Tasks",
    ]  # fmt: skip
    about = (
        "SD: standard deviation, of whole runs and of one task's repeats, which is how much a"
        " single section may vary. Coverage: share of the task's references that are cited. A task"
        " whose repeats lack the metric is left out."
    )
    return Grid("stability", "Spread of repeated runs", columns, rows, about=about)


def judges_section(data: RelatedWorkData) -> Section | None:
    """The judges side by side, and their agreement; None for a single one."""
    judges = data.scores.judges()
    if len(judges) < 2:
        return None
    rows = [
        [
            words(system),
            *(mean_cell(data.scores.mean(system, "g_score", judge), "two") for judge in judges),
        ]
        for system in data.systems
    ]
    about = "The G-Score, mean over tasks. No mean mixes marks of two judges."
    columns = ["System", *judges]
    beside = Grid("judges", "G-Score by judge", columns, rows, about=about, best_of=columns[1:])
    return Section("judging", "A second judge", (), (beside, _agreement_grid(data, judges)))


def _agreement_grid(data: RelatedWorkData, judges: Sequence[str]) -> Grid:
    """Agreement of every two judges on the G-Scores of sections."""
    from pipeline.evaluation.statistics import agreement

    scores = {
        judge: {
            (task, system): value
            for system in data.systems
            for task, value in data.scores.by_task(system, "g_score", judge).items()
        }
        for judge in judges
    }
    rows = []
    for first, second in combinations(judges, 2):
        agreed = agreement(scores[first], scores[second])
        if agreed is not None:
            rows.append(
                [
                    f"{first} and {second}",
                    agreed.spearman,
                    percent_cell(agreed.same_order),
                    agreed.mean_difference,
                    agreed.sections,
                ]
            )
    columns = ["Two judges", "Spearman", "Same order", "Mean difference", "Sections"]
    about = (
        "Spearman: rank correlation over all sections. Same order: of two sections of one task that"
        " neither marks equally, the share that both put in one order. Mean difference: the second"
        " G-Score less the first."
    )
    return Grid("agreement", "Agreement of judges", columns, rows, about=about)
