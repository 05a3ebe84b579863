"""Searches of 100,000 points: latency by clients, recall against exact search, and what the
collection takes.

    python -m benchmarks.search [--quick] [--points N] [--kind KIND]...

kind: only these ways to keep a collection, such as "int8, vectors on disk" on a server, or "Edge,
turbo2". A million points on a server take half an hour of two quiet cores:
`--points 1000000 --kind "int8, vectors on disk"`.

Points and questions are those of benchmarks/points.py, over ten months; no question is a point.
Clients are threads of one process beside the server, which ask one question after another through
`PassageIndex.search`, as a program in Python would. Exact search is a matrix product over the
tables, apart from any index. Memory is the server's after a restart and all these searches, an
empty server's taken off: its own, and what it maps of files, which the kernel may take back. How
good the answers are for readers is measured by benchmarks/retrieval.py.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.harness import Claim, apart, argument_parser, report
from benchmarks.points import DIMENSIONS, Structure, layout, questions, write_months
from benchmarks.qdrant_server import Server, running
from pipeline.index.edge import EdgeCollections, EdgeIndex
from pipeline.index.fusion import Ranking, rank, with_payloads
from pipeline.index.load import audit_month
from pipeline.index.passage_index import (
    DENSE,
    HNSW_EF,
    Condition,
    PassageIndex,
    Quantization,
    QueryVectors,
    Request,
)
from pipeline.index.points import digests_of, points_of
from pipeline.index.search_options import SearchOptions
from pipeline.index.server import ServerCollections
from pipeline.index.server_requests import Storage
from pipeline.storage.data_root import DataRoot

ALIAS = "benchmark"
MONTHS = [f"2023-{number:02d}" for number in range(1, 11)]
CLIENTS = (1, 8, 32)
# Three months of ten and one category: with the sample's papers about a sixth of the points.
FILTER = SearchOptions(
    categories=("cs.CL",), first_month="2023-04", last_month="2023-06"
).conditions()
# One month, one category and one kind: about one point in twenty-five.
NARROW = SearchOptions(
    categories=("cs.CL",), first_month="2023-05", last_month="2023-05", kinds=("paragraph",)
).conditions()
CANDIDATES = (10, 20, 40, 100)
RANKINGS = {
    "dense": Ranking(10, by="dense"),
    "fused": Ranking(10),
    "fused, filtered": Ranking(10, where=FILTER),
}


@dataclass(frozen=True, slots=True)
class Kind:
    """A way to keep a collection."""

    quantization: Quantization
    on_disk: bool = False
    engine: str = "server"

    def __str__(self) -> str:
        name = f"{self.quantization}, vectors on disk" if self.on_disk else self.quantization
        return name if self.engine == "server" else f"{self.engine}, {name}"


KINDS = (
    Kind("int8"),
    Kind("none"),
    Kind("int8", on_disk=True),
    Kind("turbo4", engine="Edge"),
    Kind("turbo2", engine="Edge"),
    Kind("int8", engine="Edge"),
)


@dataclass(frozen=True)
class Corpus:
    """The tables, and questions on their papers."""

    root: DataRoot
    papers: int
    asked: int

    @cached_property
    def questions(self) -> list[QueryVectors]:
        return questions(Structure(), self.papers, self.asked)

    def exact(self, where: Sequence[Condition] = ()) -> list[list[str]]:
        """The ids of the ten points nearest to each question."""
        wanted = np.stack([question.dense for question in self.questions])
        best: tuple[NDArray[np.float32], NDArray[np.str_]] | None = None
        for month in MONTHS:
            for batch in points_of(self.root, month, layout()):
                rows = [row for row, payload in enumerate(batch.payloads) if _hold(where, payload)]
                if rows:
                    unit = batch.dense[rows] / np.linalg.norm(
                        batch.dense[rows], axis=1, keepdims=True
                    )
                    best = _ten_best(wanted @ unit.T, np.array(batch.ids)[rows], best)
        return [] if best is None else best[1].tolist()

    def share(self, where: Sequence[Condition]) -> float:
        """The share of points for which all conditions hold."""
        payloads = [
            payload
            for month in MONTHS
            for batch in points_of(self.root, month, layout())
            for payload in batch.payloads
        ]
        return statistics.fmean(_hold(where, payload) for payload in payloads)


def _hold(where: Sequence[Condition], payload: Any) -> bool:
    """Whether conditions on months, categories and kinds all hold for a point."""
    for condition in where:
        value = payload[condition.field]
        if condition.values:
            if not {*condition.values} & ({value} if isinstance(value, str) else {*value}):
                return False
        elif not (condition.low or 0) <= value <= (condition.high or 999_999):
            return False
    return True


def _ten_best(
    scores: NDArray[np.float32],
    ids: NDArray[np.str_],
    before: tuple[NDArray[np.float32], NDArray[np.str_]] | None,
) -> tuple[NDArray[np.float32], NDArray[np.str_]]:
    """The best of some points and of those before them, a row for each question."""
    every = np.broadcast_to(ids, scores.shape)
    if before is not None:
        scores, every = np.hstack([before[0], scores]), np.hstack([before[1], every])
    order = np.argsort(-scores, axis=1, kind="stable")[:, :10]
    return np.take_along_axis(scores, order, 1), np.take_along_axis(every, order, 1)


def recall(
    index: PassageIndex, corpus: Corpus, ranking: Ranking, truth: Sequence[Sequence[str]]
) -> float:
    """Mean share of the exact ten that a search finds."""
    found = rank(index, corpus.questions, ranking)
    shares = [
        len({hit.passage_id for hit in hits} & set(wanted)) / len(wanted)
        for hits, wanted in zip(found, truth, strict=True)
    ]
    return statistics.fmean(shares)


def recall_of_codes(
    index: PassageIndex, asked: Sequence[QueryVectors], truth: Sequence[Sequence[str]]
) -> dict[int, float]:
    """Recall@10 by the number of candidates that are compared uncompressed: the mean share of the
    exact ten that so many points have which compressed vectors alone rank first.
    """
    lists = index.search([(question, Request(max(CANDIDATES))) for question in asked])
    pairs = [
        ([point.passage_id for point in points], set(wanted))
        for points, wanted in zip(lists, truth, strict=True)
    ]
    return {
        count: round(
            statistics.fmean(len(wanted & set(ids[:count])) / len(wanted) for ids, wanted in pairs),
            4,
        )
        for count in CANDIDATES
    }


def latency(
    index: PassageIndex, asked: Sequence[QueryVectors], ranking: Ranking, clients: int
) -> dict[str, float]:
    """Milliseconds of a search, and searches a second, with so many clients at once."""
    rank(index, asked[:20], ranking)  # connected and warm
    gate, spent = threading.Barrier(clients + 1), []

    def ask(some: Sequence[QueryVectors]) -> list[float]:
        gate.wait()
        taken = []
        for question in some:
            started = time.perf_counter()
            with_payloads(index, rank(index, [question], ranking))
            taken.append(time.perf_counter() - started)
        return taken

    with ThreadPoolExecutor(clients) as pool:
        running_clients = [pool.submit(ask, asked[number::clients]) for number in range(clients)]
        gate.wait()
        started = time.perf_counter()
        for client in running_clients:
            spent += client.result()
        seconds = time.perf_counter() - started
    p50, p95, p99 = (1000 * float(value) for value in np.percentile(spent, (50, 95, 99)))
    return {"p50": p50, "p95": p95, "p99": p99, "rate": len(spent) / seconds}


def fill(index: PassageIndex, kind: Kind, root: DataRoot) -> dict[str, float]:
    """Load all months, one graph at the end, and audit them; seconds of each."""
    index.create(layout(kind.quantization))
    started = time.perf_counter()
    index.defer_indexing()
    for month in MONTHS:
        for batch in points_of(root, month, layout()):
            index.upsert(batch)
    loaded = time.perf_counter()
    index.build_graph(wait=True)
    built = time.perf_counter()
    clean = all(audit_month(index, month, digests_of(root, month)).clean for month in MONTHS)
    if not clean:
        raise SystemExit(f"{kind}: the audit found differences")
    audited = time.perf_counter()
    return {"loaded": loaded - started, "graph": built - loaded, "audited": audited - built}


def opened(server: Server, kind: Kind) -> ServerCollections:
    """The collections of a server, one of which is of the kind."""
    return ServerCollections(
        server.url, ALIAS, grpc_port=server.grpc_port, storage=Storage(kind.on_disk)
    )


def fill_server(server: Server, kind: Kind, root: DataRoot) -> dict[str, float]:
    """`fill` on a server. Runs in a process of its own."""
    with closing(opened(server, kind)) as collections:
        return fill(collections.collection(layout(kind.quantization).collection(ALIAS)), kind, root)


def search_server(server: Server, kind: Kind, corpus: Corpus) -> dict[str, Any]:
    """Recall and latencies; all of them for the default kind. Runs in a process of its own."""
    with closing(opened(server, kind)) as collections:
        index = collections.collection(layout(kind.quantization).collection(ALIAS))
        found: dict[str, Any] = {"recall": recall(index, corpus, RANKINGS["dense"], corpus.exact())}
        if kind == KINDS[0]:
            for name, where in (("filtered", FILTER), ("narrow", NARROW)):
                ranking = Ranking(10, by="dense", where=where)
                found[name] = recall(index, corpus, ranking, corpus.exact(where))
            found["share"] = corpus.share(NARROW)
            found["exact"] = recall(
                index, corpus, Ranking(10, by="dense", exact=True), corpus.exact()
            )
        names = RANKINGS if kind == KINDS[0] else ("dense", "fused")
        clients = CLIENTS if kind == KINDS[0] else (1,)
        found["latency"] = {
            (name, many): latency(index, corpus.questions, RANKINGS[name], many)
            for name in names
            for many in clients
        }
    return found


def search_edge(corpus: Corpus, kind: Kind, folder: Path) -> dict[str, Any]:
    """Recall and latencies of Edge with one client, and the recall where each segment compares its
    own candidates uncompressed. Runs in a process of its own.
    """
    with closing(EdgeCollections(folder, ALIAS)) as collections:
        index = collections.collection(layout(kind.quantization).collection(ALIAS))
        found: dict[str, Any] = fill(index, kind, corpus.root)
        truth = corpus.exact()
        found["recall"] = recall(index, corpus, RANKINGS["dense"], truth)
        found["recall of codes"] = recall_of_codes(index, corpus.questions, truth)
        found["recall of rescoring segments"], found["read by segments"] = by_segment(
            index, corpus, truth
        )
        found["latency"] = {
            (name, 1): latency(index, corpus.questions, RANKINGS[name], 1) for name in RANKINGS
        }
    return found


def by_segment(
    index: EdgeIndex, corpus: Corpus, truth: Sequence[Sequence[str]]
) -> tuple[float, int]:
    """Recall@10 of 60 points if each segment compares twice as many candidates by their
    uncompressed vectors, and how many vectors all segments read for a question at most.
    """
    import qdrant_edge as edge

    limit, oversampling = 60, 2
    codes = edge.QuantizationSearchParams(rescore=True, oversampling=oversampling)
    params = edge.SearchParams(hnsw_ef=HNSW_EF, quantization=codes)
    shares = []
    with index.in_use() as shard:
        for question, wanted in zip(corpus.questions, truth, strict=True):
            nearest = edge.Query.Nearest(question.dense.tolist(), using=DENSE)
            hits = shard.query(edge.QueryRequest(limit=limit, query=nearest, params=params))
            best = {str(hit.id) for hit in hits[: len(wanted)]}
            shares.append(len(best & set(wanted)) / len(wanted))
        segments = int(shard.info().segments_count)
    return statistics.fmean(shares), limit * oversampling * segments


def measure(corpus: Corpus, kind: Kind, folder: Path, count: int) -> dict[str, Any]:
    """A collection of a kind on a server of its own: filled, restarted, then searched."""
    name = layout(kind.quantization).collection(ALIAS)
    with running(folder / "empty") as server:
        empty = server.memory()
    with running(folder / "full") as server:
        filled = apart(fill_server, server, kind, corpus.root)
        processor = server.processor_seconds()
    with running(folder / "full") as server:
        found: dict[str, Any] = apart(search_server, server, kind, corpus) | {
            **filled,
            "processor": processor,
        }
        sizes = {
            f"{where} memory": value - empty[where] for where, value in server.memory().items()
        }
        sizes |= {f"mapped, {part}": value for part, value in server.mapped_by_part().items()}
        sizes |= {f"disk, {what}": value for what, value in server.disk(name).items()}
    sys.stderr.write(f"{kind}: {found} {sizes}\n")
    return found | {"bytes": {what: value / count for what, value in sizes.items()}}


def latency_figures(
    name: str, measured: dict[tuple[str, int], dict[str, float]]
) -> dict[str, object]:
    """Rows of the table: p50, p95, p99 in milliseconds, and searches a second."""
    figures: dict[str, object] = {}
    for (request, clients), one in measured.items():
        percentiles = " ".join(f"{one[part]:.1f}" for part in ("p50", "p95", "p99"))
        figures[f"{name}, {request}, {clients} at once, p50 p95 p99 ms"] = percentiles
        figures[f"{name}, {request}, {clients} at once, searches/s"] = round(one["rate"])
    return figures


def figures_of(kind: Kind, found: dict[str, Any]) -> dict[str, object]:
    """Rows of the table for one kind."""
    figures: dict[str, object] = {f"{kind}, recall@10": round(found["recall"], 4)}
    if "filtered" in found:
        figures[f"{kind}, recall@10, filtered"] = round(found["filtered"], 4)
        figures[f"{kind}, share of points of one month, category and kind"] = round(
            found["share"], 4
        )
        figures[f"{kind}, recall@10 among these"] = round(found["narrow"], 4)
        figures[f"{kind}, recall@10 of the server's exact search"] = round(found["exact"], 4)
    for step, name in {"loaded": "loaded", "graph": "graph built", "audited": "audited"}.items():
        figures[f"{kind}, {name} in, s"] = round(found[step], 1)
    if kind.engine == "Edge":
        for count, value in found["recall of codes"].items():
            figures[f"{kind}, recall@10 from {count} candidates"] = value
        figures[f"{kind}, recall@10 if each segment scores again"] = round(
            found["recall of rescoring segments"], 4
        )
        figures[f"{kind}, vectors read then, at most"] = found["read by segments"]
        figures[f"{kind}, vectors read"] = RANKINGS["dense"].candidates
        return figures | latency_figures(str(kind), found["latency"])
    figures[f"{kind}, server's processor for load and graph, s"] = round(found["processor"], 1)
    figures |= {
        f"{kind}, {what}, bytes a point": round(value) for what, value in found["bytes"].items()
    }
    return figures | latency_figures(str(kind), found["latency"])


def claims_of(found: dict[Kind, dict[str, Any]]) -> list[Claim]:
    """What is claimed of recall, and of the memory of a server that keeps vectors on disk."""
    claims = []
    for kind, one in found.items():
        if "narrow" in one:
            claims.append(
                Claim("recall@10 of one month, category and kind", round(one["narrow"], 4), 0.95)
            )
        claims.append(Claim(f"recall@10, {kind}", round(one["recall"], 4), 0.98))
        if kind.on_disk:
            # A code has a byte for each number.
            beside = round(one["bytes"]["own memory"] - DIMENSIONS)
            what = "bytes of the server's memory a point, its int8 code not counted"
            claims.append(Claim(what, beside, 300, at_most=True))
    return claims


def main() -> None:
    """Measure every kind on the server, and Edge; print the figures and the claims."""
    arguments = argument_parser(__doc__, quick="10,000 points, 200 questions")
    arguments.add_argument("--points", type=int)
    kinds = {str(kind): kind for kind in KINDS}
    arguments.add_argument("--kind", action="append", choices=kinds, help="only this one")
    given = arguments.parse_args()
    count, asked = (
        given.points or (10_000 if given.quick else 100_000),
        200 if given.quick else 1_000,
    )
    figures: dict[str, object] = {"points": count, "questions": asked}
    found = {}
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        root = DataRoot(folder / "data")
        corpus = Corpus(root, write_months(root, MONTHS, count, Structure()), asked)
        for kind in [kinds[name] for name in given.kind or kinds]:
            if kind.engine == "Edge":
                found[kind] = apart(search_edge, corpus, kind, folder / str(kind))
            else:
                found[kind] = measure(corpus, kind, folder / str(kind), count)
            figures |= figures_of(kind, found[kind])
    report("search", figures, claims_of(found))


if __name__ == "__main__":
    main()
