"""What is asked again, for how long, and what is told when it does not help. No server runs here but a false one."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import grpc
import httpx
import pytest
from pydantic import SecretStr
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

from pipeline.errors import SettingError, TransientFailure
from pipeline.index.retries import LONGEST_PAUSE, NotDone, Retries, asked_for, may_pass
from pipeline.index.server_collections import ServerCollections


class Refused(grpc.RpcError):
    """What gRPC raises, with a status."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self._name = name

    def code(self) -> grpc.StatusCode:
        """The status."""
        return grpc.StatusCode[self._name]


def _http(status: int, headers: dict[str, str] | None = None) -> Exception:
    from qdrant_client.http.exceptions import UnexpectedResponse

    return UnexpectedResponse(status, "reason", b"", httpx.Headers(headers or {}))


def _unanswered(source: Exception) -> Exception:
    from qdrant_client.http.exceptions import ResponseHandlingException

    return ResponseHandlingException(source)


def _exhausted(seconds: int) -> Exception:
    from qdrant_client.common.client_exceptions import ResourceExhaustedResponse

    return ResourceExhaustedResponse("slower", seconds)


class Clock:
    """Pauses that take no time, written down."""

    def __init__(self) -> None:
        self.pauses: list[float] = []

    def __call__(self, seconds: float) -> None:
        self.pauses.append(seconds)


def _failing(*errors: BaseException) -> Callable[[], str]:
    """A question that fails so, once for each error, and is answered then."""
    left = list(errors)

    def question() -> str:
        if left:
            raise left.pop(0)
        return "answer"

    return question


@pytest.mark.parametrize("status", [429, 500, 502, 503, 504])
def test_an_overloaded_or_broken_server_is_asked_again(status: int) -> None:
    assert may_pass(_http(status))


@pytest.mark.parametrize(
    "name", ["UNAVAILABLE", "DEADLINE_EXCEEDED", "RESOURCE_EXHAUSTED", "ABORTED", "INTERNAL", "UNKNOWN"]
)
def test_over_grpc_too(name: str) -> None:
    assert may_pass(Refused(name))


def test_a_dropped_connection_and_a_change_that_is_not_done_are_asked_again() -> None:
    assert may_pass(_unanswered(httpx.RemoteProtocolError("server disconnected")))
    assert may_pass(_unanswered(httpx.ReadTimeout("")))
    assert may_pass(_exhausted(3))
    assert may_pass(NotDone("acknowledged"))


@pytest.mark.parametrize(
    "error",
    [
        *[Refused(name) for name in ("UNAUTHENTICATED", "PERMISSION_DENIED", "INVALID_ARGUMENT", "NOT_FOUND")],
        ValueError("no JSON"),
        KeyboardInterrupt(),
    ],
    ids=str,
)
def test_what_does_not_pass_is_not_asked_again(error: BaseException) -> None:
    clock = Clock()
    retries = Retries(clock)
    with pytest.raises(type(error)):
        retries.ask(_failing(error), patience=60)
    assert (retries.count, clock.pauses) == (0, [])


@pytest.mark.parametrize("status", [400, 401, 403, 404, 409, 422])
def test_a_refusal_over_http_is_not_asked_again(status: int) -> None:
    assert not may_pass(_http(status))


def test_an_answer_that_is_none_of_qdrants_is_not_asked_again() -> None:
    assert not may_pass(_unanswered(ValueError("field required")))


def test_retries_are_counted_and_pauses_widen() -> None:
    clock = Clock()
    retries = Retries(clock)
    assert retries.ask(_failing(*[_http(500)] * 12), patience=600) == "answer"
    assert retries.count == len(clock.pauses) == 12
    bounds = [min(0.25 * 2**number, LONGEST_PAUSE) for number in range(12)]
    assert all(0 <= pause <= bound for pause, bound in zip(clock.pauses, bounds, strict=True))
    assert len(set(clock.pauses)) == 12


@pytest.mark.parametrize("error", [_http(429, {"retry-after": "7"}), _http(503, {"Retry-After": "7"}), _exhausted(7)])
def test_a_pause_that_the_server_asks_for_is_kept(error: Exception) -> None:
    clock = Clock()
    assert Retries(clock).ask(_failing(error), patience=60) == "answer"
    assert clock.pauses == [7.0]


