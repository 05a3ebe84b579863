"""A month of 100,000 points into a Qdrant server: ours, qdrant-client as its docs show it, and its
best setting found.

    python -m benchmarks.load [--quick] [--points N] [--rounds N]

Points are those of benchmarks/points.py. Every load goes into a fresh collection from a fresh
process; server and client share the machine. Collections have the same vectors and payload indexes,
and for the best setting also what ours sets of the optimizer; where qdrant-client is used as its
docs show it, that is left to the server. The clock runs until the server counts every point and
each can be searched, then on until all graphs are built. Ours reads the tables, joins payloads and
computes digests within the clock, and waits until points are on disk. The others get rows of ready
numbers and payloads in memory before it starts, and make nothing but what qdrant-client is called
with; they do not wait, as is its default. The best setting is searched on fewer points, for one
process and for two, whose start costs more than a small load takes; ours is held against the better
of both. Edge takes the same month in process. Never a search (`benchmarks.search`).
"""

from __future__ import annotations

import gc
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.corpus import children_of
from benchmarks.harness import Claim, apart, argument_parser, median_ratio, report
from benchmarks.points import Structure, layout, write_months
from benchmarks.qdrant_server import Server, running
from pipeline.index.edge import EdgeCollections
from pipeline.index.load import audit_month, load_month
from pipeline.index.passage_index import DENSE, LEXICAL, SPARSE, PassageIndex
from pipeline.index.points import digests_of, points_of
from pipeline.index.server import ServerCollections
from pipeline.index.server_requests import Storage, new_collection
from pipeline.storage.data_root import DataRoot

if TYPE_CHECKING:
    from qdrant_client import QdrantClient, models

    from pipeline.index.batch import PointBatch

MONTH = "2024-03"
ALIAS = "benchmark"
# Points that settings are tried on, before the best of them runs with the others.
TRIED = 10_000


@dataclass(frozen=True, slots=True)
class Way:
    """How points are sent; `call` is qdrant-client's method, None for ours. plain: whether the
    collection has the server's own settings of its optimizer, and not those that ours makes it
    with.
    """

    name: str
    call: str | None = None
    grpc: bool = False
    batch: int = 64
    parallel: int = 1
    deferred: bool = False
    plain: bool = False

    def describe(self) -> str:
        """For the table."""
        spoken = "gRPC" if self.grpc else "HTTP"
        return f"{self.call}, {spoken}, batch_size={self.batch}, parallel={self.parallel}"


OURS = Way("ours")
# "parallel=4" and "max_retries=3" are what the documentation of points shows; the batch is the
# default of 64.
DOCS = Way("docs' way", "upload_points", parallel=4, plain=True)
DEFAULTS = Way("defaults", "upload_points", plain=True)


def tried_settings(parallel: int, quick: bool) -> list[Way]:
    """Settings that a user would try, no graph being built meanwhile, as the docs advise."""
    name = f"best setting, {parallel} process{'es' if parallel > 1 else ''}"
    grid = product(("upload_points", "upload_collection"), (256,) if quick else (64, 256, 1024))
    return [
        Way(name, call, grpc=True, batch=batch, parallel=parallel, deferred=True)
        for call, batch in grid
    ]


@dataclass(frozen=True, slots=True)
class Loaded:
    """What a load took. green: seconds from its begin until all graphs were built. client, server:
    processor seconds until every point was there.
    """

    seconds: float
    green: float
    client: float
    server: float


def load(way: Way, server: Server, folder: Path, count: int, build: bool = True) -> Loaded:
    """One load into a fresh collection, which is dropped afterwards, its graphs built first or not.
    Runs in a process of its own.
    """
    with closing(ServerCollections(server.url, ALIAS, grpc_port=server.grpc_port)) as collections:
        index = collections.collection(layout().collection(ALIAS))
        client = connect(server, way.grpc)
        if way.plain:
            made = new_collection(layout(), ALIAS, Storage())
            made.pop("optimizers_config", None)
            client.create_collection(index.name, **made)
        index.create(layout())
        send = prepared(way, index, client, DataRoot(folder), count)
        before = processor_seconds(), server.processor_seconds()
        started = time.perf_counter()
        send()
        while (there := client.count(index.name, exact=True).count) < count:
            time.sleep(0.02)
        seconds = time.perf_counter() - started
        spent = processor_seconds() - before[0], server.processor_seconds() - before[1]
        if build:
            index.build_graph(wait=True)
        green = time.perf_counter() - started
        if there != count:
            raise SystemExit(f"{way.name} left {there} points instead of {count}")
        client.delete_collection(index.name)
    return Loaded(seconds, green, *spent)


