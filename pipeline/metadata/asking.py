"""Asking a server of arXiv over HTTP, as arXiv asks to be asked: one request at a time, patient, never insistent.

What the API and OAI-PMH share.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TypeVar
from urllib.parse import urljoin, urlsplit

import httpx

from pipeline.engine import telemetry
from pipeline.errors import CiteloomError, PermanentFailure, SettingError, TransientFailure
from pipeline.metadata.pace import LONGEST_WAIT_SECONDS, Pace, Patience
from pipeline.metadata.vet import BrokenAnswer
from pipeline.settings import Settings

log = logging.getLogger(__name__)

T = TypeVar("T")

# 100 entries of the API are 250 KB, and 20 MB where each has 3,000 authors; 3,500 records of OAI-PMH are 9 MB.
LARGEST_ANSWER_BYTES = 32 * 1024 * 1024
LONGEST_ANSWER_SECONDS = 300.0
MOST_REDIRECTIONS = 5
_CONNECT_SECONDS = 15.0
_REDIRECTIONS = (301, 302, 303, 307, 308)
_PASSING = (408, 425, 429)


@dataclass(frozen=True, slots=True)
class Service:
    """Who is asked: a name for messages, the base URL, the setting that has it, and what else a user may do."""

    name: str
    url: str
    setting: str
    what_else: str

    def __str__(self) -> str:
        return f"{self.name} at {self.url}"


@dataclass(frozen=True, slots=True)
class Bounds:
    """What is taken of a service: answers of `largest` bytes at most.

    strict: what is larger, or lies at another host, is refused at once; else a larger one is asked for again, as any
    other that is not usable, and redirections are followed anywhere.
    """

    largest: int = LARGEST_ANSWER_BYTES
    strict: bool = False


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back, whatever its status: the body is whole, unpacked, and not yet looked into.

    address: where it was in the end. kind: its Content-Type, empty where none is told.
    """

    status: int
    location: str
    body: bytes
    address: str = ""
    kind: str = ""


class Refused(PermanentFailure):
    """An answer beyond strict bounds. `reason` is too_large or other_host."""

    def __init__(self, reason: str, detail: str, what_to_do: str) -> None:
        super().__init__(f"{detail}: {what_to_do}")
        self.reason, self.detail = reason, detail


class _Trouble(CiteloomError):
    """One try that failed and may be repeated; `rest` is what the server asked for, in seconds."""

    def __init__(self, message: str, rest: float = 0.0) -> None:
        super().__init__(message)
        self.rest = rest


