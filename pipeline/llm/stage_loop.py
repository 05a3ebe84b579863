"""The loop of a stage that asks a language model: many items at once, results in order."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from itertools import count
from operator import itemgetter
from typing import Any, TypeVar

from pipeline.engine.stage import FAILED_REQUESTS, Job
from pipeline.errors import PermanentFailure
from pipeline.llm.calls import item_failures
from pipeline.llm.client import LlmClient, open_client
from pipeline.llm.loop import run, side_by_side
from pipeline.llm.messages import LASTING, LlmAnswerError
from pipeline.text import number_of

Item = TypeVar("Item")
Result = TypeVar("Result")
# So many items, the first of the table, end the stage if they all fail alike.
_FIRST = 20


def leave_out_failed(job: Job, subject: str, error: LlmAnswerError, place: str = "") -> None:
    """Record in the ledger an item that failed: its kind, reason and cost. place: within the
    subject.
    """
    cost = f"{error.spent.calls} calls, {error.spent.tokens:,} tokens"
    within = f"{place}: " if place else ""
    job.leave_out(subject, f"failed_{error.kind}", f"{within}{error} ({cost})")


def attempt_all(
    job: Job,
    model: str | None,
    items: Sequence[Item],
    work: Callable[[LlmClient, Item], Awaitable[Result]],
) -> list[Result | LlmAnswerError]:
    """As `ask_all`; failed completions are results."""

    async def attempt(client: LlmClient, item: Item) -> Result | LlmAnswerError:
        try:
            return await work(client, item)
        except LlmAnswerError as error:
            return error

    return ask_all(job, model, items, attempt)


def ask_all(
    job: Job,
    model: str | None,
    items: Sequence[Item],
    work: Callable[[LlmClient, Item], Awaitable[Result]],
    at_once: int | None = None,
    begin: Callable[[Item], Any] | None = None,
) -> list[Result]:
    """As `map_concurrently`, with a client of the model; from plain code.

    The client's usage is measured once all is done, and the month is noted as incomplete where
    requests failed.
    """

    async def ask() -> list[Result]:
        async with open_client(job.workspace, model, keeps_failures=True) as client:
            results = await map_concurrently(job, items, partial(work, client), at_once, begin)
            job.measure(client.usage.measured())
            failed = Counter(job.notes.get(FAILED_REQUESTS, {})) + client.calls.failures
            if failed:
                job.notes[FAILED_REQUESTS] = dict(sorted(failed.items()))
            return results

    return run(ask())


async def map_concurrently(
    job: Job,
    items: Sequence[Item],
    work: Callable[[Item], Awaitable[Result]],
    at_once: int | None = None,
    begin: Callable[[Item], Any] | None = None,
) -> list[Result]:
    """The result of each item, in their order, with progress by item. The first exception cancels
    the rest and is raised.

    begin: the key by which they begin, where that is not their order. at_once: how many items are
    at work at the same time; None for all, as the client limits the calls in flight. With a limit
    an item's prompt is put into words once it has its turn: those of a month may fill gigabytes.

    Raises PermanentFailure where the first items of the table all fail alike, though `work` may
    have made a result of each failure.
    """
    turns = asyncio.Semaphore(at_once or max(len(items), 1))
    done = count(1)
    first: dict[int, LlmAnswerError | None] = {}
    job.expect(len(items))

    def check_first() -> None:
        failed = [failure for failure in first.values() if failure is not None]
        are_alike = len(failed) == len(first) > 1 and len({each.kind for each in failed}) == 1
        # Of fewer than _FIRST, those that are not asked for again are left as they are: the other
        # items of a small month do not wait for them.
        are_kept = all(each.is_kept or each.kind in LASTING for each in failed)
        if are_alike and (len(failed) == _FIRST or not are_kept):
            raise PermanentFailure(
                f"the first {number_of(len(failed), 'item')} of {job.stage.name} failed alike:"
                f" {failed[0]}; then run the same command again: it asks for what failed alone"
            )

    async def one(place: int, item: Item) -> Result:
        failures: list[LlmAnswerError] = []
        item_failures.set(failures)  # each item is a task with a context of its own
        async with turns:
            result = await work(item)
        if place < _FIRST:
            first[place] = failures[0] if failures else None
            if len(first) == min(len(items), _FIRST) and not job.rehearsal:
                check_first()
        job.advance(next(done))
        return result

    order = list(range(len(items)))
    if begin is not None:
        order.sort(key=lambda place: begin(items[place]))
    results = await side_by_side(one(place, items[place]) for place in order)
    return [result for _, result in sorted(zip(order, results, strict=True), key=itemgetter(0))]
