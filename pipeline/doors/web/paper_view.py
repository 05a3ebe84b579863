"""A paper as its page, the JSON API and MCP show it, and its place in the citations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, combinations

from pipeline import tables
from pipeline.corpus.citation_formats import bibtex_of
from pipeline.corpus.links import abstract_url
from pipeline.corpus.nouns import FullPaper, Paper, Passage
from pipeline.corpus.paper_index import papers_with_ids
from pipeline.corpus.references.citation_index import (
    CitingPaper,
    count_shared_works,
    read_citing_papers,
)
from pipeline.engine.stage import Workspace
from pipeline.errors import MissingInput
from pipeline.identity.identifiers import arxiv_id_of
from pipeline.identity.titles import title_words
from pipeline.index.papers import read_like, read_paper
from pipeline.index.search import search_many
from pipeline.index.search_options import SearchOptions
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
    """A paper with its surroundings. in_corpus: the cited papers at hand, by arXiv id."""

    paper: FullPaper
    outline: tuple[Heading, ...]
    in_corpus: Mapping[str, Paper]
    cited_by: tuple[CitingPaper, ...]
    citing_the_same: tuple[RelatedPaper, ...]
    quality: PageQuality | None
    bibtex: str


def read_paper_view(workspace: Workspace, identifier: str) -> PaperView:
    """A paper with its surroundings. Raises MissingInput if the corpus does not hold it."""
    paper = read_paper(workspace, identifier)
    cited = [reference.arxiv_id for reference in paper.references if reference.arxiv_id]
    with workspace.read_cache():
        return PaperView(
            paper=paper,
            outline=outline_of(paper),
            in_corpus=papers_with_ids(workspace, cited),
            cited_by=tuple(read_citing_papers(workspace, paper.arxiv_id)),
            citing_the_same=tuple(papers_citing_the_same(workspace, paper)),
            quality=_read_quality(workspace.root, paper),
            bibtex=bibtex_of([paper]),
        )


@dataclass(frozen=True, slots=True)
class OutsidePaper:
    """A paper outside of the corpus, and the papers of the corpus that cite it.

    title: as the first of these prints it; empty where none does.
    """

    arxiv_id: str
    title: str
    cited_by: tuple[CitingPaper, ...]


def read_outside_paper(workspace: Workspace, identifier: str) -> OutsidePaper | None:
    """A paper outside of the corpus; None where the identifier is none of arXiv."""
    arxiv_id = arxiv_id_of(identifier)
    if arxiv_id is None:
        return None
    cited_by = read_citing_papers(workspace, arxiv_id)
    title = ""
    if cited_by:
        references = read_paper(workspace, cited_by[0].arxiv_id).references
        titles = (reference.title for reference in references if reference.arxiv_id == arxiv_id)
        title = next(titles, None) or ""
    return OutsidePaper(arxiv_id, title, tuple(cited_by))


def outline_of(paper: FullPaper) -> tuple[Heading, ...]:
    """The sections of a paper in order, each once."""
    headings: dict[tuple[str, ...], Heading] = {}
    for passage in paper.passages:
        for depth in range(1, len(passage.section_path) + 1):
            path = passage.section_path[:depth]
            headings.setdefault(path, Heading(path[-1], depth, passage.passage_id))
    return tuple(headings.values())


def papers_citing_the_same(workspace: Workspace, paper: FullPaper) -> list[RelatedPaper]:
    """The papers with most cited works in common (bibliographic coupling, Kessler 1963)."""
    cited = {reference.arxiv_id for reference in paper.references if reference.arxiv_id}
    shared = count_shared_works(workspace, cited)
    shared.pop(paper.arxiv_id, None)
    most = sorted(shared.items(), key=lambda pair: (-pair[1], pair[0]))[:COUPLED_PAPERS]
    papers = papers_with_ids(workspace, (arxiv_id for arxiv_id, _ in most))
    titles = {arxiv_id: other.title for arxiv_id, other in papers.items()}
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
    if not root.exists(tables.PAPERS, paper.month):
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
