"""Coroutines side by side, in real time and in none."""

import asyncio

import pytest

from pipeline.llm.calls import Slots
from pipeline.llm.loop import run, side_by_side, without_waiting


def test_the_first_failure_is_raised_as_itself():
    async def fail():
        raise KeyError("this")

    with pytest.raises(KeyError, match="this"):
        run(side_by_side([asyncio.sleep(60, 1), fail()]))


def test_without_waiting_a_day_is_over_at_once_and_the_clock_tells_it():
    slots = Slots(2)

    async def work(hours):
        await slots.acquire(1)
        await asyncio.sleep(3600 * hours)
        slots.release(1)
        return asyncio.get_running_loop().time() / 3600

    with without_waiting():
        ended = run(side_by_side(work(hours) for hours in (10, 4, 3, 20)))
    assert ended == pytest.approx([10, 4, 7, 27])


def test_a_thread_is_waited_for_also_where_the_clock_jumps():
    async def work():
        return await asyncio.to_thread(sum, range(1000))

    with without_waiting():
        assert run(work()) == 499500
