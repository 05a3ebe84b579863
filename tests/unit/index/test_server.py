"""Addresses of servers, servers that are not there, and waiting for one. None runs here but a false
one on loopback.
"""

from types import SimpleNamespace

import pytest
from pydantic import SecretStr

from pipeline import errors
from pipeline.errors import SettingError, TransientFailure
from pipeline.index.audit import audit_months
from pipeline.index.connection import parse_address
from pipeline.index.opening import close_indexes, open_collections
from pipeline.index.search import search
from pipeline.index.server import ServerCollections, ServerIndex
from pipeline.index.server_requests import Storage
from pipeline.index.stages import INDEX_RECEIPTS
from pipeline.storage.provenance import Provenance
from tests.cases import cases
from tests.processes import free_port
from tests.unit.index.building import embed, make_workspace, write_month


@cases(
    "unit/index/cases.toml",
    "grpc_is_tried_beside_the_usual_port_alone",
    ["url", "port", "grpc_port"],
)
def test_grpc_is_tried_beside_the_usual_port_alone(url, port, grpc_port):
    address = parse_address(url, has_key=True)
    assert (address.port, address.grpc_port) == (port, grpc_port)
    assert parse_address(url, has_key=True, grpc_port=1234).grpc_port == 1234


@cases("unit/index/cases.toml", "a_url_that_is_none_is_refused", "url")
def test_a_url_that_is_none_is_refused(url):
    with pytest.raises(SettingError, match="CITELOOM_QDRANT_URL"):
        parse_address(url, has_key=False)


def test_a_password_in_the_url_is_refused_without_being_shown():
    with pytest.raises(SettingError, match="CITELOOM_QDRANT_API_KEY") as caught:
        parse_address("https://me:hidden@host:6333", has_key=False)
    assert "hidden" not in str(caught.value)


@cases("unit/index/cases.toml", "a_server_on_another_host_needs_https_and_a_key", "host")
def test_a_server_on_another_host_needs_https_and_a_key(host):
    with pytest.raises(SettingError, match=r"unencrypted.*use https"):
        ServerCollections(f"http://{host}:6333", "c", SecretStr("key"))
    with pytest.raises(SettingError, match=r"would be used without a key.*PRIVATE_NETWORK"):
        ServerCollections(f"https://{host}:6333", "c")
    ServerCollections(f"https://{host}:6333", "c", SecretStr("key"))


@pytest.mark.parametrize("key", [None, "key"])
def test_in_a_network_that_is_said_to_be_private_it_needs_neither(tmp_path, key):
    server = {"qdrant_url": "http://qdrant:6333", "qdrant_api_key": key}
    with pytest.raises(SettingError, match="CITELOOM_QDRANT_PRIVATE_NETWORK=true"):
        open_collections(make_workspace(tmp_path, **server))
    assert (
        open_collections(make_workspace(tmp_path, **server, qdrant_private_network=True)).engine
        == "server"
    )
    close_indexes()


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "127.1.2.3", "[::1]"])
@pytest.mark.parametrize("key", [None, SecretStr("key")])
def test_on_this_machine_it_needs_neither(host, key):
    assert ServerCollections(f"http://{host}:6333", "c", key).engine == "server"


@pytest.fixture
def nowhere():
    """A URL on loopback where nobody listens."""
    return f"http://127.0.0.1:{free_port()}"


def test_a_server_that_does_not_answer_is_named(nowhere, tmp_path):
    with pytest.raises(TransientFailure, match=f"{nowhere} does not answer.*CITELOOM_QDRANT_URL"):
        search(make_workspace(tmp_path, qdrant_url=nowhere), "anything")
    close_indexes()


def test_an_audit_of_a_server_that_does_not_answer_ends_at_its_first_question(nowhere, tmp_path):
    workspace = make_workspace(tmp_path, qdrant_url=nowhere)
    write_month(workspace, texts=())
    embed(workspace)
    told = []
    with pytest.raises(TransientFailure, match=nowhere):
        audit_months(workspace, on_month=told.append)
    assert told == []


@cases(
    "unit/index/cases.toml",
    "what_is_no_qdrant_server_is_named",
    ("answer", "status", "error", "message"),
)
def test_what_is_no_qdrant_server_is_named(httpserver, answer, status, error, message):
    path = "/collections/c-model/exists"
    httpserver.expect_request(path).respond_with_data(answer, status=status)
    url = httpserver.url_for("")
    with pytest.raises(getattr(errors, error), match=url[:-1] + message):
        ServerCollections(url, "c", patience=0.0).collection("c-model").layout()


def test_a_receipt_does_not_hold_where_the_server_refuses_the_key(httpserver, tmp_path):
    httpserver.expect_request("/aliases").respond_with_data("go away", status=401)
    receipt = Provenance("index_receipts", "2024-03", 1, 1, "0", "", {}, {}, notes={"points": 0})
    for settings in (
        {"qdrant_url": httpserver.url_for("")},
        {"qdrant_url": "nowhere"},
        {"qdrant_collection": "a/b"},
    ):
        workspace = make_workspace(tmp_path, **settings)
        assert not INDEX_RECEIPTS.outputs_exist(workspace, "2024-03", receipt)
    close_indexes()


class BuildingServer:
    """A connection to a server that reports one state of a collection after the other."""

    address = SimpleNamespace(url="http://localhost:6333")

    def __init__(self, *states, error=None):
        self.states, self.error = list(states), error

    def read(self, call):
        from qdrant_client import models

        return models.CollectionInfo.model_construct(
            status=models.CollectionStatus(self.states.pop(0)),
            optimizer_status=(
                "ok" if self.error is None else models.OptimizersStatusOneOf1(error=self.error)
            ),
            config=SimpleNamespace(
                optimizer_config=SimpleNamespace(indexing_threshold=1, default_segment_number=0)
            ),
        )


def _build(server):
    index = ServerIndex(server, "c-model", "c", storage=Storage(), sleep=lambda seconds: None)
    index.build_graph(wait=True)


def test_a_collection_is_built_when_it_stays_green():
    server = BuildingServer("yellow", "green", "yellow", "green", "green", "green", "green")
    _build(server)
    assert server.states == ["green"]


def test_a_graph_that_cannot_be_built_is_told_with_the_servers_reason():
    with pytest.raises(TransientFailure, match="No space left on device"):
        _build(BuildingServer("yellow", "yellow", error="No space left on device"))
