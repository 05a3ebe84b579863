"""List the papers of the corpus, by title, author or year, with counts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pipeline.corpus.nouns import Paper
from pipeline.corpus.paper_index import authors_like, find_papers, years_of_papers
from pipeline.corpus.references.citation_index import count_citing_papers
from pipeline.index.papers import count_passages
from pipeline.index.typed_query import well_spelt

if TYPE_CHECKING:
    from pipeline.engine.stage import Workspace

_NEAR = 5


@dataclass(frozen=True, slots=True)
class ListedPaper:
    """A paper with its page on arXiv, the number of its passages, and how many papers of the
    corpus cite it.
    """

    arxiv_id: str
    title: str
    authors: tuple[str, ...]
    year: int | None
    categories: tuple[str, ...]
    url: str
    passages: int
    cited_by: int

    @property
    def paper(self) -> Paper:
        """The paper without the counts."""
        return Paper(self.arxiv_id, self.title, self.authors, self.year, self.categories)


@dataclass(frozen=True, slots=True)
class PaperListing:
    """Papers, newest months first, to iterate over and to index.

    has_more: whether others follow. near: where there are none, titles or names of authors that are
    near, or years that the corpus has.
    """

    papers: tuple[ListedPaper, ...]
    has_more: bool
    near: tuple[str, ...] = ()

    def __iter__(self) -> Iterator[ListedPaper]:
        return iter(self.papers)

    def __len__(self) -> int:
        return len(self.papers)

    def __getitem__(self, place: int) -> ListedPaper:
        return self.papers[place]


def list_papers(
    workspace: Workspace,
    title: str = "",
    author: str = "",
    year: int | None = None,
    limit: int = 20,
    offset: int = 0,
) -> PaperListing:
    """The papers of the corpus, or those whose title has these words, one of whose authors has
    this name, and of this year.
    """
    with workspace.read_cache():
        papers = find_papers(workspace, title, author, year, offset + limit + 1)
        near = () if papers else _near(workspace, title, author, year)
        page = _with_counts(workspace, papers[offset : offset + limit])
        return PaperListing(page, has_more=len(papers) > offset + limit, near=tuple(near[:_NEAR]))


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


def _with_counts(workspace: Workspace, papers: Sequence[Paper]) -> tuple[ListedPaper, ...]:
    ids = [paper.arxiv_id for paper in papers]
    passages = count_passages(workspace.root, ids)
    cited_by = count_citing_papers(workspace, ids)
    return tuple(
        ListedPaper(
            paper.arxiv_id,
            paper.title,
            paper.authors,
            paper.year,
            paper.categories,
            paper.url,
            passages[paper.arxiv_id],
            cited_by[paper.arxiv_id],
        )
        for paper in papers
    )
