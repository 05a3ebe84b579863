"""The corpus of a month in a report: the funnel from the dump to the index, papers, retrieval, and
what failed.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pipeline import tables
from pipeline.report.formatting import count, number_of, words
from pipeline.report.grid import Cell, Details, Grid, Row, Section, percent_cell
from pipeline.storage.data_root import DataRoot
from pipeline.storage.provenance import read_provenance
from pipeline.storage.reading import read_table
from pipeline.tables import Table

# A month of the whole dump has 10,000 papers and more left out: a page of 1,000 rows is 0.5 MB and
# still scrolls.
MOST_ROWS = 1_000
_MOST_OPEN_PAPERS = 25

_STEPS: tuple[tuple[Table, str, str], ...] = (
    (tables.DUMP_MEMBERS, "In the dump", "page"),
    (tables.METADATA, "Known to arXiv", "paper"),
    (tables.PAPERS, "In the chosen categories and parsed", "paper"),
    (tables.PASSAGES, "Split into passages", "passage"),
    (tables.EMBEDDINGS, "Embedded", "passage"),
    (tables.INDEX_RECEIPTS, "Found in the index", "passage"),
    (tables.REFERENCES, "References read", "reference"),
    (tables.RETRIEVAL_QUERIES, "Citing sentences used as queries", "sentence"),
    (tables.RETRIEVAL_SCORES, "Retrieval scores", "score"),
    (tables.RELATED_WORK_TASKS, "Related-work tasks", "task"),
)
FUNNEL_STAGES = tuple(table.name for table, *_ in _STEPS)
RELATED_WORK_STAGES = (
    tables.KEY_ELEMENTS.name,
    tables.SUMMARIES.name,
    tables.G_SCORES.name,
    tables.CITATION_SUPPORT.name,
    tables.SCORES.name,
)
ANSWER_STAGES = (
    tables.QUESTIONS.name,
    tables.ANSWERS.name,
    tables.ANSWER_GRADES.name,
    tables.ANSWER_SCORES.name,
)
MODEL_STAGES = (*RELATED_WORK_STAGES, *ANSWER_STAGES)


@dataclass(frozen=True, slots=True)
class LeftOut:
    """One item of the ledger, or an answer that a system went on without. page: of the task or
    question it is of.
    """

    stage: str
    subject: str
    reason: str
    detail: str
    page: str = ""


@dataclass(frozen=True, slots=True)
class FunnelStep:
    """One step from the dump to the index: how many rows come out, and what was left out, by
    reason.
    """

    name: str
    noun: str
    rows: int
    left_out: tuple[tuple[str, int], ...]


def read_ledger(root: DataRoot, month: str, stages: Sequence[str]) -> list[LeftOut]:
    """What these stages left out of a month, stage by stage, sorted within each."""
    items: list[LeftOut] = []
    for stage in stages:
        file = root.ledger_file(stage, month)
        if read_provenance(file) is not None:
            rows = read_table(file, columns=["subject", "reason", "detail"]).to_pylist()
            mine = [
                LeftOut(stage, row["subject"] or "", row["reason"] or "", row["detail"] or "")
                for row in rows
            ]
            items += sorted(mine, key=lambda item: (item.subject, item.reason, item.detail))
    return items


def rows_out(root: DataRoot, month: str, table: Table) -> int:
    """Rows of a month; for the index the points found there; 0 where the month is missing."""
    provenance = read_provenance(root.file(table, month))
    if provenance is None:
        return 0
    if table is tables.INDEX_RECEIPTS:
        return sum(row["present"] for row in root.rows(table, month, ["present"]))
    return provenance.rows


def count_left_out(root: DataRoot, month: str) -> Counter[tuple[str, str]]:
    """(Stage, reason) → how much the stages of the corpus left out of a month."""
    counts: Counter[tuple[str, str]] = Counter()
    for stage in FUNNEL_STAGES:
        file = root.ledger_file(stage, month)
        if read_provenance(file) is not None:
            reasons = _counts(read_table(file, columns=["reason"])["reason"])
            counts.update({(stage, reason or ""): number for reason, number in reasons.items()})
    return counts


def funnel(
    root: DataRoot, months: Sequence[str], left_out: Mapping[tuple[str, str], int]
) -> list[FunnelStep]:
    """The steps from the dump to the index, summed over months. left_out: as `count_left_out`
    counts it.
    """
    reasons: dict[str, dict[str, int]] = defaultdict(dict)
    for (stage, reason), number in left_out.items():
        reasons[stage][reason] = number
    return [
        FunnelStep(
            name,
            noun,
            sum(rows_out(root, month, table) for month in months),
            tuple(sorted(reasons[table.name].items(), key=lambda pair: (-pair[1], pair[0]))),
        )
        for table, name, noun in _STEPS
    ]


def reasons_text(left_out: Iterable[tuple[str, int]]) -> str:
    """`not in categories (12), withdrawn (1)`; `nothing` where nothing was left out."""
    return (
        ", ".join(f"{words(reason)} ({count(number)})" for reason, number in left_out) or "nothing"
    )


def funnel_grid(steps: Sequence[FunnelStep]) -> Grid:
    """The steps with what comes out of each and what was left out."""
    columns = ["Step", "Result", "Left out"]
    rows = [
        [step.name, number_of(step.rows, step.noun), reasons_text(step.left_out)] for step in steps
    ]
    return Grid("funnel", "Steps, and what was left out", columns, rows)


def corpus_section(
    root: DataRoot, month: str, steps: Sequence[FunnelStep], ledger: Sequence[LeftOut]
) -> Section:
    """A month's way from the dump to the index, its loads, and everything that was left out."""
    loads = []
    for receipt in root.rows(tables.INDEX_RECEIPTS, month):
        text = (
            f"Collection {receipt['collection']} in {receipt['engine']}, vectors of"
            f" {receipt['model']}: {count(receipt['present'])} of"
            f" {number_of(receipt['expected'], 'point')} found after the load"
        )
        text += f", {count(receipt['missing'])} missing" if receipt["missing"] else ""
        text += f", {count(receipt['stale'])} that should not be there" if receipt["stale"] else ""
        loads.append(f"{text}.")
    parts: list[Any] = [funnel_grid(steps)]
    if ledger:
        grid = left_out_grid("left_out", "What was left out", ledger, "ledger")
        parts.append(
            Details(f"Everything that was left out, one by one ({count(len(ledger))})", [grid])
        )
    return Section("corpus", "From the dump to the index", loads, parts)


