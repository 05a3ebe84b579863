"""Points of a month: its embeddings, joined with its passages and papers."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from pipeline import tables
from pipeline.corpus.passages.text import embedded_text
from pipeline.embedding.columns import list_offsets, sparse_rows
from pipeline.embedding.lexical import abbreviations_of, lexical_rows, long_forms_in
from pipeline.errors import PermanentFailure
from pipeline.identity.people import author_keys
from pipeline.identity.titles import title_words
from pipeline.index.batch import PointBatch
from pipeline.index.passage_index import MONTH_NUMBER, Layout, month_number
from pipeline.storage.data_root import DataRoot

if TYPE_CHECKING:
    from numpy.typing import NDArray

# Rows of embeddings and of passages that are read at once.
_ROWS = 500
_PASSAGES = ["passage_id", "arxiv_id", "anchor", "kind", "title", "section_path"]
_EMBEDDINGS = ["passage_id", "text_sha256"]
_PAPERS = ["arxiv_id", "subset", "categories", "primary_category", "year", "grade", "authors"]
_METADATA = ["arxiv_id", "journal_ref", "comment"]
# The first version of lexical weights that has words of the paper.
_WITH_PAPER_WORDS = 3
# Each point of a paper repeats them: with 5,000 authors, 600 points take 0.5 GB to load.
_MOST_AUTHORS, _MOST_VENUE_CHARACTERS = 5_000, 10_000


def points_of(root: DataRoot, month: str, layout: Layout) -> Iterator[PointBatch]:
    """A month's points in the order of its passages, some hundred at a time.

    Lexical vectors are made here, of the texts that were embedded; from version 3 on with what the
    paper's abbreviations stand for, and in all parts of a table with its caption. Memory is bounded
    but for some columns of the month's papers, and their abbreviations. Raises PermanentFailure
    where embeddings and passages do not hold the same passages in the same order, or a vector has
    another length than the layout says.
    """
    columns = [*_EMBEDDINGS, "dense"]
    columns += ["sparse_ids", "sparse_weights"] if layout.sparse else []
    paper_words = _PaperWords(root, month) if layout.lexical >= _WITH_PAPER_WORDS else None
    for vectors, passages, payloads in _joined(root, month, columns, texts=True):
        texts = (embedded_text(row["title"], row["section_path"], row["text"]) for row in passages)
        yield PointBatch(
            ids=vectors["passage_id"].to_pylist(),
            dense=_matrix(vectors, "dense", layout.dimensions, month),
            lexical=lexical_rows(
                texts,
                layout.mean_length,
                additions=None if paper_words is None else map(paper_words.of, passages),
            ),
            payloads=payloads,
            sparse=(
                sparse_rows(vectors["sparse_ids"], vectors["sparse_weights"])
                if layout.sparse
                else None
            ),
        )


class _PaperWords:
    """Words that a month's passages lack and their papers have: the long forms of abbreviations,
    and the captions of tables.
    """

    def __init__(self, root: DataRoot, month: str) -> None:
        self._abbreviations: dict[str, dict[str, str]] = {}
        self._captions: dict[tuple[str, str], str] = {}
        for row in root.iterate(tables.PASSAGES, month, ["arxiv_id", "text"]):
            for short, long in abbreviations_of(row["text"]):
                self._abbreviations.setdefault(row["arxiv_id"], {}).setdefault(short, long)

    def of(self, passage: Mapping[str, Any]) -> str:
        """The words that are added to a passage. Passages come in the order of the month."""
        text, paper = passage["text"], passage["arxiv_id"]
        words = [*long_forms_in(text, self._abbreviations.get(paper, {}))]
        if passage["kind"] == "table":
            place = paper, passage["anchor"]
            if place not in self._captions:
                # The parts of one table follow each other, its caption in the first.
                caption = "" if text.startswith("|") else text.partition("\n|")[0]
                self._captions = {place: caption}
            words.append(self._captions[place])
        return "\n".join(words)


def digests_of(root: DataRoot, month: str) -> dict[str, str]:
    """Passage id to digest of every point that a month asks for, without its vectors. Raises as
    `points_of` does.
    """
    digests: dict[str, str] = {}
    for vectors, _, payloads in _joined(root, month, _EMBEDDINGS, texts=False):
        digests |= zip(
            vectors["passage_id"].to_pylist(),
            (payload["digest"] for payload in payloads),
            strict=True,
        )
    return digests


def _joined(
    root: DataRoot, month: str, columns: list[str], *, texts: bool
) -> Iterator[tuple[pa.RecordBatch, list[dict[str, Any]], list[dict[str, Any]]]]:
    """Batches of embeddings with the passage and the payload of each row.

    texts: whether to read the texts of passages.
    """
    venues = _venues(root, month)
    papers = {
        row["arxiv_id"]: _of_paper(month, row, venues)
        for row in root.rows(tables.PAPERS, month, _PAPERS)
    }
    passage_columns = [*_PASSAGES, "text"] if texts else _PASSAGES
    pairs = zip_longest(
        root.batches(tables.EMBEDDINGS, month, columns, rows=_ROWS),
        root.batches(tables.PASSAGES, month, passage_columns, rows=_ROWS),
    )
    for vectors, passages in pairs:
        _check_in_step(month, vectors, passages)
        rows = passages.to_pylist()
        yield vectors, rows, list(_payloads(papers, rows, vectors, month))


def _venues(root: DataRoot, month: str) -> dict[str, list[str]]:
    """The words of each paper's journal reference and comment."""
    if not root.exists(tables.METADATA, month):
        return {}
    rows = root.rows(tables.METADATA, month, _METADATA)
    return {
        row["arxiv_id"]: venue_words(
            f"{row['journal_ref'] or ''} {row['comment'] or ''}"[:_MOST_VENUE_CHARACTERS]
        )
        for row in rows
    }


