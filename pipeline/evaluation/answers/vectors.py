"""Scores of claims with passages by dense vectors, from the table `embeddings`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING

from pipeline.embedding.choice import model_name
from pipeline.evaluation.citation_support.passages import by_month, read_vectors

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from pipeline.embedding.embedder import Embedder
    from pipeline.engine.stage import Workspace
    from pipeline.evaluation.answers.evidence import Dense
    from pipeline.settings import Settings


def dense_of(
    workspace: Workspace, papers: Collection[str], claims: Sequence[str], make: Callable[[Settings], Embedder]
) -> Dense | None:
    """Scores of any of these claims with passages of these papers: inner products, 0 without a vector.

    None where no passage of them has a vector of the embedder's model, which is then not loaded. Raises SettingError
    where it is to be, and is not there.
    """
    import numpy as np

    model = model_name(workspace.settings)
    held: dict[str, NDArray[np.float32]] = {}
    for choice in by_month(workspace, sorted(papers)):
        held |= read_vectors(workspace, choice, model)
    if not held or not claims:
        return None
    encoded = make(workspace.settings).encode_queries(list(claims))
    vectors = {claim: each.dense for claim, each in zip(claims, encoded, strict=True)}

    def dense(asked: Sequence[str], passage_ids: Sequence[str]) -> list[NDArray[np.float32]]:
        known = [place for place, each in enumerate(passage_ids) if each in held]
        matrix = np.array([held[passage_ids[place]] for place in known], np.float32)
        found = []
        for claim in asked:
            scores = np.zeros(len(passage_ids), np.float32)
            if known:
                scores[known] = matrix @ vectors[claim]
            found.append(scores)
        return found

    return dense