def left_out_grid(key: str, title: str, items: Sequence[LeftOut], table: str) -> Grid:
    """Items one by one, at most MOST_ROWS. table: where the others are."""
    columns = ["What", "Stage", "Reason", "Detail"]
    rows = [
        [Cell(item.subject, page=item.page), words(item.stage), words(item.reason), item.detail]
        for item in items[:MOST_ROWS]
    ]
    left = len(items) - MOST_ROWS
    notes = [f"The other {count(left)} are in {table}."] if left > 0 else []
    return Grid(key, title, columns, rows, notes=notes, stacked=True)


def papers_section(root: DataRoot, month: str) -> Section:
    """The month's papers."""
    passages = _counts(root.read(tables.PASSAGES, month, ["arxiv_id"])["arxiv_id"])
    references = root.read(tables.REFERENCES, month, ["arxiv_id", "cited_arxiv_id"])
    resolved = references.filter(pc.is_valid(references["cited_arxiv_id"]))
    columns = [
        "arxiv_id",
        "title",
        "subset",
        "primary_category",
        "sections",
        "chars_seen",
        "chars_kept",
        "truncated",
    ]
    papers = root.iterate(tables.PAPERS, month, columns)
    rows = paper_rows(
        papers, passages, _counts(references["arxiv_id"]), _counts(resolved["arxiv_id"])
    )
    if not rows:
        return Section(
            "papers",
            "Papers",
            ("No paper of this month was kept; the steps above say what was left out.",),
        )
    definition = (
        "References: items of the bibliography; known: those that are papers on arXiv. Kept: the"
        " share of the visible characters of the page that were kept, a formula counted as its TeX."
    )
    form = [
        "Title",
        "Paper",
        "Category",
        "Subset",
        "Sections",
        "Passages",
        "References",
        "Known",
        "Kept",
    ]
    left = len(rows) - MOST_ROWS
    notes = (
        [
            f"The first {count(MOST_ROWS)} by identifier; the other {count(left)} are in the table"
            " papers."
        ]
        if left > 0
        else []
    )
    grid = Grid(
        "papers", "Papers", form, rows[:MOST_ROWS], about=definition, notes=notes, stacked=True
    )
    listed = (
        grid
        if len(rows) <= _MOST_OPEN_PAPERS
        else Details(f"All papers ({count(len(rows))})", [grid])
    )
    return Section("papers", "Papers", (), [listed])


