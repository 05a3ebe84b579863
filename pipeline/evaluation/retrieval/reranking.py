"""Scores by which the best of a fused ranking are ranked again: ColBERT's late interaction, and a cross-encoder's."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pipeline import tables
from pipeline.evaluation.retrieval.pool import Choice, Pool
from pipeline.evaluation.retrieval.rankings import RERANKED, Rankings, Score
from pipeline.storage.reading import open_parquet

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

    from pipeline.engine.stage import Workspace
    from pipeline.index.rerank import Reranker

# 64 passages of 300 tokens and 1,024 dimensions are 40 MB.
_AT_ONCE = 64


def by_cross_encoder(reranker: Reranker, queries: Sequence[str], texts: Sequence[str]) -> Score:
    """Scores by a model that reads the query and the passage's text together."""
    return lambda query, places: reranker.score(queries[query], [texts[place] for place in places])


def by_colbert(
    workspace: Workspace,
    choice: Choice,
    pool: Pool,
    rankings: Rankings,
    queries: Sequence[NDArray[np.float32]],
    model: str,
) -> Score | str:
    """Scores by ColBERT's vectors (MaxSim: for each token of the query the best product with a token of the passage,
    summed; Khattab and Zaharia 2020), or what keeps them from being known.

    queries: float32 of shape (tokens, dimensions) each. The table is read once, some passages at a time: the vectors
    of 20,000 passages of BGE-M3 would be 12 GB.
    """
    import numpy as np

    asking: dict[int, list[int]] = defaultdict(list)
    for query, passages in enumerate(rankings.fused_passages):
        for place in passages[:RERANKED].tolist():
            asking[place].append(query)
    scores: dict[tuple[int, int], float] = {}
    for place, vectors in _colbert_vectors(workspace, choice, pool, asking, model):
        for query in asking[place]:
            scores[query, place] = float((queries[query] @ vectors.T).max(axis=1).sum())
    lacking = [place for place in asking if (asking[place][0], place) not in scores]
    if lacking:
        return f"{len(lacking)} of {len(asking)} passages to be ranked again have no ColBERT vectors in embeddings"
    return lambda query, places: np.array([scores[query, place] for place in places], np.float32)


def _colbert_vectors(
    workspace: Workspace, choice: Choice, pool: Pool, wanted: Mapping[int, Any], model: str
) -> Iterator[tuple[int, NDArray[np.float32]]]:
    """(place in the pool, vectors of its tokens) of the wanted passages, where there are any of this model and text."""
    import numpy as np

    places = {str(pool.rows[place]["passage_id"]): place for place in wanted}
    for batch in _embeddings(workspace, choice):
        dense = batch["colbert"]
        for row, (identifier, its_model, digest) in enumerate(
            zip(*(batch[name].to_pylist() for name in ("passage_id", "model", "text_sha256")), strict=True)
        ):
            place = places.get(identifier)
            if place is None or its_model != model or not dense[row].is_valid:
                continue
            if digest == pool.rows[place]["text_sha256"]:
                tokens = dense[row].values
                flat = tokens.flatten().to_numpy(zero_copy_only=False).astype(np.float32)
                yield place, flat.reshape(len(tokens), -1)


def _embeddings(workspace: Workspace, choice: Choice) -> Iterator[pa.RecordBatch]:
    """The chosen papers' row groups of embeddings, a few rows at a time."""
    columns = ["passage_id", "model", "text_sha256", "colbert"]
    root = workspace.root
    for month in sorted(set(choice.months.values()) & set(root.months(tables.EMBEDDINGS))):
        groups = [
            group
            for group in range(root.count_groups(tables.EMBEDDINGS, month))
            if choice.months.keys() & set(root.group(tables.EMBEDDINGS, month, group, ["arxiv_id"])[0].to_pylist())
        ]
        if groups:
            with open_parquet(root.file(tables.EMBEDDINGS, month)) as file:
                yield from file.iter_batches(batch_size=_AT_ONCE, row_groups=groups, columns=columns)
