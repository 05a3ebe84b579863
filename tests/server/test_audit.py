"""Audits and repairs on a real server, as the settings choose it."""

import pytest

from pipeline import tables
from pipeline.engine.run import State, state
from pipeline.index.audit import audit_months, repair
from pipeline.index.opening import live_index, open_collections
from pipeline.index.stages import INDEX_RECEIPTS
from tests.server.conftest import KEY, _alias, workspace_on
from tests.unit.index.building import TEXTS, load

MONTHS = ("2024-03", "2024-04", "2024-05")
MONTH = MONTHS[0]


@pytest.fixture
def workspace(qdrant, tmp_path, request):
    """One month in an index of the test's own."""
    made = workspace_on(tmp_path / "data", qdrant, _alias(request))
    load(made)
    return made


def test_a_receipt_names_the_engine_and_no_file_holds_the_key(workspace):
    assert workspace.root.rows(tables.INDEX_RECEIPTS, MONTH)[0]["engine"] == "server"
    files = [file for file in workspace.root.path.rglob("*") if file.is_file()]
    assert not [file for file in files if KEY.encode() in file.read_bytes()]


def test_the_months_of_a_status_are_counted_together(workspace):
    for month in MONTHS[1:]:
        load(workspace, month)
    index = live_index(workspace)
    index.delete([min(str(identifier) for identifier, _ in index.contents(MONTHS[2]))])
    with workspace.read_cache():
        states = [state(INDEX_RECEIPTS, workspace, month) for month in MONTHS]
    assert states == [State.DONE, State.DONE, State.STALE]


def test_an_audit_names_what_is_gone_and_what_is_somebody_elses_and_a_repair_mends_both(workspace):
    from qdrant_client import models

    before = workspace.root.file(tables.INDEX_RECEIPTS, MONTH).read_bytes()
    index = live_index(workspace)
    gone = min(str(each) for each, _ in index.contents(MONTH))
    index.delete([gone])
    index.build_graph(wait=True)  # while a segment is optimized, it keeps its payload indexes
    strange = [
        models.PointStruct(id=number, vector={"dense": [1.0] * 384}, payload=payload)
        for number, payload in ((7, {"month": MONTH}), (8, {"month": "1999-01"}), (9, {}))
    ]
    unindexed = ("kind", "month_number")

    def disturb(client):
        client.upsert(index.name, strange, wait=True)
        for field in unindexed:
            client.delete_payload_index(index.name, field)
        return client.create_payload_index(index.name, "kind", "text")

    open_collections(workspace).connection.write(disturb)
    found = audit_months(workspace)
    (month,) = found.months
    assert (month.missing, month.foreign, month.unindexed) == ((gone,), (7,), unindexed)
    assert found.outside[0][1] == (8, 9)
    assert state(INDEX_RECEIPTS, workspace, MONTH) is State.STALE
    assert repair(workspace, found).clean
    assert workspace.root.file(tables.INDEX_RECEIPTS, MONTH).read_bytes() == before
    assert index.count() == len(TEXTS)
