"""Connections that send nothing, or half a request, end; a request that is sent away is quiet."""

import asyncio
import socket

import pytest
from starlette.requests import ClientDisconnect
from starlette.responses import PlainTextResponse

from pipeline.doors.web.app import DeadlineProtocol, refuse, with_budget
from pipeline.doors.web.guard import Guard
from tests.processes import PATIENCE
from tests.unit.doors.conftest import serving
from tests.workspaces import changed

HEAD = b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n"


class Impatient(DeadlineProtocol):
    deadline = 0.3


@pytest.fixture(scope="module")
def port():
    async def app(scope, receive, send):
        while (await receive()).get("more_body"):
            pass
        await PlainTextResponse("whole")(scope, receive, send)

    with serving(app, lifespan="off", log_level="error", http=Impatient) as address:
        yield int(address.partition(":")[2])


@pytest.mark.parametrize("sent", [b"", b"GET / HT", HEAD, HEAD + b"half"])
def test_an_incomplete_request_is_closed(port, sent):
    with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE) as connection:
        connection.sendall(sent)
        assert b"whole" not in connection.recv(1000)


def test_a_whole_request_is_answered(port):
    with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE) as connection:
        connection.sendall(HEAD + b"123456789")
        assert b"whole" in connection.recv(1000)


def test_a_client_that_leaves_is_no_error(corpus):
    async def app(scope, receive, send):
        raise ClientDisconnect

    async def nothing(*_):
        pass

    scope = {"type": "http", "method": "POST", "path": "/ask", "headers": [(b"host", b"localhost")]}
    asyncio.run(Guard(app, None, refuse)(scope, nothing, nothing))


def test_a_server_has_a_budget_where_the_settings_give_none(corpus):
    limited = with_budget(corpus).settings
    assert limited.llm_budget_calls == 1_000
    own = changed(corpus, llm_budget_tokens=5)
    assert with_budget(own) is own
