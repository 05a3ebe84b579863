"""A connection to a server: what is retried and for how long, gRPC or HTTP, wrong keys, and closing
during a call.

Qdrant is a fake that knows no more than its aliases and how to take points.
"""

import socket
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import grpc
import httpx
import pytest
from pydantic import SecretStr
from werkzeug import Response

from pipeline.errors import CiteloomError, PermanentFailure, SettingError, TransientFailure
from pipeline.index.connection import LONGEST_PAUSE, Connection, NotCompleted
from pipeline.index.server import ServerCollections
from tests.fake_clock import FakeClock
from tests.unit.index.building import make_points


class Refused(grpc.RpcError):
    """An error of gRPC, with its status."""

    def code(self):
        return grpc.StatusCode[str(self)]

    def details(self):
        return str(self)


def _http_error(status, headers=None, content=b""):
    from qdrant_client.http.exceptions import UnexpectedResponse

    return UnexpectedResponse(status, "reason", content, httpx.Headers(headers or {}))


def _no_answer(source):
    from qdrant_client.http.exceptions import ResponseHandlingException

    return ResponseHandlingException(source)


def _exhausted(seconds):
    from qdrant_client.common.client_exceptions import ResourceExhaustedResponse

    return ResourceExhaustedResponse("slower", seconds)


def _connection(fake, patience):
    """A connection whose client is never used, and whose pauses take no time."""
    return Connection(
        "http://localhost:1", None, grpc_port=None, patience=patience, clock=fake.clock
    )


def _failing(*errors):
    """A call that raises each error once, and then succeeds."""
    remaining = list(errors)

    def call(_):
        if remaining:
            raise remaining.pop(0)
        return "answer"

    return call


INCOMPLETE = (
    b'{"status":{"error":"Format error in JSON body: EOF while parsing a string at line 1 column'
    b' 9"}}'
)
TRANSIENT_STATUSES = (
    "UNAVAILABLE",
    "DEADLINE_EXCEEDED",
    "RESOURCE_EXHAUSTED",
    "ABORTED",
    "INTERNAL",
    "CANCELLED",
    "UNKNOWN",
)


@pytest.mark.parametrize(
    "error",
    [
        *[_http_error(status) for status in (429, 500, 502, 503, 504)],
        *[Refused(name) for name in TRANSIENT_STATUSES],
        _no_answer(httpx.RemoteProtocolError("server disconnected")),
        _no_answer(httpx.ReadTimeout("")),
        _exhausted(3),
        NotCompleted("acknowledged"),
        _http_error(400, content=INCOMPLETE),
    ],
    ids=repr,
)
def test_an_overloaded_or_broken_server_is_asked_again(error):
    fake = FakeClock()
    assert _connection(fake, patience=600).write(_failing(error)) == "answer"
    assert len(fake.pauses) == 1


@pytest.mark.parametrize(
    "error",
    [
        *[
            Refused(name)
            for name in ("UNAUTHENTICATED", "PERMISSION_DENIED", "INVALID_ARGUMENT", "NOT_FOUND")
        ],
        *[_http_error(status) for status in (401, 403, 404, 409, 422)],
        _http_error(400, content=b"Wrong input: vector dimension"),
        _no_answer(ValueError("field required")),
        ValueError("no JSON"),
        RuntimeError("of the call itself, and no closed connection"),
        KeyboardInterrupt(),
    ],
    ids=repr,
)
def test_an_error_that_is_not_transient_ends_the_call_at_once(error):
    fake = FakeClock()
    with pytest.raises((CiteloomError, RuntimeError, KeyboardInterrupt)):
        _connection(fake, patience=600).write(_failing(error))
    assert fake.pauses == []


def test_pauses_grow():
    fake = FakeClock()
    assert _connection(fake, patience=600).write(_failing(*[_http_error(500)] * 12)) == "answer"
    assert len(fake.pauses) == 12
    bounds = [min(0.25 * 2**number, LONGEST_PAUSE) for number in range(12)]
    assert all(0 <= pause <= bound for pause, bound in zip(fake.pauses, bounds, strict=True))
    assert len(set(fake.pauses)) == 12


@pytest.mark.parametrize(
    "error",
    [_http_error(429, {"retry-after": "7"}), _http_error(503, {"Retry-After": "7"}), _exhausted(7)],
)
def test_a_pause_that_the_server_requests_is_kept(error):
    fake = FakeClock()
    assert _connection(fake, patience=600).write(_failing(error)) == "answer"
    assert fake.pauses == [7.0]


