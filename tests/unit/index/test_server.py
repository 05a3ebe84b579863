"""Addresses of servers, servers that are not there, and waiting for one. None runs here but a false
one on loopback. What is retried and for how long, and wrong keys.
"""

from functools import partial
from types import SimpleNamespace

import grpc
import httpx
import pytest
from pydantic import SecretStr

from pipeline import errors
from pipeline.errors import CiteloomError, PermanentFailure, SettingError, TransientFailure
from pipeline.index.audit import audit_months
from pipeline.index.connection import LONGEST_PAUSE, Connection, NotCompleted, parse_address
from pipeline.index.opening import close_indexes, open_collections
from pipeline.index.search import search
from pipeline.index.server import ServerCollections, ServerIndex
from pipeline.index.server_requests import Storage
from pipeline.index.stages import INDEX_RECEIPTS
from pipeline.storage.provenance import Provenance
from tests.cases import cases_beside
from tests.fake_clock import FakeClock
from tests.processes import free_port
from tests.unit.index.building import embed, make_workspace, write_month


@cases_beside("url", "port", "grpc_port")
def test_grpc_is_tried_beside_the_usual_port_alone(url, port, grpc_port):
    address = parse_address(url, has_key=True)
    assert (address.port, address.grpc_port) == (port, grpc_port)
    assert parse_address(url, has_key=True, grpc_port=1234).grpc_port == 1234


@cases_beside("url")
def test_a_url_that_is_none_is_refused(url):
    with pytest.raises(SettingError, match="CITELOOM_QDRANT_URL"):
        parse_address(url, has_key=False)


def test_a_password_in_the_url_is_refused_without_being_shown():
    with pytest.raises(SettingError, match="CITELOOM_QDRANT_API_KEY") as caught:
        parse_address("https://me:hidden@host:6333", has_key=False)
    assert "hidden" not in str(caught.value)


@cases_beside("host")
def test_a_server_on_another_host_needs_https_and_a_key(host):
    with pytest.raises(SettingError, match="unencrypted"):
        ServerCollections(f"http://{host}:6333", "c", SecretStr("key"))
    with pytest.raises(SettingError, match="would be used without a key"):
        ServerCollections(f"https://{host}:6333", "c")
    ServerCollections(f"https://{host}:6333", "c", SecretStr("key"))


@pytest.mark.parametrize("key", [None, "key"])
def test_in_a_network_that_is_said_to_be_private_it_needs_neither(tmp_path, key):
    server = {"qdrant_url": "http://qdrant:6333", "qdrant_api_key": key}
    with pytest.raises(SettingError, match="CITELOOM_QDRANT_PRIVATE_NETWORK"):
        open_collections(make_workspace(tmp_path, **server))
    private = make_workspace(tmp_path, **server, qdrant_private_network=True)
    assert open_collections(private).engine == "server"
    close_indexes()


@cases_beside("host")
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


@cases_beside("answer", "status", "error", "message")
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


class Refused(grpc.RpcError):
    """An error of gRPC, with its status."""

    def code(self):
        return grpc.StatusCode[str(self)]

    def details(self):
        return str(self)


def _error(kind, *of):
    """The error of a case, which begins with its kind."""
    from qdrant_client.common.client_exceptions import ResourceExhaustedResponse
    from qdrant_client.http.exceptions import ResponseHandlingException, UnexpectedResponse

    def answered(status, content="", headers=None):
        return UnexpectedResponse(status, "reason", content.encode(), httpx.Headers(headers))

    errors = {
        "http": answered,
        "grpc": Refused,
        "no answer": lambda name: ResponseHandlingException(getattr(httpx, name)("")),
        "no model": lambda message: ResponseHandlingException(ValueError(message)),
        "exhausted": partial(ResourceExhaustedResponse, "slower"),
        "not completed": NotCompleted,
        "value": ValueError,
        "call": RuntimeError,
        "interrupt": KeyboardInterrupt,
    }
    return errors[kind](*of)


def _connection(fake, patience):
    """A connection whose client is never used, and whose pauses take no time."""
    url = "http://localhost:1"
    return Connection(url, None, grpc_port=None, patience=patience, clock=fake.clock)


