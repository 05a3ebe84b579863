"""Sections on related work: the ChatCite paper's tables beside ours, marks, votes, citations,
stability, and the tasks.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import combinations
from typing import Any

from pipeline import tables
from pipeline.evaluation.annotation.results import MEAN, RatedSet
from pipeline.evaluation.g_score.measures import spread
from pipeline.evaluation.g_score.sample import ABLATIONS, MAIN
from pipeline.evaluation.rouge import FLOOR
from pipeline.evaluation.statistics import Estimate
from pipeline.report.costs import cost_section
from pipeline.report.figures import BoxFigure, bar_figure, box, system_colour
from pipeline.report.formatting import (
    FAILURES_PAGE,
    MISSING,
    OURS,
    PUBLISHED,
    count,
    task_file,
    words,
)
from pipeline.report.frames import (
    CandidateSet,
    RelatedWork,
    ReportData,
    Row,
    Scores,
    read_or_empty,
)
from pipeline.report.grid import (
    Cell,
    Grid,
    GridRow,
    PageSection,
    RowGroup,
    first_rows,
    mean_cell,
    present,
    with_values,
)
from pipeline.report.judgements import ratings_section
from pipeline.report.measures import (
    CRITERIA_METRICS,
    Measure,
    MeasuredRow,
    basis,
    best_first,
    interval_notes,
    leader_card,
    mean_cells,
    measure_table,
    published_rows,
    select,
    with_short_titles,
)
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
    "litllm": "LitLLM plans in the same answer; the paper prints no words for the plan.",
    "chatcite_no_incremental": (
        "ChatCite without incremental steps is what the paper ran: summaries, then few-shot with"
        " the writing guidelines, without key elements and votes."
    ),
    "chatcite_no_reflection": "Of ChatCite without reflection the paper has box plots only.",
}
_TABLE_METRICS = ("rouge1", "rouge2", "rougeLsum", "rougeL", "g_score", "g_vote")
_MAIN_METRICS = (
    "g_score", "rouge1", "rouge2", "rougeLsum", "citation_precision", "citation_recall",
)  # fmt: skip
_CITATION_METRICS = (
    "citation_precision", "citation_precision_partly", "citation_precision_quoted",
    "citation_recall", "reference_coverage", "retention", "citation_exact", "citation_out_of_range",
)  # fmt: skip
_VERDICTS = {"supported": "Supported", "partly": "Partly supported", "not": "Not supported"}
_PEOPLE = "People"


def sections(data: RelatedWork, tasks: Sequence[Row] = ()) -> list[PageSection]:
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
        ratings_section(data.people),
        cost_section("cost", "Cost", data),
        _task_list(data, tasks) if tasks else None,
    )


def month_intro(data: ReportData) -> PageSection:
    """The related work of a month in words, or the reason for none."""
    related, table = data.related, tables.RELATED_WORK_TASKS
    links: list[tuple[str, str]] = []
    if not related.tasks:
        texts = ["There is no related-work task in this month.", str(data.note(table, "no_task"))]
    else:
        sources = data.months[0].notes[table.name].get("references", {})
        texts = [
            f"Targets without their related-work section, the gold text: {count(related.tasks)}."
            " Every system writes the section from the target and its references, of which"
            f" {count(sources.get('full_text', 0))} are papers of the corpus, of"
            f" {count(sources.get('abstract', 0))} the abstract is known, of"
            f" {count(sources.get('item', 0))} the bibliography item."
        ]
        if not related.systems:
            texts.append("No system wrote anything.")
            links = [("What failed", FAILURES_PAGE)]
    return PageSection("related-work", "Related work", [*filter(None, texts)], links=links)


def card(data: RelatedWork) -> list[tuple[str, str, str]]:
    """The card of the system that is ahead; none where nothing was written."""
    main, measure = data.sets[0], _main_measure(data)
    ranked = best_first(main.scores, main.systems, measure.metric)
    return [leader_card("Related work", data, main.scores, ranked, measure)] if ranked else []


def _main_measure(data: RelatedWork) -> Measure:
    """The measure that ranks systems: the G-Score where a judge gave marks, else ROUGE-1."""
    (measure,) = select("g_score" if data.scores.judge else "rouge1")
    return measure


def _basis(data: RelatedWork, judges: str | None = None) -> str:
    judges = data.scores.judge if judges is None else judges
    return basis(data, number_of(data.tasks, "task"), judges)


def _system_rows(
    data: RelatedWork,
    systems: Iterable[str],
    chosen: Iterable[Measure],
    scores: Scores | None = None,
) -> list[MeasuredRow]:
    """The means of systems over their tasks. scores: of a candidate set; None for the main one."""
    return [
        MeasuredRow(
            words(system),
            mean_cells(scores or data.scores, system, chosen)
            | {"tasks": data.sections[system], **data.states[system]},
            data.model_of(system),
        )
        for system in systems
    ]


def leaderboard(data: RelatedWork) -> Grid:
    """Every system with its main measures and intervals, by candidate set; the best by the main
    measure first.
    """
    chosen, metric = select(*_MAIN_METRICS), _main_measure(data).metric
    groups = []
    others = set(data.systems)
    for candidates in data.sets:
        ranked = best_first(candidates.scores, candidates.systems, metric)
        rows = _system_rows(data, ranked, chosen, candidates.scores)
        groups.append(RowGroup(rows, candidates.title))
        others -= set(ranked)
    groups.append(RowGroup(_system_rows(data, sorted(others), chosen), "In no candidate set"))
    return measure_table(
        "leaderboard",
        "Related work: leaderboard",
        [*chosen, *select("tasks", "cut", "cites nothing", "repeats its prompt", "failed")],
        groups=groups,
        about=f"{_basis(data)}.",
        # Sorting would mix the groups.
        sortable=len(data.sets) == 1 and not others,
    )


def paper_tables(data: RelatedWork) -> PageSection:
    """Tables 1 and 2 of the ChatCite paper beside ours."""
    notes = [
        "Compare rankings, not absolute scores: models, papers and reference lists differ. The best"
        " value of each group is bold. The floor is another task's gold section."
    ]
    notes += interval_notes(data.tasks, "task") if data.systems else []
    sets = {candidates.name: candidates for candidates in data.sets}
    main, ablations = sets.pop(MAIN, None), sets.pop(ABLATIONS, None)
    grids = [
        _paper_table("table_1", "Table 1: ChatCite and other methods", data, main),
        _paper_table("table_2", "Table 2: ChatCite with parts removed", data, ablations),
    ]
    grids += [
        _paper_table(f"candidates_{name}", f"Candidate set: {name}", data, candidates)
        for name, candidates in sets.items()
    ]
    return PageSection("tables", "The paper's tables and ours", notes, grids)


def _paper_table(key: str, title: str, data: RelatedWork, candidates: CandidateSet | None) -> Grid:
    """The paper's rows, if it has such a table, then those of a candidate set by each model, and
    the floor.
    """
    chosen = select(*_TABLE_METRICS)
    columns = [*chosen, *select("tasks")]
    in_paper = _TABLE_SYSTEMS.get(key, ())
    groups = [RowGroup(published_rows("chatcite", key, columns), PUBLISHED, _PUBLISHED_BASIS)]
    ours = by_system(candidates.systems, in_paper) if candidates else []
    missing = [words(system) for system in in_paper if not by_system(ours, [system])]
    notes = [f"Not run here (CITELOOM_SYSTEMS): {', '.join(missing)}."] if missing else []
    if candidates and candidates.systems:
        ours += sorted(set(candidates.systems) - set(ours))
        rows = _system_rows(data, ours, chosen, candidates.scores)
        floor = mean_cells(data.scores, FLOOR, chosen)
        tasks = len(data.scores.by_item(FLOOR, "rouge1"))
        floor_row = MeasuredRow(
            words(FLOOR), floor | {"tasks": tasks}, "another task's gold section"
        )
        groups += [
            RowGroup(rows, OURS, _basis(data)),
            RowGroup([floor_row] if tasks else [], "Floor"),
        ]
        notes += [text for name, text in _SYSTEM_NOTES.items() if by_system(ours, [name])]
        marked = {name: len(candidates.scores.by_item(name, "g_score")) for name in ours}
        fewer = [
            f"{words(name)} {count(number)} of {count(data.sections[name])}"
            for name, number in marked.items()
            if number < data.sections[name]
        ]
        if fewer and candidates.scores.judge:
            notes.append(f"G-Score and best are of fewer tasks: {', '.join(fewer)}.")
    return measure_table(key, title, columns, groups=groups, notes=notes)


def criteria(data: RelatedWork) -> PageSection | None:
    """Figure 4: the six criteria, the judge beside people where people marked, a figure for each
    candidate set; None where nothing was marked.
    """
    parts: list[Any] = []
    marks = select(*CRITERIA_METRICS, "g_score")
    for candidates in data.sets:
        rows = [
            MeasuredRow(
                words(system), mean_cells(candidates.scores, system, marks) | {"tasks": tasks}
            )
            for system in candidates.systems
            if (tasks := len(candidates.scores.by_item(system, "g_score")))
        ]
        rated = data.people.sets.get(candidates.name)
        raters = number_of(rated.raters, "rater") if rated else ""
        groups = [
            RowGroup(rows, f"Judge {candidates.scores.judge}"),
            RowGroup(_marks_by_people(data, rated) if rated else (), _PEOPLE, raters),
        ]
        grid = measure_table(
            f"criteria{_key_suffix(data, candidates)}",
            f"Marks by criterion{candidates.suffix}",
            [*marks, *select("tasks")],
            groups=groups,
            about=f"Mean marks from 1 to 5. {_basis(data)}.",
        )
        if grid.rows:
            figure = bar_figure(
                f"Figure 4: the six criteria{candidates.suffix}",
                grid,
                {measure.title: measure.axis for measure in marks[:-1]},
                _colours(data),
                f"On an axis from 0 to 5.{' Outlined: people.' if rated else ''}",
                outlined=_PEOPLE,
            )
            parts += [figure, grid]
    return PageSection("criteria", "The six criteria", (), parts) if parts else None


def _marks_by_people(data: RelatedWork, people: RatedSet) -> list[MeasuredRow]:
    rows = []
    for writer, marks in people.marks.items():
        means = {"g_score" if name == MEAN else f"g_{name}": m for name, m in marks.items()}
        tasks = max(mean.count for mean in means.values())
        cells = {metric: mean_cell(mean, "two") for metric, mean in means.items()}
        system = words(data.names[writer])
        rows += [MeasuredRow(system, {**cells, "tasks": tasks})] if tasks else []
    return rows


def _key_suffix(data: RelatedWork, candidates: CandidateSet) -> str:
    """The end of a table's key, empty for the first set."""
    return "" if candidates is data.sets[0] else f"_{candidates.name}"


