"""Run coroutines from plain code, many concurrently, in real time or on a simulated clock."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable, Coroutine, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

T = TypeVar("T")
_make_loop: ContextVar[Callable[[], asyncio.AbstractEventLoop] | None] = ContextVar(
    "make_loop", default=None
)


def run(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine in a loop of its own, even if the calling thread already runs one."""
    make_loop = _make_loop.get()
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return _run(coroutine, make_loop)
    with ThreadPoolExecutor(1, thread_name_prefix="citeloom-loop") as thread:
        return thread.submit(_run, coroutine, make_loop).result()


def _run(
    coroutine: Coroutine[Any, Any, T], make_loop: Callable[[], asyncio.AbstractEventLoop] | None
) -> T:
    with asyncio.Runner(loop_factory=make_loop) as runner:
        return runner.run(coroutine)


@contextmanager
def without_waiting() -> Iterator[None]:
    """Within the block, `run` uses a loop whose clock jumps to the next event.

    Sleeping takes no time, and the loop's clock, which starts at 0, has the time that it would have
    taken. Only for coroutines that wait for timers and for one another: one that waits for the
    network would see it time out.
    """
    before = _make_loop.set(_JumpingLoop)
    try:
        yield
    finally:
        _make_loop.reset(before)


class _JumpingSelector(selectors.DefaultSelector):
    """Advances the clock instead of waiting."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None:
            return super().select(None)
        ready = super().select(0)
        if not ready:
            self.now += max(timeout, 0.0)
        return ready


class _JumpingLoop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self._jumping = _JumpingSelector()
        super().__init__(self._jumping)

    def time(self) -> float:
        return self._jumping.now


async def side_by_side(coroutines: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """Run coroutines concurrently; their results in order.

    The first failure cancels the others and is raised as is.
    """
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(coroutine) for coroutine in coroutines]
    except BaseExceptionGroup as failures:
        error: BaseException = failures
        while isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
        raise error from None
    return [task.result() for task in tasks]