def connect(server: Server, grpc: bool) -> QdrantClient:
    """qdrant-client as a user makes it."""
    from qdrant_client import QdrantClient

    return QdrantClient(
        url=server.url,
        port=server.http_port,
        grpc_port=server.grpc_port,
        prefer_grpc=grpc,
        timeout=600,
        check_compatibility=False,
    )


def processor_seconds(process: int | None = None) -> float:
    """Processor time of this process and its children, ended ones and a fork server's too."""
    process = process or os.getpid()
    try:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:  # it ended since it was listed; its time is its parent's now
        return 0.0
    own = sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
    return own + sum(map(processor_seconds, children_of(process)))


def prepared(
    way: Way, index: PassageIndex, client: QdrantClient, root: DataRoot, count: int
) -> Callable[[], object]:
    """What the clock is started for, everything before it done."""
    if way.call is None:
        return lambda: load_month(
            index, MONTH, points_of(root, MONTH, layout()), expected_rows=count
        )
    batches = list(points_of(root, MONTH, layout()))
    if way.deferred:
        index.defer_indexing()
    gc.collect()
    settings: dict[str, Any] = {"batch_size": way.batch, "parallel": way.parallel, "max_retries": 3}
    if way.call == "upload_points":
        return lambda: client.upload_points(index.name, points=structs(batches), **settings)
    ids = [identifier for batch in batches for identifier in batch.ids]
    payloads = [dict(payload) for batch in batches for payload in batch.payloads]
    return lambda: client.upload_collection(
        index.name, vectors=vectors(batches), payload=payloads, ids=ids, **settings
    )


def structs(batches: Sequence[PointBatch]) -> Iterator[models.PointStruct]:
    """Points as the docs have them: lists of numbers."""
    from qdrant_client import models

    for batch in batches:
        for row, (identifier, payload) in enumerate(zip(batch.ids, batch.payloads, strict=True)):
            vector = {DENSE: batch.dense[row].tolist(), **sparse_vectors(batch, row)}
            yield models.PointStruct(id=identifier, vector=vector, payload=dict(payload))


def vectors(batches: Sequence[PointBatch]) -> Iterator[dict[str, Any]]:
    """Vectors for upload_collection, dense ones as the numpy arrays that it takes."""

    for batch in batches:
        for row in range(len(batch)):
            yield {DENSE: batch.dense[row], **sparse_vectors(batch, row)}


def sparse_vectors(batch: PointBatch, row: int) -> dict[str, models.SparseVector]:
    """A point's lexical and sparse vectors."""
    from qdrant_client import models

    named = {LEXICAL: batch.lexical, SPARSE: batch.sparse}
    vectors = {name: rows.row(row) for name, rows in named.items() if rows is not None}
    return {
        name: models.SparseVector(indices=each.ids.tolist(), values=each.weights.tolist())
        for name, each in vectors.items()
    }


def load_edge(folder: Path, count: int) -> dict[str, float]:
    """The month into Edge in process: seconds of the load, of its graph, and of an audit."""
    root = DataRoot(folder)
    with (
        tempfile.TemporaryDirectory() as place,
        closing(EdgeCollections(Path(place), ALIAS)) as collections,
    ):
        index = collections.collection(layout().collection(ALIAS))
        index.create(layout())
        started = time.perf_counter()
        for batch in points_of(root, MONTH, layout()):
            for part in batch.split():
                index.upsert(part)
        loaded = time.perf_counter()
        if index.count() != count:
            raise SystemExit("Edge did not take every point")
        index.build_graph(wait=True)
        built = time.perf_counter()
        return {
            "seconds": loaded - started,
            "built": built - loaded,
            "audit": audit_seconds(index, root),
        }


def audit_seconds(index: PassageIndex, root: DataRoot) -> float:
    """Seconds of one audit of the month: reading the tables, and comparing id by id."""
    started = time.perf_counter()
    audit = audit_month(index, MONTH, digests_of(root, MONTH))
    seconds = time.perf_counter() - started
    if not audit.clean:
        raise SystemExit(f"the audit finds what a load should not leave: {audit.describe()}")
    return seconds


