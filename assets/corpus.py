"""The assets of the corpus: dump members, metadata, papers, passages and references."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any

import dagster as dg

from assets.rendering import bars, histogram, markdown_table, share
from assets.stage_asset import StageAsset
from pipeline import tables
from pipeline.arxiv.metadata_stage import METADATA
from pipeline.corpus.passages.packing import FEWEST_WORDS, MOST_WORDS
from pipeline.corpus.passages.stages import PASSAGES
from pipeline.corpus.references.stages import CITATIONS, REFERENCES
from pipeline.corpus.stages import DUMP_MEMBERS, PAPERS
from pipeline.engine.stage import Workspace
from pipeline.storage.writing import Row


def pages_by_subset(workspace: Workspace, month: str) -> Mapping[str, Any]:
    """How many pages of the month each subset and zip holds, and their sizes, as a table."""
    members = workspace.root.read(tables.DUMP_MEMBERS, month, ["subset", "zip", "bytes", "compressed_bytes"])
    sums = members.group_by(["subset", "zip"]).aggregate(
        [("bytes", "count"), ("bytes", "sum"), ("compressed_bytes", "sum")]
    )
    rows = [
        (
            row["subset"],
            row["zip"],
            f"{row['bytes_count']:,}",
            *_megabytes(row["bytes_sum"], row["compressed_bytes_sum"]),
        )
        for row in sums.sort_by([("subset", "ascending"), ("zip", "ascending")]).to_pylist()
    ]
    return {"subsets": dg.MetadataValue.md(markdown_table(("subset", "zip", "pages", "MB", "MB in the zip"), rows))}


def _megabytes(*sizes: int) -> list[str]:
    return [f"{size / 1e6:,.1f}" for size in sizes]


_COLUMNS = ["chars_seen", "chars_kept", "losses", "grade", "grade_reasons"]


def losses_and_grades(workspace: Workspace, month: str) -> Mapping[str, Any]:
    """What the month's pages lost by kind of element, which share of each was kept, and the grades of their text."""
    papers = workspace.root.rows(tables.PAPERS, month, _COLUMNS)
    return {
        "losses": dg.MetadataValue.md(_losses(papers, month)),
        "share_kept": dg.MetadataValue.md(_share_kept(papers, month)),
        "grades": dg.MetadataValue.md(_grades(papers, month)),
    }


def _losses(papers: Sequence[Row], month: str) -> str:
    lost: Counter[str] = Counter()
    pages: Counter[str] = Counter()
    for paper in papers:
        lost.update(paper["losses"])
        pages.update(kind for kind, count in paper["losses"].items() if count)
    seen = sum(paper["chars_seen"] for paper in papers)
    if not lost:
        return "No page lost any text."
    most_first = {kind.replace("_", " "): count for kind, count in lost.most_common()}
    rows = [
        (kind.replace("_", " "), f"{count:,}", share(count, seen), f"{pages[kind]:,}")
        for kind, count in lost.most_common()
    ]
    picture = bars("losses", most_first, title=f"characters lost in {month}, of {seen:,} seen")
    return f"{picture}\n\n{markdown_table(('element', 'characters lost', 'of all seen', 'pages'), rows)}"


def _share_kept(papers: Sequence[Row], month: str) -> str:
    shares = [100 * paper["chars_kept"] / paper["chars_seen"] for paper in papers if paper["chars_seen"]]
    # Pages keep nearly everything: where the worst keeps 97 %, bars of 1 % each would show only one.
    lowest = min(int(min(shares, default=0)), 99)
    edges = [lowest + (100 - lowest) * step / 20 for step in range(21)]
    return histogram(
        "share kept",
        shares,
        edges,
        title=f"papers by the percentage of its visible characters that a page of {month} kept",
    )


