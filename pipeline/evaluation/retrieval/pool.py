"""The pool of passages that a month's queries search, its vectors, and the queries that fit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from pipeline import tables
from pipeline.arxiv.identifiers import month_of
from pipeline.corpus.passages.text import embedded_text
from pipeline.embedding.columns import SCHEMA, sparse_rows
from pipeline.embedding.embedder import SparseRows
from pipeline.engine.digests import digest_of
from pipeline.engine.stage import Workspace
from pipeline.errors import PermanentFailure
from pipeline.index.fusion import KIND_WEIGHTS
from pipeline.index.papers import rows_of_papers, tables_of_papers
from pipeline.tables import Table
from pipeline.text import text_digest

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

# Every query is compared with each passage of the pool, whose vectors are in memory.
MOST_PASSAGES = 20_000

_COLUMNS = [
    "passage_id",
    "arxiv_id",
    "ordinal",
    "kind",
    "title",
    "section_path",
    "text",
    "text_sha256",
]
_DIGEST = "text_sha256"
_VECTORS = ["dense", "sparse_ids", "sparse_weights"]


@dataclass(frozen=True, slots=True)
class Choice:
    """The papers to search; how many of the first queries fit; totals of the papers that could be
    searched: those of the month and those that its queries cite.
    """

    papers: frozenset[str]
    queries: int
    papers_in_all: int
    passages_in_all: int


@dataclass(frozen=True, slots=True, eq=False)
class Pool:
    """The passages that are searched, paper by paper, in the order of their papers and of their
    places in them.

    number_of: each paper's number, in the order of identifiers. texts: the passages as they are
    embedded. starts: int64 of shape (papers,), where each paper's passages begin. paper_of: int32
    of shape (passages,), the number of each passage's paper. by_id: int64 of shape (passages,),
    each passage's place among the sorted ids, by which the index breaks ties. kind_weights: float32
    of shape (passages,), as a fused search has them.
    """

    number_of: Mapping[str, int]
    rows: Sequence[Mapping[str, Any]]
    texts: Sequence[str]
    starts: NDArray[np.int64]
    paper_of: NDArray[np.int32]
    by_id: NDArray[np.int64]
    kind_weights: NDArray[np.float32]

    def __len__(self) -> int:
        return len(self.rows)

    def numbers(self, papers: Iterable[str]) -> list[int]:
        """The numbers of papers, of those that are in the pool."""
        return [self.number_of[paper] for paper in papers if paper in self.number_of]


@dataclass(frozen=True, slots=True, eq=False)
class Matrices:
    """Vectors of texts, a row each. dense: float32, (texts, dimensions). sparse: None where the
    model makes none.
    """

    dense: NDArray[np.float32]
    sparse: SparseRows | None


def choose(
    workspace: Workspace,
    month: str,
    cited: Sequence[Sequence[str]],
    model: str,
    most: int = MOST_PASSAGES,
) -> Choice:
    """The papers to search, of at most `most` passages: those that the queries cite, then papers of
    the month by the hash of their ids.

    cited: what each query cites, in the order in which the queries are to be asked. The first query
    whose papers do not fit ends the asking, so that the size of papers does not choose among
    queries. No other months are read, so that a month costs the same in a corpus of any size, and
    its scores depend on nothing else. Papers without vectors of the model are left out: no search
    would find them.
    """
    sizes = _passages_by_paper(workspace, month, cited, model)
    papers: set[str] = set()
    room, queries = most, 0
    for of_query in cited:
        new = {paper for paper in of_query if paper in sizes} - papers
        needed = sum(sizes[paper] for paper in new)
        if needed > room:
            break
        papers |= new
        room -= needed
        queries += 1
    for paper in sorted(sizes.keys() - papers, key=text_digest):
        if sizes[paper] > room:
            break
        papers.add(paper)
        room -= sizes[paper]
    return Choice(frozenset(papers), queries, len(sizes), sum(sizes.values()))


def _passages_by_paper(
    workspace: Workspace, month: str, cited: Sequence[Sequence[str]], model: str
) -> Counter[str]:
    """The number of embedded passages of each paper of the month and each cited one."""
    import pyarrow.compute as pc

    root = workspace.root
    columns = ["arxiv_id", "model"]
    earlier = {paper for of_query in cited for paper in of_query if month_of(paper) != month}
    sizes: Counter[str] = Counter()
    for rows in (
        root.read(tables.EMBEDDINGS, month, columns),
        *tables_of_papers(root, tables.EMBEDDINGS, earlier, columns),
    ):
        of_model = rows.filter(pc.equal(rows["model"], model))
        sizes.update(of_model["arxiv_id"].to_pylist())
    return sizes


def read_pool(workspace: Workspace, choice: Choice) -> Pool:
    """The chosen papers' passages. Raises PermanentFailure where a month cannot be read."""
    import numpy as np

    rows = list(rows_of_papers(workspace.root, tables.PASSAGES, choice.papers, _COLUMNS))
    rows.sort(key=lambda row: (row["arxiv_id"], row["ordinal"]))
    number_of = {paper: number for number, paper in enumerate(sorted(choice.papers))}
    paper_of = np.array([number_of[row["arxiv_id"]] for row in rows], np.int32)
    order = np.argsort(np.array([row["passage_id"] for row in rows]), kind="stable")
    by_id = np.empty(len(rows), np.int64)
    by_id[order] = np.arange(len(rows))
    starts = np.searchsorted(paper_of, np.arange(len(number_of)))
    kind_weights = np.array([KIND_WEIGHTS.get(row["kind"], 1.0) for row in rows], np.float32)
    form = workspace.settings.embedded_form
    texts = [embedded_text(row["title"], row["section_path"], row["text"], form) for row in rows]
    return Pool(number_of, rows, texts, starts, paper_of, by_id, kind_weights)


