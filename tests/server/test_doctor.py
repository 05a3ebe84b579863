"""The doctor before a real Qdrant server: its version, its key, and a collection that fits the
settings or does not.
"""

import pytest
from pydantic import SecretStr

from pipeline.index.opening import open_collections
from pipeline.index.passage_index import Layout
from pipeline.ops.doctor.findings import FindingState
from pipeline.ops.doctor.servers import qdrant as probe_qdrant
from tests.server.conftest import sweep, workspace_on
from tests.unit.index.building import make_live
from tests.workspaces import changed

ALIAS = "doctor"


@pytest.fixture
def workspace(qdrant, tmp_path):
    made = workspace_on(tmp_path, qdrant, ALIAS)
    yield made
    sweep(open_collections(made))


def test_a_server_is_well_and_an_index_of_another_model_and_a_wrong_key_are_told(workspace):
    before = list(probe_qdrant(workspace))
    assert {each.state for each in before} == {FindingState.OK}
    assert "1.16.3" in before[0].seen
    make_live(workspace, Layout("another model", 8, sparse=True))
    found = {each.name: each for each in probe_qdrant(workspace)}["collection"]
    assert (found.state, "another model" in found.seen) == (FindingState.PROBLEM, True)
    other = changed(workspace, qdrant_api_key=SecretStr("wrong"))
    states = {each.name: each.state for each in probe_qdrant(other)}
    assert states["qdrant key"] is FindingState.PROBLEM
    assert "collection" not in states
