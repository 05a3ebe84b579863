"""Retries of HTTP requests: pauses, when to give up, the header Retry-After."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from tenacity import RetryCallState

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Clock:
    """The time in seconds, and how to wait. Tests pass one on which waiting takes no time."""

    now: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep


@dataclass(frozen=True, slots=True)
class Retries:
    """How often, and after which pauses, a failed request is sent again.

    requested_pause: of an error, the seconds that the server asks to wait, 0 if it does not say;
    None for an error that another attempt cannot mend. A pause is at least what is asked, else it
    doubles from `first_pause` to `longest_pause`. jitter: draw it at random below that bound, so
    that requests which failed together do not return together. attempts: the most; None for no
    limit. patience: no pause begins that would end later after the first attempt, in seconds; None
    for no limit.
    """

    requested_pause: Callable[[BaseException], float | None]
    first_pause: float
    longest_pause: float
    jitter: bool = False
    attempts: int | None = None
    patience: float | None = None
    clock: Clock = Clock()

    def call(
        self,
        send: Callable[[], T],
        before_pause: Callable[[BaseException, float], None] | None = None,
    ) -> T:
        """The result of `send`. Raises its last error as it is.

        before_pause: called with each error that another attempt follows, and the pause (seconds).
        """
        import tenacity

        started = self.clock.now()

        def stop(state: RetryCallState) -> bool:
            if self.attempts is not None and state.attempt_number >= self.attempts:
                return True
            if self.patience is None:
                return False
            elapsed = self.clock.now() - started
            if state.attempt_number == 1 and elapsed >= self.patience > 0:
                # A dead connection is noticed only after half a minute, when the patience of a read
                # is over; such a request is sent once more, on a new connection.
                elapsed = 0.0
            return elapsed + state.upcoming_sleep >= self.patience

        def announce(state: RetryCallState) -> None:
            if before_pause is not None:
                before_pause(_error_of(state), state.upcoming_sleep)

        retrying = tenacity.Retrying(
            retry=tenacity.retry_if_exception(
                lambda error: self.requested_pause(error) is not None
            ),
            wait=self._pause,
            stop=stop,
            sleep=self.clock.sleep,
            before_sleep=announce,
            reraise=True,
        )
        result: T = retrying(send)
        return result

    def _pause(self, state: RetryCallState) -> float:
        """Seconds before the next attempt."""
        import tenacity

        grow = tenacity.wait_random_exponential if self.jitter else tenacity.wait_exponential
        own = grow(multiplier=self.first_pause, max=self.longest_pause)(state)
        return max(self.requested_pause(_error_of(state)) or 0.0, own)


def _error_of(state: RetryCallState) -> BaseException:
    error = state.outcome.exception() if state.outcome is not None else None
    if error is None:
        raise ValueError("no attempt has failed")
    return error


def read_retry_after(text: str | None) -> float | None:
    """Seconds to wait from a number of seconds or a date (RFC 9110, 10.2.3), else None."""
    value = (text or "").strip()
    try:
        seconds = float(value)
    except ValueError:
        try:
            seconds = parsedate_to_datetime(value).timestamp() - time.time()
        except (TypeError, ValueError, OverflowError):
            return None
    return max(seconds, 0.0) if math.isfinite(seconds) else None
