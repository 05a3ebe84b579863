"""Sections on the corpus: the funnel from the dump to the index, papers, retrieval, and what
failed.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pipeline import tables
from pipeline.arxiv.months import month_name
from pipeline.corpus.passages.lengths import LONG, SHORT
from pipeline.corpus.passages.packing import FEWEST_WORDS, MOST_WORDS
from pipeline.evaluation.retrieval.measures import DIFFERENCE, DIFFERENCE_METRIC
from pipeline.report.data import LeftOut, ReportData, RetrievalScores, retrieval_of
from pipeline.report.figures import Bar, BarFigure
from pipeline.report.formatting import FEW, count, percent, words
from pipeline.report.grid import (
    Cell,
    Grid,
    GridRow,
    PageSection,
    first_rows,
    percent_cell,
)
from pipeline.report.measures import MeasuredRow, measure_table, select
from pipeline.report.summary import FUNNEL
from pipeline.storage.data_root import DataRoot
from pipeline.text import number_of

METHODS: Mapping[str, str] = {
    "lexical": "lexical (BM25)",
    "sparse": "sparse",
    "dense": "dense",
    "fused": "fused",
    "colbert": "fused, then ColBERT",
    "cross_encoder": "fused, then cross-encoder",
}
METRICS = ("R@1", "R@5", "R@10", "R@50", "RR@50", "nDCG@10")
# It separates methods where a pool is small: recall@10 of 20 papers is nearly 1 for all.
_MAIN_METRIC = "nDCG@10"
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


def retrieval_section(scores: RetrievalScores) -> PageSection:
    """Retrieval scores of each way to search for the papers that a sentence cites."""
    key, title = "retrieval", "Retrieval"
    if not scores.rows:
        why = scores.notes.get("no_scores", "it has no queries")
        text = f"How well search finds the papers that a sentence cites was not measured: {why}."
        return PageSection(key, title, (text,))
    methods = methods_of(scores)
    measured = {metric for _, metric in scores.rows}
    metrics = [metric for metric in METRICS if metric in measured]
    rows = [
        MeasuredRow(
            METHODS[method], {metric: retrieval_cell(scores, method, metric) for metric in metrics}
        )
        for method in methods
    ]
    grid = measure_table(
        key,
        "Retrieval scores",
        select(*metrics),
        rows,
        first="Mean over sentences",
        notes=_retrieval_notes(scores),
    )
    return PageSection(key, title, _retrieval_paragraphs(scores), (grid,))


def methods_of(scores: RetrievalScores) -> list[str]:
    """The ways to search that were measured."""
    return [method for method in METHODS if (method, _MAIN_METRIC) in scores.rows]


def retrieval_cell(scores: RetrievalScores, method: str, metric: str = _MAIN_METRIC) -> Cell:
    """A mean with its interval; empty where it was not measured."""
    row = scores.rows.get((method, metric))
    return Cell(row["value"], "two", row["low"], row["high"]) if row else Cell(None, "two")


def _retrieval_notes(scores: RetrievalScores) -> list[str]:
    """The model of each way to search, and why some ways or metrics were not measured."""
    models = {method: row["model"] for (method, _), row in scores.rows.items()}
    skipped: Mapping[str, str] = scores.notes.get("not_measured", {})
    names = {**METHODS, **{measure.metric: measure.title for measure in select(*METRICS)}}
    return [
        *(f"{METHODS[method]}: {models[method]}." for method in METHODS if method in models),
        *(f"{names[key]}: not measured; {skipped[key]}." for key in names if key in skipped),
    ]


def _retrieval_paragraphs(scores: RetrievalScores) -> list[str]:
    row = next(iter(scores.rows.values()))
    asking_papers = scores.notes.get("asking_papers", 0)
    in_all = scores.notes.get("papers_in_all", row["papers"])
    asking = f" of {number_of(asking_papers, 'paper')}" if asking_papers else ""
    of_all = f" (of {count(in_all)} of this month or cited)" if in_all > row["papers"] else ""
    paragraphs = [
        (
            f"{number_of(row['queries'], 'sentence')}{asking} that cite papers of the corpus,"
            f" without their citation marks, searched in {number_of(row['passages'], 'passage')} of"
            f" {number_of(row['papers'], 'paper')}{of_all}. A paper ranks as high as its best"
            " passage; the asking paper's own passages do not count. Intervals hold the mean in 95"
            " % of bootstrap draws of the asking papers."
        ),
    ]
    if asking_papers and asking_papers < FEW:
        paragraphs.append(
            f"With {number_of(asking_papers, 'asking paper')} the intervals are too narrow: the"
            " figures are only hints."
        )
    difference = scores.rows.get((DIFFERENCE, DIFFERENCE_METRIC))
    if difference:
        low, high = difference["low"], difference["high"]
        ends = "" if low is None else f" ({low:+.2f} to {high:+.2f})"
        paragraphs.append(
            "Fused search minus BM25, recall@10, on the same sentences:"
            f" {difference['value']:+.2f}{ends}."
        )
    return paragraphs


def months_section(data: ReportData) -> PageSection:
    """Every month with its counts, and nDCG@10 of each way to search. A month with tables that
    cannot be read stays in the list with a remark.
    """
    scores = {month.month: retrieval_of(month) for month in data.finished}
    measured = {method for of_month in scores.values() for method in methods_of(of_month)}
    methods = [method for method in METHODS if method in measured]
    rows: dict[str, GridRow] = {}
    for month in data.unreadable:
        name = Cell(month_name(month), tag="has tables that cannot be read: see citeloom status")
        rows[month] = [name, *[None] * (len(_MONTH_COLUMNS) + len(methods))]
    for summary in data.months:
        page = f"{summary.month}/index.html" if summary.finished else ""
        rows[summary.month] = [
            Cell(month_name(summary.month), page=page, tag="" if page else "not finished"),
            *(summary.rows[table.name] for table in _MONTH_COLUMNS.values()),
            *(retrieval_cell(retrieval_of(summary), method) for method in methods),
        ]
    about = (
        f"Of each way to search, {_MAIN_METRIC} with its 95 % interval: how well it finds the"
        " papers that a sentence cites. No language model is involved."
    )
    grid = Grid(
        "months",
        "Months",
        ["Month", *_MONTH_COLUMNS, *(METHODS[method] for method in methods)],
        [rows[month] for month in sorted(rows)],
        about=about if methods else "",
        stacked=True,
    )
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
