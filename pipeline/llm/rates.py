"""The pace that an endpoint asks for: its rate headers, and the Retry-After of a refusal.

An endpoint says with every answer how many requests and tokens it still takes, and when that count is whole again
(`x-ratelimit-*`, as OpenAI and the gateways before vLLM send them): sending slows down before anything is refused.
"""

from __future__ import annotations

import asyncio
import math
import re
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from typing import Any

from pipeline.errors import TransientFailure

# A server that asks for more than this is not waited for: the run ends with its words, and resumes where it was.
LONGEST_WAIT = 120.0
_UNITS = {"d": 86400.0, "h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}
_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|[dhms])")
# As many characters as a token has at least, in English and in LaTeX: see `context`. A gateway counts for itself.
_CHARS_PER_TOKEN = 3
# Beyond this a number of seconds is a moment: gateways that send when the window ends, not how long it lasts.
_EPOCH = 1e9

Headers = Mapping[str, str]
Sleep = Callable[[float], Awaitable[None]]


def read_duration(text: str | None) -> float | None:
    """Seconds of `6m0s`, `1.5s`, `250ms`, `1h2m`, a bare number of seconds, or a moment in seconds since 1970.

    None where it is nothing of these.
    """
    said = (text or "").strip().lower()
    try:
        seconds = float(said)
    except ValueError:
        parts = _PART.findall(said)
        whole = bool(parts) and "".join(number + unit for number, unit in parts) == said
        return sum(float(number) * _UNITS[unit] for number, unit in parts) if whole else None
    if not math.isfinite(seconds):
        return None
    return max(seconds - time.time() if seconds > _EPOCH else seconds, 0.0)


def retry_after(headers: Headers) -> float | None:
    """Seconds that a refusal asks to wait: `retry-after-ms`, or Retry-After in seconds or as a date (RFC 9110)."""
    milliseconds = read_duration(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return milliseconds / 1000
    said = headers.get("retry-after", "").strip()
    seconds = read_duration(said.removeprefix("-"))
    if seconds is not None:
        return 0.0 if said.startswith("-") else seconds
    try:
        return max(parsedate_to_datetime(said).timestamp() - time.time(), 0.0)
    except (TypeError, ValueError, OverflowError):
        return None


def tokens_of(body: Mapping[str, Any]) -> int:
    """About as many tokens as an endpoint counts for a request: its prompt, and the longest answers."""
    read = sum(len(message["content"]) for message in body["messages"]) // _CHARS_PER_TOKEN
    return int(read) + int(body.get("max_tokens", 0)) * int(body.get("n", 1))


@dataclass(slots=True)
class _Quota:
    """What is left of requests or of tokens: as last told, less what was sent since, more what came back since."""

    left: float = math.inf
    at: float = 0.0
    """When, on the loop's clock, that much was left."""
    refill: float = 0.0
    """What comes back in a second; 0 where the endpoint does not say how many it gives: then all at once."""
    whole: float = 0.0
    """When the count is whole again, and nothing is known of it any more."""

    def wait(self, need: float, now: float) -> float:
        """Seconds until so many may be sent."""
        missing = need - self._left(now)
        if missing <= 0:
            return 0.0
        rest = self.whole - now
        return min(rest, missing / self.refill) if self.refill > 0 else rest

    def take(self, need: float, now: float) -> None:
        """Count what is sent."""
        self.left, self.at = self._left(now) - need, now

    def told(self, headers: Headers, name: str, in_flight: float, now: float) -> None:
        """Read the headers of one answer; `in_flight`: what was sent after its request, and may not be counted yet."""
        left = read_duration(headers.get(f"x-ratelimit-remaining-{name}"))
        whole = read_duration(headers.get(f"x-ratelimit-reset-{name}"))
        if left is None or whole is None:
            return
        limit = read_duration(headers.get(f"x-ratelimit-limit-{name}")) or 0.0
        self.refill = (limit - left) / whole if limit > left and whole > 0 else 0.0
        self.left, self.at, self.whole = left - in_flight, now, now + whole

    def _left(self, now: float) -> float:
        return math.inf if now >= self.whole else self.left + self.refill * (now - self.at)


@dataclass(slots=True)
class Rates:
    """Lets requests go out as fast as the endpoint takes them, first come, first served. Belongs to one loop.

    sleep: how it waits, in seconds. shown: the endpoint, for messages.
    """

    shown: str
    sleep: Sleep = asyncio.sleep
    waited: float = 0.0
    _requests: _Quota = field(default_factory=_Quota)
    _tokens: _Quota = field(default_factory=_Quota)
    _held: float = 0.0
    _sent: int = 0
    _flying: dict[int, int] = field(default_factory=dict)
    _gate: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def turn(self, tokens: int) -> int:
        """Wait until a request of so many tokens may go out; its number, for `answered` and `landed`.

        Raises TransientFailure where the endpoint lets it wait longer than LONGEST_WAIT.
        """
        async with self._gate:
            while (wait := self._wait(tokens)) > 0:
                if wait > LONGEST_WAIT:
                    raise TransientFailure(
                        f"the LLM endpoint {self.shown} takes no more requests for {wait:.0f} s, as its rate limit "
                        "says: run again later; answers so far are kept"
                    )
                self.waited += wait
                await self.sleep(wait)
            now = _now()
            self._requests.take(1, now)
            self._tokens.take(tokens, now)
            self._sent += 1
            self._flying[self._sent] = tokens
            return self._sent

    def answered(self, number: int, headers: Headers) -> None:
        """Take note of what the endpoint says with an answer or a refusal to the request of that number."""
        later = [tokens for other, tokens in self._flying.items() if other > number]
        now = _now()
        self._requests.told(headers, "requests", len(later), now)
        self._tokens.told(headers, "tokens", sum(later), now)

    def landed(self, number: int) -> None:
        """The request of that number is over, however it ended."""
        self._flying.pop(number, None)

    def hold(self, seconds: float) -> None:
        """Send nothing for so long, as a refusal asked."""
        self._held = max(self._held, _now() + seconds)

    def _wait(self, tokens: int) -> float:
        now = _now()
        held = self._held - now
        return max(held, self._requests.wait(1, now), self._tokens.wait(tokens, now))


def _now() -> float:
    return asyncio.get_running_loop().time()