def _colours(data: RelatedWork) -> dict[str, int]:
    return {words(system): system_colour(system) for system in data.systems}


def preference(data: RelatedWork) -> PageSection | None:
    """Figure 5: whose section was voted best, by the judge and by people, a figure for each
    candidate set; None where there was no vote.
    """
    parts: list[Any] = []
    for candidates in data.sets:
        scores, rated = candidates.scores, data.people.sets.get(candidates.name)
        voted = {
            system: scores.mean(system, "g_vote")
            for system in candidates.systems
            if scores.by_item(system, "g_vote")
        }
        voters: dict[str, dict[str, Estimate]] = {}
        if voted:
            tasks = max(mean.count for mean in voted.values())
            voters[f"Judge {scores.judge}, {number_of(tasks, 'task')}"] = voted
        if rated and rated.choices:
            on = f"{number_of(rated.choices, 'vote')} on {number_of(rated.voted, 'task')}"
            voters[f"{_PEOPLE}, {on}"] = {
                data.names[writer]: share for writer, share in rated.preferred.items()
            }
        systems = sorted({system for shares in voters.values() for system in shares})
        rows = [
            [words(name), *(mean_cell(shares.get(name), "percent") for shares in voters.values())]
            for name in systems
        ]
        if rows:
            grid = Grid(
                f"preference{_key_suffix(data, candidates)}",
                f"Votes{candidates.suffix}",
                ["System", *voters],
                rows,
            )
            figure = bar_figure(
                f"Figure 5: preference{candidates.suffix}",
                grid,
                dict.fromkeys(voters, 1.0),
                _colours(data),
                "Share of the votes for the best section, each task with the same weight. In the"
                " paper people voted, on 10 samples.",
            )
            parts += [figure, grid]
    return PageSection("preference", "Preference", (), parts) if parts else None