def _failing(*errors):
    """A call that raises each error once, and then succeeds."""
    remaining = list(errors)

    def call(_):
        if remaining:
            raise remaining.pop(0)
        return "answer"

    return call


@cases_beside("case")
def test_an_overloaded_or_broken_server_is_asked_again(case):
    assert len(_pauses_of(_error(*case))) == 1


@cases_beside("case")
def test_an_error_that_is_not_transient_ends_the_call_at_once(case):
    fake = FakeClock()
    with pytest.raises((CiteloomError, RuntimeError, KeyboardInterrupt)):
        _connection(fake, patience=600).write(_failing(_error(*case)))
    assert fake.pauses == []


def _pauses_of(*errors):
    fake = FakeClock()
    assert _connection(fake, patience=600).write(_failing(*errors)) == "answer"
    return fake.pauses


def test_pauses_grow():
    pauses = _pauses_of(*[_error("http", 500)] * 12)
    bounds = [min(0.25 * 2**number, LONGEST_PAUSE) for number in range(12)]
    assert all(0 <= pause <= bound for pause, bound in zip(pauses, bounds, strict=True))
    assert len(set(pauses)) == 12


@cases_beside("case")
def test_a_pause_that_the_server_requests_is_kept(case):
    assert _pauses_of(_error(*case)) == [7.0]


@cases_beside("case")
def test_no_pause_begins_that_would_outlast_the_patience(case):
    patience, *error = case
    fake = FakeClock()
    with pytest.raises(TransientFailure):
        _connection(fake, patience).write(_failing(_error(*error)))
    assert fake.pauses == []


def test_a_first_try_that_outlasts_the_patience_is_repeated_once():
    """As on a dead connection, which is noticed late."""
    fake, tries = FakeClock(), []

    def call(_):
        tries.append(fake.time)
        fake.time += 35
        raise Refused("UNAVAILABLE")

    with pytest.raises(TransientFailure):
        _connection(fake, patience=30).write(call)
    assert len(tries) == 2


def _collections(httpserver, *statuses, key=None):
    """Collections on a server that answers with each status once, and then with the last one again;
    pauses take no time.
    """
    path = "/collections/c-model/exists"
    for number, status in enumerate(statuses, 1):
        is_last = number == len(statuses)
        expect = httpserver.expect_request if is_last else httpserver.expect_oneshot_request
        expect(path).respond_with_json({"result": {"exists": False}}, status, {"Retry-After": "0"})
    url, clock = httpserver.url_for(""), FakeClock().clock
    return ServerCollections(url, "c", key, patience=600, clock=clock)


def test_a_server_that_does_not_recover_is_named(httpserver):
    collections = _collections(httpserver, 503)
    with pytest.raises(TransientFailure, match=f"{httpserver.url_for('')[:-1]} answered 503"):
        collections.collection("c-model").layout()
    assert len(httpserver.log) > 1


def test_a_wrong_key_and_a_count_that_must_not_wait_are_requested_once(httpserver):
    index = _collections(httpserver, 401, 503, key=SecretStr("wrong")).collection("c-model")
    with pytest.raises(SettingError, match="CITELOOM_QDRANT_API_KEY is refused"):
        index.layout()
    with pytest.raises(TransientFailure):
        index.count("2024-03", wait=False)
    assert len(httpserver.log) == 2


@cases_beside("key")
def test_a_key_that_no_header_can_carry_is_refused_without_being_shown(key):
    with pytest.raises(SettingError, match="CITELOOM_QDRANT_API_KEY holds") as caught:
        Connection("http://localhost:6333", SecretStr(key), grpc_port=None)
    assert "hid" not in str(caught.value)


@pytest.mark.parametrize(
    ("status", "error"), [(403, SettingError), (404, PermanentFailure), (200, SettingError)]
)
def test_a_key_that_a_server_repeats_is_not_shown(httpserver, status, error):
    httpserver.expect_request("/aliases").respond_with_json(
        {"result": {"aliases": "hidden is wrong"}}, status=status
    )
    connection = Connection(httpserver.url_for(""), SecretStr("hidden"), grpc_port=None)
    with pytest.raises(error, match="… is wrong") as caught:
        connection.read(lambda client: client.get_aliases())
    assert "hidden" not in str(caught.value)
    connection.close()
