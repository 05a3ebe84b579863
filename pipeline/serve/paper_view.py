"""A paper as its page, the JSON API and MCP show it, and its place in the citations."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, combinations
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pipeline import tables
from pipeline.arxiv.titles import title_words
from pipeline.corpus.links import abstract_url
from pipeline.corpus.paper import PAPER_COLUMNS, FullPaper, Paper
from pipeline.corpus.passage import Passage
from pipeline.engine.stage import Workspace
from pipeline.errors import MissingInput, SettingError
from pipeline.index.papers import (
    CitingPaper,
    read_citing_papers,
    read_like,
    read_paper,
    rows_of_papers,
)
from pipeline.index.search import search_many
from pipeline.index.search_options import SearchOptions
from pipeline.related_work.citation_formats import bibtex_entry, bibtex_keys
from pipeline.storage.data_root import DataRoot

SIMILAR_PAPERS = 8
COUPLED_PAPERS = 8
_COUNTS = {
    "paragraphs": "paragraphs",
    "tables": "tables",
    "figures": "figures",
    "formulas": "formulas",
    "missing_citations": "missing citations",
    "ltx_errors": "LaTeXML errors",
    "math_without_tex": "formulas without TeX",
}
_QUALITY_COLUMNS = [
    "grade",
    "grade_reasons",
    "subset",
    "losses",
    "chars_seen",
    "chars_kept",
    "truncated",
    *_COUNTS,
]


@dataclass(frozen=True, slots=True)
class Heading:
    """A section of the outline. passage_id: its first passage. depth: from 1."""

    title: str
    depth: int
    passage_id: str


@dataclass(frozen=True, slots=True)
class PageQuality:
    """What the parser read of a page and what it lost.

    grade: A (clean) to D (broken). losses: characters seen and not kept, by kind of element.
    counts: paragraphs, tables, figures and formulas that were read, and marks of what the
    conversion to HTML missed.
    """

    grade: str
    grade_reasons: tuple[str, ...]
    subset: str
    characters_seen: int
    characters_kept: int
    losses: Mapping[str, int]
    counts: Mapping[str, int]
    truncated: bool


@dataclass(frozen=True, slots=True)
class RelatedPaper:
    """A paper of the corpus. shared: works that both papers cite; 0 where that was not counted."""

    arxiv_id: str
    title: str
    url: str
    shared: int = 0


@dataclass(frozen=True, slots=True)
class PaperView:
    """A paper with its surroundings. in_corpus: titles of the cited papers that the corpus holds,
    by arXiv id.
    """

    paper: FullPaper
    outline: tuple[Heading, ...]
    in_corpus: Mapping[str, str]
    cited_by: tuple[CitingPaper, ...]
    citing_the_same: tuple[RelatedPaper, ...]
    quality: PageQuality | None
    bibtex: str


def read_paper_view(root: DataRoot, identifier: str) -> PaperView:
    """A paper with its surroundings. Raises MissingInput if the corpus does not hold it."""
    paper = read_paper(root, identifier)
    cited = [reference.arxiv_id for reference in paper.references if reference.arxiv_id]
    return PaperView(
        paper=paper,
        outline=outline_of(paper),
        in_corpus=titles_of(root, cited),
        cited_by=tuple(read_citing_papers(root, paper.arxiv_id)),
        citing_the_same=tuple(papers_citing_the_same(root, paper)),
        quality=_read_quality(root, paper),
        bibtex=bibtex_of([paper]),
    )


def outline_of(paper: FullPaper) -> tuple[Heading, ...]:
    """The sections of a paper in order, each once."""
    headings: dict[tuple[str, ...], Heading] = {}
    for passage in paper.passages:
        for depth in range(1, len(passage.section_path) + 1):
            path = passage.section_path[:depth]
            headings.setdefault(path, Heading(path[-1], depth, passage.passage_id))
    return tuple(headings.values())


def titles_of(root: DataRoot, arxiv_ids: Iterable[str]) -> dict[str, str]:
    """Titles of those papers that the corpus holds, by arXiv id."""
    rows = rows_of_papers(root, tables.PAPERS, set(arxiv_ids), ["arxiv_id", "title"])
    return {row["arxiv_id"]: row["title"] or "" for row in rows}


def papers_citing_the_same(root: DataRoot, paper: FullPaper) -> list[RelatedPaper]:
    """The papers with most cited works in common (bibliographic coupling, Kessler 1963)."""
    cited = {reference.arxiv_id for reference in paper.references if reference.arxiv_id}
    shared: Counter[str] = Counter()
    for month in root.months(tables.CITATIONS) if cited else ():
        rows = root.rows_with(tables.CITATIONS, month, "cited", cited, ["citing"])
        shared.update(row["citing"] for row in rows)
    shared.pop(paper.arxiv_id, None)
    most = sorted(shared.items(), key=lambda pair: (-pair[1], pair[0]))[:COUPLED_PAPERS]
    titles = titles_of(root, (arxiv_id for arxiv_id, _ in most))
    return [
        RelatedPaper(arxiv_id, titles.get(arxiv_id, ""), abstract_url(arxiv_id), count)
        for arxiv_id, count in most
    ]


def similar_papers(workspace: Workspace, identifier: str) -> list[RelatedPaper]:
    """The papers whose best passage is nearest to a paper's title and abstract.

    Raises SettingError if the corpus lacks the paper, IndexInUse if another process has the index.
    """
    text, arxiv_id = read_like(workspace, identifier)
    options = SearchOptions(limit=SIMILAR_PAPERS, per_paper=True, without_papers=(arxiv_id,))
    passages = [scored.item for scored in search_many(workspace, [text], options)[0] if scored.fits]
    return [
        RelatedPaper(passage.arxiv_id, passage.title, abstract_url(passage.arxiv_id))
        for passage in passages
    ]


def _read_quality(root: DataRoot, paper: Paper) -> PageQuality | None:
    if paper.month not in root.months(tables.PAPERS):
        return None
    for row in root.rows_with(
        tables.PAPERS, paper.month, "arxiv_id", {paper.arxiv_id}, _QUALITY_COLUMNS
    ):
        return PageQuality(
            grade=row["grade"],
            grade_reasons=tuple(row["grade_reasons"] or ()),
            subset=row["subset"],
            characters_seen=row["chars_seen"] or 0,
            characters_kept=row["chars_kept"] or 0,
            losses=dict(row["losses"] or {}),
            counts={name: row[column] or 0 for column, name in _COUNTS.items()},
            truncated=bool(row["truncated"]),
        )
    return None


def bibtex_of(papers: Sequence[Paper]) -> str:
    """The BibTeX entries of papers, each once, under unique keys."""
    distinct = {paper.arxiv_id: paper for paper in papers}
    entries = [
        {
            "title": paper.title,
            "authors": paper.authors,
            "year": paper.year,
            "arxiv_id": paper.arxiv_id,
            "primary_category": paper.categories[0] if paper.categories else "",
        }
        for paper in distinct.values()
    ]
    pairs = zip(bibtex_keys(entries), entries, strict=True)
    return "\n\n".join(bibtex_entry(key, entry) for key, entry in pairs)


def find_papers(
    root: DataRoot, title: str = "", author: str = "", year: int | None = None, limit: int = 20
) -> list[Paper]:
    """The papers whose title has these words, in any order, by such an author, of this year.

    Newest months first. Raises SettingError if none of the three is given.
    """
    words = title_words(title)
    names = title_words(author)
    if not words and not names and year is None:
        raise SettingError("give words of a title, an author or a year")
    papers: list[Paper] = []
    for month in reversed(root.months(tables.PAPERS)):
        if year is not None and not month.startswith(f"{year}-"):
            continue
        columns = root.read(tables.PAPERS, month, PAPER_COLUMNS)
        if words:
            columns = columns.filter(_may_contain(columns["title"], max(words, key=len)))
        for row in columns.to_pylist():
            if _matches(words, row["title"]) and _names_author(names, row["authors"]):
                papers.append(Paper.from_row(row))
                if len(papers) == limit:
                    return papers
    return papers


def _may_contain(titles: pa.ChunkedArray, word: str) -> pa.ChunkedArray:
    """Whether a title may have a folded word: a quick test before the exact one."""
    plain = pc.match_substring(titles, word, ignore_case=True)
    to_fold = pc.match_substring_regex(titles, r"[\\{}$]|[^\x00-\x7f]")
    return pc.fill_null(pc.or_(plain, to_fold), fill_value=False)


def _matches(words: Sequence[str], text: str | None) -> bool:
    return set(words) <= set(title_words(text or ""))


def _names_author(names: Sequence[str], authors: Sequence[Mapping[str, Any]]) -> bool:
    return not names or any(_matches(names, author["name"]) for author in authors)


def section_passages(paper: FullPaper, section: str) -> list[Passage]:
    """The passages of a section and its subsections. section: its title, or the titles down to it.

    Case and punctuation do not matter. Raises MissingInput for a section that the paper lacks.
    """
    words = title_words(section)
    passages = []
    if words:
        passages = [
            passage for passage in paper.passages if _is_within(passage.section_path, words)
        ]
    if not passages:
        titles = ", ".join(heading.title for heading in outline_of(paper)[:40])
        raise MissingInput(
            f"{paper.arxiv_id} has no section {section[:80]!r}: there are {titles or 'no sections'}"
        )
    return passages


def _is_within(path: Sequence[str], words: list[str]) -> bool:
    """Whether the words are those of consecutive titles of a section path."""
    titles = [title_words(title) for title in path]
    ranges = combinations(range(len(titles) + 1), 2)
    return any(list(chain.from_iterable(titles[first:last])) == words for first, last in ranges)