def differences(data: RelatedWork) -> PageSection | None:
    """Paired differences from ChatCite, and between the models of each system, within each
    candidate set; None where there is none.
    """
    groups = []
    for candidates in data.sets:
        for base in by_system(candidates.systems, ["chatcite"]):
            pairs = [(system, base) for system in candidates.systems if system != base]
            rows = _difference_rows(candidates.scores, pairs)
            groups.append(RowGroup(rows, f"From {words(base)}{candidates.suffix}"))
        pairs = [
            (first, second)
            for first, second in combinations(candidates.systems, 2)
            if parse_writer(first).system == parse_writer(second).system
        ]
        rows = _difference_rows(candidates.scores, pairs)
        groups.append(RowGroup(rows, f"Between models of one system{candidates.suffix}"))
    titles = [measure.title for measure in select(*_MAIN_METRICS)]
    about = (
        "Over the tasks that both wrote, with 95 % intervals; one that includes 0 does not separate"
        " the two. G-Score in marks, the others in percentage points."
    )
    columns = ["System", "Less", *titles, "Common tasks"]
    grid = Grid("differences", "Differences", columns, groups=groups, about=about)
    return PageSection("paired", "Paired differences", (), (grid,)) if grid.rows else None


def _difference_rows(scores: Scores, pairs: Iterable[tuple[str, str]]) -> list[GridRow]:
    """A row for each pair of systems with any difference: the first less the second."""
    rows: list[GridRow] = []
    for first, second in pairs:
        means = {m: scores.difference(first, second, m.metric) for m in select(*_MAIN_METRICS)}
        if any(means.values()):
            tasks = max(mean.count for mean in means.values() if mean)
            cells = [measure.difference(mean) for measure, mean in means.items()]
            rows.append([words(first), words(second), *cells, tasks])
    return rows


