"""A circuit breaker: after some failures in a row nobody asks the endpoint, but one request now and then."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

from pipeline.errors import CiteloomError, TransientFailure

# In a row, over all requests: five refused connections are no accident any more.
THRESHOLD = 5
# A vLLM that is restarted loads its model for one to two minutes. One that never answered is rather a wrong address.
PATIENCE = 120.0
FIRST_PATIENCE = 8.0
FIRST_PROBE, LONGEST_PROBE = 1.0, 30.0
_LOOK = 0.25


class EndpointDown(TransientFailure):
    """The endpoint has failed for longer than anybody waits."""


class Breaker:
    """Counts an endpoint's failures and says who may ask. Belongs to one event loop.

    sleep: how it waits, in seconds. shown: the endpoint, for messages. patience: seconds that an endpoint which has
    answered may be down.
    """

    def __init__(
        self, shown: str, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep, patience: float = PATIENCE
    ) -> None:
        self._shown, self._sleep, self._patience = shown, sleep, patience
        self._failures = 0
        self._first: tuple[float, float] = (0.0, 0.0)
        self._last = ""
        self._answered = False
        self._probing = False
        self._probe_wait = FIRST_PROBE
        self._next_probe = 0.0

    @property
    def open(self) -> bool:
        """Whether the endpoint is taken for down at the moment."""
        return self._failures >= THRESHOLD

    async def admit(self) -> bool:
        """Wait until a request may be sent; True where it is the one that tries whether the endpoint is back.

        Whoever is let in must say `succeeded`, `failed` or `abandoned`. Raises EndpointDown once patience is over.
        """
        while self.open:
            now = _now()
            if now - self._first[0] >= (self._patience if self._answered else FIRST_PATIENCE):
                raise EndpointDown(self._message())
            if not self._probing and now >= self._next_probe:
                self._probing = True
                return True
            await self._sleep(_LOOK)
        return False

    def succeeded(self) -> None:
        """The endpoint has answered, be it with a refusal of this one request."""
        self._failures, self._probing, self._answered = 0, False, True
        self._probe_wait = FIRST_PROBE

    def failed(self, failure: CiteloomError, *, probe: bool, reached: bool = False) -> None:
        """The endpoint did not answer; or, with `reached`, it answered that it cannot: so the address is right."""
        self._answered |= reached
        if not self._failures:
            self._first = _now(), time.time()
        self._failures += 1
        self._last = str(failure)
        if probe:
            self._probing = False
            self._probe_wait = min(2 * self._probe_wait, LONGEST_PROBE)
        self._next_probe = _now() + self._probe_wait

    def abandoned(self, *, probe: bool) -> None:
        """A request ended without a word from the endpoint, as it was cancelled."""
        if probe:
            self._probing = False

    def _message(self) -> str:
        since = time.strftime("%H:%M:%S", time.localtime(self._first[1]))
        return (
            f"the LLM endpoint {self._shown} is down since {since}: {self._failures} requests in a row failed, and no "
            f"more are sent. The last failure: {self._last}"
        )


def _now() -> float:
    return asyncio.get_running_loop().time()
