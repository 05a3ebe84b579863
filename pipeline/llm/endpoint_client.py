"""The HTTP client under OpenAI's SDK: the bounds of an answer, and when a further attempt is
pointless.
"""

from __future__ import annotations

import asyncio
import math
import re
import ssl
import time
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import httpx2

# 64 answers of 128,000 tokens are some 32 MB.
MOST_BYTES = 32 << 20
# The SDK parses an error's body without a bound: 31 MB of `[],` took 1.7 GB and 40 s.
_MOST_ERROR_BYTES = 1 << 20
# In these encodings a chunk of 64 KB decodes to 66 MB at most; in others, or in two, there is no
# bound.
_ENCODINGS = ("", "identity", "gzip", "deflate")
_TRANSFER_HEADERS = ("content-encoding", "content-length", "transfer-encoding")
# An object that begins with an error. A body that only mentions one is an answer of another form,
# which a budget counts.
_REPORTS_ERROR = re.compile(rb'\s*+\{\s*+"error"\s*+:(?!\s*+null)')
# With 429 OpenAI says so that nothing is left to pay with, which no waiting mends.
QUOTA_CODE = b"insufficient_quota"
# A request is sent so often while the endpoint answers others: the fault is the request's own.
ATTEMPTS = 5
# A vLLM that restarts loads its model for one to two minutes. One that never responded is rather a
# wrong address. Of the SDK's waits the fourth ends after 5.6 to 7.5 s, the fifth after 11.6 to 15.5
# s.
PATIENCE, FIRST_PATIENCE = 120.0, 5.0
# `EndpointClient` ends the attempts; the SDK's own limit only has to be higher.
MAX_RETRIES = 100


class BadAnswer(httpx2.DecodingError):
    """An answer that is too large, breaks off, or is encoded as was not asked for."""


@dataclass(slots=True)
class _Attempts:
    """The attempts of one request so far."""

    started: float
    last_failure: float = -math.inf
    failures: int = 0
    """Those while the endpoint answered other requests."""


_attempts: ContextVar[_Attempts] = ContextVar("attempts")


class EndpointClient(httpx2.AsyncClient):
    """Sends the SDK's requests to one endpoint. Belongs to one event loop.

    The SDK tries a failed request again after 0.5 s, 1 s, … 8 s, or as Retry-After asks, up to 120
    s. That ends after ATTEMPTS while the endpoint answers other requests, except for a refusal for
    the rate (429), and once it has answered none for as long as `patience` lasts.

    seconds: that one attempt may take, from the connection to the end of the answer. patience:
    seconds that an endpoint which has responded before may be down.
    """

    def __init__(self, seconds: float, patience: float = PATIENCE, **options: Any) -> None:
        super().__init__(headers={"Accept-Encoding": "gzip, deflate"}, **options)
        self._seconds = seconds
        self.down = False
        """Whether a request was given up because the endpoint answers none."""
        self.stopped = False
        """Whether nothing is sent again from now on."""
        self._patience = patience
        self._last_answer = -math.inf
        self._has_responded = False

    async def send(self, request: httpx2.Request, **options: Any) -> httpx2.Response:
        """As httpx2; raises an error that the SDK does not retry once the attempts are over."""
        import openai

        if request.headers.get("x-stainless-retry-count", "0") == "0":
            _attempts.set(_Attempts(_now()))
        if self.stopped:
            raise openai.APIConnectionError(message="the run is ending", request=request)
        started = time.perf_counter()
        options["stream"] = True  # `_read_body` limits the size
        try:
            async with asyncio.timeout(self._seconds):
                response = await _read_body(await super().send(request, **options))
            self._note(response)
        except (httpx2.TimeoutException, TimeoutError) as error:
            if self._is_last():
                raise openai.APITimeoutError(request=request) from error
            raise httpx2.ReadTimeout("no whole answer in time", request=request) from error
        except (httpx2.RequestError, ssl.SSLError) as error:
            if isinstance(error, BadAnswer) or self._is_last():
                raise openai.APIConnectionError(request=request) from error
            raise
        response.elapsed = timedelta(seconds=time.perf_counter() - started)
        return response

    def _note(self, response: httpx2.Response) -> None:
        """Record a response, and mark one whose request must not be tried again. Raises BadAnswer
        for an error over _MOST_ERROR_BYTES.
        """
        self._has_responded = True
        # A gateway may report with 200 that what is behind it failed.
        if response.status_code == 200 and _REPORTS_ERROR.match(response.content):
            response.status_code = 502
        if not response.is_success and len(response.content) > _MOST_ERROR_BYTES:
            raise BadAnswer(f"its error has over {_MOST_ERROR_BYTES >> 20} MB")
        limited = response.status_code == 429 and QUOTA_CODE not in response.content
        # With 500 an endpoint that is up reports a failed request.
        if response.status_code <= 500 and not limited:
            self._last_answer, self.down = _now(), False
        is_last = self._is_last(limited=limited) if not response.is_success else False
        if is_last or (response.status_code == 429 and not limited):
            response.headers["x-should-retry"] = "false"

    def _is_last(self, *, limited: bool = False) -> bool:
        """Count a failed attempt; whether it is the last."""
        attempts = _attempts.get()
        # A failure while the endpoint answers nobody says nothing about this request.
        if not limited and self._last_answer >= attempts.last_failure:
            attempts.failures += 1
        attempts.last_failure = _now()
        silence = _now() - max(attempts.started, self._last_answer)
        patience = self._patience if self._has_responded else FIRST_PATIENCE
        if silence >= patience:
            self.down = True
        return self.stopped or self.down or attempts.failures >= ATTEMPTS


async def _read_body(response: httpx2.Response) -> httpx2.Response:
    """The response with its decoded body. Raises BadAnswer for a body over MOST_BYTES, in an
    encoding that was not asked for, or, with a status of success, one that breaks off.
    """
    chunks: list[bytes] = []
    size = 0
    try:
        encoding = response.headers.get("content-encoding", "")
        if encoding.strip().lower() not in _ENCODINGS:
            raise BadAnswer(f"it is encoded as {encoding}, which was not asked for")
        async for chunk in response.aiter_bytes():
            size += len(chunk)
            if size > MOST_BYTES:
                raise BadAnswer(f"it has over {MOST_BYTES >> 20} MB")
            chunks.append(chunk)
    except (httpx2.NetworkError, httpx2.ProtocolError, httpx2.DecodingError) as error:
        # The rest of an answer that was begun may have been paid for.
        if response.is_success and not isinstance(error, BadAnswer):
            raise BadAnswer(f"it breaks off: {error}") from error
        raise
    finally:
        await response.aclose()
    headers = [
        (name, value)
        for name, value in response.headers.multi_items()
        if name not in _TRANSFER_HEADERS
    ]
    return httpx2.Response(
        response.status_code, headers=headers, content=b"".join(chunks), request=response.request
    )


def _now() -> float:
    return asyncio.get_running_loop().time()
