"""Searches of the index: one at a time, off the event loop, within a span of months."""

import asyncio
import threading
import time

import pytest

from pipeline import tables
from pipeline.answering.retriever import (
    QUERY_CHARS,
    MonthSpan,
    PassageSearch,
    index_search,
    month_span,
    searchable,
)
from pipeline.errors import SettingError, TransientFailure
from pipeline.index.scored import Scored
from tests.month_tables import write_table
from tests.unit.answering.corpus import MARCH, MAY
from tests.unit.answering.scripted_answers import passage
from tests.unit.index.building import make_workspace


def texts(rankings):
    return [[scored.item.text for scored in ranking] for ranking in rankings]


def test_more_passages_than_there_are_may_be_asked_for(corpus):
    (every,) = index_search(corpus)(["light"], 5_000, ())
    assert len(every) == 10


class SlowSearch:
    """Finds as many passages as asked for, all of which name the query."""

    def __init__(self):
        self.threads = set()
        self._busy = threading.Lock()

    def __call__(self, queries, count, papers):
        assert self._busy.acquire(blocking=False), "two searches at a time"
        try:
            self.threads.add(threading.get_ident())
            time.sleep(0.01)
            if "broken" in queries:
                raise TransientFailure("the index does not answer")
            passages = range(1, count + 1)
            return [
                [Scored(passage(number, query), 1.0) for number in passages] for query in queries
            ]
        finally:
            self._busy.release()


def test_searches_run_one_after_another_and_everyone_gets_their_own():
    search = SlowSearch()

    async def ask():
        retriever = PassageSearch(search)
        return await asyncio.gather(*(retriever.find([f"q{n}", "all"], 2) for n in range(9)))

    rankings = asyncio.run(ask())
    assert [texts(ranking) for ranking in rankings] == [
        [[f"q{n}", f"q{n}"], ["all", "all"]] for n in range(9)
    ]
    assert threading.get_ident() not in search.threads
    assert list(asyncio.run(PassageSearch(None).find([], 2))) == [], "no query makes no search"


async def _beside_a_failure(retriever):
    broken = asyncio.create_task(retriever.find(["broken"], 1))
    first = await retriever.find(["first"], 1)
    with pytest.raises(TransientFailure):
        await broken
    return [first, await retriever.find(["last"], 1)]


async def _beside_a_cancelled_search(retriever):
    first, cancelled, last = (
        asyncio.create_task(retriever.find([query], 1)) for query in ("first", "cancelled", "last")
    )
    await asyncio.sleep(0.002)
    cancelled.cancel()
    return await asyncio.gather(first, last)


@pytest.mark.parametrize("searches", [_beside_a_failure, _beside_a_cancelled_search])
def test_a_search_that_fails_or_is_cancelled_does_not_hold_up_others(searches):
    made = searches(PassageSearch(SlowSearch()))
    assert [texts(rankings) for rankings in asyncio.run(made)] == [[["first"]], [["last"]]]


@pytest.mark.parametrize(
    ("months", "span"),
    [
        ("all", MonthSpan()),
        (MARCH, MonthSpan(MARCH, MARCH)),
        ("2024-01..2024-12", MonthSpan(MARCH, MAY)),
        (MAY, MonthSpan(MAY, MAY)),
    ],
)
def test_months_are_one_span(corpus, months, span):
    assert month_span(corpus, months) == span


def test_months_with_a_gap_are_no_span(tmp_path):
    workspace = make_workspace(tmp_path / "data")
    for month in ("2024-01", "2024-02", "2024-03"):
        write_table(workspace.root, tables.PASSAGES, month, [])
    with pytest.raises(SettingError, match=r"leaves out 2024-02.*2024-01\.\.2024-03"):
        month_span(workspace, "2024-01,2024-03")


def test_a_query_is_one_line_without_controls_that_ends_with_a_word():
    assert searchable(" a\n\x00b\ud800 ") == "a b"
    long = searchable("word " * 90)
    assert len(long) <= QUERY_CHARS
    assert long.endswith("word")
    assert len(searchable("x" * 900)) == QUERY_CHARS
