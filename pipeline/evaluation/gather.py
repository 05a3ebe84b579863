"""From a month's tables to what its pages show. Not here: the numbers' arithmetic (`overview`), HTML (`report`)."""

from __future__ import annotations

import hashlib
import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pipeline import tables
from pipeline.errors import CiteloomError
from pipeline.evaluation.cited import paragraphs
from pipeline.evaluation.g_score import read_order
from pipeline.evaluation.overview import (
    Step,
    colours,
    criteria_bars,
    is_small_model,
    length_bars,
    means,
    paper_lines,
    system_lines,
)
from pipeline.evaluation.report import (
    ElementsView,
    IndexView,
    LeftOut,
    MonthLine,
    MonthView,
    SystemView,
    TaskLine,
    TaskView,
    task_file,
)
from pipeline.evaluation.retrieval.picture import RetrievalView, retrieval_view
from pipeline.evaluation.trace import trace_view
from pipeline.tables import DataRoot, Table, read_provenance

Row = dict[str, Any]

# A month of the whole dump has 10,000 papers and more left out: a page of 1,000 lines is 0.5 MB and still scrolls.
MOST_LINES = 1_000

_STEPS: tuple[tuple[Table, str, str], ...] = (
    (tables.DUMP_MEMBERS, "In the dump", "page"),
    (tables.METADATA, "Known to arXiv", "paper"),
    (tables.PAPERS, "Of the chosen categories, and parsed", "paper"),
    (tables.PASSAGES, "Cut into passages", "passage"),
    (tables.EMBEDDINGS, "Embedded", "passage"),
    (tables.INDEX_RECEIPTS, "Found in the index", "passage"),
    (tables.REFERENCES, "References read", "reference"),
    (tables.RETRIEVAL_QUERIES, "Citing sentences made queries", "sentence"),
    (tables.RETRIEVAL_SCORES, "Ways to search measured", "score"),
    (tables.RELATED_WORK_TASKS, "Made a related-work task", "task"),
    (tables.KEY_ELEMENTS, "Key elements taken out", "paper"),
    (tables.SUMMARIES, "Sections written", "section"),
    (tables.SCORES, "Scored", "score"),
)
STAGES_SHOWN = tuple(table.name for table, *_ in _STEPS)

_TASK_COLUMNS = ["task_id", "arxiv_id", "title", "section_title", "references", "outside", "gold"]
_SUMMARY_COLUMNS = ["task_id", "system", "model", "calls", "prompt_tokens", "completion_tokens"]
_PAPER_COLUMNS = [
    "arxiv_id", "title", "subset", "primary_category", "sections", "chars_seen", "chars_kept", "truncated",
]  # fmt: skip
_ANSWERS = (
    "research_questions", "methodology", "results", "conclusions", "contributions", "innovations", "limitations",
)  # fmt: skip


def ledger_of(root: DataRoot, month: str) -> list[LeftOut]:
    """All that the stages left out of a month, stage by stage in running order, sorted within each."""
    found: list[LeftOut] = []
    for stage in STAGES_SHOWN:
        file = root.ledger_file(stage, month)
        if read_provenance(file) is not None:
            rows = pq.read_table(file, columns=["subject", "reason", "detail"]).to_pylist()
            found.extend(sorted((_left_out(stage, row) for row in rows), key=_ledger_order))
    return found


def _left_out(stage: str, row: Mapping[str, Any]) -> LeftOut:
    return LeftOut(stage, row["subject"] or "", row["reason"] or "", row["detail"] or "")


def _ledger_order(item: LeftOut) -> tuple[str, str, str]:
    return item.subject, item.reason, item.detail


def ledger_digests(root: DataRoot, month: str) -> dict[str, str]:
    """Digests of the month's ledgers, by name: a page shows them, so it is out of date when they change."""
    found = {stage: read_provenance(root.ledger_file(stage, month)) for stage in STAGES_SHOWN}
    return {f"ledger {stage}": written.rows_sha256 for stage, written in found.items() if written}


def _reasons(ledger: Iterable[LeftOut], stage: str) -> tuple[tuple[str, int], ...]:
    counts = Counter(item.reason for item in ledger if item.stage == stage)
    return tuple(sorted(counts.items(), key=lambda pair: (-pair[1], pair[0])))


def _steps(root: DataRoot, month: str, ledger: Sequence[LeftOut]) -> list[Step]:
    return [
        Step(name, counted, _rows_out(root, month, table), _reasons(ledger, table.name))
        for table, name, counted in _STEPS
    ]


def _rows_out(root: DataRoot, month: str, table: Table) -> int:
    """Rows of a month; for the index the points found there; 0 where the month is not there."""
    written = read_provenance(root.file(table, month))
    if written is None:
        return 0
    if table is tables.INDEX_RECEIPTS:
        return sum(row["present"] for row in root.rows(table, month, ["present"]))
    return written.rows


