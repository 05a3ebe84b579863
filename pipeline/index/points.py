"""Points of a month: its embeddings, joined with what its passages and papers say of them.

Not here: sending them (`load`).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from typing import Any

from pipeline import tables
from pipeline.errors import PermanentFailure
from pipeline.index.passage_index import Point, month_number
from pipeline.stages import Job

_PASSAGE_COLUMNS = ["passage_id", "anchor", "kind", "title", "section_path"]
_EMBEDDING_COLUMNS = ["passage_id", "arxiv_id", "text_sha256", "model", "dense", "sparse_ids", "sparse_weights"]
_PAPER_COLUMNS = ["arxiv_id", "subset", "categories", "primary_category", "year", "grade"]


def points_of(job: Job) -> Iterator[Point]:
    """A month's points in the order of embeddings, read in bounded memory but for five columns of its papers.

    Raises PermanentFailure where embeddings and passages do not hold the same passages in the same order.
    """
    papers = {row["arxiv_id"]: row for row in job.rows(tables.PAPERS, _PAPER_COLUMNS)}
    passages = job.iterate(tables.PASSAGES, _PASSAGE_COLUMNS)
    for vectors in job.iterate(tables.EMBEDDINGS, _EMBEDDING_COLUMNS):
        passage = next(passages, None)
        if passage is None or passage["passage_id"] != vectors["passage_id"]:
            raise _out_of_step(job.month, vectors["passage_id"])
        yield _point(job.month, papers[vectors["arxiv_id"]], passage, vectors)
    extra = next(passages, None)
    if extra is not None:
        raise _out_of_step(job.month, extra["passage_id"])


def _out_of_step(month: str, passage_id: str) -> PermanentFailure:
    return PermanentFailure(
        f"embeddings and passages of {month} do not agree from passage {passage_id} on: "
        f"run citeloom run --months {month} --select embeddings --force"
    )


def _point(month: str, paper: Mapping[str, Any], passage: Mapping[str, Any], vectors: Mapping[str, Any]) -> Point:
    payload = _payload(month, paper, passage, vectors)
    return Point(
        passage_id=vectors["passage_id"],
        dense=[float(value) for value in vectors["dense"]],
        sparse_ids=vectors["sparse_ids"],
        sparse_weights=vectors["sparse_weights"],
        payload=payload | {"digest": _digest(payload)},
    )


def _payload(
    month: str, paper: Mapping[str, Any], passage: Mapping[str, Any], vectors: Mapping[str, Any]
) -> dict[str, Any]:
    """What a search restricts or shows. The text is not among it: it would double the index, and lies in passages."""
    return {
        "arxiv_id": vectors["arxiv_id"],
        "month": month,
        "month_number": month_number(month),
        "categories": paper["categories"],
        "archives": sorted({category.partition(".")[0] for category in paper["categories"]}),
        "primary_category": paper["primary_category"],
        "subset": paper["subset"],
        "year": paper["year"],
        "grade": paper["grade"],
        "kind": passage["kind"],
        "title": passage["title"],
        "section_path": passage["section_path"],
        "anchor": passage["anchor"],
        "text_sha256": vectors["text_sha256"],
        "model": vectors["model"],
    }


def _digest(payload: Mapping[str, Any]) -> str:
    """128 bits over the payload. Text hash and model are in it, so equal digests mean equal vectors too."""
    content = json.dumps(payload, sort_keys=True, ensure_ascii=False).encode()
    return hashlib.blake2b(content, digest_size=16).hexdigest()
