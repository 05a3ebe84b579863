"""Sections on the corpus: the funnel from the dump to the index, papers, and what failed."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pipeline import tables
from pipeline.corpus.passages.packing import FEWEST_WORDS, LONG, MOST_WORDS, SHORT
from pipeline.identity.months import month_name
from pipeline.report.data import LeftOut, ReportData
from pipeline.report.figures import Bar, BarFigure
from pipeline.report.formatting import count, percent, words
from pipeline.report.grid import (
    Cell,
    Grid,
    GridRow,
    PageSection,
    first_rows,
    percent_cell,
)
from pipeline.report.summary import FUNNEL
from pipeline.storage.data_root import DataRoot
from pipeline.text import number_of

_MOST_OPEN_PAPERS = 25
_MONTH_COLUMNS = {
    "Pages": tables.DUMP_MEMBERS,
    "Papers": tables.PAPERS,
    "Passages": tables.PASSAGES,
    "In the index": tables.INDEX_RECEIPTS,
    "References": tables.REFERENCES,
    "Tasks": tables.RELATED_WORK_TASKS,
}


def reasons_text(left_out: Iterable[tuple[str, int]]) -> str:
    """`not in categories (12), withdrawn (1)`; `nothing` where nothing was left out."""
    reasons = (f"{words(reason)} ({count(number)})" for reason, number in left_out)
    return ", ".join(reasons) or "nothing"


def funnel_grid(data: ReportData) -> Grid:
    """The steps from the dump to the index, with the rows of each and the reasons for omissions."""
    rows = [
        [name, number_of(data.rows(step), noun), reasons_text(data.left_out(step.name))]
        for step, name, noun in FUNNEL
    ]
    return Grid("funnel", "Steps, and what was left out", ["Step", "Result", "Left out"], rows)


def lengths_figure(data: ReportData) -> BarFigure | None:
    """The histogram of passage lengths; None without passages."""
    lengths = data.passage_lengths
    if not lengths:
        return None
    most, passages = max(lengths.values()), sum(lengths.values())
    outside = lengths[SHORT] + lengths[LONG]
    bars = [
        Bar(words_in_passage, count(number), number / most, colour=1)
        for words_in_passage, number in lengths.items()
    ]
    about = (
        f"{percent(1 - outside / passages)} of {number_of(passages, 'passage')} have"
        f" {FEWEST_WORDS} to {MOST_WORDS} words. The arXivBot report, whose appendix has this"
        " histogram for its corpus, says so of the majority."
    )
    return BarFigure("Histogram of passage lengths", [("Words: passages", bars)], about)


def corpus_section(data: ReportData, ledger: Sequence[LeftOut] = ()) -> PageSection:
    """The way from the dump to the index, and, of a month, everything that was left out."""
    parts: list[Grid | BarFigure] = [funnel_grid(data)]
    if ledger:
        grid = left_out_grid("left_out", "What was left out", ledger, "ledger")
        grid.folded = f"Everything that was left out, one by one ({count(len(ledger))})"
        parts.append(grid)
    figure = lengths_figure(data)
    if figure:
        parts.append(figure)
    return PageSection("corpus", "From the dump to the index", (), parts)


def left_out_grid(key: str, title: str, items: Sequence[LeftOut], where: str) -> Grid:
    """Items one by one, as many as a page lists. where: the table that has the others."""
    listed, notes = first_rows(items, where)
    rows = [
        [Cell(item.subject, page=item.page), words(item.stage), words(item.reason), item.detail]
        for item in listed
    ]
    columns = ["What", "Stage", "Reason", "Detail"]
    return Grid(key, title, columns, rows, notes=notes, stacked=True)


def papers_section(root: DataRoot, month: str) -> PageSection:
    """The month's papers by identifier."""
    names = [
        "arxiv_id", "title", "primary_category", "chars_seen", "chars_kept", "truncated",
    ]  # fmt: skip
    papers = sorted(root.iterate(tables.PAPERS, month, names), key=lambda row: str(row["arxiv_id"]))
    if not papers:
        text = "No paper of this month was kept; the steps above say what was left out."
        return PageSection("papers", "Papers", (text,))
    passages = _counts(root.read(tables.PASSAGES, month, ["arxiv_id"])["arxiv_id"])
    cited = root.read(tables.REFERENCES, month, ["arxiv_id", "cited_arxiv_id"])
    references = _counts(cited["arxiv_id"])
    known = _counts(cited.filter(pc.is_valid(cited["cited_arxiv_id"]))["arxiv_id"])
    listed, notes = first_rows(papers, "the table papers")
    rows = [
        [
            Cell(paper["title"], tag="page truncated" if paper["truncated"] else ""),
            Cell(paper["arxiv_id"], arxiv_id=paper["arxiv_id"]),
            paper["primary_category"],
            passages[paper["arxiv_id"]],
            references[paper["arxiv_id"]] or "no bibliography",
            known[paper["arxiv_id"]],
            share_kept(paper),
        ]
        for paper in listed
    ]
    columns = [
        "Title",
        "Paper",
        "Category",
        "Passages",
        "References",
        "Known",
        "Kept",
    ]
    definition = (
        "References: items of the bibliography; known: those that are papers on arXiv. Kept: the"
        " share of the visible characters of the page that were kept, a formula counted as its TeX."
    )
    grid = Grid("papers", "Papers", columns, rows, about=definition, notes=notes, stacked=True)
    if len(papers) > _MOST_OPEN_PAPERS:
        grid.folded = f"All papers ({count(len(papers))})"
    return PageSection("papers", "Papers", (), (grid,))


