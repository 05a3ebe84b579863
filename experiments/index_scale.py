"""What an index of many passages costs: load, memory, disk and search, on Edge and on a server.

    python -m experiments.index_scale edge [--points 1000000] [--quantization int8] [--on-disk]
    python -m experiments.index_scale server [--points 1000000] [--shards 1] [--folder FOLDER]

Months of 2,500 points of 384 dimensions are loaded and audited one after another, as `citeloom run`
does with Edge and `citeloom reindex` with a server (no graph until the end). Vectors have the
structure of those in `benchmarks.points`; lexical vectors have 60 terms by Zipf's law. A line of
JSON comes at each size; the last one of a server has its graph and its searches. Seconds
are of processor, of this process and the server together, without drawing the points; searches are
fused rankings of 50, medians of 40 questions.

With FOLDER, the index stays there, and a second call goes on after the last whole month. Seconds
are those of this call: those of a graph that an earlier call had begun are of its rest.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.points import terms
from benchmarks.qdrant_server import Server, running
from pipeline.embedding.embedder import SparseRows, SparseVector
from pipeline.index.batch import PointBatch
from pipeline.index.edge import EdgeCollections
from pipeline.index.fusion import Ranking, rank
from pipeline.index.load import audit_month, load_month
from pipeline.index.passage_index import Collections, Layout, PassageIndex, QueryVectors
from pipeline.index.server import ServerCollections
from pipeline.index.server_requests import Storage

DIMENSIONS, MONTH_POINTS, PAPER_POINTS, SECTION_POINTS = 384, 2_500, 25, 5
TERMS, QUERY_TERMS, QUESTIONS = 60, 8, 40
ALIAS = "scale"
SIZES = (10_000, 50_000, 100_000, 200_000, 300_000, 400_000, 500_000, 600_000, 800_000, 1_000_000)
# As in benchmarks.points: what all passages share, their topic, paper, section, and themselves.
_COMMON, _TOPIC, _PAPER, _SECTION, _PASSAGE, _SPREAD = 0.4, 0.4, 0.5, 0.5, 0.5, 0.5
_TOPICS = 1_000


class Vectors:
    """Vectors of passages with the structure of real ones; the same for the same month."""

    def __init__(self) -> None:
        falling = np.arange(1, DIMENSIONS + 1) ** -0.5
        self._deviations = falling / np.linalg.norm(falling)
        draw = np.random.default_rng(0)
        self._rotation = np.linalg.qr(draw.normal(size=(DIMENSIONS, DIMENSIONS)))[0]
        common = draw.normal(size=DIMENSIONS)
        self._common = _COMMON * common / np.linalg.norm(common)
        self._topics = self._normal(draw, _TOPICS)
        sizes = 1 / np.arange(5, _TOPICS + 5)
        self._topic_shares = sizes / sizes.sum()

    def of_month(self, number: int, count: int) -> NDArray[np.float32]:
        """Unit vectors of shape (count, 384)."""
        draw = np.random.default_rng((1, number))
        place = np.arange(count)
        paper, section = place // PAPER_POINTS, place // SECTION_POINTS
        papers, sections = paper[-1] + 1, section[-1] + 1
        topics = draw.choice(_TOPICS, size=papers, p=self._topic_shares)
        of_paper = self._common + _TOPIC * self._topics[topics]
        of_paper = of_paper + _PAPER * self._normal(draw, papers)
        of_section = _SECTION * self._normal(draw, sections)
        spread = _PASSAGE * np.exp(_SPREAD * draw.normal(size=(count, 1)))
        own = spread * self._normal(draw, count)
        rows = (of_paper[paper] + of_section[section] + own) @ self._rotation
        return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True), np.float32)

    def _normal(self, draw: np.random.Generator, count: int) -> NDArray[np.float64]:
        return draw.normal(size=(count, DIMENSIONS)) * self._deviations


def month_name(number: int) -> str:
    """The month with this number, from 0."""
    return f"{1991 + number // 12}-{number % 12 + 1:02d}"


def points_of_month(vectors: Vectors, number: int, count: int) -> PointBatch:
    """A month's points, with the payload of real ones."""
    ids, weights = terms(np.random.default_rng((2, number)), count, TERMS)
    offsets = np.arange(count + 1, dtype=np.int64) * TERMS
    return PointBatch(
        ids=[str(uuid.uuid5(uuid.NAMESPACE_URL, f"{number} {place}")) for place in range(count)],
        dense=vectors.of_month(number, count),
        lexical=SparseRows(offsets, ids.reshape(-1), weights.reshape(-1)),
        payloads=[_payload(number, place) for place in range(count)],
    )


def _payload(number: int, place: int) -> dict[str, Any]:
    month, paper = month_name(number), place // PAPER_POINTS
    return {
        "month": month,
        "month_number": int(month.replace("-", "")),
        "category_keys": ["cs", "cs.CL"],
        "subset": "no_problem",
        "categories": ["cs.CL"],
        "primary_category": "cs.CL",
        "year": int(month[:4]),
        "grade": "A",
        "authors": [f"author {paper}", f"{paper}"],
        "venue": ["2020", "acl"],
        "arxiv_id": f"{number:04d}.{paper:05d}",
        "anchor": f"S1.p{place}",
        "kind": "paragraph",
        "title": f"The title of paper {paper} of month {month}",
        "section_path": ["Method"],
        "text_sha256": f"{number:032x}{place:032x}",
        "digest": f"{number:016x}{place:016x}",
    }