class Asker:
    """One connection to a service, in turn with every other process of the machine; `requests` counts what was sent.

    A pace and a patience other than arXiv's rules are for tests.
    """

    def __init__(
        self,
        service: Service,
        settings: Settings,
        *,
        pace: Pace | None = None,
        patience: Patience | None = None,
        bounds: Bounds | None = None,
    ) -> None:
        self._service, self._bounds = service, bounds or Bounds()
        self._pace, self._patience = pace or Pace(), patience or Patience()
        self._http = httpx.Client(
            headers={"User-Agent": _sendable(settings.arxiv_user_agent)},
            limits=httpx.Limits(max_connections=1),
            timeout=httpx.Timeout(self._patience.silence, connect=min(_CONNECT_SECONDS, self._patience.silence)),
        )
        self._reached = False
        self.requests = 0

    def close(self) -> None:
        """Let go of the connection."""
        self._http.close()

    def ask(self, address: str, read: Callable[[Answer], T]) -> T:
        """What `read` makes of the answer; tried again with back-off where it raises BrokenAnswer.

        `read` sees neither passing trouble (408, 425, 429, 5xx) nor redirections; each of those is a request in its
        own turn. Raises TransientFailure where the server cannot be reached or does not answer well, SettingError
        where the address is none, PermanentFailure for endless redirections, Refused beyond strict bounds, and whatever
        else `read` raises.
        """
        tries = hops = 0
        while True:
            with self._pace.turn():
                try:
                    answer = self._get(address)
                    if answer.status not in _REDIRECTIONS:
                        return _read(answer, read)
                    hops, address = hops + 1, self._next(address, answer.location)
                except _Trouble as trouble:
                    tries += 1
                    self._rest(trouble, tries)
            if hops > MOST_REDIRECTIONS:
                raise PermanentFailure(f"{self._service} redirects without end: check {self._service.setting}")

    def _rest(self, trouble: _Trouble, tries: int) -> None:
        """Let every process of the machine rest. Raises TransientFailure where it is time to give up."""
        seconds = max(trouble.rest, self._patience.back_off(tries))
        self._pace.postpone(seconds)
        if tries >= self._patience.tries or trouble.rest > LONGEST_WAIT_SECONDS:
            rest = f", asking for {trouble.rest:.0f} s of rest" if trouble.rest else ""
            raise TransientFailure(
                f"{self._service} does not answer well after {_times(tries)}: {trouble}{rest}; "
                f"what it answered before is kept: {self._service.what_else}"
            ) from trouble
        log.warning("%s: %s; resting %.0f s, then trying again", self._service.name, trouble, seconds)

    def _next(self, address: str, location: str) -> str:
        """Where a redirection leads."""
        target = urljoin(address, location)
        if self._bounds.strict and not _is_same_host(address, target):
            host = urlsplit(target).netloc or "nowhere"
            raise Refused("other_host", f"{address} redirects to {host}", f"check {self._service.setting}")
        return target

    def _get(self, address: str) -> Answer:
        self.requests += 1
        try:
            with self._told() as span, self._http.stream("GET", address) as response:
                self._reached = True
                span.set_attributes({"http.response.status_code": response.status_code})
                headers = response.headers
                body, kind = self._body(response), headers.get("Content-Type", "")
                answer = Answer(response.status_code, headers.get("Location", ""), body, address, kind)
        except (httpx.UnsupportedProtocol, httpx.InvalidURL) as error:
            raise SettingError(
                f"{self._service.setting}: {self._service.url} is no address of a server ({error})"
            ) from error
        except httpx.RequestError as error:
            raise self._unreached(error) from error
        if answer.status in _PASSING or answer.status >= 500:
            raise _Trouble(f"status {answer.status}", _seconds(headers.get("Retry-After", "")))
        return answer

    def _told(self) -> AbstractContextManager[telemetry.Span]:
        """A request as it is told of: without its address, which lists papers."""
        host = urlsplit(self._service.url).hostname or ""
        facts = {"http.request.method": "GET", "server.address": host}
        return telemetry.span("arXiv request", facts, remote=True)

    def _body(self, response: httpx.Response) -> bytes:
        """The body, bounded in size and time: a server may drip bytes for ever within the read time-out."""
        body, until, largest = bytearray(), time.monotonic() + LONGEST_ANSWER_SECONDS, self._bounds.largest
        for chunk in response.iter_bytes():
            body += chunk
            if len(body) > largest and self._bounds.strict:
                raise Refused("too_large", f"{response.url} is longer than {largest} bytes", "it is left out")
            if len(body) > largest:
                raise _Trouble(f"its answer is longer than {largest} bytes")
            if time.monotonic() > until:
                raise _Trouble(f"its answer takes longer than {LONGEST_ANSWER_SECONDS:.0f} s")
        return bytes(body)

    def _unreached(self, error: httpx.RequestError) -> CiteloomError:
        """A server that was never reached is not waited for: the address or the network is at fault."""
        if isinstance(error, httpx.ConnectError | httpx.ConnectTimeout) and not self._reached:
            return TransientFailure(f"{self._service} cannot be reached ({error}): {self._service.what_else}")
        return _Trouble(f"{type(error).__name__} {error}".rstrip())


def _read(answer: Answer, read: Callable[[Answer], T]) -> T:
    try:
        return read(answer)
    except BrokenAnswer as error:
        raise _Trouble(f"its answer is not usable: {error}") from error


def _sendable(user_agent: str) -> str:
    if not (user_agent.isascii() and user_agent.isprintable()):
        raise SettingError(f"CITELOOM_ARXIV_USER_AGENT: {user_agent!r} cannot be sent: write it in ASCII, on one line")
    return user_agent


def _is_same_host(address: str, target: str) -> bool:
    """Whether a redirection stays where it was; from http to https is no other place, the way back is."""
    before, after = urlsplit(address), urlsplit(target)
    if (before.scheme, after.scheme) == ("http", "https") and before.port is None and after.port is None:
        return before.hostname == after.hostname
    return (before.scheme, before.netloc) == (after.scheme, after.netloc)


def _seconds(retry_after: str) -> float:
    """A Retry-After header in seconds (RFC 9110, 10.2.3: a number or a date); 0 where it is neither."""
    if retry_after.strip().isdecimal():
        return float(retry_after)
    try:
        until = parsedate_to_datetime(retry_after)
    except ValueError:
        return 0.0
    return max((until.replace(tzinfo=until.tzinfo or UTC) - datetime.now(UTC)).total_seconds(), 0.0)


def _times(tries: int) -> str:
    return "one try" if tries == 1 else f"{tries} tries"