def audit_server(server: Server, folder: Path) -> list[float]:
    """Seconds of three audits of a month that is loaded, its graph built."""
    root = DataRoot(folder)
    with closing(ServerCollections(server.url, ALIAS, grpc_port=server.grpc_port)) as collections:
        index = collections.collection(layout().collection(ALIAS))
        index.create(layout())
        load_month(index, MONTH, points_of(root, MONTH, layout()), expected_rows=1 << 30)
        index.build_graph(wait=True)
        seconds = [audit_seconds(index, root) for _ in range(3)]
        collections.drop(index.name)
    return seconds


def best_settings(
    server: Server, folder: Path, quick: bool, figures: dict[str, object]
) -> list[Way]:
    """The fastest of the settings with one process and with two, on a smaller month."""
    count = TRIED // 5 if quick else TRIED
    write_months(DataRoot(folder), [MONTH], count, Structure(1))
    best = []
    for parallel in (1, 2):
        rates = {}
        for way in tried_settings(parallel, quick):
            rates[way] = count / apart(load, way, server, folder, count, False).seconds
            figures[f"tried on {count:,}: {way.describe()}, points/s"] = round(rates[way])
        best.append(max(rates, key=rates.__getitem__))
    return best


def compare(
    server: Server, folder: Path, ways: Sequence[Way], count: int, rounds: int
) -> dict[str, list[Loaded]]:
    """Each way's loads, one after another in every round."""
    found: dict[str, list[Loaded]] = {way.name: [] for way in ways}
    for number in range(rounds):
        for way in ways:
            found[way.name].append(apart(load, way, server, folder, count))
            sys.stderr.write(f"round {number + 1}, {way.name}: {found[way.name][-1]}\n")
    return found


def figures_of(loads: dict[str, list[Loaded]], count: int) -> dict[str, object]:
    """Medians over the rounds."""
    figures: dict[str, object] = {}
    for name, taken in loads.items():
        middle = {
            part: statistics.median(getattr(one, part) for one in taken)
            for part in Loaded.__slots__
        }
        figures[f"{name}, points/s"] = round(count / middle["seconds"])
        figures[f"{name}, until all graphs are built, s"] = round(middle["green"], 1)
        figures[f"{name}, client's processor, µs a point"] = round(1e6 * middle["client"] / count)
        figures[f"{name}, server's processor, µs a point"] = round(1e6 * middle["server"] / count)
    return figures


def seconds_of(loads: Sequence[Loaded]) -> list[float]:
    """Of each load."""
    return [one.seconds for one in loads]


def main() -> None:
    """Compare the ways, print the figures and the claims."""
    arguments = argument_parser(__doc__, quick="10,000 points, one round")
    arguments.add_argument("--points", type=int)
    arguments.add_argument("--rounds", type=int)
    given = arguments.parse_args()
    count = given.points or (10_000 if given.quick else 100_000)
    rounds = given.rounds or (1 if given.quick else 3)
    figures: dict[str, object] = {"points": count, "rounds": rounds}
    with tempfile.TemporaryDirectory() as place, running(Path(place) / "server") as server:
        folder = Path(place) / "data"
        write_months(DataRoot(folder), [MONTH], count, Structure())
        best = best_settings(server, Path(place) / "tried", given.quick, figures)
        loads = compare(server, folder, [OURS, DOCS, DEFAULTS, *best], count, rounds)
        figures |= {way.name: way.describe() for way in best} | figures_of(loads, count)
        audits = apart(audit_server, server, folder)
        edge = apart(load_edge, folder, count)
    figures["audit on the server, s"] = round(statistics.median(audits), 2)
    figures["Edge, points/s"] = round(count / edge["seconds"])
    figures["Edge, then until its graph is built, s"] = round(edge["built"], 1)
    figures["audit in Edge, s"] = round(edge["audit"], 2)
    ours, docs, defaults, *tuned = (seconds_of(taken) for taken in loads.values())
    figures["times the defaults"] = round(median_ratio(defaults, ours), 2)
    claims = [
        Claim(
            "times as fast as qdrant-client as its documentation shows it",
            round(median_ratio(docs, ours), 2),
            3.0,
        ),
        Claim(
            "times as fast as the best setting found for qdrant-client",
            round(median_ratio(min(tuned, key=statistics.median), ours), 2),
            1.2,
        ),
        Claim(
            "seconds to audit all points, id by id",
            round(statistics.median(audits), 2),
            10.0,
            at_most=True,
        ),
    ]
    report("load", figures, claims)


if __name__ == "__main__":
    main()