def questions(vectors: Vectors) -> list[QueryVectors]:
    """Questions near no passage in particular."""
    ids, _ = terms(np.random.default_rng(3), QUESTIONS, QUERY_TERMS)
    ones = np.ones(QUERY_TERMS, np.float32)
    dense = vectors.of_month(1_000_000, QUESTIONS)
    return [QueryVectors(dense[row], SparseVector(ids[row], ones)) for row in range(QUESTIONS)]


@dataclass(slots=True)
class Meter:
    """Processor seconds and memory of this process, or of it and a server."""

    server: Server | None

    def processor_seconds(self) -> float:
        """Processor time so far."""
        own = time.process_time()
        return own if self.server is None else own + self.server.processor_seconds()

    def memory_mb(self) -> dict[str, float]:
        """Of the process that holds the index: its own, mapped files, and the most so far."""
        process = "self" if self.server is None else self.server.process
        lines = Path(f"/proc/{process}/status").read_text().splitlines()
        values = {name: text.split() for name, _, text in (line.partition(":") for line in lines)}
        fields = {"own": "RssAnon", "mapped": "RssFile", "peak": "VmHWM"}
        return {name: int(values[field][0]) >> 10 for name, field in fields.items()}


@contextmanager
def opened(options: argparse.Namespace, folder: Path) -> Iterator[tuple[Collections, Meter]]:
    """The collections in a folder, of Edge or of a server that runs for as long as the block."""
    if options.store == "edge":
        with closing(EdgeCollections(folder, ALIAS, on_disk=options.on_disk)) as edge:
            yield edge, Meter(None)
        return
    storage = Storage(options.on_disk, options.shards)
    with running(folder) as server:
        collections = ServerCollections(
            server.url, ALIAS, grpc_port=server.grpc_port, storage=storage
        )
        with closing(collections):
            yield collections, Meter(server)


def measure(options: argparse.Namespace, folder: Path) -> None:
    """Load up to the number of points; a line at each size."""
    vectors = Vectors()
    layout = Layout("drawn", DIMENSIONS, quantization=options.quantization)
    with opened(options, folder) as (collections, meter):
        index = collections.collection(layout.collection(ALIAS))
        index.create(layout)
        on_server = meter.server is not None
        if on_server:
            index.defer_indexing()
        asked = questions(vectors)
        seconds, months = 0.0, 0
        for number in range(index.count() // MONTH_POINTS, options.points // MONTH_POINTS):
            points = points_of_month(vectors, number, MONTH_POINTS)
            started = meter.processor_seconds()
            load = load_month(
                index,
                month_name(number),
                [points],
                expected_rows=MONTH_POINTS,
                build_graph=not on_server,
            )
            audit = audit_month(index, month_name(number), load.expected)
            seconds += meter.processor_seconds() - started
            months += 1
            if not audit.clean:
                raise SystemExit(audit.describe())
            size = (number + 1) * MONTH_POINTS
            if size in (*SIZES, options.points):
                line = {"points": size, "load and audit, s a month": round(seconds / months, 3)}
                if not on_server:
                    line |= _searches(index, asked, meter)
                _say(line | _space(folder, meter))
                seconds, months = 0.0, 0
        last: dict[str, Any] = {"points": options.points}
        if on_server:
            started = meter.processor_seconds()
            index.build_graph(wait=True)
            last["graph, s"] = round(meter.processor_seconds() - started, 1)
            last |= _searches(index, asked, meter)
            last |= _space(folder, meter)
        else:
            last |= _opening(index, asked, meter)
        _say(last)


def _space(folder: Path, meter: Meter) -> dict[str, float]:
    """Megabytes of memory and of disk."""
    memory = {f"memory {name}, MB": mb for name, mb in meter.memory_mb().items()}
    return memory | {"disk, MB": _disk_mb(folder)}


def _searches(index: PassageIndex, asked: list[QueryVectors], meter: Meter) -> dict[str, float]:
    """Milliseconds of a search: of processor, mean; as one waits for it, median."""
    rank(index, asked[:2], Ranking(50))
    waits = []
    started = meter.processor_seconds()
    for question in asked:
        begun = time.perf_counter()
        rank(index, [question], Ranking(50))
        waits.append(time.perf_counter() - begun)
    spent = meter.processor_seconds() - started
    return {
        "search, ms of processor": round(1e3 * spent / len(asked), 1),
        "search, ms": round(1e3 * statistics.median(waits), 1),
    }


def _opening(index: PassageIndex, asked: list[QueryVectors], meter: Meter) -> dict[str, float]:
    """Seconds of processor until an index that was closed has answered its first search."""
    index.close()
    started, begun = meter.processor_seconds(), time.perf_counter()
    rank(index, asked[:1], Ranking(50))
    return {
        "first search, s of processor": round(meter.processor_seconds() - started, 2),
        "first search, s": round(time.perf_counter() - begun, 2),
    }


def _disk_mb(folder: Path) -> int:
    """What the files take; they have holes."""
    blocks = 0
    for place, _, names in os.walk(folder):  # skips folders that vanish meanwhile
        for name in names:
            with suppress(FileNotFoundError):
                blocks += (Path(place) / name).stat().st_blocks
    return blocks * 512 >> 20


def _say(line: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()


def main() -> None:
    """Measure one store."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("store", choices=("edge", "server"))
    parser.add_argument("--points", type=int, default=1_000_000)
    parser.add_argument("--quantization", choices=("int8", "binary", "none"), default="int8")
    parser.add_argument("--on-disk", action="store_true")
    parser.add_argument("--shards", type=int, default=1)
    parser.add_argument("--folder", type=Path, default=None)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        measure(options, (options.folder or Path(temporary)) / "index")


if __name__ == "__main__":
    main()
