"""Search the passages of cited papers for a sentence, beside those of some other papers, so that it
shows which papers a sentence is not about.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from math import ceil
from typing import TYPE_CHECKING, NamedTuple

from pipeline.evaluation.passages import EvidencePassage, PassageScores, read_passages
from pipeline.index.papers import rows_of_papers
from pipeline.tables import PAPERS

if TYPE_CHECKING:
    from pipeline.engine.stage import Workspace

PICKED = 50
_FEWEST_PICKED = 10


class Nearness(NamedTuple):
    """value: the score of a paper's nearest passage, as a share of that of the nearest passage of
    other papers. nearest: arXiv id of the paper that has the latter.
    """

    value: float
    nearest: str


class CitedPassages:
    """Passages of cited papers, and of papers picked from the whole corpus, in memory.

    by_paper: the passages of each cited paper that the corpus has, by arXiv id. whole: those of
    which the full text is there; a page may lack its end, or all but the abstract. Scores are those
    of a search: dense and lexical ones fused.
    """

    def __init__(
        self, workspace: Workspace, papers: Collection[str], sentences: Sequence[str]
    ) -> None:
        """papers: arXiv ids of cited papers. sentences: all that are searched for. Raises
        SettingError where the embedder's model is not there, PermanentFailure where a table is
        broken.
        """
        cited = read_passages(workspace.root, papers)
        self.by_paper: Mapping[str, Sequence[EvidencePassage]] = cited
        columns = ["arxiv_id", "paragraphs", "truncated"]
        self.whole = {
            row["arxiv_id"]
            for row in rows_of_papers(workspace.root, PAPERS, cited, columns)
            if row["paragraphs"] and not row["truncated"]
        }
        if not cited:
            return
        picked = read_passages(workspace.root, _pick(workspace, cited))
        self._has_others = len(picked) >= _FEWEST_PICKED
        self._passages: list[EvidencePassage] = []
        self._span_of: dict[str, slice] = {}
        for arxiv_id, passages in {**picked, **cited}.items():
            start = len(self._passages)
            self._passages += passages
            self._span_of[arxiv_id] = slice(start, len(self._passages))
        self._scores = PassageScores(workspace, self._passages, sentences)

    def best(self, arxiv_id: str, sentence: str, most: int) -> tuple[EvidencePassage, ...]:
        """The `most` passages of a cited paper that are nearest to a sentence, best first."""
        span = self._span_of[arxiv_id]
        places = (-self._scores.of(sentence)[span]).argsort(kind="stable")[:most]
        return tuple(self._passages[span][place] for place in places)

    def nearness(self, arxiv_id: str, sentence: str) -> Nearness | None:
        """The nearness of a cited paper; None where the corpus has too few other papers."""
        if not self._has_others:
            return None
        scores = self._scores.of(sentence)
        best = {paper: float(scores[span].max()) for paper, span in self._span_of.items()}
        own = best.pop(arxiv_id)
        nearest = max(best, key=best.__getitem__)
        return Nearness(own / max(best[nearest], 1e-9), nearest)


def _pick(workspace: Workspace, cited: Collection[str]) -> list[str]:
    """Papers that are not cited, evenly spaced over the months and within them."""
    months = _evenly_spaced(workspace.root.months(PAPERS), PICKED)
    picked = list[str]()
    for month in months:
        rows = workspace.root.rows(PAPERS, month, ["arxiv_id"])
        others = [row["arxiv_id"] for row in rows if row["arxiv_id"] not in cited]
        picked += _evenly_spaced(others, ceil(PICKED / len(months)))
    return picked


def _evenly_spaced(items: Sequence[str], most: int) -> Sequence[str]:
    """At most so many of the items, evenly spaced."""
    if len(items) <= most:
        return items
    return [items[(2 * place + 1) * len(items) // (2 * most)] for place in range(most)]