def stability(data: RelatedWork) -> PageSection | None:
    """Figure 3: the spread of repeated runs, with reflection and without; None where no section was
    written repeatedly.
    """
    # Sections that were written once are marked beside each repeat of the others.
    repeated = {row["system"] for row in data.repeats if row["repeat"] and row["judge"] is None}
    rows = [row for row in data.repeats if row["system"] in repeated]
    if not rows:
        return None
    figures: list[BoxFigure] = []
    groups: list[RowGroup] = []
    marks = select("g_score", *CRITERIA_METRICS)
    for candidates in data.sets:
        of_set = [row for row in rows if row["candidate_set"] == candidates.name]
        of_judge = [row for row in of_set if row["judge"] == candidates.scores.judge]
        boxes = [(measure.title, _boxes(of_judge, measure)) for measure in marks]
        if boxes[0][1]:
            title = f"Figure 3: G-Score and its six marks over repeated runs{candidates.suffix}"
            ticks = [((mark - 1) / 4, str(mark)) for mark in range(1, 6)]
            about = "Boxes span the quartiles, the line is the median, each dot is a run."
            figures.append(BoxFigure(title, [item for item in boxes if item[1]], ticks, about))
            groups.append(RowGroup(_spread_rows(of_judge, marks), f"G-Score{candidates.suffix}"))
    unjudged = [row for row in rows if row["judge"] is None]
    text_only = select("rouge1", "reference_coverage")
    groups.append(RowGroup(_spread_rows(unjudged, text_only), "Without a judge"))
    models = ", ".join(sorted({data.model_of(system) for system in repeated}))
    tasks = number_of(len({row["task_id"] for row in rows}), "task")
    text = (
        f"{tasks} written repeatedly by {models}. A run is one repeat over all these tasks; its"
        " value is their mean."
    )
    grid = Grid(
        "stability",
        "Spread of repeated runs",
        ["Metric", "System", "Mean", "SD of runs", "SD of a task", "Runs", "Tasks"],
        groups=groups,
        about="SD: standard deviation, of whole runs and of one task's repeats.",
        folded="Spread of repeated runs",
    )
    return PageSection("stability", "Stability (Figure 3)", (text,), [*figures, grid])


