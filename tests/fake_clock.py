"""A clock on which waiting takes no time."""

from __future__ import annotations

import time

from pipeline.retries import Clock


class FakeClock:
    """The time of day, which moves on only by pauses and as a test sets it. pauses: those that were
    waited for. Called, it gives the time.
    """

    def __init__(self) -> None:
        self.time = time.time()
        self.pauses: list[float] = []

    def __call__(self) -> float:
        return self.time

    def sleep(self, seconds: float) -> None:
        self.time += seconds
        self.pauses.append(seconds)

    @property
    def clock(self) -> Clock:
        return Clock(self, self.sleep)
