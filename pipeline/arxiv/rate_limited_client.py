"""HTTP to arXiv: one policy of rate, retries and limits for its API, OAI-PMH and pages.

The rate limit is kept by a lock and a file that all processes of this machine share.
"""

from __future__ import annotations

import contextlib
import logging
import os
import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import httpx2
from filelock import FileLock

from pipeline.engine.progress import Notice, duration, publish
from pipeline.errors import CiteloomError, PermanentFailure, SettingError, TransientFailure
from pipeline.retries import Clock, Retries, read_retry_after
from pipeline.settings import Settings
from pipeline.storage.writing import write_whole

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

log = logging.getLogger(__name__)

T = TypeVar("T")

# 100 entries of the API are 250 KB, and 20 MB where each has 3,000 authors; 3,500 records of
# OAI-PMH are 9 MB.
LARGEST_ANSWER_BYTES = 32 * 1024 * 1024
LONGEST_ANSWER_SECONDS = 300.0
MOST_REDIRECTS = 5
_CONNECT_SECONDS = 15.0
_RETRYABLE_STATUS = (408, 425, 429)
# "Make no more than one request every three seconds, and limit requests to a single connection at a
# time", for all machines under one's control (https://info.arxiv.org/help/api/tou.html).
GAP_SECONDS = 3.0
LONGEST_WAIT_SECONDS = 600.0
NOTED_WAIT_SECONDS = 20.0
_HTML = re.compile(rb"<(?:!doctype\s+)?html\b", re.I)
# 100 entries with 3,000 authors each are 600,000 elements. lxml bounds depth (256) and the length
# of a text (10 MB) itself; 7,000,000 elements took 800 MB and a million attributes 240 MB.
MOST_ELEMENTS = 700_000
MOST_ATTRIBUTES = 400_000


def machine_folder() -> Path:
    """The folder of the user's cache that all runs of citeloom on this machine share."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "citeloom"


@dataclass(frozen=True, slots=True)
class Pace:
    """Spaces requests over all processes that share a folder: one connection, then a pause.

    A process holds the lock while it talks to arXiv; a file holds the time at which the next
    request may start.
    """

    folder: Path = field(default_factory=machine_folder)
    gap: float = GAP_SECONDS
    """The pause after a request, in seconds."""
    tries: int = 5
    """How often a request is sent."""
    first_back_off: float = 10.0
    """Seconds before the second try; they double with each."""
    silence: float = 60.0
    """Read time-out in seconds."""
    clock: Clock = field(default_factory=lambda: Clock(now=time.time))
    """Of the day, since processes share it in a file."""

    @property
    def _file(self) -> Path:
        return self.folder / "arxiv-api-next-request"

    @contextlib.contextmanager
    def turn(self) -> Iterator[None]:
        """Hold the only connection. Raises PermanentFailure where the folder cannot be written."""
        lock_file = self.folder / "arxiv-api.lock"
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            lock_file.touch()
        except OSError as error:
            raise self._unwritable(error) from error
        with FileLock(lock_file):
            try:
                yield
            finally:
                self.postpone(self.gap)

    def wait(self) -> None:
        """Sleep until the next request may start. Call it in a `turn`, before each request."""
        seconds = self.rest()
        if seconds > NOTED_WAIT_SECONDS:
            pause = duration(seconds)
            publish(Notice(f"arXiv asked for a pause: waiting {pause} before the next request"))
        self.clock.sleep(seconds)
        # Before the request, since a process killed during the request has sent it.
        self.postpone(self.gap)

    def postpone(self, seconds: float) -> None:
        """Let no process start a request for so long; it never moves back. Call it in a `turn`."""
        until = max(self._next(), self.clock.now() + min(seconds, LONGEST_WAIT_SECONDS))
        try:
            write_whole(self._file, repr(until).encode())
        except OSError as error:
            raise self._unwritable(error) from error

    def rest(self) -> float:
        """Seconds until the next request may start."""
        return max(self._next() - self.clock.now(), 0.0)

    def _next(self) -> float:
        try:
            until = float(self._file.read_text())
        except (FileNotFoundError, ValueError):
            return 0.0
        # The clock may have been set back since.
        return min(until, self.clock.now() + LONGEST_WAIT_SECONDS)

    def _unwritable(self, error: OSError) -> PermanentFailure:
        return PermanentFailure(
            f"cannot write {self.folder}, where runs of citeloom share the rate limit of arXiv"
            f" ({error}): set XDG_CACHE_HOME to a writable folder"
        )


@dataclass(frozen=True, slots=True)
class Service:
    """A server of arXiv: name, base URL, setting, and the way out where it does not answer."""

    name: str
    url: str
    setting: str
    way_out: str

    def __str__(self) -> str:
        return f"{self.name} at {self.url}"


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """A whole answer, decompressed."""

    status: int
    body: bytes
    address: str
    """Its URL after redirects."""
    kind: str
    """Its Content-Type, or empty."""


class BrokenAnswer(CiteloomError):
    """An answer that is not what it should be; the same request may have a better answer later."""


class OutOfBounds(PermanentFailure):
    """An answer that the client refuses. `reason` is too_large or other_host."""

    def __init__(self, reason: str, detail: str, way_out: str) -> None:
        super().__init__(f"{detail}: {way_out}")
        self.reason, self.detail = reason, detail


class _RetryableError(CiteloomError):
    """A failed try that may be repeated after the server's pause, in seconds."""

    def __init__(self, message: str, pause: float = 0.0) -> None:
        super().__init__(message)
        self.pause = pause


