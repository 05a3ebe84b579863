"""Searches of many questions: never two at a time, and off the event loop."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Sequence

import pytest

from pipeline.answering.retriever import PassageSearch
from pipeline.corpus.passage import Passage
from pipeline.errors import TransientFailure
from pipeline.index.scored import Scored
from tests.unit.answering.asking import passage


class Search:
    """Finds as many passages as wanted, all of which name the query."""

    def __init__(self) -> None:
        self.threads: set[int] = set()
        self._busy = threading.Lock()

    def __call__(self, queries: Sequence[str], count: int) -> list[list[Scored[Passage]]]:
        assert self._busy.acquire(blocking=False), "two searches at a time"
        try:
            self.threads.add(threading.get_ident())
            time.sleep(0.01)
            if "broken" in queries:
                raise TransientFailure("the index does not answer")
            return [
                [Scored(passage(number, query), 1.0) for number in range(1, count + 1)]
                for query in queries
            ]
        finally:
            self._busy.release()


def texts(rankings: Sequence[Sequence[Scored[Passage]]]) -> list[list[str]]:
    return [[scored.item.text for scored in ranking] for ranking in rankings]


def test_searches_run_one_after_another_and_everyone_gets_their_own() -> None:
    search = Search()

    async def ask() -> list[Sequence[Sequence[Scored[Passage]]]]:
        retriever = PassageSearch(search)
        return await asyncio.gather(*(retriever.find([f"q{n}", "all"], 2) for n in range(9)))

    rankings = asyncio.run(ask())
    assert [texts(ranking) for ranking in rankings] == [
        [[f"q{n}", f"q{n}"], ["all", "all"]] for n in range(9)
    ]
    assert threading.get_ident() not in search.threads


def test_passages_seen_are_known_by_id_and_no_query_makes_no_search() -> None:
    search = Search()
    retriever = PassageSearch(search)
    assert list(asyncio.run(retriever.find([], 2))) == []
    assert search.threads == set()
    asyncio.run(retriever.find(["q"], 2))
    assert set(retriever.seen) == {"p1", "p2"}


def test_a_failed_search_is_its_callers_failure_and_not_that_of_others() -> None:
    async def ask() -> list[Sequence[Sequence[Scored[Passage]]]]:
        retriever = PassageSearch(Search())
        broken = asyncio.create_task(retriever.find(["broken"], 1))
        beside = await retriever.find(["fine"], 1)
        with pytest.raises(TransientFailure):
            await broken
        return [beside, await retriever.find(["fine"], 1)]

    assert [texts(rankings) for rankings in asyncio.run(ask())] == [[["fine"]], [["fine"]]]


def test_a_caller_that_is_cancelled_while_it_waits_does_not_hold_up_others() -> None:
    async def ask() -> list[Sequence[Sequence[Scored[Passage]]]]:
        retriever = PassageSearch(Search())
        first, cancelled, last = (
            asyncio.create_task(retriever.find([query], 1)) for query in "abc"
        )
        await asyncio.sleep(0.002)
        cancelled.cancel()
        return await asyncio.gather(first, last)

    assert [texts(rankings) for rankings in asyncio.run(ask())] == [[["a"]], [["c"]]]
