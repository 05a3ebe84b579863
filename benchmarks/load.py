"""A month of 100,000 points into a Qdrant server and into Edge, and an audit of it.

    python -m benchmarks.load [--quick] [--points N] [--rounds N]

Points are those of benchmarks/points.py. Every load goes into a fresh collection from a fresh process; server and
client share the machine. The clock runs until the server counts every point and each can be searched, then on until all
graphs are built; reading the tables, joining payloads and computing digests is within it. Edge takes the same month in
process. Never a search (`benchmarks.search`).
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from benchmarks.harness import Claim, apart, report
from benchmarks.points import Structure, layout, write_months
from benchmarks.qdrant_server import Server, running
from pipeline.index.edge import EdgeCollections
from pipeline.index.load import audit_month, load_month
from pipeline.index.passage_index import PassageIndex
from pipeline.index.points import digests_of, points_of
from pipeline.index.server import ServerCollections
from pipeline.storage.data_root import DataRoot

MONTH = "2024-03"
ALIAS = "benchmark"


@dataclass(frozen=True, slots=True)
class Loaded:
    """What a load took. green: seconds from its begin until all graphs were built. client, server: processor seconds
    until every point was there."""

    seconds: float
    green: float
    client: float
    server: float


def load(server: Server, folder: Path, count: int) -> Loaded:
    """One load into a fresh collection, which is dropped afterwards. Runs in a process of its own."""
    with closing(ServerCollections(server.url, ALIAS, grpc_port=server.grpc_port)) as collections:
        index = collections.collection(layout().collection(ALIAS))
        index.create(layout())
        before = time.process_time(), server.processor_seconds()
        started = time.perf_counter()
        load_month(index, MONTH, points_of(DataRoot(folder), MONTH, layout()), expected_rows=count)
        seconds = time.perf_counter() - started
        spent = time.process_time() - before[0], server.processor_seconds() - before[1]
        index.build_graph(wait=True)
        green = time.perf_counter() - started
        if index.count() != count:
            raise SystemExit(f"the load left {index.count()} points instead of {count}")
        collections.drop(index.name)
    return Loaded(seconds, green, *spent)


def load_edge(folder: Path, count: int) -> dict[str, float]:
    """The month into Edge in process: seconds of the load, and then of building its graph; seconds of an audit."""
    root = DataRoot(folder)
    with tempfile.TemporaryDirectory() as place, closing(EdgeCollections(Path(place), ALIAS)) as collections:
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
        return {"seconds": loaded - started, "built": built - loaded, "audit": audit_seconds(index, root)}


def audit_seconds(index: PassageIndex, root: DataRoot) -> float:
    """Seconds of one audit of the month: reading what the tables ask for, and comparing it id by id."""
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


def figures_of(loads: Sequence[Loaded], count: int) -> dict[str, object]:
    """Medians over the rounds."""
    middle = {part: statistics.median(getattr(one, part) for one in loads) for part in Loaded.__slots__}
    return {
        "ours, points/s": round(count / middle["seconds"]),
        "ours, until all graphs are built, s": round(middle["green"], 1),
        "ours, client's processor, µs a point": round(1e6 * middle["client"] / count),
        "ours, server's processor, µs a point": round(1e6 * middle["server"] / count),
    }


def main() -> None:
    """Load and audit, print the figures and the claim."""
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--quick", action="store_true", help="10,000 points, one round")
    arguments.add_argument("--points", type=int)
    arguments.add_argument("--rounds", type=int)
    arguments.add_argument("--json", action="store_true", help="accepted for uniformity: JSON is always last")
    given = arguments.parse_args()
    count = given.points or (10_000 if given.quick else 100_000)
    rounds = given.rounds or (1 if given.quick else 3)
    figures: dict[str, object] = {"points": count, "rounds": rounds}
    with tempfile.TemporaryDirectory() as place, running(Path(place) / "server") as server:
        folder = Path(place) / "data"
        write_months(DataRoot(folder), [MONTH], count, Structure())
        figures |= figures_of([apart(load, server, folder, count) for _ in range(rounds)], count)
        audits = apart(audit_server, server, folder)
        edge = apart(load_edge, folder, count)
    figures["audit on the server, s"] = round(statistics.median(audits), 2)
    figures["Edge, points/s"] = round(count / edge["seconds"])
    figures["Edge, then until its graph is built, s"] = round(edge["built"], 1)
    figures["audit in Edge, s"] = round(edge["audit"], 2)
    claims = [Claim("seconds of an audit", round(statistics.median(audits), 2), 10.0, at_most=True)]
    report("load", figures, claims)


if __name__ == "__main__":
    main()
