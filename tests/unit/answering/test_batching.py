"""Searches of many questions: asked together, never two at a time, each caller given its own."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Sequence

import pytest

from pipeline.answering.retrieval import BatchedRetriever, RetrievedPassage
from pipeline.errors import TransientFailure
from tests.unit.answering.asking import passage


class Search:
    """Finds as many passages as wanted, all of which name the query; remembers what it was asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[list[str], int]] = []
        self.threads: set[int] = set()
        self._busy = threading.Lock()

    def __call__(self, queries: Sequence[str], count: int) -> list[list[RetrievedPassage]]:
        assert self._busy.acquire(blocking=False), "two searches at a time"
        try:
            self.asked.append((list(queries), count))
            self.threads.add(threading.get_ident())
            time.sleep(0.01)
            if "broken" in queries:
                raise TransientFailure("the index does not answer")
            return [[passage(number, query) for number in range(1, count + 1)] for query in queries]
        finally:
            self._busy.release()


def texts(found: Sequence[Sequence[RetrievedPassage]]) -> list[list[str]]:
    return [[each.text for each in ranking] for ranking in found]


def test_what_waits_together_is_one_search_and_everyone_gets_their_own() -> None:
    search = Search()

    async def ask() -> list[list[list[RetrievedPassage]]]:
        retriever = BatchedRetriever(search)
        return await asyncio.gather(*(retriever.find([f"q{n}", "all"], 2) for n in range(20)))

    found = asyncio.run(ask())
    assert [texts(each) for each in found] == [[[f"q{n}", f"q{n}"], ["all", "all"]] for n in range(20)]
    assert [(len(queries), count) for queries, count in search.asked] == [(21, 2)]
    assert threading.get_ident() not in search.threads


def test_a_search_takes_so_many_queries_of_one_count_unless_a_caller_has_more() -> None:
    search = Search()

    async def ask() -> None:
        retriever = BatchedRetriever(search, most=3)
        await asyncio.gather(*(retriever.find([f"q{n}"], 2 + n % 2) for n in range(8)))

    asyncio.run(ask())
    assert [count for _, count in search.asked] == [2, 3, 2, 3]
    assert max(len(queries) for queries, _ in search.asked) == 3
    found = asyncio.run(BatchedRetriever(search, most=2).find([f"q{n}" for n in range(5)], 1))
    assert texts(found) == [[f"q{n}"] for n in range(5)]


def test_a_failed_search_is_its_callers_failure_and_not_that_of_later_ones() -> None:
    async def ask() -> tuple[list[object], list[list[RetrievedPassage]]]:
        retriever = BatchedRetriever(Search())
        failed = await asyncio.gather(
            retriever.find(["broken"], 1), retriever.find(["fine"], 1), return_exceptions=True
        )
        return list(failed), await retriever.find(["fine"], 1)

    failed, later = asyncio.run(ask())
    assert all(isinstance(each, TransientFailure) for each in failed)
    assert texts(later) == [["fine"]]


def test_a_search_that_leaves_queries_out_is_told_of() -> None:
    with pytest.raises(ValueError, match="zip"):
        asyncio.run(BatchedRetriever(lambda queries, count: []).find(["a"], 1))


def test_a_caller_that_gives_up_does_not_hold_up_others() -> None:
    async def ask() -> list[list[RetrievedPassage]]:
        retriever = BatchedRetriever(Search())
        given_up = asyncio.create_task(retriever.find(["a"], 1))
        waiting = asyncio.create_task(retriever.find(["b"], 1))
        await asyncio.sleep(0.002)
        given_up.cancel()
        return await waiting

    assert texts(asyncio.run(ask())) == [["b"]]
