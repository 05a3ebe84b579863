"""A clock on which waiting takes no time."""

import time

from pipeline.retries import Clock


class FakeClock:
    """The time of day, which moves on only by pauses and as a test sets it. pauses: those that were
    waited for. Called, it gives the time.
    """

    def __init__(self):
        self.time = time.time()
        self.pauses = []

    def __call__(self):
        return self.time

    def sleep(self, seconds):
        self.time += seconds
        self.pauses.append(seconds)

    @property
    def clock(self):
        return Clock(self, self.sleep)