def month_view(root: DataRoot, month: str) -> MonthView:
    """What the page of a month shows. Raises as `DataRoot.read` does where a table is not there."""
    ledger = ledger_of(root, month)
    steps = _steps(root, month, ledger)
    out = {table.name: step.rows for (table, *_), step in zip(_STEPS, steps, strict=True)}
    no_task = [item for item in ledger if item.stage == tables.RELATED_WORK_TASKS.name]
    return MonthView(
        month=month,
        pages=out["dump_members"],
        papers_in_all=out["papers"],
        passages=out["passages"],
        steps=steps,
        receipts=root.rows(tables.INDEX_RECEIPTS, month),
        left_out=ledger[:MOST_LINES],
        left_out_in_all=len(ledger),
        papers=_papers(root, month)[:MOST_LINES],
        retrieval=_retrieval(root, month),
        lengths=length_bars(root.read(tables.PASSAGES, month, ["words"])["words"].to_pylist()),
        no_task=no_task[:MOST_LINES],
        why_no_task=_reasons(ledger, tables.RELATED_WORK_TASKS.name),
        unwritten=_reasons(ledger, tables.SUMMARIES.name),
        unjudged=_reasons(ledger, tables.SCORES.name),
        **_related_work(root, month),
    )


def _papers(root: DataRoot, month: str) -> Any:
    passages = _counts(root.read(tables.PASSAGES, month, ["arxiv_id"])["arxiv_id"])
    references = root.read(tables.REFERENCES, month, ["arxiv_id", "cited_arxiv_id"])
    resolved = references.filter(pc.is_valid(references["cited_arxiv_id"]))
    rows = root.iterate(tables.PAPERS, month, _PAPER_COLUMNS)
    return paper_lines(rows, passages, _counts(references["arxiv_id"]), _counts(resolved["arxiv_id"]))


def _retrieval(root: DataRoot, month: str) -> RetrievalView:
    return retrieval_view(root.rows(tables.RETRIEVAL_SCORES, month), _retrieval_notes(root, month))


def _retrieval_notes(root: DataRoot, month: str) -> Mapping[str, Any]:
    written = read_provenance(root.file(tables.RETRIEVAL_SCORES, month))
    return written.notes if written else {}


def notes_digests(root: DataRoot, month: str) -> dict[str, str]:
    """Digest of what a file says beside its rows, where a page shows it: why something was not measured."""
    notes = json.dumps(_retrieval_notes(root, month), sort_keys=True)
    return {f"notes {tables.RETRIEVAL_SCORES.name}": hashlib.sha256(notes.encode()).hexdigest()}


def _counts(column: pa.ChunkedArray) -> dict[str, int]:
    return {pair["values"]: pair["counts"] for pair in pc.value_counts(column).to_pylist()}


def _related_work(root: DataRoot, month: str) -> dict[str, Any]:
    summaries = root.rows(tables.SUMMARIES, month, _SUMMARY_COLUMNS)
    scores = root.rows(tables.SCORES, month)
    systems = system_lines(summaries, scores)
    calls = root.read(tables.KEY_ELEMENTS, month, ["calls"])["calls"]
    return {
        "tasks": _task_lines(root, month, scores),
        "systems": systems,
        "bars": criteria_bars(systems),
        "judges": _judges(scores),
        "key_element_calls": pc.sum(calls).as_py() or 0,
        "small_model": _small_model(summaries, scores),
    }


def _task_lines(root: DataRoot, month: str, scores: Sequence[Row]) -> list[TaskLine]:
    by_task = _by_task(scores)
    rows = root.rows(tables.RELATED_WORK_TASKS, month, ["task_id", "arxiv_id", "title", "references", "outside"])
    return [
        TaskLine(
            page=task_file(row["task_id"]),
            arxiv_id=row["arxiv_id"],
            title=row["title"],
            references=len(row["references"]),
            outside=row["outside"],
            scores=_values(by_task[row["task_id"]]),
        )
        for row in sorted(rows, key=lambda row: row["task_id"])
    ]


def _values(scores: Iterable[Row]) -> dict[str, dict[str, float]]:
    """System → metric → value, of one task's scores; a metric with repeats gives their mean."""
    return {system: {name: mean for name, (mean, _) in found.items()} for system, found in means(scores).items()}


def _by_task(rows: Iterable[Row]) -> dict[str, list[Row]]:
    found: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        found[row["task_id"]].append(row)
    return found


def _judges(scores: Iterable[Row]) -> list[str]:
    return sorted({row["judge"] for row in scores if row["judge"]})


def _small_model(summaries: Iterable[Row], scores: Iterable[Row]) -> str:
    names = {row["model"] for row in summaries} | set(_judges(scores))
    return min(filter(is_small_model, names), default="")


