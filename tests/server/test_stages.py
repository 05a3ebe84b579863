"""The stage index_receipts and search on a real server: loads, kills, and whether a receipt still
holds.
"""

import signal
import subprocess
import sys

import pytest

from pipeline import tables
from pipeline.engine.run import State, run_stage, state
from pipeline.index.opening import live_index
from pipeline.index.search import search
from pipeline.index.stages import INDEX_RECEIPTS
from tests.server.conftest import KEY, PROJECT, workspace_on
from tests.unit.index.building import TEXTS, embed, load, write_month

MONTH = "2024-03"


@pytest.fixture
def workspace(qdrant, tmp_path, request):
    made = workspace_on(tmp_path / "data", qdrant, request.node.name)
    write_month(made)
    embed(made)
    return made


def test_a_month_is_loaded_once_and_found_and_no_file_holds_the_key(workspace):
    measured = run_stage(INDEX_RECEIPTS, workspace, MONTH).measured
    assert (measured["sent"], measured["removed"]) == (len(TEXTS), 0)
    first = workspace.root.file(tables.INDEX_RECEIPTS, MONTH).read_bytes()
    measured = run_stage(INDEX_RECEIPTS, workspace, MONTH, force=True).measured
    assert (measured["sent"], measured["removed"]) == (0, 0)
    assert workspace.root.file(tables.INDEX_RECEIPTS, MONTH).read_bytes() == first
    assert workspace.root.rows(tables.INDEX_RECEIPTS, MONTH)[0]["engine"] == "server"
    assert search(workspace, "light for plants", categories=["cs.CL"])[0].item.text == TEXTS[5]
    files = [file for file in workspace.root.path.rglob("*") if file.is_file()]
    assert not [file for file in files if KEY.encode() in file.read_bytes()]


def test_the_months_of_a_status_are_counted_together(workspace):
    months = (MONTH, "2024-04", "2024-05")
    for month in months:
        load(workspace, month)
    index = live_index(workspace)
    index.delete([min(str(identifier) for identifier, _ in index.contents("2024-05"))])
    with workspace.read_cache():
        states = [state(INDEX_RECEIPTS, workspace, month) for month in months]
    assert states == [State.DONE, State.DONE, State.STALE]


_LOADER = """
import os, signal, sys
from pathlib import Path
from pipeline.index.opening import open_collections
from pipeline.index.server import ServerIndex
from pipeline.index.server_requests import Storage
from pipeline.index.stages import INDEX_RECEIPTS, layout_of
from pipeline.engine.run import run_stage
from tests.unit.index.building import make_workspace

class Dying(ServerIndex):
    def upsert(self, points):
        for number, part in enumerate(points.split(1)):
            if number == 4:
                os.kill(os.getpid(), signal.SIGKILL)
            super().upsert(part)

folder, url, key, port, alias = sys.argv[1:]
workspace = make_workspace(
    Path(folder), qdrant_url=url, qdrant_api_key=key, qdrant_grpc_port=port, qdrant_collection=alias
)
layout, _ = layout_of(workspace, "2024-03")
collections = open_collections(workspace)
name = layout.collection(alias)
collections._indexes[name] = Dying(collections.connection, name, alias, storage=Storage())
run_stage(INDEX_RECEIPTS, workspace, "2024-03")
"""


@pytest.mark.faults
def test_a_load_that_was_killed_between_batches_goes_on_where_it_was(workspace):
    settings = workspace.settings
    port, alias = str(settings.qdrant_grpc_port), settings.qdrant_collection
    arguments = [str(workspace.root.path), str(settings.qdrant_url), KEY, port, alias]
    killed = subprocess.run([sys.executable, "-c", _LOADER, *arguments], cwd=PROJECT)
    assert killed.returncode == -signal.SIGKILL
    assert live_index(workspace).count(MONTH) == 4
    assert run_stage(INDEX_RECEIPTS, workspace, MONTH).measured["sent"] == len(TEXTS) - 4
    (receipt,) = workspace.root.rows(tables.INDEX_RECEIPTS, MONTH)
    assert (receipt["expected"], receipt["present"], receipt["missing"]) == (
        len(TEXTS),
        len(TEXTS),
        0,
    )