def _boxes(rows: Sequence[Row], measure: Measure) -> list[Any]:
    return [
        box(words(item.system), system_colour(item.system), item.runs, 1.0, 5.0)
        for item in spread(rows, measure.metric)
    ]


def _spread_rows(rows: Sequence[Row], chosen: Iterable[Measure]) -> list[GridRow]:
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
        for measure in chosen
        for item in spread(rows, measure.metric)
    ]


def citations(data: RelatedWork) -> PageSection:
    """Citation support by measure and by verdict."""
    chosen = select(*_CITATION_METRICS)
    judges = ", ".join(data.support_judges)
    grid = measure_table(
        "support",
        "Citations by measure",
        [*with_short_titles(chosen), *select("tasks")],
        _system_rows(data, data.systems, chosen),
        about=f"Means over tasks; {_basis(data, judges)}.",
    )
    verdicts = {verdict for counts in data.verdicts.values() for verdict in counts}
    titles = dict(_VERDICTS)
    for verdict in sorted(verdicts - _VERDICTS.keys()):
        titles[verdict] = f"Not judged: {words(verdict.removeprefix('unjudged: '))}"
    rows = [
        [words(system), *(counts[verdict] for verdict in titles), data.unquoted[system]]
        for system, counts in sorted(data.verdicts.items())
    ]
    columns = ["System", *titles.values(), "Supported, quote not found"]
    by_verdict = Grid("verdicts", "Citations by verdict", columns, rows)
    text = (
        f"For each citation a judge ({judges}) was shown the passages of the cited work that are"
        " nearest to the sentence; the task pages lead to them."
    )
    if not judges:
        reason = data.data.note(tables.CITATION_SUPPORT, "off")
        nothing = "no citation could be judged" if data.verdicts else "citation_support has no rows"
        text = f"Citation support was not judged: {reason or nothing}."
    title = "Do the cited works support the sentences?"
    return PageSection("support", title, (text,), [grid, *with_values(by_verdict)])


def read_tasks(data: ReportData) -> list[Row]:
    """The tasks of a month by id, with the number of their references."""
    columns = ["task_id", "arxiv_id", "title", "references", "outside"]
    rows = read_or_empty(data.root, tables.RELATED_WORK_TASKS, data.months[0].month, columns)
    tasks = ({**row, "references": len(row["references"])} for row in rows.to_pylist())
    return sorted(tasks, key=lambda row: str(row["task_id"]))


def _task_list(data: RelatedWork, tasks: Sequence[Row]) -> PageSection:
    """The month's tasks with their main score by system."""
    main, systems = _main_measure(data), data.sets[0].systems
    by_judge = f" by {data.scores.judge}; best: most votes" if data.scores.judge else ""
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
