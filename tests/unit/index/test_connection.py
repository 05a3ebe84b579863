"""A connection to a server: what is retried and for how long, and wrong keys. No Qdrant runs."""

import grpc
import httpx
import pytest
from pydantic import SecretStr

from pipeline.errors import CiteloomError, PermanentFailure, SettingError, TransientFailure
from pipeline.index.connection import LONGEST_PAUSE, Connection, NotCompleted
from pipeline.index.server import ServerCollections
from tests.fake_clock import FakeClock


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


def _collections(httpserver, *statuses, key=None):
    """Collections on a server that answers with each status once, and then with the last one again;
    pauses take no time.
    """
    path = "/collections/c-model/exists"
    for number, status in enumerate(statuses, 1):
        is_last = number == len(statuses)
        expect = httpserver.expect_request if is_last else httpserver.expect_oneshot_request
        answer = {"result": {"exists": False}}
        expect(path).respond_with_json(answer, status, {"Retry-After": "0"})
    secret = None if key is None else SecretStr(key)
    return ServerCollections(
        httpserver.url_for(""), "c", secret, patience=600, clock=FakeClock().clock
    )


def test_a_server_that_recovers_causes_no_error(httpserver, monkeypatch):
    monkeypatch.setattr("pipeline.index.connection.FIRST_READ_PATIENCE", 600.0)
    collections = _collections(httpserver, 500, 429, 503, 200)
    assert collections.collection("c-model").layout() is None
    assert len(httpserver.log) == 4


def test_a_server_that_does_not_recover_is_named(httpserver):
    collections = _collections(httpserver, 503)
    with pytest.raises(TransientFailure, match=f"{httpserver.url_for('')[:-1]} answered 503"):
        collections.collection("c-model").layout()
    assert len(httpserver.log) > 1


def test_a_wrong_key_and_a_count_that_must_not_wait_are_requested_once(httpserver):
    index = _collections(httpserver, 401, 503, key="wrong").collection("c-model")
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
