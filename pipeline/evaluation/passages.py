"""Passages as judges read them, and the search for those that could bear out a claim, by vectors and words."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from pipeline import tables
from pipeline.index.exact import fused_scores, lexical_scores
from pipeline.index.papers import rows_of_papers

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from pipeline.embedding.embedder import Embedder
    from pipeline.settings import Settings
    from pipeline.storage.data_root import DataRoot

    Vectors = Mapping[str | None, NDArray[np.float32]]
    """Passage id → its dense vector."""


@dataclass(frozen=True, slots=True)
class Passage:
    """A passage of a work as a judge reads it, without citation markers.

    ordinal: its place in the work. passage_id, arxiv_id and anchor are None outside of the corpus. heading: its paper's
    title and its sections, which are no evidence of anything; empty where no judge is shown them.
    """

    text: str
    ordinal: int = 0
    passage_id: str | None = None
    arxiv_id: str | None = None
    anchor: str | None = None
    heading: str = ""

    def with_heading(self) -> str:
        """Heading and text."""
        return f"{self.heading}\n{self.text}"


def read_vectors(root: DataRoot, papers: Collection[str], model: str) -> Vectors:
    """The vectors that a model made of the passages of these papers. Raises PermanentFailure where a month cannot be
    read."""
    import numpy as np

    rows = rows_of_papers(root, tables.EMBEDDINGS, papers, ["passage_id", "model", "dense"])
    return {row["passage_id"]: np.array(row["dense"], np.float32) for row in rows if row["model"] == model}


@dataclass(frozen=True)
class ClaimSearch:
    """Searches passages for what bears out claims. claims: all that it will be asked for, encoded at once.

    make: gives the embedder, and is called when vectors are first compared. Raises SettingError where the embedder's
    model is not there.
    """

    claims: Sequence[str]
    settings: Settings
    make: Callable[[Settings], Embedder]

    @cached_property
    def _claim_vectors(self) -> Mapping[str, NDArray[np.float32]]:
        encoded = self.make(self.settings).encode_queries(list(self.claims))
        return {claim: each.dense for claim, each in zip(self.claims, encoded, strict=True)}

    def best(
        self, passages: Sequence[Passage], claims: Sequence[str], most: int, vectors: Vectors
    ) -> dict[str, tuple[Passage, ...]]:
        """For each claim the `most` best of these passages, best first.

        Scores by vectors are fused with those by words (BM25); words alone decide where no passage has a vector.
        """
        by_words = lexical_scores([passage.with_heading() for passage in passages], claims)
        has_vectors = any(passage.passage_id in vectors for passage in passages)
        found = {}
        for claim, words in zip(claims, by_words, strict=True):
            scores = fused_scores(self._dense_scores(claim, passages, vectors), words) if has_vectors else words
            found[claim] = tuple(passages[place] for place in best_places(scores, most))
        return found

    def _dense_scores(self, claim: str, passages: Sequence[Passage], vectors: Vectors) -> NDArray[np.float32]:
        """Inner products with the claim; 0 for a passage without a vector."""
        import numpy as np

        scores = np.zeros(len(passages), np.float32)
        for place, passage in enumerate(passages):
            if passage.passage_id in vectors:
                scores[place] = vectors[passage.passage_id] @ self._claim_vectors[claim]
        return scores


def best_places(scores: NDArray[np.float32], most: int) -> list[int]:
    """Places of the best scores, ties by place. What shares nothing with the claim comes last, in order: a judge is to
    be shown something in any case, and the beginning of a work tells most of it."""
    import numpy as np

    places: list[int] = np.argsort(-scores, kind="stable")[:most].tolist()
    return places