class RateLimitedClient:
    """One connection to a service at arXiv's pace. `requests`: how many were sent.

    largest: of answers, in bytes. same_host: refuse redirects to other hosts. A pace other than
    arXiv's rules is for tests.
    """

    def __init__(
        self,
        service: Service,
        settings: Settings,
        *,
        pace: Pace | None = None,
        largest: int = LARGEST_ANSWER_BYTES,
        same_host: bool = False,
    ) -> None:
        self._service, self._largest, self._same_host = service, largest, same_host
        self._pace = pace or Pace()
        user_agent = settings.arxiv_user_agent
        if not (user_agent.isascii() and user_agent.isprintable()):
            raise SettingError(
                f"CITELOOM_ARXIV_USER_AGENT: {user_agent!r} cannot be sent: write it in ASCII, on"
                " one line"
            )
        self._http = httpx2.Client(
            headers={"User-Agent": user_agent},
            limits=httpx2.Limits(max_connections=1),
            timeout=httpx2.Timeout(
                self._pace.silence, connect=min(_CONNECT_SECONDS, self._pace.silence)
            ),
        )
        self._reached = False
        self.requests = 0

    def slow_down(self, gap: float) -> None:
        """From now on pause at least so many seconds between two requests."""
        self._pace = replace(self._pace, gap=max(self._pace.gap, gap))

    def __enter__(self) -> RateLimitedClient:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection."""
        self._http.close()

    def get(self, address: str, read: Callable[[HttpAnswer], T]) -> T:
        """What `read` returns for the answer; it raises BrokenAnswer to repeat the request.

        `read` gets neither redirects nor answers of status 408, 425, 429 and 5xx. Raises
        TransientFailure where the server cannot be reached or all tries fail, SettingError where
        the URL is invalid, PermanentFailure where redirects do not end, OutOfBounds, and whatever
        else `read` raises.
        """
        # No try waits by itself: every pause goes into the file that all processes share, and the
        # next request of any of them waits for it.
        retries = Retries(
            _requested_pause,
            self._pace.first_back_off,
            LONGEST_WAIT_SECONDS,
            attempts=self._pace.tries,
            clock=replace(self._pace.clock, sleep=self._pace.postpone),
        )
        tries = 0

        def send() -> T:
            nonlocal tries
            tries += 1
            answer = self._answer(address)
            try:
                return read(answer)
            except BrokenAnswer as error:
                raise _RetryableError(f"its answer is not usable: {error}") from error

        def log_retry(error: BaseException, pause: float) -> None:
            name = self._service.name
            log.warning("%s: %s; pausing %.0f s, then trying again", name, error, pause)

        try:
            with self._pace.turn():
                return retries.call(send, log_retry)
        except _RetryableError as error:
            pause = f", asking for a pause of {error.pause:.0f} s" if error.pause else ""
            raise TransientFailure(
                f"{self._service} does not answer well after"
                f" {'one try' if tries == 1 else f'{tries} tries'}: {error}{pause}; earlier answers"
                f" are kept: {self._service.way_out}"
            ) from error

    def _answer(self, address: str) -> HttpAnswer:
        """The answer at the end of all redirects; each is a request of its own at arXiv's pace."""
        try:
            request = self._http.build_request("GET", address)
            for _ in range(MOST_REDIRECTS + 1):
                answer, following = self._send(request)
                if following is None:
                    return answer
                if self._same_host and not _is_same_host(request.url, following.url):
                    detail = (
                        f"{request.url} redirects to {following.url.netloc.decode() or 'nowhere'}"
                    )
                    raise OutOfBounds("other_host", detail, f"check {self._service.setting}")
                request = following
        except (httpx2.UnsupportedProtocol, httpx2.InvalidURL) as error:
            raise SettingError(
                f"{self._service.setting}: {self._service.url} is not the address of a server"
                f" ({error})"
            ) from error
        except httpx2.RequestError as error:
            # A server that was never reached is not waited for: the address or the network is at
            # fault.
            if isinstance(error, httpx2.ConnectError | httpx2.ConnectTimeout) and not self._reached:
                message = f"{self._service} cannot be reached ({error}): {self._service.way_out}"
                raise TransientFailure(message) from error
            raise _RetryableError(f"{type(error).__name__} {error}".rstrip()) from error
        raise PermanentFailure(
            f"{self._service} redirects without end: check {self._service.setting}"
        )

    def _send(self, request: httpx2.Request) -> tuple[HttpAnswer, httpx2.Request | None]:
        """An answer, and the request that it redirects to, if any."""
        self._pace.wait()
        self.requests += 1
        response = self._http.send(request, stream=True)
        try:
            self._reached = True
            body = self._read_body(response)
        finally:
            response.close()
        if response.status_code in _RETRYABLE_STATUS or response.status_code >= 500:
            pause = read_retry_after(response.headers.get("Retry-After")) or 0.0
            self._pace.postpone(pause)
            raise _RetryableError(f"status {response.status_code}", pause)
        kind = response.headers.get("Content-Type", "")
        answer = HttpAnswer(response.status_code, body, str(response.url), kind)
        return answer, response.next_request

    def _read_body(self, response: httpx2.Response) -> bytes:
        """The body, bounded in size and time: a server may send single bytes for hours."""
        body, until = bytearray(), time.monotonic() + LONGEST_ANSWER_SECONDS
        for chunk in response.iter_bytes():
            body += chunk
            if len(body) > self._largest:
                detail = f"{response.url} is longer than {self._largest} bytes"
                raise OutOfBounds(
                    "too_large", detail, f"it is left out; check {self._service.setting}"
                )
            if time.monotonic() > until:
                raise _RetryableError(
                    f"its answer takes longer than {LONGEST_ANSWER_SECONDS:.0f} s"
                )
        return bytes(body)