def _grades(papers: Sequence[Row], month: str) -> str:
    counts = dict(sorted(Counter(str(paper["grade"]) for paper in papers).items()))
    reasons: dict[str, Counter[str]] = {grade: Counter() for grade in counts}
    for paper in papers:
        reasons[str(paper["grade"])].update(paper["grade_reasons"] or ())
    rows = [
        (grade, f"{count:,}", share(count, len(papers)), _most_common(reasons[grade]))
        for grade, count in counts.items()
    ]
    picture = bars("grades", counts, title=f"papers of {month} by grade of their page, A (clean) to D (broken)")
    return f"{picture}\n\n{markdown_table(('grade', 'papers', 'share', 'lowered for'), rows)}"


def _most_common(reasons: Counter[str]) -> list[str]:
    return [f"{reason.replace('_', ' ')} {count}" for reason, count in reasons.most_common(3)]


def lengths_and_kinds(workspace: Workspace, month: str) -> Mapping[str, Any]:
    """A histogram of the month's passage lengths in words, and its kinds as bars and a table."""
    columns = workspace.root.read(tables.PASSAGES, month, ["words", "kind"])
    words, kinds = columns["words"].to_pylist(), columns["kind"].to_pylist()
    lengths: dict[str, list[int]] = {}
    for kind, count in zip(kinds, words, strict=True):
        lengths.setdefault(kind.replace("_", " "), []).append(count)
    most_first = dict(sorted(lengths.items(), key=lambda item: (-len(item[1]), item[0])))
    picture = histogram(
        "lengths",
        words,
        [0, *range(FEWEST_WORDS, max([MOST_WORDS, *words]) + 20, 20)],
        title=f"{len(words):,} passages of {month} by their words; bounds are {FEWEST_WORDS} and {MOST_WORDS}",
    )
    return {
        "lengths": dg.MetadataValue.md(picture),
        "kinds": dg.MetadataValue.md(f"{_kinds_picture(most_first, month)}\n\n{_kinds_table(most_first)}"),
    }


def _kinds_picture(lengths: Mapping[str, list[int]], month: str) -> str:
    counts = {kind: len(words) for kind, words in lengths.items()}
    return bars("kinds", counts, title=f"passages of {month} by kind")


def _kinds_table(lengths: Mapping[str, list[int]]) -> str:
    total = sum(map(len, lengths.values()))
    rows = [
        (
            kind,
            f"{len(words):,}",
            share(len(words), total),
            int(median(words)),
            sum(count < FEWEST_WORDS for count in words),
            sum(count > MOST_WORDS for count in words),
        )
        for kind, words in lengths.items()
    ]
    head = ("kind", "passages", "share", "median words", f"under {FEWEST_WORDS} words", f"over {MOST_WORDS} words")
    return markdown_table(head, rows)


CORPUS = (
    StageAsset(
        DUMP_MEMBERS,
        "corpus",
        "Pages of the ar5iv zips, from their central directories, and loose pages beside them.",
        kinds=("parquet", "zip"),
        details=pages_by_subset,
    ),
    StageAsset(
        METADATA,
        "corpus",
        "What arXiv says of each page's paper: from the snapshot or the newer harvest, then from the rate-limited API "
        "for the rest.",
        kinds=("parquet", "arxiv"),
    ),
    StageAsset(
        PAPERS,
        "corpus",
        "Computer-science papers, parsed from pages read in place in the zip, with what each lost.\n\n"
        "Other categories are left out before any HTML is read.",
        kinds=("parquet", "html"),
        details=losses_and_grades,
    ),
    StageAsset(
        PASSAGES,
        "corpus",
        "Passages of 20 to 300 words with title and section path: short neighbours of one section are packed, long "
        "ones split at sentence ends.",
        details=lengths_and_kinds,
    ),
    StageAsset(
        REFERENCES,
        "corpus",
        "Bibliography items, resolved to arXiv papers by identifier, by DOI, then by title and year.",
    ),
    StageAsset(
        CITATIONS,
        "corpus",
        "Which paper cites which, and in which passages.",
    ),
)
