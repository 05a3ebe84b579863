"""Clocks on which waiting takes no time."""

import asyncio
import selectors
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


class _JumpingSelector(selectors.DefaultSelector):
    """Advances its clock instead of waiting."""

    now = 0.0

    def select(self, timeout=None):
        if timeout is None:
            return super().select(None)
        ready = super().select(0)
        if not ready:
            self.now += max(timeout, 0.0)
        return ready


class _JumpingLoop(asyncio.SelectorEventLoop):
    def __init__(self):
        self._jumping = _JumpingSelector()
        super().__init__(self._jumping)

    def time(self):
        return self._jumping.now


def run_without_waiting(coroutine):
    """Run a coroutine in a loop whose clock, which starts at 0, jumps to the next event: only where
    it waits for timers and for other coroutines.
    """
    with asyncio.Runner(loop_factory=_JumpingLoop) as runner:
        return runner.run(coroutine)
