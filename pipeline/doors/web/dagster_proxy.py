"""A proxy in front of Dagster's webserver that refuses what pages of other sites send.

Dagster runs mutations of GraphQL that arrive by GET or as text/plain, and answers to every host
name, so that any page open in a browser of this machine could launch and delete runs. Its
application is out of reach by public API, hence a server of its own.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import socket
from collections.abc import AsyncIterator
from http import HTTPStatus

import httpx2
import uvicorn
from starlette.applications import Starlette
from starlette.background import BackgroundTask
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route, WebSocketRoute
from starlette.types import ASGIApp, Receive, Scope, Send
from starlette.websockets import WebSocket, WebSocketDisconnect
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidHandshake
from websockets.typing import Subprotocol

from pipeline.doors.web.same_origin import is_cross_site, names_loopback, opens_page

# RFC 9110, section 7.6.1: they concern one connection.
_HOP_BY_HOP = {
    b"connection",
    b"keep-alive",
    b"proxy-connection",
    b"te",
    b"trailer",
    b"transfer-encoding",
    b"upgrade",
}
# Dagster's webserver closes idle connections after 5 s.
_LIMITS = httpx2.Limits(keepalive_expiry=2)
_STARTING = """<!doctype html><meta charset="utf-8"><title>Dagster is starting</title>
<h1>Dagster is starting</h1>
<p>It takes up to a minute; then this page opens by itself. The terminal says what goes wrong.</p>
"""


class DagsterGuard:
    """Passes requests on if they come from Dagster's own page, from a link to it or a program.

    public_host: host, with its port if it has one, of the operator's own proxy in front.
    """

    def __init__(self, app: ASGIApp, public_host: str | None) -> None:
        self._app, self._public_host = app, public_host

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        refusal = None if scope["type"] == "lifespan" else self._refusal(scope)
        if refusal is None:
            await self._app(scope, receive, send)
        elif scope["type"] == "websocket":
            await WebSocket(scope, receive, send).close()
        else:
            status, reason = refusal
            await PlainTextResponse(f"{reason}\n", status)(scope, receive, send)

    def _refusal(self, scope: Scope) -> tuple[HTTPStatus, str] | None:
        headers = Headers(scope=scope)
        method = scope.get("method", "GET")
        if not names_loopback(headers) and headers.getlist("host") != [self._public_host]:
            return (
                HTTPStatus.MISDIRECTED_REQUEST,
                "this server answers to localhost and 127.0.0.1 only; a proxy's name is given with"
                " citeloom ui --public-host",
            )
        is_page = scope["type"] == "http" and opens_page(method, headers)
        if is_cross_site(headers, self._public_host) and not is_page:
            return HTTPStatus.FORBIDDEN, "this server does not answer to pages of other sites"
        if method not in ("GET", "HEAD", "POST"):
            return HTTPStatus.METHOD_NOT_ALLOWED, "this server answers GET and POST only"
        media_type = headers.get("content-type", "").partition(";")[0].strip().lower()
        if method == "POST" and media_type != "application/json":
            return HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "send JSON, as application/json"
        return None


def make_proxy(dagster: str, public_host: str | None = None) -> Starlette:
    """The application. dagster: `http://host:port` of Dagster's webserver."""
    webserver = httpx2.URL(dagster)

    def target(scope: Scope) -> httpx2.URL:
        query = b"?" + scope["query_string"] if scope["query_string"] else b""
        return webserver.copy_with(raw_path=scope["raw_path"] + query)

    @contextlib.asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        # Settings of the environment are for other hosts. Answers take as long as Dagster's
        # databases do.
        async with httpx2.AsyncClient(trust_env=False, timeout=None, limits=_LIMITS) as client:
            client.headers.clear()
            app.state.client = client
            yield

    async def forward(request: Request) -> Response:
        url = target(request.scope)
        # Dagster would run a mutation that an image or a link of another site names.
        if request.method == "GET" and url.path == "/graphql" and "query" in request.query_params:
            return PlainTextResponse("send GraphQL by POST\n", HTTPStatus.METHOD_NOT_ALLOWED)
        client: httpx2.AsyncClient = request.app.state.client
        outgoing = client.build_request(
            request.method,
            url,
            headers=_end_to_end(request.headers.raw),
            content=await request.body(),
        )
        try:
            answer = await client.send(outgoing, stream=True)
        except httpx2.TransportError:
            return HTMLResponse(
                _STARTING,
                HTTPStatus.SERVICE_UNAVAILABLE,
                headers={"Refresh": "1", "Retry-After": "1"},
            )
        response = StreamingResponse(
            answer.aiter_raw(), answer.status_code, background=BackgroundTask(answer.aclose)
        )
        response.raw_headers = _end_to_end(answer.headers.raw)
        return response

    async def forward_socket(browser: WebSocket) -> None:
        protocols = [Subprotocol(name) for name in browser.scope["subprotocols"]]
        url = target(browser.scope).copy_with(scheme="ws")
        try:
            async with connect(
                str(url), subprotocols=protocols, proxy=None, compression=None, max_size=None
            ) as upstream:
                await browser.accept(upstream.subprotocol)
                await _exchange(browser, upstream)
        except (OSError, InvalidHandshake):
            await browser.close()

    app = Starlette(
        routes=[
            Route("/{path:path}", forward, methods=["GET", "POST"]),
            WebSocketRoute("/{path:path}", forward_socket),
        ],
        lifespan=lifespan,
    )
    app.add_middleware(DagsterGuard, public_host=public_host)
    return app


def _end_to_end(headers: list[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    lower = [(name.lower(), value) for name, value in headers]
    return [header for header in lower if header[0] not in _HOP_BY_HOP]


async def _exchange(browser: WebSocket, upstream: ClientConnection) -> None:
    """Pass messages on in both directions until one side closes its connection."""

    async def from_browser() -> None:
        with contextlib.suppress(ConnectionClosed):
            async for message in browser.iter_text():
                await upstream.send(message)

    async def from_upstream() -> None:
        with contextlib.suppress(WebSocketDisconnect):
            async for message in upstream:
                await browser.send_text(message if isinstance(message, str) else message.decode())

    directions = [asyncio.create_task(from_browser()), asyncio.create_task(from_upstream())]
    _, unfinished = await asyncio.wait(directions, return_when=asyncio.FIRST_COMPLETED)
    for task in unfinished:
        task.cancel()
    with contextlib.suppress(RuntimeError):  # the browser closed it
        await browser.close()


def main() -> None:
    """Serve on a listening socket that the parent process hands on, until that process is gone."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--socket", type=int, required=True)
    parser.add_argument("--parent", type=int, required=True)
    parser.add_argument("--dagster", required=True)
    parser.add_argument("--public-host")
    arguments = parser.parse_args()
    server = uvicorn.Server(
        uvicorn.Config(
            make_proxy(arguments.dagster, arguments.public_host),
            access_log=False,
            log_level="error",
            server_header=False,
            date_header=False,
            proxy_headers=False,
            ws_max_size=1 << 30,
            timeout_graceful_shutdown=1,
        )
    )

    async def end_with_parent() -> None:
        while os.getppid() == arguments.parent:
            await asyncio.sleep(1)
        server.should_exit = True

    async def serve() -> None:
        watch = asyncio.create_task(end_with_parent())
        await server.serve([socket.socket(fileno=arguments.socket)])
        watch.cancel()

    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(serve())


if __name__ == "__main__":
    main()
