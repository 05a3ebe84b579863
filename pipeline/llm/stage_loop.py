"""The loop of a stage that asks a language model: many items at once, results in order."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from itertools import count
from typing import TypeVar

from pipeline.engine.stage import Job
from pipeline.llm.client import LlmClient, open_client
from pipeline.llm.loop import side_by_side

Item = TypeVar("Item")
Result = TypeVar("Result")


@asynccontextmanager
async def job_client(job: Job, model: str | None) -> AsyncIterator[LlmClient]:
    """The client of a model; its usage is measured once the block has succeeded."""
    async with open_client(job.workspace, model) as client:
        yield client
        job.measure(client.usage.measured())


async def map_concurrently(
    job: Job,
    items: Sequence[Item],
    work: Callable[[Item], Awaitable[Result]],
    at_once: int | None = None,
) -> list[Result]:
    """The result of each item, in their order, with progress by item. The first failure cancels the
    rest and is raised.

    at_once: how many items are at work at the same time; None for all, as the client limits the
    calls in flight. With a limit an item's prompt is put into words once it has its turn: those of
    a month may fill gigabytes.
    """
    turns = asyncio.Semaphore(at_once or max(len(items), 1))
    done = count(1)
    job.expect(len(items))

    async def one(item: Item) -> Result:
        async with turns:
            result = await work(item)
        job.advance(next(done))
        return result

    return await side_by_side(map(one, items))
