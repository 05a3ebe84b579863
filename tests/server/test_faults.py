"""Loads that are disturbed on purpose, on a real server: whatever came in between, nothing
acknowledged is lost, and once the load is run again, the audit finds every point once, as it should
be.

Where and when a fault strikes is drawn from a seed that each test prints; CITELOOM_TEST_SEED sets
another.
"""

import os
import random
import threading
from contextlib import suppress
from dataclasses import replace

import numpy as np
import pytest

from pipeline.errors import TransientFailure
from pipeline.index.load import audit_month, load_month
from pipeline.index.passage_index import Layout
from tests.server.conftest import MortalServer, Server, open_collections
from tests.server.faulty import CuttingProxy
from tests.small_disk import small_disk_in
from tests.unit.index.building import make_points

pytestmark = pytest.mark.faults

MONTH = "2024-03"
POINTS, PER_REQUEST, DIMENSIONS = 3_000, 100, 64
LAYOUT = Layout("a model", DIMENSIONS, sparse=True)


@pytest.fixture
def seed():
    """Of everything that is drawn."""
    drawn = int(os.environ.get("CITELOOM_TEST_SEED", "20261120"))
    print(f"seed {drawn}")
    return drawn


def batches(**payload):
    """Points of the month, so many for each request; the same in every process."""
    for start in range(0, POINTS, PER_REQUEST):
        drawn = np.random.default_rng(start).normal(size=(PER_REQUEST, DIMENSIONS))
        points = make_points(range(start, start + PER_REQUEST), **payload)
        yield replace(points, dense=drawn.astype(np.float32))


class Watched:
    """A collection that remembers what it has acknowledged, and calls `struck` after each request
    that it took.
    """

    def __init__(self, index, struck=lambda number, points: None):
        self._index, self._struck, self._lock = index, struck, threading.Lock()
        self.acknowledged = {}
        self.requests = 0

    def __getattr__(self, name):
        return getattr(self._index, name)

    def upsert(self, points):
        self._index.upsert(points)
        with self._lock:
            self.acknowledged |= {
                each: payload["digest"]
                for each, payload in zip(points.ids, points.payloads, strict=True)
            }
            self.requests += 1
            number = self.requests
        self._struck(number, points)


def made(collections):
    """The collection of LAYOUT, made."""
    index = collections.collection(LAYOUT.collection(collections.alias))
    index.create(LAYOUT)
    return index


def insist_on_whole(index, acknowledged):
    """Everything acknowledged is there, and the load run again completes it."""
    there = dict(index.contents(MONTH))
    assert [each for each, digest in acknowledged.items() if there.get(each) != digest] == []
    load = load_month(index, MONTH, batches(), expected_rows=POINTS)
    audit = audit_month(index, MONTH, load.expected)
    assert (audit.missing, audit.stale, audit.duplicate, audit.foreign) == ((), (), (), ())
    assert (audit.present, index.count()) == (POINTS, POINTS)


@pytest.mark.parametrize("over", ["grpc", "http"])
@pytest.mark.parametrize(("kind", "share"), [("cut", 0.05), ("half-cut", 0.03)])
def test_a_load_over_a_bad_line_is_whole(qdrant, seed, kind, share, over):
    number = seed + len(over)
    lines = [
        CuttingProxy(port, kind, share, number) for port in (qdrant.http_port, qdrant.grpc_port)
    ]
    collections = open_collections(qdrant, f"{kind}-{over}", over=over)
    whole = made(collections)
    through = open_collections(Server(lines[0].port, lines[1].port), f"{kind}-{over}", over=over)
    index = Watched(through.collection(LAYOUT.collection(through.alias)))
    # The line may be bad for longer than anybody's patience.
    with suppress(TransientFailure):
        load_month(index, MONTH, batches(), expected_rows=POINTS)
    for line in lines:
        line.close()
    through.close()
    insist_on_whole(whole, index.acknowledged)
    collections.close()
    assert sum(line.done[kind] for line in lines) > 0


@pytest.mark.slow
def test_a_load_survives_a_line_that_swallows_everything_and_does_not_end(qdrant, seed):
    """As a firewall does that forgot the connection. It takes half a minute to be noticed."""
    line = CuttingProxy(qdrant.grpc_port, "swallow", 0.0, seed, most=1)
    through = open_collections(Server(qdrant.http_port, line.port), "swallowed", patience=50.0)
    index = Watched(made(through), lambda number, points: number == 5 and line.strike())
    load = load_month(index, MONTH, batches(), expected_rows=POINTS)
    line.close()
    assert (load.sent, line.done["swallow"]) == (POINTS, 1)
    insist_on_whole(index, index.acknowledged)
    through.close()


@pytest.fixture
def small_disk(tmp_path):
    """A file system of 800 MB in memory: Qdrant asks for 200 MB of room before it takes a point,
    and 400 MB were once too few for it to come back on, with its log to be read again.
    """
    with small_disk_in(tmp_path, 800) as disk:
        yield disk


def test_a_full_disk_stops_a_load_and_room_lets_it_go_on(qdrant_binary, small_disk, seed):
    server = MortalServer(qdrant_binary, small_disk)
    server.start()
    ballast = small_disk / "ballast"
    try:
        collections = open_collections(server.at, "full", patience=2.0)
        index = Watched(made(collections), lambda number, points: number == 10 and _fill(ballast))
        # 120 MB that cannot be compressed: the server's files have room for 64 MB before they ask
        # for more.
        title = random.Random(seed).randbytes(20_000).hex()
        with pytest.raises(TransientFailure):
            load_month(index, MONTH, batches(title=title), expected_rows=POINTS)
        collections.close()
        ballast.unlink()
        # Where a file that it has mapped cannot grow, the system ends it (SIGBUS).
        server.revive()
        again = open_collections(server.at, "full")
        insist_on_whole(made(again), index.acknowledged)
        again.close()
    finally:
        server.kill()
    assert index.acknowledged


def _fill(ballast):
    """Take all the room that there is on the disk of the ballast, which the server takes of at the
    same time.
    """
    with suppress(OSError), ballast.open("wb", buffering=0) as file:
        while file.write(bytes(1 << 20)):
            pass
