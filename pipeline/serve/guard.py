"""Who may send a request, and the headers that keep a response from doing harm in a browser."""

from __future__ import annotations

import base64
import binascii
import secrets
from collections.abc import Callable
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from pipeline.report.rendering import script_source
from pipeline.serve.problems import Problem
from pipeline.settings.urls import is_loopback

POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; form-action 'self'; base-uri 'none'; "
    "frame-ancestors 'none'"
)
HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "private, no-cache",
}
_METHODS = ("GET", "HEAD")


def report_policy() -> str:
    """The policy of report pages: their styles are in the page, and the only script is that which sorts tables."""
    return (
        f"default-src 'none'; style-src 'unsafe-inline'; script-src {script_source()}; base-uri 'none'; "
        "form-action 'none'; frame-ancestors 'none'"
    )


class Guard:
    """Lets requests pass that bring the token or, without one, that name this machine; adds headers to responses.

    Without a token, a page of another site could reach a server on loopback through a host name of its own that leads
    to 127.0.0.1 (DNS rebinding), so that the header Host must name loopback.
    """

    def __init__(self, app: ASGIApp, token: str | None, refuse: Callable[[Request, Problem], Response]) -> None:
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
            await self._app(scope, receive, send_with_headers)
            return
        response = self._refuse(Request(scope), problem)
        if problem.status == 401:
            response.headers["WWW-Authenticate"] = 'Basic realm="citeloom", charset="UTF-8"'
        await response(scope, receive, send_with_headers)

    def _problem(self, scope: Scope) -> Problem | None:
        headers = Headers(scope=scope)
        if self._token is not None:
            if not secrets.compare_digest(_token_of(headers).encode(), self._token.encode()):
                return Problem(
                    "urn:citeloom:token",
                    "Unauthorized",
                    401,
                    "give the token of this server: as Authorization: Bearer TOKEN, or as the password in a browser",
                )
        elif not _names_loopback(headers.get("host", "")):
            return Problem(
                "urn:citeloom:host", "Misdirected Request", 421, "this server answers to localhost and 127.0.0.1 only"
            )
        if scope["method"] not in _METHODS and scope["path"] != "/mcp":
            return Problem("urn:citeloom:method", "Method Not Allowed", 405, "this server only answers GET requests")
        return None


def _token_of(headers: Headers) -> str:
    """The token of a request: a bearer token, or the password of basic authentication, which browsers ask for."""
    scheme, _, value = headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer":
        return value.strip()
    if scheme.lower() == "basic":
        try:
            return base64.b64decode(value, validate=True).decode().partition(":")[2]
        except (binascii.Error, UnicodeDecodeError):
            return ""
    return ""


def _names_loopback(host: str) -> bool:
    try:
        return is_loopback(urlsplit(f"//{host}").hostname or "")
    except ValueError:
        return False
