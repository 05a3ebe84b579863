"""The stage embeddings without a model: memory of a month of 100,000 passages, rows in a second,
restart, reuse.

    python -m benchmarks.embedding_stage [--quick]

The embedder is a stand-in of MiniLM's size (384 dimensions, 120 terms a text) that computes
nothing, so what is measured is reading passages, laying out rows, keeping shards and writing the
month. Each run is a process of its own. Never the speed of a model (`benchmarks.embed`).
"""

from __future__ import annotations

import resource
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.harness import Claim, apart, argument_parser, report
from pipeline import tables
from pipeline.embedding.embedder import EngineFacts, SparseRows, VectorBatch, Vectors
from pipeline.embedding.stages import Embeddings
from pipeline.engine.run import run_stage
from pipeline.engine.stage import Stage, Workspace
from pipeline.settings import load_settings
from pipeline.storage.provenance import Provenance
from pipeline.storage.writing import MonthWriter
from pipeline.text import text_digest

MONTH = "2024-03"
DIMENSIONS, TERMS, WINDOW = 384, 120, 2048
FILLER = "a passage of some two hundred words is about this long, and so it goes on " * 18
SMALL, LARGE = 10_000, 100_000


class Ended(Exception):
    """What stops a run halfway, as an interruption would."""


class StandIn:
    """An embedder that computes nothing. stop_after: texts after which it fails; 0 for never."""

    name, dimensions, max_tokens, has_sparse = "stand-in", DIMENSIONS, 512, True

    def __init__(self, stop_after: int = 0) -> None:
        self._left = stop_after or LARGE * 100
        generator = np.random.default_rng(0)
        self._dense = generator.normal(size=(WINDOW, DIMENSIONS)).astype(np.float16)
        self._ids = np.tile(np.arange(TERMS, dtype=np.uint32) * 7, WINDOW)
        self._weights = generator.random(WINDOW * TERMS).astype(np.float32)

    @property
    def last_facts(self) -> EngineFacts | None:
        """No device at all."""
        return EngineFacts(("none",), "none", 0, 0)

    def encode(self, texts: Sequence[str]) -> list[Vectors]:
        """Not what a stage asks for."""
        raise NotImplementedError

    encode_queries = encode

    def encode_stream(self, texts: Iterable[str]) -> Iterator[VectorBatch]:
        """The same vectors for every window."""
        stream = iter(texts)
        while count := len(list(islice(stream, WINDOW))):
            self._left -= count
            if self._left < 0:
                raise Ended
            yield VectorBatch(
                dense=self._dense[:count],
                sparse=SparseRows(
                    np.arange(count + 1) * TERMS,
                    self._ids[: count * TERMS],
                    self._weights[: count * TERMS],
                ),
                truncated=np.zeros(count, dtype=np.bool_),
                tokens=count * 300,
            )


def stage(stop_after: int = 0) -> Stage:
    """The stage with the stand-in."""
    stage = Embeddings()
    stage.embedder = lambda _: StandIn(stop_after)
    return stage


def write_passages(workspace: Workspace, count: int, salt: str = "") -> None:
    """A month of passages. salt: is in every tenth text, which another salt changes."""
    with MonthWriter(tables.PASSAGES, workspace.root.file(tables.PASSAGES, MONTH)) as writer:
        for start in range(0, count, 2_000):
            rows = [_passage(number, salt) for number in range(start, min(count, start + 2_000))]
            writer.add_batch(pa.RecordBatch.from_pylist(rows, schema=tables.PASSAGES.schema))
        writer.commit(
            Provenance("passages", MONTH, tables.PASSAGES.version, 1, "0", f"made {salt}", {}, {})
        )


def _passage(number: int, salt: str) -> dict[str, Any]:
    text = f"{number} {salt if number % 10 == 0 else ''} {FILLER}"
    digest = text_digest(text)
    about = {"title": "A paper", "section_path": ["Method"], "text": text, "text_sha256": digest}
    return about | {
        "passage_id": digest[:36],
        "arxiv_id": f"2403.{number // 50:05d}",
        "kind": "paragraph",
    }


def run(folder: Path, stop_after: int = 0) -> dict[str, Any]:
    """Run the stage: seconds, the process's peak memory in MB, and what the stage itself measured.

    In a process of its own: a peak never falls.
    """
    workspace = Workspace(load_settings(data=folder, _env_file=None))
    started = time.perf_counter()
    measured: dict[str, Any] = {}
    with suppress(Ended):
        measured = dict(run_stage(stage(stop_after), workspace, MONTH).measured)
    seconds = time.perf_counter() - started
    return measured | {
        "seconds": seconds,
        "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }


def measure(folder: Path, count: int) -> dict[str, dict[str, Any]]:
    """A month from nothing, with a tenth of its texts changed, and after a run of nine tenths."""
    workspace = Workspace(load_settings(data=folder, _env_file=None))
    write_passages(workspace, count)
    runs = {"fresh": apart(run, folder, 0)}
    write_passages(workspace, count, salt="changed")
    runs["a tenth changed"] = apart(run, folder, 0)
    workspace.root.file(tables.EMBEDDINGS, MONTH).unlink()
    runs["interrupted"] = apart(run, folder, count * 9 // 10)
    runs["taken up"] = apart(run, folder, 0)
    return runs


def main() -> None:
    """Measure two months, print the figures and the claims."""
    arguments = argument_parser(__doc__, quick="half of the passages")
    part = 2 if arguments.parse_args().quick else 1
    months = {}
    for count in (SMALL // part, LARGE // part):
        with tempfile.TemporaryDirectory() as folder:
            months[count] = measure(Path(folder), count)
    figures: dict[str, object] = {}
    for count, runs in months.items():
        for name, measured in runs.items():
            figures[f"{count:,} passages, {name}, peak MB"] = round(measured["peak"])
            figures[f"{count:,} passages, {name}, passages/s"] = round(count / measured["seconds"])
    small, large = months.values()
    figures["reused with a tenth changed"] = large["a tenth changed"]["reused"]
    figures["resumed after nine tenths"] = large["taken up"]["reused"]
    most = max(large[name]["peak"] / small[name]["peak"] for name in large)
    report(
        "embedding_stage",
        figures,
        [
            Claim(
                "peak memory, times that of a tenth of the passages",
                round(most, 3),
                1.2,
                at_most=True,
            )
        ],
    )


if __name__ == "__main__":
    main()