def share_kept(paper: Mapping[str, Any]) -> Cell:
    """The share of a paper's visible characters that were kept; none without visible text."""
    seen = paper["chars_seen"]
    return percent_cell(paper["chars_kept"] / seen if seen else None)


def _counts(column: pa.ChunkedArray) -> Counter[str]:
    return Counter({pair["values"]: pair["counts"] for pair in pc.value_counts(column).to_pylist()})


def months_section(data: ReportData) -> PageSection:
    """Every month with its counts. A month with tables that cannot be read stays in the list with a
    remark.
    """
    rows: dict[str, GridRow] = {}
    for month in data.unreadable:
        name = Cell(month_name(month), tag="has tables that cannot be read: see citeloom status")
        rows[month] = [name, *[None] * len(_MONTH_COLUMNS)]
    for summary in data.months:
        page = f"{summary.month}/index.html" if summary.finished else ""
        rows[summary.month] = [
            Cell(month_name(summary.month), page=page, tag="" if page else "not finished"),
            *(summary.rows[table.name] for table in _MONTH_COLUMNS.values()),
        ]
    in_order = [rows[month] for month in sorted(rows)]
    grid = Grid("months", "Months", ["Month", *_MONTH_COLUMNS], in_order, stacked=True)
    return PageSection("months", "Months", (), (grid,))


def failure_sections(data: ReportData, failures: Sequence[LeftOut]) -> list[PageSection]:
    """What failed or was left out where a model was called: by stage and reason, one by one."""
    counts = Counter((item.stage, item.reason) for item in failures)
    in_order = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))
    rows = [[words(stage), words(reason), number] for (stage, reason), number in in_order]
    disabled: dict[str, list[str]] = defaultdict(list)
    for month in data.months:
        for stage, reason in month.disabled_stages.items():
            disabled[reason].append(words(stage))
    notes = [f"{', '.join(stages)}: not run; {reason}." for reason, stages in disabled.items()]
    title = "By stage and reason"
    grid = Grid("failed", title, ["Stage", "Reason", "Times"], rows, notes=notes)
    sections = [PageSection("counts", title, (), (grid,))]
    if failures:
        items = left_out_grid("items", "What failed or was left out", failures, "the tables")
        sections.append(PageSection("left-out", "One by one", (), (items,)))
    return sections
