"""The table embeddings: every passage of a month, with its vectors."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from pipeline import tables
from pipeline.corpus.passages.text import FORM, embedded_text
from pipeline.embedding.choice import make_embedder, model_name
from pipeline.embedding.columns import VectorStream
from pipeline.embedding.reuse import KnownVectors, Shards, groups_of_month
from pipeline.engine import shutdown
from pipeline.engine.stage import CheckResult, Job, MonthCheck, Stage, Workspace
from pipeline.settings.embedder_choice import record_embedder

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pipeline.embedding.embedder import Embedder, VectorBatch

# Passages put together at once, and what an interruption can cost.
STEP = 250
# Rounding to float16 moves the length of a unit vector of 1,024 numbers by less than 0.001.
_NORM_OFF = 0.01

# Which vectors a row has, as fingerprints name them.
_KINDS = "dense, sparse"

_IDENTITY = ["passage_id", "arxiv_id", "text_sha256"]
_TEXT = ["title", "section_path", "text"]


def _reusable_vectors(job: Job, embedder: Embedder, shards: Shards) -> KnownVectors:
    """Vectors that need not be computed again."""
    root, groups = job.workspace.root, []
    if job.force:
        shards.remove()
    else:
        file = root.file(tables.EMBEDDINGS, job.month)
        groups = [
            *groups_of_month(file, embedder.name, _KINDS, job.stage.version),
            *shards.whole(),
        ]
    return KnownVectors(
        groups, root.read(tables.PASSAGES, job.month, ["text_sha256"])["text_sha256"]
    )


def _steps(job: Job, earlier: KnownVectors) -> Iterator[tuple[pa.RecordBatch, NDArray[Any]]]:
    """The month's passages without texts, STEP at a time, each with its row of `earlier` or -1."""
    done = 0
    for passages in _passages(job, _IDENTITY):
        for start in range(0, passages.num_rows, STEP):
            step = passages.slice(start, STEP)
            yield step, earlier.rows[done : done + step.num_rows]
            done += step.num_rows


def _passages(job: Job, columns: list[str]) -> Iterator[pa.RecordBatch]:
    """Batches of the month's passages. Arrow keeps unused memory: a month of 100,000 passages
    peaked at 60 MB more than one of 10,000, and at 20 MB more where each batch releases it.
    """
    for batch in job.batches(tables.PASSAGES, columns):
        pa.default_memory_pool().release_unused()
        yield batch


def _fresh_texts(job: Job, earlier: KnownVectors) -> Iterator[str]:
    """The texts that must be encoded. The embedder pulls them, ahead of the rows and from threads
    of its own.

    So passages are read twice, the second time without their texts: no list of what is under way
    need be kept.
    """
    done = 0
    for passages in _passages(job, _TEXT):
        rows = earlier.rows[done : done + passages.num_rows]
        done += passages.num_rows
        for row in passages.filter(pa.array(rows < 0)).to_pylist():
            yield embedded_text(row["title"], row["section_path"], row["text"])


def _assemble(
    passages: pa.RecordBatch, model: str, fresh: pa.Table, rows: NDArray[Any], earlier: KnownVectors
) -> pa.RecordBatch:
    """The rows of some passages. fresh: vectors of those whose row is -1, in order."""
    import numpy as np

    is_fresh = rows < 0
    vectors = fresh
    if not is_fresh.all():
        order = np.empty(len(rows), np.int64)
        order[is_fresh] = np.arange(fresh.num_rows)
        order[~is_fresh] = np.arange(fresh.num_rows, len(rows))
        vectors = pa.concat_tables([fresh, earlier.take(rows[~is_fresh])]).take(order)
    columns = {name: passages[name] for name in _IDENTITY}
    columns["model"] = pa.repeat(model, len(rows))
    columns |= {name: vectors.column(name) for name in vectors.column_names}
    table = pa.table(
        [columns[name] for name in tables.EMBEDDINGS.schema.names], schema=tables.EMBEDDINGS.schema
    )
    return table.combine_chunks().to_batches()[0]


def count_off_norm(vectors: pa.ListArray) -> int:
    """The number of vectors that are not of length 1."""
    import numpy as np

    numbers = vectors.flatten().to_numpy(zero_copy_only=False).astype(np.float32)
    norms = np.linalg.norm(numbers.reshape(len(vectors), -1), axis=1)
    return int(np.count_nonzero(~(np.abs(norms - 1) <= _NORM_OFF)))  # `>` would not count NaN


