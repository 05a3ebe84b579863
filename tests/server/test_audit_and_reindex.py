"""Audits, repairs and changing over on a real server, as the settings choose it."""

import pytest

from pipeline import tables
from pipeline.embedding.stages import EMBEDDINGS
from pipeline.engine.run import State, run_stage, state
from pipeline.errors import SettingError
from pipeline.index.audit import audit_months, repair
from pipeline.index.opening import close_indexes, live_index, open_collections
from pipeline.index.reindex import check_layout, reindex
from pipeline.index.search import search
from pipeline.index.stages import INDEX_RECEIPTS
from tests.server.conftest import KEY, _alias, workspace_on
from tests.unit.index.building import TEXTS, load

MONTH = "2024-03"


@pytest.fixture
def workspace(qdrant, tmp_path, request):
    """One month in an index of the test's own."""
    made = workspace_on(tmp_path / "data", qdrant, _alias(request))
    load(made)
    return made


def test_an_audit_names_what_is_gone_and_a_repair_brings_it_back(workspace):
    before = workspace.root.file(tables.INDEX_RECEIPTS, MONTH).read_bytes()
    index = live_index(workspace)
    gone = min(str(each) for each, _ in index.contents(MONTH))
    index.delete([gone])
    index.build_graph(wait=True)  # while a segment is optimized, it keeps its payload indexes
    client = _client_of_somebody_else(workspace)
    for field in ("kind", "month_number"):
        client.delete_payload_index(index.name, field)
    client.create_payload_index(index.name, "kind", "text")
    client.close()
    found = audit_months(workspace)
    unindexed = ("kind", "month_number")
    assert (found.months[0].missing, found.months[0].unindexed) == ((gone,), unindexed)
    assert state(INDEX_RECEIPTS, workspace, MONTH) is State.STALE
    assert repair(workspace, found).clean
    assert workspace.root.file(tables.INDEX_RECEIPTS, MONTH).read_bytes() == before


def _client_of_somebody_else(workspace):
    from qdrant_client import QdrantClient

    with pytest.warns(UserWarning, match="insecure"):
        return QdrantClient(
            url=workspace.settings.qdrant_url,
            api_key=KEY,
            check_compatibility=False,
            trust_env=False,
        )


def test_points_that_somebody_else_put_in_are_named_and_a_repair_takes_them_out(workspace):
    from qdrant_client import models

    client = _client_of_somebody_else(workspace)
    strange = [
        models.PointStruct(id=number, vector={"dense": [1.0] * 384}, payload=payload)
        for number, payload in ((7, {"month": MONTH}), (8, {"month": "1999-01"}), (9, {}))
    ]
    client.upsert(live_index(workspace).name, strange, wait=True)
    client.close()
    found = audit_months(workspace)
    assert found.months[0].foreign == (7,)
    assert found.outside[0][1] == (8, 9)
    assert repair(workspace, found).clean
    assert live_index(workspace).count() == len(TEXTS)


def test_a_snapshot_of_qdrants_own_brings_an_index_back_that_somebody_deleted(workspace):
    """As docs/how-to/operate.md describes it."""
    import httpx2

    live = open_collections(workspace).live()
    url = f"{workspace.settings.qdrant_url}/collections/{live}/snapshots"
    with httpx2.Client(headers={"api-key": KEY}, trust_env=False, timeout=60) as client:
        name = client.post(url).json()["result"]["name"]
        content = client.get(f"{url}/{name}").content
        _delete(workspace, live)
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


def _delete(workspace, collection):
    """Delete a collection as somebody does who knows nothing of citeloom."""
    close_indexes()
    client = _client_of_somebody_else(workspace)
    client.delete_collection(collection)
    client.close()


def test_another_layout_is_loaded_beside_the_live_one_and_then_live(workspace, qdrant, request):
    old = live_index(workspace).name
    changed = workspace_on(workspace.root.path, qdrant, _alias(request), qdrant_quantization="none")
    with pytest.raises(SettingError, match="citeloom reindex"):
        check_layout(changed)

    def run(months):
        for month in months:
            for stage in (EMBEDDINGS, INDEX_RECEIPTS):
                run_stage(stage, changed, month)
            assert open_collections(changed).live() == old
        return []

    done = reindex(changed, run, drop_old=True)
    assert (done.done, done.before, done.dropped, done.kept) == (True, old, (old,), ())
    assert open_collections(changed).names() == [done.collection]
    assert live_index(changed).count() == len(TEXTS)
    assert search(changed, "light for plants")[0].item.text == TEXTS[5]
    check_layout(changed)
