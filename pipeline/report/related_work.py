"""Sections on related work: the ChatCite paper's tables beside ours, marks, votes, citations,
stability, and the tasks.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations

from pipeline.evaluation.g_score.measures import Spread, spread
from pipeline.evaluation.g_score.sample import ABLATIONS, MAIN
from pipeline.evaluation.rouge import FLOOR
from pipeline.evaluation.statistics import paired_difference
from pipeline.report.costs import related_work_cost
from pipeline.report.data import CandidateSet, RelatedWorkData, ReportData, Scores
from pipeline.report.figures import BoxFigure, box, system_colour
from pipeline.report.formatting import (
    FAILURES_PAGE,
    MISSING,
    OURS,
    PUBLISHED,
    count,
    interval_notes,
    task_file,
    words,
)
from pipeline.report.grid import (
    Cell,
    Grid,
    GridRow,
    PageSection,
    RowGroup,
    first_rows,
    present,
    with_rows,
)
from pipeline.report.judgements import (
    criteria,
    preference,
    rating_results_section,
)
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
from pipeline.report.summary import Row, iterate
from pipeline.storage.data_root import DataRoot
from pipeline.tables import CITATION_SUPPORT, RELATED_WORK_TASKS
from pipeline.tables.writers import by_system, parse_writer
from pipeline.text import number_of

_PUBLISHED_BASIS = (
    "50 computer-science papers (NudtRwG-Citation, cited 63.59 times each on average);"
    " judge gpt-4-turbo-preview"
)
# The systems of each table as the paper orders them; ours follow.
_TABLE_SYSTEMS = {
    "table_1": ("zero_shot", "few_shot", "litllm", "chatcite"),
    "table_2": ("few_shot", "chatcite_no_elements", "chatcite_no_incremental", "chatcite"),
}
# Where our system differs from the paper's row of that name, or has none.
_SYSTEM_NOTES = {
    "table_1": {
        "litllm": (
            "LitLLM is the paper's request for a section, with a plan in the same answer; the paper"
            " prints no words for the plan."
        ),
    },
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
        " marked in one conversation, which are those of one table: a system that is in both tables"
        " was marked twice. Best: the share of the same judge's votes for the best section of the"
        " table; they sum to 100."
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
_VERDICTS = {"supported": "Supported", "partly": "Partly supported", "not": "Not supported"}


def sections(data: RelatedWorkData, tasks: Sequence[Row] = ()) -> list[PageSection]:
    """The related work of some months; none where there is no task. tasks: those that have pages
    in the report.
    """
    if not data.tasks:
        return []
    board = PageSection("leaderboard", "Related work: all systems", (), (leaderboard(data),))
    return present(
        board if data.systems else None,
        paper_tables(data),
        criteria(data),
        preference(data),
        differences(data),
        stability(data),
        citations(data) if data.systems else None,
        None if data.people.empty else rating_results_section(data.people, with_marks=False),
        related_work_cost(data),
        _task_list(data, tasks) if tasks else None,
    )


def month_intro(data: ReportData) -> PageSection:
    """The related work of a month in words, or the reason for none."""
    key, title, related = "related-work", "Related work", data.related
    if not related.tasks:
        text = (
            "There is no related-work task in this month. A task needs a paper with a related-work"
            " section that cites enough works whose text is known."
        )
        return PageSection(key, title, tuple(filter(None, (text, related.why_no_task))))
    number = "One target" if related.tasks == 1 else f"{count(related.tasks)} targets, each"
    text = (
        f"{number} without its own related-work section, which is the gold text. Every system"
        " writes the section from the target and its references. Of the references of all tasks"
        f" {related.references['full_text']} are papers of the corpus, of"
        f" {related.references['abstract']} the abstract is known, of {related.references['item']}"
        " the bibliography item."
    )
    if related.systems:
        return PageSection(key, title, (text,))
    nothing = "No system wrote anything."
    return PageSection(key, title, (text, nothing), links=[("What failed", FAILURES_PAGE)])


def leaderboard(data: RelatedWorkData) -> Grid:
    """Every system with its main measures and intervals, by candidate set; the best by the main
    measure first.
    """
    groups = []
    others = set(data.systems)
    for candidates in data.sets:
        ranked = best_first(data, candidates)
        rows = system_rows(data, ranked, _MAIN_MEASURES, scores=candidates.scores)
        groups.append(RowGroup(rows, candidates.title))
        others -= set(ranked)
    groups.append(
        RowGroup(system_rows(data, sorted(others), _MAIN_MEASURES), "In no candidate set")
    )
    return measure_table(
        "leaderboard",
        "Related work: leaderboard",
        [*_MAIN_MEASURES, *select("tasks", "cut", "cites nothing", "repeats its prompt", "failed")],
        groups=groups,
        about=f"{basis(data)}.",
        # Sorting would mix the groups.
        sortable=len(data.sets) == 1 and not others,
    )


def best_first(data: RelatedWorkData, candidates: CandidateSet) -> list[str]:
    """The systems of a candidate set, the highest mean of the main measure first."""
    metric = main_measure(data).metric
    return sorted(
        candidates.systems,
        key=lambda system: (-(candidates.scores.mean(system, metric).value or 0), system),
    )


def main_measure(data: RelatedWorkData) -> Measure:
    """The measure that ranks systems: the G-Score where a judge gave marks, else ROUGE-1."""
    return G_SCORE if data.scores.judge else ROUGE_1


def paper_tables(data: RelatedWorkData) -> PageSection:
    """Tables 1 and 2 of the ChatCite paper beside ours."""
    rankings = (
        "Compare rankings, not absolute scores: models, papers and reference lists differ. The"
        " best value of each group is bold."
    )
    intervals = interval_notes(data.tasks, "task", "tasks") if data.systems else []
    sets = {candidates.name: candidates for candidates in data.sets}
    main, ablations = sets.pop(MAIN, None), sets.pop(ABLATIONS, None)
    grids = [
        _paper_table("table_1", "Table 1: ChatCite and other methods", data, main),
        _paper_table("table_2", "Table 2: ChatCite with parts removed", data, ablations),
        *(
            _paper_table(f"candidates_{name}", f"Candidate set: {name}", data, candidates)
            for name, candidates in sets.items()
        ),
    ]
    return PageSection(
        "tables",
        "The paper's tables and ours",
        [rankings, *intervals],
        grids,
        _TABLE_DEFINITIONS,
    )


def _paper_table(
    key: str, title: str, data: RelatedWorkData, candidates: CandidateSet | None
) -> Grid:
    """The paper's rows, if it has such a table, then those of a candidate set by each model, and
    the floor.
    """
    columns = [*_TABLE_MEASURES, *select("tasks")]
    in_paper = _TABLE_SYSTEMS.get(key, ())
    groups = [RowGroup(published_rows("chatcite", key, columns), PUBLISHED, _PUBLISHED_BASIS)]
    ours = by_system(candidates.systems, in_paper) if candidates else []
    missing = [words(system) for system in in_paper if not by_system(ours, [system])]
    notes = [f"Not run here (CITELOOM_SYSTEMS): {', '.join(missing)}."] if missing else []
    if candidates and candidates.systems:
        ours += sorted(set(candidates.systems) - set(ours))
        rows = system_rows(data, ours, _TABLE_MEASURES, scores=candidates.scores)
        groups += [RowGroup(rows, OURS, basis(data)), RowGroup(_floor_rows(data), "Floor")]
        for system, text in _SYSTEM_NOTES.get(key, {}).items():
            if by_system(ours, [system]):
                notes.append(text)
        notes += _unmarked_sections(data, candidates)
    return measure_table(key, title, columns, groups=groups, notes=notes)


def _floor_rows(data: RelatedWorkData) -> list[MeasuredRow]:
    tasks = len(data.scores.by_task(FLOOR, ROUGE_1.metric))
    if not tasks:
        return []
    cells = mean_cells(data.scores, FLOOR, _TABLE_MEASURES) | {"tasks": tasks}
    return [MeasuredRow(words(FLOOR), cells, "another task's gold section")]


def _unmarked_sections(data: RelatedWorkData, candidates: CandidateSet) -> list[str]:
    marked = {
        system: len(candidates.scores.by_task(system, G_SCORE.metric))
        for system in candidates.systems
    }
    fewer = [
        f"{words(system)} {count(number)} of {count(data.sections[system])}"
        for system, number in marked.items()
        if number < data.sections[system]
    ]
    if not fewer or not candidates.scores.judge:
        return []
    return [f"G-Score and best are of fewer tasks: {', '.join(fewer)}."]


def differences(data: RelatedWorkData) -> PageSection | None:
    """Paired differences from ChatCite, and between the models of each system, within each
    candidate set; None where there is none.
    """
    groups = []
    for candidates in data.sets:
        for base in by_system(candidates.systems, ["chatcite"]):
            others = [(system, base) for system in candidates.systems if system != base]
            rows = _difference_rows(candidates.scores, others)
            groups.append(RowGroup(rows, f"From {words(base)}{candidates.suffix}"))
        of_one_system = [
            (first, second)
            for first, second in combinations(candidates.systems, 2)
            if parse_writer(first).system == parse_writer(second).system
        ]
        rows = _difference_rows(candidates.scores, of_one_system)
        groups.append(RowGroup(rows, f"Between models of one system{candidates.suffix}"))
    columns = ["System", "Less", *(measure.title for measure in _MAIN_MEASURES), "Common tasks"]
    about = (
        "Mean differences over the tasks that both wrote, with 95 % intervals; where an interval"
        " includes 0, the tasks do not separate the two. G-Score in marks, the others in percentage"
        " points."
    )
    measured = [group for group in groups if group.rows]
    grid = Grid("differences", "Differences", columns, groups=measured, about=about)
    return PageSection("paired", "Paired differences", (), (grid,)) if measured else None


def _difference_rows(scores: Scores, pairs: Iterable[tuple[str, str]]) -> list[GridRow]:
    """A row for each pair of systems with any difference: the first less the second."""
    rows: list[GridRow] = []
    for first, second in pairs:
        cells, tasks = [], set()
        for measure in _MAIN_MEASURES:
            ours = scores.by_task(first, measure.metric)
            theirs = scores.by_task(second, measure.metric)
            difference = paired_difference(
                {task: [value] for task, value in ours.items()},
                {task: [value] for task, value in theirs.items()},
            )
            cells.append(measure.difference(difference))
            tasks |= ours.keys() & theirs.keys()
        if any(cell.value is not None for cell in cells):
            rows.append([words(first), words(second), *cells, len(tasks)])
    return rows


def stability(data: RelatedWorkData) -> PageSection | None:
    """Figure 3: the spread of repeated runs, with reflection and without; None where no section was
    written repeatedly.
    """
    key, title = "stability", "Stability (Figure 3)"
    # Sections that were written once are marked beside each repeat of the others.
    repeated = {row["system"] for row in data.repeats if row["repeat"] and row["judge"] is None}
    rows = [row for row in data.repeats if row["system"] in repeated]
    if not rows:
        return None
    figures: list[BoxFigure] = []
    groups: list[RowGroup] = []
    for candidates in data.sets:
        marks = [row for row in rows if row["candidate_set"] == candidates.name]
        of_judge = [row for row in marks if row["judge"] == candidates.scores.judge]
        measures = [G_SCORE, *CRITERIA_MEASURES]
        spreads = {measure.metric: spread(of_judge, measure.metric) for measure in measures}
        if spreads[G_SCORE.metric]:
            # The paper's figure has ChatCite with and without reflection.
            in_paper = by_system(candidates.systems, ["chatcite_no_reflection"])
            name = f"{'Figure 3: ' if in_paper else ''}G-Score and its six marks over repeated runs"
            figures.append(_marks_of_runs(f"{name}{candidates.suffix}", spreads))
            rows_of_marks = _spread_rows(measures, spreads)
            groups.append(RowGroup(rows_of_marks, f"G-Score{candidates.suffix}"))
    unjudged = [row for row in rows if row["judge"] is None]
    measures = [ROUGE_1, *select("reference_coverage")]
    spreads = {measure.metric: spread(unjudged, measure.metric) for measure in measures}
    groups.append(RowGroup(_spread_rows(measures, spreads), "Without a judge"))
    tasks = {row["task_id"] for row in rows}
    models = ", ".join(sorted({data.model_of(system) for system in repeated}))
    marked = (
        f"; {data.scores.judge} marked each repeat in a conversation of its own, beside the same"
        " systems in the same order"
        if figures
        else ""
    )
    text = (
        f"{number_of(len(tasks), 'task')} written repeatedly by {models}{marked}."
        " A run is one repeat over all these tasks; its value is their mean. The paper shows such"
        " box plots without saying how many runs or which tasks they cover."
    )
    return PageSection(key, title, (text,), [*figures, _spread_grid(groups)])


def _marks_of_runs(title: str, spreads: Mapping[str, Sequence[Spread]]) -> BoxFigure:
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
    return BoxFigure(title, groups, ticks, about)


def _spread_rows(
    measures: Sequence[Measure], spreads: Mapping[str, Sequence[Spread]]
) -> list[GridRow]:
    return [
        [
            measure.title,
            words(item.system),
            Cell(item.mean, measure.form),
            Cell(item.sd, "three"),
            Cell(item.sd_of_a_task, "three"),
            len(item.runs),
            item.tasks,
        ]
        for measure in measures
        for item in spreads[measure.metric]
    ]


def _spread_grid(groups: Sequence[RowGroup]) -> Grid:
    columns = ["Metric", "System", "Mean", "SD of runs", "SD of a task", "Runs", "Tasks"]
    about = (
        "SD: standard deviation, of whole runs and of one task's repeats, which is how much a"
        " single section may vary. Coverage: share of the task's references that are cited. A task"
        " whose repeats lack the metric is left out."
    )
    title = "Spread of repeated runs"
    return Grid("stability", title, columns, groups=groups, about=about, folded=title)


def citations(data: RelatedWorkData) -> PageSection:
    """Citation support by measure and by verdict."""
    judges = ", ".join(data.support_judges)
    grid = measure_table(
        "support",
        "Citations by measure",
        [*with_short_titles(_CITATION_MEASURES), *select("tasks")],
        system_rows(data, data.systems, _CITATION_MEASURES, models=False),
        about=f"Means over tasks; {basis(data, judges)}.",
    )
    return PageSection(
        "support",
        "Do the cited works support the sentences?",
        _citation_paragraphs(data, judges),
        [grid, *with_rows(_verdict_grid(data))],
        _CITATION_DEFINITIONS,
    )


def _citation_paragraphs(data: RelatedWorkData, judges: str) -> list[str]:
    if judges:
        text = (
            f"For each citation a judge ({judges}) was shown the passages of the cited work that"
            " are nearest to the sentence. The task pages lead from each sentence to these"
            " passages."
        )
        return [text]
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


def read_tasks(root: DataRoot, month: str) -> list[Row]:
    """The tasks of a month by id, with the number of their references."""
    columns = ["task_id", "arxiv_id", "title", "references", "outside"]
    tasks = (
        {**row, "references": len(row["references"])}
        for row in iterate(root, RELATED_WORK_TASKS, month, columns)
    )
    return sorted(tasks, key=lambda row: str(row["task_id"]))


def _task_list(data: RelatedWorkData, tasks: Sequence[Row]) -> PageSection:
    """The month's tasks with their main score by system."""
    main, systems = main_measure(data), data.sets[0].systems
    by_judge = (
        f" by {data.scores.judge}, these systems in one conversation; best: most votes"
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
        values = data.scores.of_task(task["task_id"], systems, main.metric)
        best = data.scores.best_voted(task["task_id"], systems)
        scores = [
            Cell(values.get(system), "two", tag="best" if system in best else "")
            for system in systems
        ]
        title = Cell(task["title"], page=task_file(task["task_id"]))
        paper = Cell(task["arxiv_id"], arxiv_id=task["arxiv_id"])
        rows.append([title, paper, task["references"], task["outside"], *scores])
    columns = ["Target", "arXiv", "References", "Not used", *map(words, systems)]
    grid = Grid("tasks", "Tasks", columns, rows, about=about, notes=notes, stacked=True)
    return PageSection("tasks", "Tasks", (), (grid,))
