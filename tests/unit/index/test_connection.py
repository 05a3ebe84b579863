"""A connection whose key cannot be sent, whose gRPC comes late, or that is closed during a call.

Of the server there is no more here than what a connection asks of one: its aliases, and to take points.
"""

from __future__ import annotations

import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import grpc
import pytest
from pydantic import SecretStr
from pytest_httpserver import HTTPServer

from pipeline.errors import PermanentFailure, SettingError
from pipeline.index.connection import Connection


@contextmanager
def _grpc_server(port: int = 0, host: str = "127.0.0.1") -> Iterator[tuple[int, list[str]]]:
    """A gRPC server's port, and the methods that it is asked for."""
    from qdrant_client import grpc as messages

    asked: list[str] = []
    done = messages.PointsOperationResponse(result=messages.UpdateResult(status=messages.UpdateStatus.Completed))
    answers = {
        "/qdrant.Collections/ListAliases": messages.ListAliasesResponse().SerializeToString(),
        "/qdrant.Points/Upsert": done.SerializeToString(),
    }

    class Everything(grpc.GenericRpcHandler):  # type: ignore[misc]
        def service(self, details: Any) -> Any:
            asked.append(details.method)
            return grpc.unary_unary_rpc_method_handler(lambda request, context: answers[details.method])

    server = grpc.server(ThreadPoolExecutor(2), [Everything()])
    listening = server.add_insecure_port(f"{host}:{port}")
    server.start()
    try:
        yield listening, asked
    finally:
        server.stop(None).wait()


class _Clock:
    """A clock that goes on when it is told to."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def _send(connection: Connection) -> None:
    connection.send("c", lambda: b"message", lambda: b"{}")


@pytest.fixture
def over_http(httpserver: HTTPServer) -> HTTPServer:
    """The same server over HTTP."""
    httpserver.expect_request("/aliases").respond_with_json({"result": {"aliases": []}, "status": "ok", "time": 0})
    httpserver.expect_request("/collections/c/points").respond_with_json(
        {"result": {"operation_id": 1, "status": "completed"}, "status": "ok", "time": 0}
    )
    return httpserver


@pytest.mark.parametrize("key", ["hidden\n", "hid\rden", " hidden", "hidden\u20ac"])
def test_a_key_that_no_header_can_carry_is_refused_without_being_shown(key: str) -> None:
    with pytest.raises(SettingError, match="CITELOOM_QDRANT_API_KEY holds") as caught:
        Connection("http://localhost:6333", SecretStr(key), grpc_port=None)
    assert "hid" not in str(caught.value)


@pytest.mark.parametrize(("status", "error"), [(403, SettingError), (404, PermanentFailure), (200, SettingError)])
def test_a_key_that_a_server_repeats_is_not_shown(httpserver: HTTPServer, status: int, error: type[Exception]) -> None:
    httpserver.expect_request("/aliases").respond_with_json({"result": {"aliases": "hidden is wrong"}}, status=status)
    connection = Connection(httpserver.url_for(""), SecretStr("hidden"), grpc_port=None)
    with pytest.raises(error, match="… is wrong") as caught:
        connection.ask(lambda client: client.get_aliases())
    assert "hidden" not in str(caught.value)
    connection.close()


def test_grpc_that_comes_late_is_found_by_a_load_that_began_over_http(over_http: HTTPServer) -> None:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        port = bound.getsockname()[1]
    clock = _Clock()
    connection = Connection(over_http.url_for(""), None, grpc_port=port, clock=clock)
    _send(connection)
    with _grpc_server(port) as (_, asked):
        _send(connection)
        assert asked == []
        clock.now += 3600
        _send(connection)
        _send(connection)
        assert asked.count("/qdrant.Points/Upsert") == 2
    puts = [request for request, _ in over_http.log if request.method == "PUT"]
    assert len(puts) == 2
    connection.close()


def test_a_call_whose_connection_is_closed_meanwhile_is_made_again_on_another(over_http: HTTPServer) -> None:
    with _grpc_server() as (port, _):
        for grpc_port in (port, None):
            connection = Connection(over_http.url_for(""), None, grpc_port=grpc_port)
            tried: list[object] = []

            def closing(client: Any, connection: Connection = connection, tried: list[object] = tried) -> Any:
                tried.append(client)
                if len(tried) == 1:
                    connection.close()
                return client.get_aliases()

            assert connection.ask(closing).aliases == []
            assert len(set(map(id, tried))) == 2
            connection.close()


def test_points_are_sent_again_where_the_connection_was_closed_before(over_http: HTTPServer) -> None:
    connection = Connection(over_http.url_for(""), None, grpc_port=None)
    closed: list[bool] = []

    def body() -> bytes:
        if not closed:
            closed.append(True)
            connection.close()
        return b"{}"

    connection.send("c", lambda: b"", body)
    assert connection.retries.count == 1
    connection.close()


def test_an_error_of_the_question_itself_is_not_taken_for_a_closed_connection(over_http: HTTPServer) -> None:
    connection = Connection(over_http.url_for(""), None, grpc_port=None)

    def wrong(_: Any) -> None:
        raise RuntimeError("made up by a test")

    with pytest.raises(RuntimeError, match="made up by a test"):
        connection.change(wrong)
    assert connection.retries.count == 0
    connection.close()


@pytest.mark.skipif(not socket.has_ipv6, reason="this machine has no IPv6")
def test_points_go_over_grpc_to_an_ipv6_address() -> None:
    try:
        with _grpc_server(host="[::1]") as (port, asked):
            connection = Connection("http://[::1]:1", None, grpc_port=port)
            _send(connection)
            connection.close()
            assert "/qdrant.Points/Upsert" in asked
    except RuntimeError as error:
        pytest.skip(f"the loopback of this machine has no IPv6 ({error})")
