"""Papers as readers look for them: lists by title, author and year, and what surrounds a paper: its
sections, who cites it, and papers that are related to it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import chain, combinations
from typing import TYPE_CHECKING, Any

from pipeline import tables
from pipeline.corpus.nouns import CitingPaper, FullPaper, Hit, Paper, Results, Section
from pipeline.corpus.paper_index import (
    authors_like,
    find_papers,
    papers_with_ids,
    years_of_papers,
)
from pipeline.corpus.references.citation_index import (
    count_citing_papers,
    count_shared_works,
    read_citing_papers,
)
from pipeline.doors.query import well_spelt
from pipeline.errors import MissingInput
from pipeline.identity.identifiers import arxiv_id_of
from pipeline.identity.titles import title_words
from pipeline.index.papers import papers_of, read_like, read_paper, rows_of_papers
from pipeline.index.search import search_many
from pipeline.index.search_options import SearchOptions

if TYPE_CHECKING:
    from pipeline.engine.stage import Workspace
    from pipeline.storage.data_root import DataRoot

_NEAR = 5
_RELATED = 8
_TITLES_NAMED = 40
_COUNTS = {
    "paragraphs": "paragraphs",
    "tables": "tables",
    "figures": "figures",
    "formulas": "formulas",
    "missing_citations": "missing citations",
    "ltx_errors": "LaTeXML errors",
    "math_without_tex": "formulas without TeX",
}
_QUALITY_COLUMNS = ["grade_reasons", "losses", "chars_seen", "chars_kept", "truncated", *_COUNTS]


def list_papers(
    workspace: Workspace,
    title: str = "",
    author: str = "",
    year: int | None = None,
    limit: int = 20,
    offset: int = 0,
) -> Results:
    """A page of the papers of the corpus, or of those whose title has these words, one of whose
    authors has this name, and of this year; newest months first. Where there are none, the note
    names titles, authors or years that are near.
    """
    with workspace.read_cache():
        papers = find_papers(workspace, title, author, year, offset + limit + 1)
        near = [] if papers else _near(workspace, title, author, year)[:_NEAR]
        page = papers[offset : offset + limit]
        cited_by = count_citing_papers(workspace, [paper.arxiv_id for paper in page])
    listed = [replace(paper, cited_by=cited_by[paper.arxiv_id]) for paper in page]
    return Results(
        " ".join(filter(None, (title, author, str(year or "")))),
        "papers",
        tuple(Hit(paper, 0, "listed") for paper in listed),
        first=offset + 1,
        has_more=len(papers) > offset + limit,
        note=f"no paper fits; near: {'; '.join(near)}" if near else "",
    )


def _near(workspace: Workspace, title: str, author: str, year: int | None) -> Sequence[str]:
    """Values that are near those of a listing without papers: titles with the misspelt words
    corrected, or else authors, or else years.
    """
    spelt = well_spelt(workspace, title)
    if spelt != title:
        papers = find_papers(workspace, spelt, author, year, _NEAR)
        if papers:
            return [paper.title for paper in papers]
    authors = authors_like(workspace, author) if author else []
    if authors or year is None:
        return authors
    return list(map(str, sorted(years_of_papers(workspace), key=lambda other: abs(other - year))))


def papers_citing_the_same(workspace: Workspace, paper: FullPaper) -> list[Hit]:
    """The papers with most cited works in common (bibliographic coupling, Kessler 1963)."""
    cited = {reference.arxiv_id for reference in paper.references if reference.arxiv_id}
    shared = count_shared_works(workspace, cited)
    shared.pop(paper.arxiv_id, None)
    most = sorted(shared.items(), key=lambda pair: (-pair[1], pair[0]))[:_RELATED]
    papers = papers_with_ids(workspace, (arxiv_id for arxiv_id, _ in most))
    return [
        Hit(papers.get(arxiv_id) or Paper(arxiv_id), count, "shared") for arxiv_id, count in most
    ]


def similar_papers(workspace: Workspace, identifier: str) -> list[Hit]:
    """The papers whose best passage is nearest to a paper's title and abstract.

    Raises SettingError if the corpus lacks the paper, IndexInUse if another process has the index.
    """
    text, arxiv_id = read_like(workspace, identifier)
    options = SearchOptions(limit=_RELATED, per_paper=True, without_papers=(arxiv_id,))
    nearest = [scored for scored in search_many(workspace, [text], options)[0] if scored.fits]
    papers = papers_of(workspace, [scored.item for scored in nearest])
    return [
        Hit(paper, scored.score, "similar") for paper, scored in zip(papers, nearest, strict=True)
    ]


def outside_paper(workspace: Workspace, identifier: str) -> tuple[Paper, list[CitingPaper]] | None:
    """A paper outside of the corpus with the title that the first paper that cites it prints, and
    the papers that cite it; None where the identifier is none of arXiv.
    """
    arxiv_id = arxiv_id_of(identifier)
    if arxiv_id is None:
        return None
    citing = read_citing_papers(workspace, arxiv_id)
    references = read_paper(workspace, citing[0].paper.arxiv_id).references if citing else ()
    titles = (reference.title for reference in references if reference.arxiv_id == arxiv_id)
    return Paper(arxiv_id, next(titles, None) or ""), citing


def read_quality(root: DataRoot, paper: Paper) -> Mapping[str, Any]:
    """What the parser read of a paper's page and what it lost: the columns of its row, and counts
    of what was read and of marks of what the conversion to HTML missed; empty where the table lacks
    it.
    """
    rows = rows_of_papers(root, tables.PAPERS, [paper.arxiv_id], _QUALITY_COLUMNS)
    for row in rows:
        return {**row, "counts": {name: row[column] or 0 for column, name in _COUNTS.items()}}
    return {}


def read_section(paper: FullPaper, name: str) -> Section:
    """A section with its subsections. name: its number as printed, 4.2; its title, or the titles
    down to it, where case and punctuation do not matter.

    Raises MissingInput for a section that the paper lacks.
    """
    sections = paper.sections
    numbered = (each.path for each in sections if each.number == name)
    words = title_words(" ".join(next(numbered, [name])))
    section = next((each for each in sections if _is_within(each.path, words)), None)
    if section is None:
        headings = ", ".join(each.heading() for each in sections[:_TITLES_NAMED])
        raise MissingInput(
            f"{paper.arxiv_id} has no section {name[:80]!r}: there are {headings or 'no sections'}"
        )
    passages = (each for each in paper.passages if _is_within(each.section_path, words))
    return replace(section, passages=tuple(passages))


def _is_within(path: Sequence[str], words: list[str]) -> bool:
    """Whether the words are those of consecutive titles of a section path."""
    titles = [title_words(title) for title in path]
    ranges = combinations(range(len(titles) + 1), 2)
    return words != [] and any(
        list(chain.from_iterable(titles[first:last])) == words for first, last in ranges
    )
