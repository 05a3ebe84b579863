"""Who may send a request, headers that keep a response from doing harm in a browser, and errors as
problem documents (RFC 9457).
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import contextlib
import logging
import re
import secrets
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from http import HTTPStatus
from typing import Literal

import orjson
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from pipeline.doors.web.same_origin import is_cross_site, names_loopback, opens_page
from pipeline.engine.redaction import collect_secrets, redact_error
from pipeline.engine.stage import Workspace
from pipeline.errors import CiteloomError, MissingInput, SettingError, TransientFailure
from pipeline.index.edge_folder import IndexInUse
from pipeline.report.rendering import script_source

POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; form-action 'self';"
    " base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "private, no-cache",
}
_METHODS = ("GET", "HEAD")
FORMS = ("/ask", "/api/ask")
"""Paths to which questions are posted."""
PROBLEM_TYPE = "application/problem+json"
_RETRY_SECONDS = 5
# With 200 connections, 400 guesses a second at most.
_WRONG_TOKEN_SECONDS = 0.5
_OPTION = re.compile(r"(?<!\w)--(?=[a-z])")

_log = logging.getLogger(__name__)


ProblemKind = Literal[
    "wrong-parameter", "token", "cross-site", "not-found", "method", "host", "request",
    "index-in-use", "temporary", "cannot-answer", "internal",
]  # fmt: skip
"""The end of a problem's type."""


@dataclass(frozen=True, slots=True)
class Problem:
    """A problem document. type: kind of problem, for programs; detail: its cause, for people."""

    type: str
    title: str
    status: int
    detail: str

    @property
    def headers(self) -> Mapping[str, str]:
        if self.status == HTTPStatus.SERVICE_UNAVAILABLE:
            return {"Retry-After": str(_RETRY_SECONDS)}
        return {}


def problem_of(error: Exception, workspace: Workspace) -> Problem:
    """The problem document of an error without secrets; unexpected ones are only logged."""
    redacted = redact_error(error, collect_secrets(workspace.settings))
    # Messages name options of the command line, which are parameters here.
    detail = _OPTION.sub("", str(redacted))
    if isinstance(error, IndexInUse):
        return _problem("index-in-use", HTTPStatus.SERVICE_UNAVAILABLE, detail)
    if isinstance(error, TransientFailure):
        return _problem("temporary", HTTPStatus.SERVICE_UNAVAILABLE, detail)
    if isinstance(error, SettingError):
        return _problem("wrong-parameter", HTTPStatus.BAD_REQUEST, detail)
    if isinstance(error, MissingInput):
        return _problem("not-found", HTTPStatus.NOT_FOUND, detail)
    if isinstance(error, HTTPException):
        return _problem("request", HTTPStatus(error.status_code), str(error.detail))
    if isinstance(error, CiteloomError):
        return _problem("cannot-answer", HTTPStatus.INTERNAL_SERVER_ERROR, detail)
    _log.error("a request failed", exc_info=redacted)
    return _problem("internal", HTTPStatus.INTERNAL_SERVER_ERROR, "the server's log has the reason")


def _problem(kind: ProblemKind, status: HTTPStatus, detail: str) -> Problem:
    return Problem(f"urn:citeloom:{kind}", status.phrase, int(status), detail)


def problem_response(problem: Problem) -> Response:
    """A problem document."""
    return Response(
        orjson.dumps(asdict(problem)),
        problem.status,
        headers=dict(problem.headers),
        media_type=PROBLEM_TYPE,
    )


def report_policy() -> str:
    """The policy of report pages: styles in the page, and one script, which sorts tables."""
    return (
        f"default-src 'none'; style-src 'unsafe-inline'; script-src {script_source()}; base-uri"
        " 'none'; form-action 'none'; frame-ancestors 'none'"
    )


class Guard:
    """Lets requests with the token pass or, without one, those to this machine; adds headers.

    Without a token, a page of another site could reach a server on loopback through a host name of
    its own that leads to 127.0.0.1 (DNS rebinding), so that the header Host must name loopback.
    """

    def __init__(
        self, app: ASGIApp, token: str | None, refuse: Callable[[Request, Problem], Response]
    ) -> None:
        self._app, self._token, self._refuse = app, token, refuse

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in {"Content-Security-Policy": POLICY, **HEADERS}.items():
                    headers.setdefault(name, value)
            await send(message)

        problem = self._problem(scope)
        if problem is None:
            with contextlib.suppress(ClientDisconnect):
                await self._app(scope, receive, send_with_headers)
            return
        response = self._refuse(Request(scope), problem)
        if problem.status == 401:
            if "authorization" in Headers(scope=scope):
                await asyncio.sleep(_WRONG_TOKEN_SECONDS)
            response.headers["WWW-Authenticate"] = 'Basic realm="citeloom", charset="UTF-8"'
        await response(scope, receive, send_with_headers)

    def _problem(self, scope: Scope) -> Problem | None:
        headers = Headers(scope=scope)
        if self._token is not None:
            if not secrets.compare_digest(_token_of(headers).encode(), self._token.encode()):
                return _problem(
                    "token",
                    HTTPStatus.UNAUTHORIZED,
                    "give the token of this server: as Authorization: Bearer TOKEN, or as the"
                    " password in a browser",
                )
        elif not names_loopback(headers):
            return _problem(
                "host",
                HTTPStatus.MISDIRECTED_REQUEST,
                "this server answers to localhost and 127.0.0.1 only",
            )
        follows_link = opens_page(scope["method"], headers) and not scope["path"].startswith(
            "/api/"
        )
        if is_cross_site(headers) and not follows_link:
            return _problem(
                "cross-site",
                HTTPStatus.FORBIDDEN,
                "other sites may link to pages of this server, and nothing else",
            )
        is_post = scope["method"] == "POST" and scope["path"] in FORMS
        if scope["method"] not in _METHODS and scope["path"] != "/mcp" and not is_post:
            return _problem(
                "method",
                HTTPStatus.METHOD_NOT_ALLOWED,
                "this server only answers GET requests, and questions by POST",
            )
        return None


def _token_of(headers: Headers) -> str:
    """The token of a request: a bearer's, or the password that browsers ask for (basic)."""
    scheme, _, value = headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer":
        return value.strip()
    if scheme.lower() == "basic":
        try:
            return base64.b64decode(value, validate=True).decode().partition(":")[2]
        except (binascii.Error, UnicodeDecodeError):
            return ""
    return ""