def _requested_pause(error: BaseException) -> float | None:
    """Seconds that the server asks to wait; None for a final error or too long a pause."""
    if isinstance(error, _RetryableError) and error.pause <= LONGEST_WAIT_SECONDS:
        return error.pause
    return None


def _is_same_host(before: httpx2.URL, after: httpx2.URL) -> bool:
    """Whether a redirect stays on its host; http may become https, not the reverse."""
    is_upgrade = (before.scheme, after.scheme) == ("http", "https")
    if is_upgrade and before.port is None and after.port is None:
        return before.host == after.host
    return (before.scheme, before.netloc) == (after.scheme, after.netloc)


def parse_xml(body: bytes, root: str) -> Element:
    """The root element of a whole document. root: its required name, `{namespace}name`.

    Raises BrokenAnswer where the body is HTML, truncated, not XML, too large or has another root,
    PermanentFailure where it declares a document type: arXiv never does, and entities make a long
    text of a short one.
    """
    from lxml import etree

    if _HTML.search(body[:1000]):
        raise BrokenAnswer("it is an HTML page")
    if b"<!DOCTYPE" in body.replace(b"\0", b""):  # UTF-16 has zeros between the letters
        raise PermanentFailure("it declares a document type or entities, as arXiv never does")
    if body.count(b"<") > 2 * MOST_ELEMENTS or body.count(b"=") > MOST_ATTRIBUTES:
        raise BrokenAnswer(
            f"it has more than {MOST_ELEMENTS:,} elements or {MOST_ATTRIBUTES:,} attributes"
        )
    parser = etree.XMLParser(
        resolve_entities=False, no_network=True, remove_comments=True, remove_pis=True
    )
    try:
        # lxml's elements have the interface of the standard library's, and no public name of their
        # own.
        element: Element = etree.fromstring(body, parser)
    except (etree.XMLSyntaxError, ValueError, LookupError) as error:
        raise BrokenAnswer(f"it is truncated or not XML ({error})") from error
    if element.tag != root:
        raise BrokenAnswer(f"its root is {element.tag}, not {root}")
    return element