@pytest.mark.parametrize("said", ["", "soon", "Wed, 21 Oct 2026 07:28:00 GMT", "-5"])
def test_a_pause_that_is_no_number_is_none(said: str) -> None:
    assert asked_for(_http(429, {"retry-after": said})) == 0


def test_patience_ends_before_a_pause_that_would_outlast_it() -> None:
    clock = Clock()
    with pytest.raises(Exception, match="slower"):
        Retries(clock).ask(_failing(_exhausted(61)), patience=60)
    assert clock.pauses == []


def test_a_try_that_outlasts_the_patience_is_made_once_more() -> None:
    """As on a line that went silent, which is noticed late."""
    tries: list[float] = []

    def question() -> str:
        tries.append(time.monotonic())
        time.sleep(0.35)
        raise Refused("UNAVAILABLE")

    with pytest.raises(Refused):
        Retries(Clock()).ask(question, patience=0.3)
    assert len(tries) == 2


def test_a_request_that_was_cut_on_its_way_is_sent_again() -> None:
    from qdrant_client.http.exceptions import UnexpectedResponse

    said = b'{"status":{"error":"Format error in JSON body: EOF while parsing a string at line 1 column 9"}}'
    assert may_pass(UnexpectedResponse(400, "Bad Request", said, httpx.Headers()))
    assert not may_pass(UnexpectedResponse(400, "Bad Request", b"Wrong input: vector dimension", httpx.Headers()))


def test_without_patience_it_is_asked_once() -> None:
    with pytest.raises(NotDone):
        Retries(Clock()).ask(_failing(NotDone("not done")), patience=0)


@pytest.fixture
def answers(httpserver: HTTPServer) -> list[tuple[int, Any]]:
    """What the server will answer to the next requests; the last over and over."""
    left: list[tuple[int, Any]] = []

    def answer(_: Request) -> Response:
        status, result = left[0]
        if len(left) > 1:
            del left[0]
        headers = {"Retry-After": "0"} if status == 429 else {}
        return Response(f'{{"result": {result}}}', status, headers, content_type="application/json")

    httpserver.expect_request("/collections/c-model/exists").respond_with_handler(answer)
    return left


def _opened(httpserver: HTTPServer, patience: float, key: str | None = None) -> ServerCollections:
    return ServerCollections(httpserver.url_for(""), "c", None if key is None else SecretStr(key), patience=patience)


def test_a_server_that_recovers_is_not_told_of(httpserver: HTTPServer, answers: list[tuple[int, Any]]) -> None:
    answers += [(500, "null"), (429, "null"), (503, "null"), (200, '{"exists": false}')]
    collections = _opened(httpserver, patience=60)
    assert collections.collection("c-model").layout() is None
    assert collections.retries == collections.collection("c-model").retries == 3


def test_a_server_that_does_not_recover_is_named(httpserver: HTTPServer, answers: list[tuple[int, Any]]) -> None:
    answers += [(503, "null")]
    collections = _opened(httpserver, patience=0.5)
    with pytest.raises(TransientFailure, match=f"{httpserver.url_for('')[:-1]} answered 503"):
        collections.collection("c-model").layout()
    assert collections.retries > 0


def test_a_wrong_key_is_never_tried_again(httpserver: HTTPServer, answers: list[tuple[int, Any]]) -> None:
    answers += [(401, "null")]
    collections = _opened(httpserver, patience=60, key="wrong")
    with pytest.raises(SettingError, match="CITELOOM_QDRANT_API_KEY is refused"):
        collections.collection("c-model").layout()
    assert (collections.retries, len(httpserver.log)) == (0, 1)


def test_a_count_that_must_not_wait_asks_once(httpserver: HTTPServer, answers: list[tuple[int, Any]]) -> None:
    answers += [(503, "null")]
    with pytest.raises(TransientFailure):
        _opened(httpserver, patience=60).collection("c-model").count("2024-03", wait=False)
    assert len(httpserver.log) == 1
