"""A search that blocks, as a retriever for many questions at once: what waits together is asked together.

Never two searches at a time: an embedder and an embedded index have the cores for one, and take many queries at the
cost of a few.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pipeline.answering.retrieving import Found

Search = Callable[[Sequence[str], int], Sequence[Sequence[Found]]]
"""Queries and how many passages of each → the passages of each query, best first; called in a thread of its own."""

# Vectors of so many queries are one small batch for the embedder, and one request to the index.
MOST_QUERIES = 64


@dataclass(frozen=True, slots=True)
class _Waiting:
    """Queries of one caller, and where their passages go."""

    queries: tuple[str, ...]
    count: int
    turn: asyncio.Future[list[list[Found]]]


class Batched:
    """The retriever. Belongs to one event loop, as a client of a model does.

    Queries that want equally many passages go into one search: a longer ranking may begin otherwise, and what a
    question finds must not hang on who asks beside it.
    """

    def __init__(self, search: Search, most: int = MOST_QUERIES) -> None:
        self._search, self._most = search, most
        self._waiting: list[_Waiting] = []
        self._at_work: asyncio.Task[None] | None = None

    async def find(self, queries: Sequence[str], count: int) -> list[list[Found]]:
        """The passages of each query, once those are found that were asked for before. Raises as the search does."""
        turn: asyncio.Future[list[list[Found]]] = asyncio.get_running_loop().create_future()
        self._waiting.append(_Waiting(tuple(queries), count, turn))
        if self._at_work is None:
            self._at_work = asyncio.create_task(self._work())
        return await turn

    async def _work(self) -> None:
        try:
            await asyncio.sleep(0)  # whoever asks in the same turn of the loop comes along
            while self._waiting:
                await self._serve(self._next())
        finally:
            self._at_work = None

    def _next(self) -> list[_Waiting]:
        """The caller that waits longest, and others that want as many passages, as far as one search takes them."""
        first, *others = self._waiting
        taken, room = [first], self._most - len(first.queries)
        for each in others:
            if each.count == first.count and len(each.queries) <= room:
                taken.append(each)
                room -= len(each.queries)
        self._waiting = [each for each in self._waiting if each not in taken]
        return taken

    async def _serve(self, batch: Sequence[_Waiting]) -> None:
        """One search for all of them; its failure is each one's."""
        queries = list(dict.fromkeys(query for each in batch for query in each.queries))
        try:
            answers = await asyncio.to_thread(self._search, queries, batch[0].count)
            found = dict(zip(queries, answers, strict=True))
        except Exception as error:
            for each in batch:
                if not each.turn.done():
                    each.turn.set_exception(error)
            return
        for each in batch:
            if not each.turn.done():  # it may have been cancelled meanwhile
                each.turn.set_result([list(found[query]) for query in each.queries])