@pytest.mark.parametrize(
    ("patience", "error"), [(60, _exhausted(61)), (0, NotCompleted("not done"))]
)
def test_no_pause_begins_that_would_outlast_the_patience(patience, error):
    fake = FakeClock()
    with pytest.raises(TransientFailure):
        _connection(fake, patience).write(_failing(error))
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


@pytest.fixture
def answers(httpserver):
    """Status and result of the server's next answers; the last one is repeated."""
    remaining = []

    def answer(_):
        status, result = remaining[0]
        if len(remaining) > 1:
            del remaining[0]
        headers = {"Retry-After": "0"} if status == 429 else {}
        return Response(f'{{"result": {result}}}', status, headers, content_type="application/json")

    httpserver.expect_request("/collections/c-model/exists").respond_with_handler(answer)
    return remaining


def _collections(httpserver, key=None):
    """Collections whose pauses take no time."""
    secret = None if key is None else SecretStr(key)
    return ServerCollections(
        httpserver.url_for(""), "c", secret, patience=600, clock=FakeClock().clock
    )


def test_a_server_that_recovers_causes_no_error(httpserver, answers, monkeypatch):
    monkeypatch.setattr("pipeline.index.connection.FIRST_READ_PATIENCE", 600.0)
    answers += [(500, "null"), (429, "null"), (503, "null"), (200, '{"exists": false}')]
    collections = _collections(httpserver)
    assert collections.collection("c-model").layout() is None
    assert len(httpserver.log) == 4


def test_a_server_that_does_not_recover_is_named(httpserver, answers):
    answers += [(503, "null")]
    collections = _collections(httpserver)
    with pytest.raises(TransientFailure, match=f"{httpserver.url_for('')[:-1]} answered 503"):
        collections.collection("c-model").layout()
    assert len(httpserver.log) > 1


def test_a_wrong_key_and_a_count_that_must_not_wait_are_requested_once(httpserver, answers):
    answers += [(401, "null"), (503, "null")]
    index = _collections(httpserver, key="wrong").collection("c-model")
    with pytest.raises(SettingError, match="CITELOOM_QDRANT_API_KEY is refused"):
        index.layout()
    with pytest.raises(TransientFailure):
        index.count("2024-03", wait=False)
    assert len(httpserver.log) == 2


@pytest.mark.parametrize("key", ["hidden\n", " hidden", "hidden\u20ac"])
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


@contextmanager
def _grpc_server(host="127.0.0.1"):
    """A gRPC server's port, and the methods that are called."""
    from qdrant_client import grpc as messages

    methods = []
    completed = messages.PointsOperationResponse(
        result=messages.UpdateResult(status=messages.UpdateStatus.Completed)
    )
    answers = {
        "/qdrant.Collections/ListAliases": messages.ListAliasesResponse().SerializeToString(),
        "/qdrant.Points/Upsert": completed.SerializeToString(),
    }

    class Everything(grpc.GenericRpcHandler):
        def service(self, details):
            methods.append(details.method)
            return grpc.unary_unary_rpc_method_handler(
                lambda request, context: answers[details.method]
            )

    server = grpc.server(ThreadPoolExecutor(2), [Everything()])
    port = server.add_insecure_port(f"{host}:0")
    server.start()
    try:
        yield port, methods
    finally:
        server.stop(None).wait()


@pytest.fixture
def http_aliases(httpserver):
    """A server that lists its aliases over HTTP."""
    httpserver.expect_request("/aliases").respond_with_json(
        {"result": {"aliases": []}, "status": "ok", "time": 0}
    )
    return httpserver


def test_a_call_whose_connection_is_closed_by_another_thread_is_repeated(http_aliases):
    with _grpc_server() as (port, _):
        for grpc_port in (port, None):
            connection = Connection(http_aliases.url_for(""), None, grpc_port=grpc_port)
            clients = []

            def closing(client, connection=connection, clients=clients):
                clients.append(client)
                if len(clients) == 1:
                    connection.close()
                return client.get_aliases()

            assert connection.read(closing).aliases == []
            assert len(set(map(id, clients))) == 2
            connection.close()


@pytest.mark.skipif(not socket.has_ipv6, reason="this machine has no IPv6")
def test_points_go_over_grpc_to_an_ipv6_address():
    try:
        with _grpc_server("[::1]") as (port, methods):
            collections = ServerCollections("http://[::1]:1", "c", grpc_port=port)
            collections.collection("c-model")._upsert(make_points([1]))
            collections.close()
            assert "/qdrant.Points/Upsert" in methods
    except RuntimeError as error:
        pytest.skip(f"the loopback of this machine has no IPv6 ({error})")
