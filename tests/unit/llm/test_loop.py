"""Coroutines side by side."""

import asyncio

import pytest

from pipeline.llm.loop import run, side_by_side


def test_the_first_failure_is_raised_as_itself():
    async def fail():
        raise KeyError("this")

    with pytest.raises(KeyError, match="this"):
        run(side_by_side([asyncio.sleep(60, 1), fail()]))
