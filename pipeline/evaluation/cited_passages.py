"""Search the passages of cited papers for a sentence, beside those of some other papers, so that it
shows which papers a sentence is not about.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from math import ceil
from typing import TYPE_CHECKING, NamedTuple

from pipeline import tables
from pipeline.embedding.choice import make_embedder, model_name
from pipeline.embedding.lexical import lexical_query, lexical_rows
from pipeline.engine.sampling import evenly_spaced
from pipeline.evaluation.passages import EvidencePassage, best_places, read_passages, read_vectors
from pipeline.index.exact import SparseScores, fused_scores
from pipeline.index.papers import rows_of_papers

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from pipeline.engine.stage import Workspace
    from pipeline.storage.data_root import DataRoot

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
            for row in rows_of_papers(workspace.root, tables.PAPERS, cited, columns)
            if row["paragraphs"] and not row["truncated"]
        }
        if cited:
            self._encode(workspace, cited, sentences)

    def _encode(
        self,
        workspace: Workspace,
        cited: Mapping[str, Sequence[EvidencePassage]],
        sentences: Sequence[str],
    ) -> None:
        import numpy as np

        picked = read_passages(workspace.root, _pick(workspace.root, cited))
        self._has_others = len(picked) >= _FEWEST_PICKED
        self._passages: list[EvidencePassage] = []
        self._span_of: dict[str, slice] = {}
        for arxiv_id, passages in {**picked, **cited}.items():
            start = len(self._passages)
            self._passages += passages
            self._span_of[arxiv_id] = slice(start, len(self._passages))
        settings = workspace.settings
        encoded = make_embedder(settings).encode_queries(list(sentences))
        queries = [lexical_query(sentence) for sentence in sentences]
        self._queries = {
            sentence: (vectors.dense, words)
            for sentence, vectors, words in zip(sentences, encoded, queries, strict=True)
        }
        vectors = read_vectors(workspace.root, self._span_of, model_name(settings))
        none = np.zeros(len(encoded[0].dense), np.float32)
        self._dense = np.stack(
            [vectors.get(passage.passage_id, none) for passage in self._passages]
        )
        terms = {term for words in queries for term in words.ids.tolist()}
        texts = [passage.text for passage in self._passages]
        self._words = SparseScores(lexical_rows(texts, only=terms), idf=True)

    def best(self, arxiv_id: str, sentence: str, most: int) -> tuple[EvidencePassage, ...]:
        """The `most` passages of a cited paper that are nearest to a sentence, best first."""
        span = self._span_of[arxiv_id]
        places = best_places(self._scores(sentence)[span], most)
        return tuple(self._passages[span][place] for place in places)

    def nearness(self, arxiv_id: str, sentence: str) -> Nearness | None:
        """The nearness of a cited paper; None where the corpus has too few other papers."""
        if not self._has_others:
            return None
        scores = self._scores(sentence)
        best = {paper: float(scores[span].max()) for paper, span in self._span_of.items()}
        own = best.pop(arxiv_id)
        nearest = max(best, key=best.__getitem__)
        return Nearness(own / max(best[nearest], 1e-9), nearest)

    def _scores(self, sentence: str) -> NDArray[np.float32]:
        """The score of each passage."""
        dense, words = self._queries[sentence]
        return fused_scores(self._dense @ dense, self._words.of([words])[0])


def _pick(root: DataRoot, cited: Collection[str]) -> list[str]:
    """Papers that are not cited, evenly spaced over the months and within them."""
    months = root.months(tables.PAPERS)
    chosen = [months[place] for place in evenly_spaced(len(months), PICKED)]
    picked = []
    for month in chosen:
        rows = root.rows(tables.PAPERS, month, ["arxiv_id"])
        others = [row["arxiv_id"] for row in rows if row["arxiv_id"] not in cited]
        most = ceil(PICKED / len(chosen))
        picked += [others[place] for place in evenly_spaced(len(others), most)]
    return picked
