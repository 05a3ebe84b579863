"""The doctor before a real Qdrant server: its version, its key, and a collection that fits the
settings or does not.
"""

import pytest
from pydantic import SecretStr

from pipeline.embedding.minilm import NAME
from pipeline.index.opening import open_collections
from pipeline.index.passage_index import Layout
from pipeline.ops.doctor.findings import FindingState
from pipeline.ops.doctor.servers import qdrant as probe_qdrant
from tests.server.conftest import sweep, workspace_on
from tests.workspaces import changed

ALIAS = "doctor"


@pytest.fixture
def workspace(qdrant, tmp_path):
    made = workspace_on(tmp_path, qdrant, ALIAS)
    yield made
    sweep(open_collections(made))


@pytest.mark.parametrize(
    ("layout", "state"),
    [
        (Layout("another model", 8, sparse=True), FindingState.PROBLEM),
        (Layout(NAME, 384, sparse=True), FindingState.OK),
    ],
)
def test_a_server_is_well_and_its_collection_where_it_is_of_the_model_of_the_settings(
    workspace, layout, state
):
    before = list(probe_qdrant(workspace))
    assert {each.state for each in before} == {FindingState.OK}
    assert "1.16.3" in before[0].seen
    collections = open_collections(workspace)
    collections.collection(layout.collection(ALIAS)).create(layout)
    collections.make_live(layout.collection(ALIAS))
    found = {each.name: each for each in probe_qdrant(workspace)}["collection"]
    assert (found.state, "another model" in found.seen) == (state, state is FindingState.PROBLEM)


def test_a_wrong_key_is_told_and_the_collection_is_not_asked_for(qdrant, tmp_path):
    place = workspace_on(tmp_path, qdrant, ALIAS)
    place = changed(place, qdrant_api_key=SecretStr("wrong"))
    found = {each.name: each for each in probe_qdrant(place)}
    assert (found[""].state, found["qdrant key"].state) == (FindingState.OK, FindingState.PROBLEM)
    assert "collection" not in found