def task_views(root: DataRoot, month: str) -> Iterator[tuple[str, TaskView]]:
    """(file name, view) of each task of a month, by task id. Holds one task's rows as objects, the rest as Arrow."""
    tasks = root.rows(tables.RELATED_WORK_TASKS, month, _TASK_COLUMNS)
    summaries = root.read(tables.SUMMARIES, month)
    elements = root.read(tables.KEY_ELEMENTS, month)
    scores = _by_task(root.rows(tables.SCORES, month))
    series = _series(summaries)
    for task in sorted(tasks, key=lambda task: task["task_id"]):
        identifier = task["task_id"]
        written = _of_task(summaries, identifier, "system")
        known = _of_task(elements, identifier, "number")
        yield task_file(identifier), _task_view(month, task, written, known, scores[identifier], series)


def _series(summaries: pa.Table) -> dict[str, int]:
    systems = sorted(pc.unique(summaries["system"]).to_pylist())
    return dict(zip(systems, colours(len(systems)), strict=True))


def _of_task(table: pa.Table, task_id: str, order: str) -> list[Row]:
    return list(table.filter(pc.equal(table["task_id"], task_id)).sort_by(order).to_pylist())


def _task_view(
    month: str,
    task: Row,
    summaries: Sequence[Row],
    elements: Sequence[Row],
    scores: Sequence[Row],
    series: Mapping[str, int],
) -> TaskView:
    numbers = {reference["number"] for reference in task["references"]}
    values = _values(scores)
    return TaskView(
        month=month,
        arxiv_id=task["arxiv_id"],
        title=task["title"],
        section_title=task["section_title"],
        outside=task["outside"],
        references=task["references"],
        gold=paragraphs(task["gold"], numbers),
        gold_words=len(task["gold"].split()),
        systems=[_system_view(row, numbers, values.get(row["system"], {}), series[row["system"]]) for row in summaries],
        judge=", ".join(_judges(scores)),
        order=read_order(next((row["order"] for row in scores if row["order"]), "")),
        elements=[_elements_view(row, task) for row in elements],
        small_model=_small_model(summaries, scores),
    )


def _system_view(row: Row, numbers: set[int], scores: Mapping[str, float], series: int) -> SystemView:
    return SystemView(
        system=row["system"],
        series=series,
        model=row["model"],
        paragraphs=paragraphs(row["text"], numbers),
        words=len(row["text"].split()),
        calls=row["calls"],
        prompt_tokens=row["prompt_tokens"],
        completion_tokens=row["completion_tokens"],
        scores=scores,
        trace=trace_view(row["trace"], numbers),
    )


def _elements_view(row: Row, task: Row) -> ElementsView:
    titles: dict[int, str] = {0: task["title"], **{item["number"]: item["title"] for item in task["references"]}}
    answers = [(name, row[name] or "") for name in _ANSWERS]
    return ElementsView(
        row["number"], titles.get(row["number"], str(row["arxiv_id"])), bool(row["content_cut"]), answers
    )


def index_view(root: DataRoot) -> IndexView:
    """What the page over all months shows, from the tables that are there; a month of which some cannot be read
    stays in the list with a remark, since its own report is another run's business."""
    gathered = [_month_line(root, month) for month in root.months(tables.DUMP_MEMBERS)]
    months = [line for line, *_ in gathered]
    summaries = [row for _, rows, _ in gathered for row in rows]
    scores = [row for *_, rows in gathered for row in rows]
    systems = system_lines(summaries, scores)
    return IndexView(
        months=months,
        papers=sum(line.papers for line in months),
        passages=sum(line.passages for line in months),
        tasks=sum(line.tasks for line in months),
        systems=systems,
        bars=criteria_bars(systems),
        small_model=_small_model(summaries, scores),
    )


def _month_line(root: DataRoot, month: str) -> tuple[MonthLine, list[Row], list[Row]]:
    """A month's line, and its summaries and scores, empty where the month is not scored yet."""
    try:
        counts = _month_counts(root, month)
        if read_provenance(root.file(tables.SCORES, month)) is None:
            return MonthLine(month, linked=False, remark="not finished", **counts), [], []
        summaries = root.rows(tables.SUMMARIES, month, _SUMMARY_COLUMNS)
        scores = root.rows(tables.SCORES, month)
    except CiteloomError:
        return MonthLine(month, linked=False, remark="has tables that cannot be read: see citeloom status"), [], []
    g_scores = {line.system: line.values["g_score"] for line in system_lines(summaries, scores) if line.judged}
    return MonthLine(month, linked=True, g_scores=g_scores, **counts), summaries, scores


def _month_counts(root: DataRoot, month: str) -> dict[str, Any]:
    counted = {
        "pages": tables.DUMP_MEMBERS, "papers": tables.PAPERS, "passages": tables.PASSAGES,
        "indexed": tables.INDEX_RECEIPTS, "references": tables.REFERENCES, "tasks": tables.RELATED_WORK_TASKS,
    }  # fmt: skip
    return {name: _rows_out(root, month, table) for name, table in counted.items()}
