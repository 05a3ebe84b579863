"""Papers ranked for queries, each by its best passages, as far as they fit."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pipeline.corpus.passages.text import embedded_text
from pipeline.index.opening import live_index
from pipeline.index.relevance import Relevance, coverage
from pipeline.index.scored import IndexedPassage, Scored
from pipeline.index.search import PaperRankings, QueryBatch
from pipeline.index.search_options import SearchOptions

if TYPE_CHECKING:
    from pipeline.engine.stage import Workspace

PASSAGES_SHOWN = 2
# Passages of a paper among which the best are chosen by their own words.
PASSAGES_READ = 5
# Papers that are shown where none fits.
NEAREST = 3
# Weight of the share of the query's words that a passage has without its paper's title.
_OWN_WORDS = 0.4
# Kinds of passages that every result shows of its paper.
_OF_EVERY_RESULT = ("abstract", "front_matter")
_BY_RELEVANCE: Sequence[Relevance | None] = ("none", "weak", "strong", None)


@dataclass(frozen=True, slots=True)
class RankedPaper:
    """A paper of a ranking with its best passages, best first. score: of its best passage, for
    this ranking alone. relevance: whether any of the paper fits; None if unknown.
    """

    arxiv_id: str
    score: float
    relevance: Relevance | None
    passages: tuple[Scored[IndexedPassage], ...]

    @property
    def fits(self) -> bool:
        """Whether the paper may fit its query."""
        return self.relevance != "none"


def rank_papers(
    workspace: Workspace,
    queries: Sequence[str],
    options: SearchOptions,
    typed: Sequence[str],
    *,
    include_unfit: bool = False,
) -> list[list[RankedPaper]]:
    """For each query the first papers that fit it, up to one behind the options' part, so that its
    presence tells whether a next page has any; where none fits, the nearest ones.

    Papers are read in blocks; behind a block of which none fits, nothing is looked for.
    include_unfit: all count as fitting. Raises as `search.search_many` does.
    """
    if not queries:
        return []
    batch = QueryBatch(workspace, live_index(workspace), queries, options, typed)
    rankings = PaperRankings(batch, PASSAGES_READ)
    fitting: list[list[RankedPaper]] = [[] for _ in queries]
    nearest: list[list[RankedPaper]] = [[] for _ in queries]
    count, block = options.end + 1, options.limit + 1
    start = 0
    unfinished = list(range(len(queries)))
    while unfinished:
        papers = rankings.up_to(unfinished, start + block)
        blocks = [of_query[start : start + block] for of_query in papers]
        points = [[point for paper in of_query for point in paper] for of_query in blocks]
        texts = batch.passages(unfinished, points)
        continued = []
        for number, of_block, passages in zip(unfinished, blocks, texts, strict=True):
            ranked = _ranked_papers(passages, batch.readings(number))
            fit = [paper for paper in ranked if include_unfit or paper.fits]
            fitting[number] += fit
            if start == 0:
                nearest[number] = ranked[:NEAREST]
            if fit and len(of_block) == block and len(fitting[number]) < count:
                continued.append(number)
        start += block
        unfinished = continued
    return [of_query[:count] or near for of_query, near in zip(fitting, nearest, strict=True)]


def _ranked_papers(
    passages: Iterable[Scored[IndexedPassage]], readings: Sequence[str]
) -> list[RankedPaper]:
    """The papers of passages that are sorted by paper, in their order."""
    by_paper: dict[str, list[Scored[IndexedPassage]]] = {}
    for scored in passages:
        by_paper.setdefault(scored.item.arxiv_id, []).append(scored)
    return [
        RankedPaper(
            arxiv_id,
            score=of_paper[0].score,
            relevance=max((scored.relevance for scored in of_paper), key=_BY_RELEVANCE.index),
            passages=tuple(best_passages(of_paper, readings)),
        )
        for arxiv_id, of_paper in by_paper.items()
    ]


def best_passages(
    passages: Iterable[Scored[IndexedPassage]], readings: Sequence[str]
) -> list[Scored[IndexedPassage]]:
    """The passages of a paper to show, those first whose own words, without the paper's title, fit
    a reading of the query.

    Abstract and front matter are shown only of a paper that has nothing else.
    """

    def fit(scored: Scored[IndexedPassage]) -> float:
        passage = scored.item
        own = embedded_text("", passage.section_path, passage.text)
        return scored.score + _OWN_WORDS * max(coverage(reading, own) for reading in readings)

    ordered = sorted(passages, key=fit, reverse=True)
    others = [scored for scored in ordered if scored.item.kind not in _OF_EVERY_RESULT]
    return (others or ordered)[:PASSAGES_SHOWN]
