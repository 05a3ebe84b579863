"""Sections on related work: the ChatCite paper's tables beside ours, marks, votes, citations,
stability, a second judge, and the tasks.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import fmean
from typing import Any

from pipeline.evaluation.g_score.measures import Spread, spread
from pipeline.evaluation.judge_figures import judge_label, judge_sentences
from pipeline.evaluation.rouge import FLOOR
from pipeline.evaluation.statistics import paired_difference
from pipeline.report.corpus import left_out_grid, reasons_text
from pipeline.report.costs import related_work_cost
from pipeline.report.data import LeftOut, RelatedWorkData, ReportData
from pipeline.report.figures import (
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
    FAILURES_PAGE,
    MISSING,
    OURS,
    PUBLISHED,
    count,
    interval_notes,
    number_of,
    percent,
    words,
)
from pipeline.report.grid import (
    Cell,
    Grid,
    GridRow,
    RowGroup,
    Section,
    first_rows,
    percent_cell,
    present,
    with_rows,
)
from pipeline.report.judgements import criteria, preference, ratings_section, second_judge
from pipeline.report.measures import (
    CRITERIA_MEASURES,
    G_SCORE,
    ROUGE_1,
    Measure,
    MeasuredRow,
    basis,
    mean_cells,
    measure_table,
    published_rows,
    select,
    system_rows,
    with_short_titles,
)
from pipeline.system_names import RELATED_WORK_SYSTEMS
from pipeline.tables import CITATION_SUPPORT, PAPERS, RELATED_WORK_TASKS
from pipeline.tables.writers import by_system, parse_writer

Retention = Mapping[str, Mapping[int, Sequence[float]]]
"""System → step of its search → shares of earlier references that it still cites, one for each
task.
"""

_PUBLISHED_BASIS = (
    "50 computer-science papers (NudtRwG-Citation, cited 63.59 times each on average);"
    " judge gpt-4-turbo-preview"
)
# Our systems beside each table; grounded ChatCite, ChatCite without reflection and the systems
# without a model are in neither of the paper's tables, and are listed where they are compared.
_SYSTEMS = {
    "table_1": (
        "zero_shot",
        "few_shot",
        "litllm",
        "chatcite",
        "chatcite_grounded",
        "extractive",
        "lead",
        "lexrank",
    ),
    "table_2": (
        "few_shot",
        "chatcite_no_elements",
        "chatcite_no_incremental",
        "chatcite_no_reflection",
        "chatcite",
    ),
}
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
_TABLE_DEFINITIONS = (
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
# The paper has no R-L of the whole.
_TABLE_MEASURES = select("rouge1", "rouge2", "rougeLsum", "rougeL", "g_score", "g_vote")
_MAIN_MEASURES = select(
    "g_score", "rouge1", "rouge2", "rougeLsum", "citation_precision", "citation_recall"
)
_CITATION_MEASURES = select(
    "citation_precision",
    "citation_precision_partly",
    "citation_precision_quoted",
    "citation_recall",
    "reference_coverage",
    "retention",
    "citation_exact",
    "citation_out_of_range",
)
_STABILITY_MEASURES = [G_SCORE, *CRITERIA_MEASURES, ROUGE_1, *select("reference_coverage")]
_VERDICTS = {"supported": "Supported", "partly": "Partly supported", "not": "Not supported"}


@dataclass(frozen=True, slots=True)
class TaskEntry:
    """A task as the month's page lists it. references, outside: how many works of its gold section
    it has, and how many others are cited there. page: its file.
    """

    task_id: str
    arxiv_id: str | None
    title: str
    references: int
    outside: int
    page: str


def month_sections(
    data: RelatedWorkData, tasks: Sequence[TaskEntry], retention: Retention
) -> list[Section]:
    """The related work of a month."""
    if not data.tasks:
        return []
    return present(
        *_comparisons(data),
        _stability(data),
        citations(data, retention) if data.systems else None,
        second_judge(data),
        ratings_section(data),
        related_work_cost(data) if data.systems else None,
        _task_list(data, tasks),
    )


def overall_sections(data: RelatedWorkData) -> list[Section]:
    """The related work of all months."""
    if not data.tasks:
        return []
    text = (
        "All finished months together, by the first judge where there is one. A month's own page"
        " adds its tasks, preference (Figure 5), stability (Figure 3), other judges, and people's"
        " ratings."
    )
    parts = [leaderboard(data), *_published_and_ours(data)] if data.systems else []
    return present(
        Section("related-work", "Related work", (text,), parts),
        *_comparisons(data),
        citations(data, {}) if data.systems else None,
        related_work_cost(data) if data.systems else None,
    )


def _comparisons(data: RelatedWorkData) -> list[Section]:
    return present(paper_tables(data), criteria(data), preference(data), differences(data))


def month_intro(data: ReportData, ledger: Sequence[LeftOut]) -> Section:
    """The related work of a month in words, or the reason for none. ledger: of the month."""
    key, title, related = "related-work", "Related work", data.related
    if related.tasks:
        number = "One target" if related.tasks == 1 else f"{count(related.tasks)} targets, each"
        text = (
            f"{number} without its own related-work section, which is the gold text. Every system"
            " writes the section from the target and its references."
        )
        if related.systems:
            written_by = f"Written by {'; '.join(map(words, related.systems))}."
            return Section(key, title, (text, written_by))
        nothing = "No system wrote anything."
        return Section(key, title, (text, nothing), links=[("What failed", FAILURES_PAGE)])
    text = (
        "There is no related-work task in this month. A task needs a paper with a related-work"
        " section that cites enough papers of the corpus."
    )
    reasons = data.left_out(RELATED_WORK_TASKS.name)
    if not reasons:
        return Section(key, title, (text,))
    counts = f"Of {number_of(data.rows(PAPERS), 'paper')}: {reasons_text(reasons)}."
    items = [item for item in ledger if item.stage == RELATED_WORK_TASKS.name]
    grid = left_out_grid("no_task", "Papers without a task", items, "the ledger")
    return Section(key, title, (text, counts), [grid])


def leaderboard(data: RelatedWorkData) -> Grid:
    """Every system with its main measures and intervals; the best by the main measure first."""
    measures = _measured(data, _MAIN_MEASURES)
    floor = ROUGE_1.cell(data.scores.mean(FLOOR, ROUGE_1.metric))
    notes = [f"A random section reaches R-1 {floor.plain()}, the floor of ROUGE."]
    return measure_table(
        "leaderboard",
        "Related work: leaderboard",
        [*measures, *select("tasks")],
        system_rows(data, best_first(data), measures),
        about=f"{basis(data)}.",
        notes=[] if floor.value is None else notes,
        sortable=True,
    )


def _measured(data: RelatedWorkData, measures: Iterable[Measure]) -> list[Measure]:
    """The measures that any system has."""
    return [
        measure
        for measure in measures
        if any(data.scores.by_task(system, measure.metric) for system in data.systems)
    ]


def best_first(data: RelatedWorkData) -> list[str]:
    """The systems, the highest mean of the main measure first."""
    metric = main_measure(data).metric
    return sorted(
        data.systems, key=lambda system: (-(data.scores.mean(system, metric).value or 0), system)
    )


def main_measure(data: RelatedWorkData) -> Measure:
    """The measure that ranks systems: the G-Score where a judge gave marks, else ROUGE-1."""
    return G_SCORE if data.scores.judge else ROUGE_1


def _published_and_ours(data: RelatedWorkData) -> list[BarFigure]:
    """R-1, R-L and G-Score as published beside ours."""
    measures = select("rouge1", "rougeLsum", "g_score")
    theirs = published_rows("chatcite", "table_1", measures)
    colours = {words(system): system_colour(system) for system in RELATED_WORK_SYSTEMS}
    groups = []
    for measure in measures:
        published = [
            bar(
                f"{row.label} ({row.model})",
                Cell(row.cells[measure.metric], measure.form),
                colours[row.label],
                measure.axis,
                hollow=True,
            )
            for row in theirs
        ]
        ours = [
            bar(f"{words(system)}, ours", measure.cell(mean), system_colour(system), measure.axis)
            for system in data.systems
            if (mean := data.scores.mean(system, measure.metric)).value is not None
        ]
        groups += [(measure.title, published + ours)] if ours else []
    about = (
        "Outlined: Table 1 of the ChatCite paper. Filled: ours, with 95 % intervals. ROUGE on an"
        " axis from 0 to 60, G-Score from 0 to 5. Compare rankings, not absolute scores: models and"
        " papers differ."
    )
    return [BarFigure("Published and ours", groups, about)] if groups else []


def paper_tables(data: RelatedWorkData) -> Section:
    """Tables 1 and 2 of the ChatCite paper beside ours."""
    rankings = (
        "Compare rankings, not absolute scores: models, papers and reference lists differ. The"
        " best value of each group is bold."
    )
    intervals = interval_notes(data.tasks, "task", "tasks") if data.systems else []
    elsewhere = [
        name for name in data.systems if parse_writer(name).system not in RELATED_WORK_SYSTEMS
    ]
    grids = [
        _paper_table("table_1", "Table 1: ChatCite and other methods", data, elsewhere),
        _paper_table("table_2", "Table 2: ChatCite with parts removed", data),
    ]
    return Section(
        "tables",
        "The paper's tables and ours",
        [rankings, *intervals],
        grids,
        _TABLE_DEFINITIONS,
    )


def _paper_table(key: str, title: str, data: RelatedWorkData, others: Sequence[str] = ()) -> Grid:
    """The paper's rows, then ours by each model, and the floor. others: systems beside those of the
    table.
    """
    columns = [*_TABLE_MEASURES, *select("tasks")]
    ran = {system: by_system(data.systems, [system]) for system in _SYSTEMS[key]}
    ours = [*(name for names in ran.values() for name in names), *others]
    missing = [words(system) for system, names in ran.items() if not names]
    notes = [f"Not run here (CITELOOM_SYSTEMS): {', '.join(missing)}."] if missing else []
    notes += [text for system, text in _SYSTEM_NOTES[key].items() if ran[system]]
    groups = [RowGroup(published_rows("chatcite", key, columns), PUBLISHED, _PUBLISHED_BASIS)]
    if ours:
        rows = system_rows(data, ours, _TABLE_MEASURES)
        groups += [RowGroup(rows, OURS, basis(data)), RowGroup(_floor_rows(data), "Floor")]
    notes += _unmarked_sections(data, ours)
    return measure_table(key, title, columns, groups=groups, notes=notes)


def _floor_rows(data: RelatedWorkData) -> list[MeasuredRow]:
    tasks = len(data.scores.by_task(FLOOR, ROUGE_1.metric))
    if not tasks:
        return []
    cells = mean_cells(data, FLOOR, _TABLE_MEASURES) | {"tasks": tasks}
    return [MeasuredRow(words(FLOOR), cells, "another task's gold section")]


def _unmarked_sections(data: RelatedWorkData, systems: Sequence[str]) -> list[str]:
    marked = {system: len(data.scores.by_task(system, G_SCORE.metric)) for system in systems}
    fewer = [
        f"{words(system)} {count(number)} of {count(data.sections[system])}"
        for system, number in marked.items()
        if number < data.sections[system]
    ]
    if not fewer or not data.scores.judge:
        return []
    return [f"G-Score and best are of fewer tasks: {', '.join(fewer)}."]


def differences(data: RelatedWorkData) -> Section | None:
    """Paired differences from ChatCite, and between the models of each system; None where there is
    none.
    """
    from_chatcite = []
    for base in by_system(data.systems, ["chatcite"]):
        others = [(system, base) for system in data.systems if system != base]
        rows = _difference_rows(data, others)
        if rows:
            from_chatcite.append(RowGroup(rows, words(base)))
    of_one_system = [
        (first, second)
        for first, second in combinations(data.systems, 2)
        if parse_writer(first).system == parse_writer(second).system
    ]
    between_models = _difference_rows(data, of_one_system)
    columns = ["System", "Less", *(measure.title for measure in _MAIN_MEASURES), "Common tasks"]
    about = (
        "Mean differences over the tasks that both wrote, with 95 % intervals; where an interval"
        " includes 0, the tasks do not separate the two. G-Score in marks, the others in percentage"
        " points."
    )
    grids = with_rows(
        Grid(
            "differences",
            "Differences from ChatCite",
            columns,
            groups=from_chatcite,
            about=about,
        ),
        Grid(
            "model_differences", "Differences between models", columns, between_models, about=about
        ),
    )
    return Section("paired", "Paired differences", (), grids) if grids else None


def _difference_rows(data: RelatedWorkData, pairs: Iterable[tuple[str, str]]) -> list[GridRow]:
    """A row for each pair of systems with any difference: the first less the second."""
    rows: list[GridRow] = []
    for first, second in pairs:
        cells, tasks = [], set()
        for measure in _MAIN_MEASURES:
            ours = data.scores.by_task(first, measure.metric)
            theirs = data.scores.by_task(second, measure.metric)
            difference = paired_difference(
                {task: [value] for task, value in ours.items()},
                {task: [value] for task, value in theirs.items()},
            )
            cells.append(measure.difference(difference))
            tasks |= ours.keys() & theirs.keys()
        if any(cell.value is not None for cell in cells):
            rows.append([words(first), words(second), *cells, len(tasks)])
    return rows


def _stability(data: RelatedWorkData) -> Section:
    """Figure 3: the spread of repeated runs, with reflection and without; how to measure it where
    it was not.
    """
    key, title = "stability", "Stability (Figure 3)"
    rows = [row for row in data.repeats if row["judge"] in (None, data.scores.judge)]
    spreads = {measure.metric: spread(rows, measure.metric) for measure in _STABILITY_MEASURES}
    systems = sorted({item.system for of_metric in spreads.values() for item in of_metric})
    if not systems:
        text = (
            "Not measured: no section was written repeatedly. Set CITELOOM_SUMMARY_REPEATS to the"
            " number of times that each system which calls a model is to write the first"
            " CITELOOM_REPEATED_TASKS tasks, and name chatcite and chatcite_no_reflection among"
            " CITELOOM_SYSTEMS. citeloom estimate tells the cost first."
        )
        return Section(key, title, (text,))
    tasks = {row["task_id"] for row in rows}
    models = ", ".join(sorted({data.model_of(system) for system in systems}))
    marked = spreads[G_SCORE.metric]
    alone = f", each section marked alone by {data.scores.judge}" if marked else ""
    text = (
        f"{number_of(len(tasks), 'task')} written repeatedly by {models}{alone}. A run is one"
        " repeat over all these tasks; its value is their mean. The paper shows such box plots"
        " without saying how many runs or which tasks they cover."
    )
    figures = [_marks_of_runs(spreads)] if marked else []
    return Section(key, title, (text,), [*figures, _spread_grid(spreads)])


def _marks_of_runs(spreads: Mapping[str, Sequence[Spread]]) -> BoxFigure:
    """Boxes of the G-Score and of its six marks over the runs."""
    groups = [
        (
            measure.title,
            [
                box(words(item.system), system_colour(item.system), item.runs, 1.0, 5.0)
                for item in spreads[measure.metric]
            ],
        )
        for measure in (G_SCORE, *CRITERIA_MEASURES)
        if spreads[measure.metric]
    ]
    ticks = [((mark - 1) / 4, str(mark)) for mark in range(1, 6)]
    about = (
        "Axis from 1 to 5. The box spans the quartiles, the line is the median, each dot is a run."
    )
    title = "Figure 3: G-Score and its six marks over repeated runs"
    return BoxFigure(title, groups, ticks, about)


def _spread_grid(spreads: Mapping[str, Sequence[Spread]]) -> Grid:
    rows = []
    for measure in _STABILITY_MEASURES:
        for item in spreads[measure.metric]:
            values = (item.mean, item.low, item.median, item.high)
            rows.append(
                [
                    measure.title,
                    words(item.system),
                    *(Cell(value, measure.form) for value in values),
                    Cell(item.sd, "three"),
                    Cell(item.sd_of_a_task, "three"),
                    len(item.runs),
                    item.tasks,
                ]
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


def citations(data: RelatedWorkData, retention: Retention) -> Section:
    """Citation support by measure and by verdict, and retention by step."""
    judges = data.support_judges
    measures = _measured(data, _CITATION_MEASURES)
    parts: list[Any] = []
    if measures:
        labels = ", ".join(judge_label(judge, "citation_support") for judge in judges)
        grid = measure_table(
            "support",
            "Citations by measure",
            [*with_short_titles(measures), *select("tasks")],
            system_rows(data, data.systems, measures, models=False),
            about=f"Means over tasks; {basis(data, labels)}.",
        )
        parts.append(grid)
    parts += with_rows(_verdict_grid(data))
    if retention:
        parts += [_retention_figure(retention), _retention_grid(retention)]
    return Section(
        "support",
        "Do the cited works support the sentences?",
        _citation_paragraphs(data, judges),
        parts,
        _CITATION_DEFINITIONS if measures else (),
    )


def _citation_paragraphs(data: RelatedWorkData, judges: Sequence[str]) -> list[str]:
    if judges:
        text = (
            f"For each citation a judge ({', '.join(judges)}) was shown the passages of the cited"
            " work that are nearest to the sentence. The task pages lead from each sentence to"
            " these passages."
        )
        return [text, *judge_sentences(judges, "citation_support")]
    reason = data.disabled_stages.get(CITATION_SUPPORT.name) or (
        "no citation could be judged" if data.verdicts else "the table citation_support has no rows"
    )
    return [f"Citation support was not judged: {reason}."]


def _verdict_grid(data: RelatedWorkData) -> Grid:
    verdicts = {verdict for counts in data.verdicts.values() for verdict in counts}
    titles = dict(_VERDICTS)
    for verdict in sorted(verdicts - _VERDICTS.keys()):
        titles[verdict] = f"Not judged: {words(verdict.removeprefix('unjudged: '))}"
    rows = [
        [words(system), *(counts[verdict] for verdict in titles), data.unquoted[system]]
        for system, counts in sorted(data.verdicts.items())
    ]
    columns = ["System", *titles.values(), "Supported, quote not found"]
    about = (
        "All citations; a number counts once per sentence. The last column is part of the supported"
        " ones."
    )
    return Grid("verdicts", "Citations by verdict", columns, rows, about=about)


def _retention_figure(retention: Retention) -> LineFigure:
    last = max(step for steps in retention.values() for step in steps)
    lines = []
    for system, steps in sorted(retention.items()):
        points = {}
        for step, shares in steps.items():
            share = fmean(shares)
            points[step] = share, f"step {step}: {percent(share)} (n = {len(shares)})"
        lines.append(line(words(system), system_colour(system), points, last))
    about = (
        "Horizontal: the step, one for each reference. Vertical: the share of the references of"
        " earlier steps that the draft which became the section still cites; mean over tasks. Equal"
        " lines cover one another."
    )
    return LineFigure(
        "Retention by step of the search",
        lines,
        [((step - 1) / max(last - 1, 1), str(step)) for step in step_ticks(last)],
        [(share, percent(share)) for share in (0.0, 0.5, 1.0)],
        about,
    )


def _retention_grid(retention: Retention) -> Grid:
    numbers = sorted({step for steps in retention.values() for step in steps})
    rows = [
        [
            words(system),
            *(percent_cell(fmean(steps[step]) if step in steps else None) for step in numbers),
        ]
        for system, steps in sorted(retention.items())
    ]
    return Grid("retention", "Retention by step", ["System", *map(str, numbers)], rows)


def _task_list(data: RelatedWorkData, tasks: Sequence[TaskEntry]) -> Section:
    """The month's tasks with their main score by system."""
    main = main_measure(data)
    by_judge = (
        f" by {data.scores.judge}, all systems in one conversation; best: most votes"
        if data.scores.judge
        else ""
    )
    about = (
        f"Below each system: {main.title}{by_judge}. {MISSING}: no score. Not used: works cited in"
        " the removed section that are no reference of the task."
    )
    listed, notes = first_rows(tasks, "the tables; each has its page")
    rows = []
    for task in listed:
        values = data.scores.of_task(task.task_id, data.systems, main.metric)
        best = data.scores.best_voted(task.task_id, data.systems)
        scores = [
            Cell(values.get(system), "two", tag="best" if system in best else "")
            for system in data.systems
        ]
        title = Cell(task.title, page=task.page)
        paper = Cell(task.arxiv_id, arxiv_id=task.arxiv_id)
        rows.append([title, paper, task.references, task.outside, *scores])
    columns = ["Target", "arXiv", "References", "Not used", *map(words, data.systems)]
    grid = Grid("tasks", "Tasks", columns, rows, about=about, notes=notes, stacked=True)
    return Section("tasks", "Tasks", (), (grid,))
