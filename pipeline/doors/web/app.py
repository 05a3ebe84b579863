"""The web application: its routes, its errors, and the servers that run it, with deadlines for
clients that send nothing, or half a request."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any
from urllib.parse import quote_from_bytes

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import BaseRoute, Route
from uvicorn.protocols.http.h11_impl import H11Protocol

from pipeline.doors import api
from pipeline.doors.web import pages
from pipeline.doors.web.guard import FORMS, Guard, Problem, problem_of, problem_response
from pipeline.doors.web.site import Site
from pipeline.engine.stage import Workspace
from pipeline.errors import CiteloomError, missing_package

_MOST_BODY_BYTES = 1 << 20
# More are answered with status 503.
_MOST_CONNECTIONS = 200
# A question takes some 5 to 30 calls.
_MOST_CALLS = 1_000

Handler = Callable[[Site, Request], Response]

_PAGES: Mapping[str, Handler] = {
    "/": pages.results_page,
    "/search": pages.results_page,
    "/passages": pages.results_page,
    "/papers": pages.papers_page,
    "/paper/{id:path}": pages.paper_page,
    "/ask": pages.ask_page,
    "/corpus": pages.corpus_page,
    "/reports/{file:path}": pages.report_file,
}
# Seconds for the head of a request, and again for its body.
DEADLINE = 10.0
# Of one address; loopback has no such limit, since all programs of this machine share it.
MOST_OF_A_CLIENT = 50


def without_mcp() -> str:
    """Why a server has no /mcp; empty where it has."""
    return missing_package("/mcp", "mcp", "mcp")


def make_app(workspace: Workspace, token: str | None = None) -> Starlette:
    """The application over a data root, without /mcp where the package mcp is absent.

    token: required of every request; None on loopback.
    """
    site = Site(workspace)
    routes: list[BaseRoute] = [_route(path, handler, site) for path, handler in _PAGES.items()]
    routes += [_route(point.path, partial(api.answer, point), site) for point in api.ENDPOINTS]
    routes += [
        Route("/openapi.json", lambda request: JSONResponse(api.openapi())),
        _text_route("/style.css", pages.style_sheet(), "text/css"),
        _text_route("/script.js", (pages.TEMPLATES / "serve.js").read_text(), "text/javascript"),
        _text_route("/icon.svg", (pages.TEMPLATES / "icon.svg").read_text(), "image/svg+xml"),
        Route("/reports", lambda request: RedirectResponse("/reports/")),
    ]
    lifespan = None
    if not without_mcp():
        from pipeline.doors.mcp import http_app

        tools = http_app(site, _MOST_BODY_BYTES, has_token=token is not None)
        routes += tools.routes
        lifespan = tools.router.lifespan_context

    def on_error(request: Request, error: Exception) -> Response:
        return refuse(request, problem_of(error, workspace))

    app = Starlette(
        routes=routes,
        middleware=[Middleware(Guard, token=token, refuse=refuse)],
        exception_handlers={Exception: on_error, 404: on_error, 405: on_error},
        lifespan=lifespan,
    )
    app.state.site = site
    return app


def _route(path: str, handler: Handler, site: Site) -> Route:
    def respond(request: Request) -> Response:
        try:
            return handler(site, request)
        # Starlette would raise it again after the response, for the server to log.
        except Exception as error:
            return refuse(request, problem_of(error, site.workspace))

    async def respond_to_form(request: Request) -> Response:
        if request.method == "POST":
            # A form is encoded as the parameters of an address are, but for UTF-8 as it is.
            form = quote_from_bytes(await _read_body(request), safe=bytes(range(128)))
            request = Request({**request.scope, "query_string": form.encode()})
        return await run_in_threadpool(respond, request)

    if path in FORMS:
        return Route(path, respond_to_form, methods=["GET", "POST"])
    return Route(path, respond, methods=["GET"])


async def _read_body(request: Request) -> bytes:
    """The body of a request, cut at the longest that is read."""
    body = b""
    async for piece in request.stream():
        body += piece
        if len(body) > _MOST_BODY_BYTES:
            break
    return body[:_MOST_BODY_BYTES]


def _text_route(path: str, text: str, media_type: str) -> Route:
    return Route(path, lambda request: Response(text, media_type=media_type))


def refuse(request: Request, problem: Problem) -> Response:
    """A problem document, or a page for a browser."""
    is_page = "text/html" in request.headers.get("accept", "")
    if request.url.path.startswith("/api/") or not is_page:
        return problem_response(problem)
    return pages.problem_page(request, problem)


def with_budget(workspace: Workspace) -> Workspace:
    """The workspace with a budget of calls for a server, where the settings give none."""
    settings = workspace.settings
    limits = (settings.llm_budget_calls, settings.llm_budget_tokens, settings.llm_budget_money)
    if any(limits) or settings.llm_budget_name:
        return workspace
    return Workspace(settings.model_copy(update={"llm_budget_calls": _MOST_CALLS}))


def run_server(workspace: Workspace, host: str, port: int, token: str | None) -> None:
    """Serve until SIGINT or SIGTERM. token: required of every request; None for no token."""
    import uvicorn
    from threadpoolctl import threadpool_limits

    # Searches run beside one another. Two threads of BLAS for each of them delayed one another: 15
    # searches a second on a busy machine took 116 ms in the median, and 77 ms with one.
    with threadpool_limits(1, user_api="blas"):
        threading.Thread(target=_warm_up, args=(workspace,), daemon=True).start()
        # uvicorn's access log would show what people search for.
        uvicorn.run(
            make_app(with_budget(workspace), token),
            host=host,
            port=port,
            access_log=False,
            log_level="error",
            server_header=False,
            timeout_graceful_shutdown=5,
            limit_concurrency=_MOST_CONNECTIONS,
            http=DeadlineProtocol,
        )


def _warm_up(workspace: Workspace) -> None:
    """Load the model and open the index, seconds for a million passages, before somebody waits."""
    from pipeline.index.search import search

    with contextlib.suppress(CiteloomError):  # the first search reports it
        search(workspace, "warm-up", limit=1)


class DeadlineProtocol(H11Protocol):
    """uvicorn's protocol, which by itself waits without end for a request to be complete."""

    deadline = DEADLINE

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._incomplete: Any = None
        self._timer = self.loop.call_later(self.deadline, self._check)
        if self.client is None or self.client[0].startswith(("127.", "::1")):
            return
        clients = [getattr(other, "client", None) for other in self.connections]
        of_this_address = [client for client in clients if client and client[0] == self.client[0]]
        if len(of_this_address) > MOST_OF_A_CLIENT:
            transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        self._timer.cancel()
        super().connection_lost(exc)

    def _check(self) -> None:
        """Close a connection that still waits for the part of a request that it waited for one
        deadline ago.
        """
        cycle = self.cycle
        waits_for_head = cycle is None or cycle.response_complete
        waits_for_body = cycle is not None and cycle.more_body
        incomplete = (cycle, waits_for_body) if waits_for_head or waits_for_body else None
        if cycle is None or (incomplete is not None and incomplete == self._incomplete):
            self.transport.close()
            return
        self._incomplete = incomplete
        self._timer = self.loop.call_later(self.deadline, self._check)
