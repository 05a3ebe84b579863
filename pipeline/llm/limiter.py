"""One limiter for the requests to an endpoint: concurrency, its rate limits, retries with back-off, giving up.

Rate limits are those that the endpoint reports: `x-ratelimit-*` headers of every answer, as OpenAI and most gateways
send them, and Retry-After of a refusal.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import random
import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from pipeline.errors import CiteloomError, TransientFailure
from pipeline.retry_after import read_retry_after

Reply = TypeVar("Reply")
Headers = Mapping[str, str]

ATTEMPTS = 5
# Rate limits are mostly per minute, and a model loads for one or two: a request is tried a few times within one.
FIRST_WAIT, LONGEST_BACK_OFF = 0.5, 30.0
# If the endpoint asks for a longer wait, the run ends with that message, and resumes later where it was.
LONGEST_WAIT = 120.0
# A vLLM that restarts loads its model for one to two minutes. One that never answered is rather a wrong address.
PATIENCE, FIRST_PATIENCE = 120.0, 8.0
_UNITS = {"d": 86400.0, "h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}
_DURATION_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|[dhms])")
# A larger number of seconds is a time of day: some gateways send when the window ends, not how long it lasts.
_EPOCH = 1e9


class EndpointDown(TransientFailure):
    """The endpoint has failed for longer than the limiter waits."""


class NoAnswer(Exception):
    """A request without an answer; `error` is raised if it is not tried again.

    wait: seconds that the endpoint asks to wait; None if it does not say. limited: it only refuses for its rate (429).
    """

    def __init__(self, error: CiteloomError, wait: float | None = None, *, limited: bool = False) -> None:
        super().__init__(str(error))
        self.error, self.wait, self.limited = error, wait, limited


@dataclass(slots=True)
class _Quota:
    """What is left of requests or tokens: as last reported, minus what was sent since, plus what came back since."""

    left: float = math.inf
    measured_at: float = 0.0
    refill: float = 0.0
    """What comes back per second; 0 if the endpoint does not report its limit: then all at `reset_at`."""
    reset_at: float = 0.0
    in_flight: float = 0.0

    def wait(self, need: float) -> float:
        """Seconds until so many may be sent."""
        missing = need - self._left()
        if missing <= 0:
            return 0.0
        rest = self.reset_at - _now()
        return min(rest, missing / self.refill) if self.refill > 0 else rest

    def send(self, count: float) -> None:
        self.left, self.measured_at = self._left() - count, _now()
        self.in_flight += count

    def update(self, headers: Headers, name: str, answered: float) -> None:
        """Read the headers of the answer to a request of `answered`. They may not count the others in flight yet."""
        left = read_duration(headers.get(f"x-ratelimit-remaining-{name}"))
        reset = read_duration(headers.get(f"x-ratelimit-reset-{name}"))
        if left is None or reset is None:
            return
        limit = read_duration(headers.get(f"x-ratelimit-limit-{name}")) or 0.0
        self.refill = (limit - left) / reset if limit > left and reset > 0 else 0.0
        self.left, self.measured_at, self.reset_at = left - (self.in_flight - answered), _now(), _now() + reset

    def _left(self) -> float:
        now = _now()
        return math.inf if now >= self.reset_at else self.left + self.refill * (now - self.measured_at)


class Limiter:
    """Limits the requests to one endpoint. Belongs to one event loop.

    concurrency: completions in flight. endpoint: its name in messages. patience: seconds that an endpoint which has
    answered before may be down.
    """

    def __init__(self, concurrency: int, endpoint: str, patience: float = PATIENCE) -> None:
        self.concurrency = concurrency
        self.waited = 0.0
        """Seconds that requests waited for rate limits and between attempts."""
        self.retries = 0
        self._endpoint, self._patience = endpoint, patience
        self._free = asyncio.Semaphore(concurrency)
        self._acquiring, self._pacing = asyncio.Lock(), asyncio.Lock()
        self._requests, self._tokens = _Quota(), _Quota()
        self._pause_until = 0.0
        self._stopped = asyncio.Event()
        self.down = False
        """Whether a request was given up because the endpoint responds to none."""
        self._last_answer = self._last_response = -math.inf
        self._has_responded = False

    async def acquire(self, count: int) -> None:
        """Wait for `count` free completions, first come, first served, and hold them until `release`."""
        acquired = 0
        try:
            async with self._acquiring:
                while acquired < count:
                    await self._free.acquire()
                    acquired += 1
        except BaseException:
            self.release(acquired)
            raise

    def release(self, count: int) -> None:
        """Free so many completions."""
        for _ in range(count):
            self._free.release()

    def stop(self) -> None:
        """Retry nothing from now on; requests in flight may still be answered."""
        self._stopped.set()

    async def run(self, send: Callable[[], Awaitable[Reply]]) -> Reply:
        """The result of `send`, which is called again after NoAnswer.

        Up to five times while the endpoint responds to other requests; until patience is over while it responds to
        none; and after a refusal for the rate alone, as long as the endpoint answers other requests.

        Raises the error of the last NoAnswer, EndpointDown, and what else `send` raises.
        """
        attempts = failures = 0
        first_failure, last_failure = math.inf, -math.inf
        while True:
            try:
                reply = await send()
            except NoAnswer as failure:
                first_failure = min(first_failure, _now())
                if failure.limited:
                    # All requests wait, as the limit is that of the account.
                    self._pause_until = max(self._pause_until, _now() + (failure.wait or 0.0))
                else:
                    # A failure while the endpoint responds to no request says nothing about this one.
                    attempts += self._last_response >= last_failure
                    self._check_down(failure, first_failure)
                if attempts >= ATTEMPTS or self._stopped.is_set() or self._is_exhausted(failure, first_failure):
                    raise failure.error from None
                last_failure = _now()
                # An outage is not over at once, whatever the endpoint asks.
                pause = _back_off(failures, failure.wait if failure.limited else failure.wait or None)
                failures += 1
            else:
                self._last_answer = _now()
                return reply
            self.retries += 1
            await self._wait(pause)

    @contextlib.asynccontextmanager
    async def pace(self, tokens: int) -> AsyncIterator[None]:
        """Wait until the rate limits allow a request of so many tokens, which is in flight within the block.

        Raises TransientFailure if that takes longer than LONGEST_WAIT.
        """
        async with self._pacing:
            while (wait := self._seconds_until(tokens)) > 0:
                if wait > LONGEST_WAIT:
                    raise TransientFailure(
                        f"the LLM endpoint {self._endpoint} takes no more requests for {wait:.0f} s, as its rate limit "
                        "says: run again later; answers so far are kept"
                    )
                await self._wait(wait)
            self._requests.send(1)
            self._tokens.send(tokens)
        try:
            yield
        finally:
            self._requests.in_flight -= 1
            self._tokens.in_flight -= tokens

    def note_response(self, headers: Headers, tokens: int, status: int) -> None:
        """Record the endpoint's response to a request of so many tokens: its rate limits, and that it is up."""
        self._requests.update(headers, "requests", 1)
        self._tokens.update(headers, "tokens", tokens)
        self._has_responded = True
        if status <= 500:  # with 500 an endpoint that is up reports that this request failed
            self._last_response, self.down = _now(), False

    def _is_exhausted(self, failure: NoAnswer, first_failure: float) -> bool:
        """Whether waiting is pointless: the endpoint asks for too long, or has answered no request since it refuses."""
        if (failure.wait or 0.0) > LONGEST_WAIT:
            return True
        return failure.limited and _now() - max(first_failure, self._last_answer) > LONGEST_WAIT

    def _check_down(self, failure: NoAnswer, first_failure: float) -> None:
        """Raise EndpointDown once no request has had a response for as long as patience lasts."""
        silence = _now() - max(first_failure, self._last_response)
        if self.down or silence >= (self._patience if self._has_responded else FIRST_PATIENCE):
            self.down = True
            since = time.strftime("%H:%M:%S", time.localtime(time.time() - silence))
            raise EndpointDown(
                f"the LLM endpoint {self._endpoint} is down since {since}, and no more requests are sent. The last "
                f"failure: {failure}"
            ) from None

    def _seconds_until(self, tokens: int) -> float:
        return max(self._pause_until - _now(), self._requests.wait(1), self._tokens.wait(tokens))

    async def _wait(self, seconds: float) -> None:
        self.waited += seconds
        await self._sleep(seconds)

    async def _sleep(self, seconds: float) -> None:
        """Sleep; raises TransientFailure once `stop` was called."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._stopped.wait(), seconds)
        if self._stopped.is_set():
            raise TransientFailure(f"nothing more is sent to the LLM endpoint {self._endpoint}: the run is ending")


def _back_off(failures: int, wait: float | None) -> float:
    """Seconds until the next attempt: what the endpoint asks and a little more, else between half a bound that doubles
    and the whole, so that requests that failed together do not return together."""
    if wait is not None:
        return wait + random.uniform(0, min(wait / 10, 1.0))  # noqa: S311 - not for cryptography
    bound = min(FIRST_WAIT * 2.0**failures, LONGEST_BACK_OFF)
    return random.uniform(bound / 2, bound)  # noqa: S311


def read_duration(text: str | None) -> float | None:
    """Seconds of `6m0s`, `1.5s`, `250ms`, `1h2m`, a number of seconds, or a time in seconds since 1970; else None."""
    stripped = (text or "").strip().lower()
    try:
        seconds = float(stripped)
    except ValueError:
        parts = _DURATION_PART.findall(stripped)
        is_whole = bool(parts) and "".join(number + unit for number, unit in parts) == stripped
        return sum(float(number) * _UNITS[unit] for number, unit in parts) if is_whole else None
    if not math.isfinite(seconds):
        return None
    return max(seconds - time.time() if seconds > _EPOCH else seconds, 0.0)


def retry_after(headers: Headers) -> float | None:
    """Seconds that a refusal asks to wait: `retry-after-ms`, or Retry-After; None without them."""
    milliseconds = read_duration(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return milliseconds / 1000
    return read_retry_after(headers.get("retry-after"))


def _now() -> float:
    return asyncio.get_running_loop().time()