class _Account:
    """The counts of a month, for its notes and statistics."""

    def __init__(self, job: Job, embedder: Embedder) -> None:
        self._job, self._embedder = job, embedder
        self._began = time.monotonic()
        self._rows = self._truncated = self._off_norm = self._fresh = self._tokens = 0
        passages = job.workspace.root.provenance(tables.PASSAGES, job.month)
        if passages is not None:
            job.expect(passages.rows)

    def count_encoded(self, batch: VectorBatch) -> None:
        """Count vectors from the embedder."""
        self._fresh += len(batch.dense)
        self._tokens += batch.tokens

    def count_rows(self, batch: pa.RecordBatch) -> None:
        """Count rows of the table."""
        self._rows += batch.num_rows
        self._truncated += batch["truncated"].true_count
        self._off_norm += count_off_norm(batch["dense"])

    def close(self) -> None:
        """Write the counts into the job's notes and statistics."""
        embedder, job = self._embedder, self._job
        # What the index must know of the vectors, also where a month has none.
        job.notes.update(
            truncated=self._truncated,
            off_norm=self._off_norm,
            model=embedder.name,
            dimensions=embedder.dimensions,
            sparse=embedder.has_sparse,
            form=FORM,
        )
        job.measured.update(
            reused=self._rows - self._fresh, encoded=self._fresh, tokens=self._tokens
        )
        facts = embedder.last_facts
        if self._fresh and facts is not None:
            seconds = max(time.monotonic() - self._began, 1e-9)
            job.measured.update(
                tokens_per_second=round(self._tokens / seconds, 1),
                engine=facts.engine,
                devices=", ".join(facts.devices),
                precision=facts.precision,
            )


def _made_by(job: Job, embedder: Embedder) -> dict[str, str]:
    return {
        "model": embedder.name,
        "vectors": _KINDS,
        "version": str(job.stage.version),
    }


def every_passage_is_embedded(workspace: Workspace, month: str) -> CheckResult:
    """The embeddings hold exactly the passages of the month, with the text they have now, as
    vectors of length 1.
    """
    columns = ["passage_id", "text_sha256"]
    passages = workspace.root.read(tables.PASSAGES, month, columns)
    embeddings = workspace.root.read(tables.EMBEDDINGS, month, columns)
    provenance = workspace.root.provenance(tables.EMBEDDINGS, month)
    # Vectors whose length is not 1 ± 0.01: no text changes that, only a faulty model or GPU.
    off_norm = provenance.notes.get("off_norm", 0) if provenance else 0
    missing = foreign = 0
    # Compared as columns first: a month of a million passages is 0.2 GB of them, and over 1 GB as
    # sets.
    if not passages.equals(embeddings):
        expected = {tuple(row.values()) for row in passages.to_pylist()}
        embedded = {tuple(row.values()) for row in embeddings.to_pylist()}
        missing, foreign = len(expected - embedded), len(embedded - expected)
    facts = {
        "passages": passages.num_rows,
        "missing": missing,
        "foreign": foreign,
        "off_norm": off_norm,
    }
    return CheckResult(not (missing or foreign or off_norm), facts)


class Embeddings(Stage):
    """Dense vectors of every passage, and of BGE-M3 sparse ones. Unchanged texts keep their
    vectors, and an interrupted month continues where it ended.
    """

    table = tables.EMBEDDINGS
    upstream = (tables.PASSAGES,)
    settings = ("embedder",)
    former_settings = {"embedded_form": FORM}  # noqa: RUF012
    pool = "gpu"
    kinds = ("parquet", "torch")
    checks = (MonthCheck(every_passage_is_embedded, blocking=True),)
    embedder = staticmethod(make_embedder)

    def inputs(self, workspace: Workspace, month: str) -> Mapping[str, str]:
        return {"model": model_name(workspace.settings), "vectors": _KINDS}

    def build(self, job: Job) -> Iterator[pa.RecordBatch]:
        """Rows of embeddings, in the order of passages.

        A text whose vectors are in the month's previous file, or in the shards of a run that was
        interrupted, is not encoded again, also in another passage. So a month that grew by a paper
        costs one paper, and a run that was killed costs a shard. Raises SettingError where the
        model is not there.
        """
        settings = job.settings
        embedder = self.embedder(settings)
        # Machines may have BGE-M3 in different folders.
        path = settings.embedder_path if settings.embedder == "sentence-transformers" else ""
        root = job.workspace.root.path
        record_embedder(root, settings.embedder, path, settings.embedder_reason)
        shards = Shards(job.workspace.cache("embeddings") / job.month, _made_by(job, embedder))
        job.afterwards.append(shards.remove)
        earlier = _reusable_vectors(job, embedder, shards)
        account = _Account(job, embedder)
        with closing(
            VectorStream(embedder.encode_stream(_fresh_texts(job, earlier)), account.count_encoded)
        ) as stream:
            try:
                for passages, rows in _steps(job, earlier):
                    fresh = stream.take(int((rows < 0).sum()))
                    shards.keep(passages["text_sha256"].filter(pa.array(rows < 0)), fresh)
                    batch = _assemble(passages, embedder.name, fresh, rows, earlier)
                    account.count_rows(batch)
                    yield batch
                    shutdown.end_if_asked()
                stream.finish()
            except BaseException:
                shards.write()  # a failure or Ctrl-C costs a step, and only a kill costs a shard
                raise
        account.close()


EMBEDDINGS = Embeddings()
