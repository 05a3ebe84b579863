"""Audits and repairs on a real server, as the settings choose it."""

from contextlib import contextmanager

import pytest

from pipeline import tables
from pipeline.engine.run import State, run_stage, state
from pipeline.index.audit import audit_months, repair
from pipeline.index.opening import close_indexes, live_index, open_collections
from pipeline.index.search import search
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
    with _client_of_somebody_else(workspace) as client:
        client.upsert(index.name, strange, wait=True)
        for field in unindexed:
            client.delete_payload_index(index.name, field)
        client.create_payload_index(index.name, "kind", "text")
    found = audit_months(workspace)
    (month,) = found.months
    assert (month.missing, month.foreign, month.unindexed) == ((gone,), (7,), unindexed)
    assert found.outside[0][1] == (8, 9)
    assert state(INDEX_RECEIPTS, workspace, MONTH) is State.STALE
    assert repair(workspace, found).clean
    assert workspace.root.file(tables.INDEX_RECEIPTS, MONTH).read_bytes() == before
    assert index.count() == len(TEXTS)


@contextmanager
def _client_of_somebody_else(workspace):
    from qdrant_client import QdrantClient

    url = workspace.settings.qdrant_url
    with pytest.warns(UserWarning, match="insecure"):
        client = QdrantClient(url=url, api_key=KEY, check_compatibility=False, trust_env=False)
    yield client
    client.close()


def test_a_snapshot_of_qdrants_own_brings_an_index_back_that_somebody_deleted(workspace):
    """As docs/how-to/operate.md describes it."""
    import httpx2

    live = open_collections(workspace).live()
    url = f"{workspace.settings.qdrant_url}/collections/{live}/snapshots"
    with httpx2.Client(headers={"api-key": KEY}, trust_env=False, timeout=60) as client:
        name = client.post(url).json()["result"]["name"]
        content = client.get(f"{url}/{name}").content
        close_indexes()
        with _client_of_somebody_else(workspace) as somebody:
            somebody.delete_collection(live)
        assert len(audit_months(workspace).months[0].missing) == len(TEXTS)
        assert open_collections(workspace).live() is None
        upload = client.post(f"{url}/upload?priority=snapshot", files={"snapshot": (name, content)})
        assert upload.json()["result"] is True
    assert state(INDEX_RECEIPTS, workspace, MONTH) is State.STALE
    outcome = run_stage(INDEX_RECEIPTS, workspace, MONTH)
    assert (outcome.measured, open_collections(workspace).live()) == (
        {"sent": 0, "removed": 0},
        live,
    )
    assert audit_months(workspace).clean
    assert state(INDEX_RECEIPTS, workspace, MONTH) is State.DONE
    assert search(workspace, "light for plants")[0].item.text == TEXTS[5]
