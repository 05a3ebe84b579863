"""The stage index_receipts and search on a real server: loads, kills, and whether a receipt still holds."""

from __future__ import annotations

import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from pipeline import tables
from pipeline.index.opening import open_index
from pipeline.index.search import search
from pipeline.index.stages import INDEX_RECEIPTS
from pipeline.stages import State, Workspace, run_stage, state
from tests.server.conftest import KEY, PROJECT, Server
from tests.unit.index.building import TEXTS, embed, make_workspace, write_month

MONTH = "2024-03"


@pytest.fixture
def workspace(qdrant: Server, tmp_path: Path, request: pytest.FixtureRequest) -> Workspace:
    made = _workspace(tmp_path / "data", qdrant, request.node.name)
    write_month(made)
    embed(made)
    return made


def _workspace(folder: Path, qdrant: Server, collection: str) -> Workspace:
    return make_workspace(
        folder,
        qdrant_url=qdrant.url,
        qdrant_api_key=KEY,
        qdrant_grpc_port=qdrant.grpc_port,
        qdrant_collection=collection,
    )


def test_a_month_is_loaded_once_and_found(workspace: Workspace) -> None:
    assert run_stage(INDEX_RECEIPTS, workspace, MONTH).measured == {"sent": len(TEXTS), "removed": 0}
    first = workspace.root.file(tables.INDEX_RECEIPTS, MONTH).read_bytes()
    assert run_stage(INDEX_RECEIPTS, workspace, MONTH, force=True).measured == {"sent": 0, "removed": 0}
    assert workspace.root.file(tables.INDEX_RECEIPTS, MONTH).read_bytes() == first
    assert workspace.root.rows(tables.INDEX_RECEIPTS, MONTH)[0]["engine"] == "server"
    assert search(workspace, "light for plants", category="cs.CL")[0].text == TEXTS[5]


def test_no_file_holds_the_key(workspace: Workspace) -> None:
    run_stage(INDEX_RECEIPTS, workspace, MONTH)
    files = [file for file in workspace.root.path.rglob("*") if file.is_file()]
    assert files
    assert not [file for file in files if KEY.encode() in file.read_bytes()]


def test_a_receipt_does_not_hold_once_points_are_gone(workspace: Workspace) -> None:
    run_stage(INDEX_RECEIPTS, workspace, MONTH)
    assert state(INDEX_RECEIPTS, workspace, MONTH) is State.DONE
    index = open_index(workspace)
    index.delete([min(index.ids_of_month(MONTH))])
    assert state(INDEX_RECEIPTS, workspace, MONTH) is State.STALE
    assert run_stage(INDEX_RECEIPTS, workspace, MONTH).measured["sent"] == 1


_LOADER = textwrap.dedent(
    """
    import os, signal, sys
    from pathlib import Path
    from pipeline.index import load
    from pipeline.index.server import ServerIndex
    from pipeline.index.stages import INDEX_RECEIPTS
    from pipeline.stages import run_stage
    from tests.unit.index.building import make_workspace

    batches = 0
    upsert = ServerIndex.upsert

    def dying(index, points):
        global batches
        upsert(index, points)
        batches += 1
        if batches == 2:
            os.kill(os.getpid(), signal.SIGKILL)

    ServerIndex.upsert = dying
    load.BATCH = 2
    folder, url, key, collection = sys.argv[1:]
    workspace = make_workspace(Path(folder), qdrant_url=url, qdrant_api_key=key, qdrant_collection=collection)
    run_stage(INDEX_RECEIPTS, workspace, "2024-03")
    """
)


def test_a_load_that_was_killed_between_batches_goes_on_where_it_was(workspace: Workspace) -> None:
    settings = workspace.settings
    arguments = [str(workspace.root.path), str(settings.qdrant_url), KEY, settings.qdrant_collection]
    killed = subprocess.run([sys.executable, "-c", _LOADER, *arguments], cwd=PROJECT, check=False)
    assert killed.returncode == -signal.SIGKILL
    assert open_index(workspace).count(MONTH) == 4
    assert run_stage(INDEX_RECEIPTS, workspace, MONTH).measured["sent"] == len(TEXTS) - 4
    (receipt,) = workspace.root.rows(tables.INDEX_RECEIPTS, MONTH)
    assert (receipt["expected"], receipt["present"], receipt["missing"]) == (len(TEXTS), len(TEXTS), 0)