def pool_vectors(
    workspace: Workspace, choice: Choice, pool: Pool, model: str, *, has_sparse: bool
) -> Matrices:
    """The vectors of the pool's passages by a model.

    Raises PermanentFailure where a month's embeddings are of earlier texts than its passages.
    """
    import numpy as np
    import pyarrow.compute as pc

    schema = pa.schema([pa.field(_DIGEST, pa.string()), *(SCHEMA.field(name) for name in _VECTORS)])
    parts = [schema.empty_table()]
    columns = [_DIGEST, "model", *_VECTORS]
    for part in tables_of_papers(workspace.root, tables.EMBEDDINGS, choice.papers, columns):
        of_model = part.filter(pc.equal(part["model"], model))
        parts.append(of_model.select(schema.names).cast(schema))
    vectors = pa.concat_tables(parts)
    places = {digest: place for place, digest in enumerate(vectors[_DIGEST].to_pylist())}
    for row in pool.rows:
        if row[_DIGEST] not in places:
            month = month_of(row["arxiv_id"])
            raise PermanentFailure(
                f"embeddings of {month} lack {row['passage_id']}, a passage of {row['arxiv_id']}: "
                f"run `citeloom run --months {month} --until embeddings`"
            )
    rows = np.array([places[row[_DIGEST]] for row in pool.rows])
    dense = matrix_of(vectors["dense"], rows)
    if not has_sparse:
        return Matrices(dense, None)
    sparse = vectors.select(["sparse_ids", "sparse_weights"]).take(pa.array(rows))
    return Matrices(dense, sparse_rows(*(column.combine_chunks() for column in sparse.columns)))


def matrix_of(column: pa.ChunkedArray, rows: NDArray[np.int64]) -> NDArray[np.float32]:
    """Some rows of a column of lists of one length, as a matrix; one chunk at a time.

    Arrow would join all chunks to take rows from them, which fails beyond 2^31 numbers: two million
    rows of 1,024.
    """
    import numpy as np

    matrix = np.empty((len(rows), len(column[0])), np.float32)
    order = np.argsort(rows)
    ends = np.cumsum([len(chunk) for chunk in column.chunks])
    bounds = np.searchsorted(rows[order], [0, *ends])
    for number, chunk in enumerate(column.chunks):
        mine = order[bounds[number] : bounds[number + 1]]
        if len(mine):
            numbers = chunk.flatten().to_numpy(zero_copy_only=False).reshape(len(chunk), -1)
            matrix[mine] = numbers[rows[mine] - (ends[number] - len(chunk))]
    return matrix


def earlier_digests(
    workspace: Workspace, month: str, cited: Iterable[str], *read: Table
) -> Mapping[str, str]:
    """One digest for each table, over the cited months that have passages and are before this one.

    This month's rows are a stage's `upstream`.
    """
    root = workspace.root
    earlier = [
        other
        for other in cited
        if other < month and root.provenance(tables.PASSAGES, other) is not None
    ]
    return {f"{table.name} before": digest_of(workspace, table, earlier) for table in read}
