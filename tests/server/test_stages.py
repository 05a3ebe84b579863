"""The stage index_receipts and search on a real server: loads, and whether a receipt still holds."""

import pytest

from pipeline import tables
from pipeline.engine.run import State, run_stage, state
from pipeline.index.opening import live_index
from pipeline.index.search import search
from pipeline.index.stages import INDEX_RECEIPTS
from tests.server.conftest import KEY, workspace_on
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
