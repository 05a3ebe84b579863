"""Points of a month: its embeddings, joined with what its passages and papers say of them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from pipeline import tables
from pipeline.errors import PermanentFailure
from pipeline.index.batch import PointBatch
from pipeline.index.passage_index import month_number
from pipeline.storage.data_root import DataRoot

if TYPE_CHECKING:
    from numpy.typing import NDArray

_PASSAGES = ["passage_id", "arxiv_id", "anchor", "kind", "title", "section_path"]
_EMBEDDINGS = ["passage_id", "text_sha256"]
_VECTORS = ["dense", "sparse_ids", "sparse_weights"]
_PAPERS = ["arxiv_id", "subset", "categories", "primary_category", "year", "grade"]


def points_of(root: DataRoot, month: str, *, dimensions: int, colbert: bool = False) -> Iterator[PointBatch]:
    """A month's points in the order of its passages, some hundred at a time.

    Memory is bounded but for six columns of the month's papers. Raises PermanentFailure where embeddings and passages
    do not hold the same passages in the same order, or a vector has another length than `dimensions`.
    """
    columns = [*_EMBEDDINGS, *_VECTORS, *(["colbert"] if colbert else [])]
    for vectors, payloads in _joined(root, month, columns):
        yield PointBatch(
            ids=vectors["passage_id"].to_pylist(),
            dense=_matrix(vectors, "dense", dimensions, month),
            sparse_offsets=_offsets(vectors["sparse_ids"]),
            sparse_ids=_numbers(vectors["sparse_ids"].flatten()),
            sparse_weights=_numbers(vectors["sparse_weights"].flatten()),
            payloads=payloads,
            colbert_offsets=_offsets(vectors["colbert"]) if colbert else None,
            colbert=_token_matrix(vectors["colbert"], dimensions, month) if colbert else None,
        )


def digests_of(root: DataRoot, month: str) -> dict[str, str]:
    """Passage id to digest of every point that a month asks for, without its vectors. Raises as `points_of` does."""
    found: dict[str, str] = {}
    for vectors, payloads in _joined(root, month, _EMBEDDINGS):
        found |= zip(vectors["passage_id"].to_pylist(), (payload["digest"] for payload in payloads), strict=True)
    return found


def _joined(root: DataRoot, month: str, columns: list[str]) -> Iterator[tuple[pa.RecordBatch, list[dict[str, Any]]]]:
    """Batches of embeddings, and the payload of each row."""
    papers = {row.pop("arxiv_id"): _of_paper(month, row) for row in root.rows(tables.PAPERS, month, _PAPERS)}
    passages = _Passages(root, month)
    for vectors in root.batches(tables.EMBEDDINGS, month, columns):
        yield vectors, list(_payloads(papers, passages.take(vectors["passage_id"]), vectors, month))
    passages.finish()


class _Passages:
    """The month's passages, taken in step with its embeddings."""

    def __init__(self, root: DataRoot, month: str) -> None:
        self._month = month
        self._batches = root.batches(tables.PASSAGES, month, _PASSAGES)
        self._held = pa.schema([tables.PASSAGES.schema.field(name) for name in _PASSAGES]).empty_table()

    def take(self, wanted: pa.Array) -> list[dict[str, Any]]:
        """The next passages, which must be those with the wanted ids."""
        while self._held.num_rows < len(wanted) and (batch := next(self._batches, None)) is not None:
            self._held = pa.concat_tables([self._held, pa.Table.from_batches([batch], self._held.schema)])
        taken, self._held = self._held.slice(0, len(wanted)), self._held.slice(len(wanted))
        there, asked = taken["passage_id"].to_pylist(), wanted.to_pylist()
        if there != asked:
            pairs = zip(asked, [*there, *[None] * len(asked)], strict=False)
            raise _out_of_step(self._month, next(one for one, other in pairs if one != other))
        rows: list[dict[str, Any]] = taken.to_pylist()
        return rows

    def finish(self) -> None:
        """Every passage must have been taken."""
        rest = self._held.num_rows or sum(batch.num_rows for batch in self._batches)
        if rest:
            raise _out_of_step(self._month, f"{rest} before the end")


def _out_of_step(month: str, place: str) -> PermanentFailure:
    return PermanentFailure(
        f"embeddings and passages of {month} do not agree from passage {place} on: "
        f"run citeloom run --months {month} --select embeddings --force"
    )


def _of_paper(month: str, paper: Mapping[str, Any]) -> dict[str, Any]:
    """What all passages of a paper share."""
    archives = sorted({category.partition(".")[0] for category in paper["categories"]})
    return {"month": month, "month_number": month_number(month), "archives": archives, **paper}


def _payloads(
    papers: Mapping[str, Mapping[str, Any]], passages: list[dict[str, Any]], vectors: pa.RecordBatch, month: str
) -> Iterator[dict[str, Any]]:
    """What a search restricts or shows. The text is not among it: it would double the index, and lies in passages."""
    for passage, text_sha256 in zip(passages, vectors["text_sha256"].to_pylist(), strict=True):
        paper = papers.get(passage["arxiv_id"])
        if paper is None:
            raise PermanentFailure(
                f"papers of {month} hold no {passage['arxiv_id']} any more, and passages do: "
                f"run citeloom run --months {month} --until index_receipts"
            )
        payload = {**paper, **passage, "text_sha256": text_sha256}
        digest = _digest(payload)
        del payload["passage_id"]  # it is the point's id
        yield payload | {"digest": digest}


def _digest(payload: Mapping[str, Any]) -> str:
    """128 bits over id and payload. The text's hash is in it, so equal digests mean equal vectors of one model too."""
    content = json.dumps(payload, sort_keys=True, ensure_ascii=False).encode()
    return hashlib.blake2b(content, digest_size=16).hexdigest()


def _matrix(vectors: pa.RecordBatch, column: str, dimensions: int, month: str) -> NDArray[Any]:
    """Lists of equal length as float32, a row for each."""
    import numpy as np

    lengths = np.diff(_offsets(vectors[column]))
    if (lengths != dimensions).any():
        row = int(np.flatnonzero(lengths != dimensions)[0])
        raise PermanentFailure(
            f"the {column} vector of passage {vectors['passage_id'][row]} has {lengths[row]} dimensions and not "
            f"{dimensions}: run citeloom run --months {month} --select embeddings --force"
        )
    return _numbers(vectors[column].flatten()).reshape(-1, dimensions).astype(np.float32)


def _token_matrix(column: pa.ListArray, dimensions: int, month: str) -> NDArray[Any]:
    """All tokens' vectors of all rows as float32, a row for each token."""
    import numpy as np

    tokens = column.flatten()
    if (np.diff(_offsets(tokens)) != dimensions).any():
        raise PermanentFailure(
            f"ColBERT vectors of {month} have other than {dimensions} dimensions: "
            f"run citeloom run --months {month} --select embeddings --force"
        )
    return _numbers(tokens.flatten()).reshape(-1, dimensions).astype(np.float32)


def _offsets(column: pa.ListArray) -> NDArray[Any]:
    """Where each row's list begins, from 0, and where the last ends."""
    import numpy as np
    import pyarrow.compute as pc

    lengths = pc.list_value_length(column).fill_null(0).to_numpy(zero_copy_only=False)
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)


def _numbers(values: pa.Array) -> NDArray[Any]:
    numbers: NDArray[Any] = values.to_numpy(zero_copy_only=False)
    return numbers