def paper_rows(
    papers: Iterable[Mapping[str, Any]],
    passages: Mapping[str, int],
    references: Mapping[str, int],
    resolved: Mapping[str, int],
) -> list[Row]:
    """A row for each paper, by identifier; the mappings count by identifier."""
    return [
        [
            Cell(paper["title"], tag="page truncated" if paper["truncated"] else ""),
            Cell(paper["arxiv_id"], arxiv_id=paper["arxiv_id"]),
            paper["primary_category"],
            words(paper["subset"]),
            len(paper["sections"]),
            *(counts.get(paper["arxiv_id"], 0) for counts in (passages, references, resolved)),
            percent_cell(
                paper["chars_kept"] / paper["chars_seen"] if paper["chars_seen"] else None
            ),
        ]
        for paper in sorted(papers, key=lambda paper: str(paper["arxiv_id"]))
    ]


def _counts(column: pa.ChunkedArray) -> dict[str, int]:
    return {pair["values"]: pair["counts"] for pair in pc.value_counts(column).to_pylist()}


def failure_sections(
    root: DataRoot,
    month: str,
    task_pages: Mapping[str, str],
    question_pages: Mapping[str, str],
    recovered: Sequence[LeftOut],
) -> tuple[list[Section], int]:
    """What failed or was left out where a model was called, as sections, and how many items that
    is.

    task_pages: task id → page; question_pages: question id → page; recovered: unreadable answers
    that a system went on without, from the traces of its sections and answers.
    """
    ledger = []
    for item in read_ledger(root, month, MODEL_STAGES):
        pages = question_pages if item.stage in ANSWER_STAGES else task_pages
        # A subject is the id of a task or question, or begins with it and a space.
        ledger.append(
            replace(item, page=pages.get(item.subject) or pages.get(item.subject.split(" ")[0], ""))
        )
    sections = [
        Section(
            "counts", "By stage and reason", (), (_failure_counts(root, month, ledger, recovered),)
        )
    ]
    if ledger:
        grid = left_out_grid("items", "What failed or was left out", ledger, "the ledger")
        sections.append(Section("left-out", "One by one", (), (grid,)))
    if recovered:
        text = (
            "A system got an answer that could not be read, repair included, and went on"
            " without it."
        )
        grid = left_out_grid(
            "recovered", "Unreadable answers", recovered, "the traces of sections and answers"
        )
        sections.append(Section("unreadable", "Unreadable answers", (text,), (grid,)))
    return sections, len(ledger) + len(recovered)


def _failure_counts(
    root: DataRoot, month: str, ledger: Iterable[LeftOut], recovered: Iterable[LeftOut]
) -> Grid:
    """Reasons by stage with their counts; stages that were not run are in the notes with why."""
    counts = Counter((item.stage, item.reason) for item in ledger)
    ordered = sorted(
        counts.items(), key=lambda pair: (MODEL_STAGES.index(pair[0][0]), -pair[1], pair[0])
    )
    rows = [[words(stage), words(reason), number] for (stage, reason), number in ordered]
    unreadable = sorted(Counter((item.stage, item.reason) for item in recovered).items())
    rows += [
        [words(stage), f"unreadable answer: {reason}", number]
        for (stage, reason), number in unreadable
    ]
    off: dict[str, list[str]] = defaultdict(list)
    for stage in MODEL_STAGES:
        provenance = read_provenance(root.file(tables.TABLES[stage], month))
        if provenance is not None and provenance.notes.get("off"):
            off[str(provenance.notes["off"])].append(words(stage))
    notes = [f"{', '.join(stages)}: not run; {reason}." for reason, stages in off.items()]
    columns = ["Stage", "Reason", "Times"]
    return Grid("failed", "By stage and reason", columns, rows, notes=notes)
