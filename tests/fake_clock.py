"""A clock on which waiting takes no time."""

from __future__ import annotations

import time

from pipeline.retries import Clock


class FakeClock:
    """The time of day, which moves on only by pauses. pauses: those that were waited for."""

    def __init__(self) -> None:
        self.time = time.time()
        self.pauses: list[float] = []

    def sleep(self, seconds: float) -> None:
        self.time += seconds
        self.pauses.append(seconds)

    @property
    def clock(self) -> Clock:
        return Clock(lambda: self.time, self.sleep)