def venue_words(text: str) -> list[str]:
    """The words of a venue by which papers are restricted: "Proc. of ACL 2020" is 2020, acl, of,
    proc.
    """
    return sorted(set(title_words(text)))


def _check_in_step(
    month: str, vectors: pa.RecordBatch | None, passages: pa.RecordBatch | None
) -> None:
    """Raise PermanentFailure unless both batches have the same passages."""
    ids = (
        [] if batch is None else batch["passage_id"].to_pylist() for batch in (vectors, passages)
    )
    differing = next((pair for pair in zip_longest(*ids) if pair[0] != pair[1]), None)
    if differing is not None:
        raise PermanentFailure(
            f"embeddings and passages of {month} do not agree from passage"
            f" {differing[0] or differing[1]} on: run citeloom run --months {month} --select"
            " embeddings --force"
        )


def _of_paper(
    month: str, paper: Mapping[str, Any], venues: Mapping[str, list[str]]
) -> dict[str, Any]:
    """The payload that all passages of a paper share."""
    archives = {category.partition(".")[0] for category in paper["categories"]}
    names = [author["name"] for author in paper["authors"] or ()][:_MOST_AUTHORS]
    authors = sorted({key for name in names for key in author_keys(name) if key})
    shared = {
        name: paper[name] for name in ("subset", "categories", "primary_category", "year", "grade")
    }
    return {
        "month": month,
        MONTH_NUMBER: month_number(month),
        "category_keys": sorted({*paper["categories"], *archives}),
        **shared,
        "authors": authors,
        "venue": venues.get(paper["arxiv_id"], []),
    }


def _payloads(
    papers: Mapping[str, Mapping[str, Any]],
    passages: list[dict[str, Any]],
    vectors: pa.RecordBatch,
    month: str,
) -> Iterator[dict[str, Any]]:
    """The payload of each passage. The text is not in it: it would double the size of the index."""
    for passage, text_sha256 in zip(passages, vectors["text_sha256"].to_pylist(), strict=True):
        paper = papers.get(passage["arxiv_id"])
        if paper is None:
            raise PermanentFailure(
                f"papers of {month} hold no {passage['arxiv_id']} any more, and passages do: "
                f"run citeloom run --months {month} --until index"
            )
        payload = {
            **paper,
            **{name: passage[name] for name in _PASSAGES},
            "text_sha256": text_sha256,
        }
        digest = _digest(payload)
        del payload["passage_id"]  # it is the point's id
        yield payload | {"digest": digest}


def _digest(payload: Mapping[str, Any]) -> str:
    """128 bits over id and payload. The text's hash is in it, so equal digests mean equal vectors
    of one model too.
    """
    content = json.dumps(payload, sort_keys=True, ensure_ascii=False).encode()
    return hashlib.blake2b(content, digest_size=16).hexdigest()


def _matrix(vectors: pa.RecordBatch, column: str, dimensions: int, month: str) -> NDArray[Any]:
    """Lists of equal length as float32, a row for each."""
    import numpy as np

    lengths = np.diff(list_offsets(vectors[column]))
    if (lengths != dimensions).any():
        row = int(np.flatnonzero(lengths != dimensions)[0])
        raise PermanentFailure(
            f"the {column} vector of passage {vectors['passage_id'][row]} has"
            f" {lengths[row]} dimensions and not {dimensions}: run citeloom run --months"
            f" {month} --select embeddings --force"
        )
    return _numbers(vectors[column].flatten()).reshape(-1, dimensions).astype(np.float32)


def _numbers(values: pa.Array) -> NDArray[Any]:
    numbers: NDArray[Any] = values.to_numpy(zero_copy_only=False)
    return numbers
