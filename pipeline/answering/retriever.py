"""Search for passages in the index, and the months that it is limited to."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pipeline import tables
from pipeline.corpus.nouns import Passage
from pipeline.engine.stage import Workspace
from pipeline.errors import SettingError
from pipeline.identity.months import select_months
from pipeline.index.fusion import By
from pipeline.index.scored import Scored
from pipeline.index.search import search_many
from pipeline.index.search_options import MOST, SearchOptions
from pipeline.text import one_line

# Longer queries are no better, and a model under constrained decoding may write as much as it may.
QUERY_CHARS = 200
_UNSEARCHABLE = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class MonthSpan:
    """Months that answers may draw on, `YYYY-MM`, both included; None for no limit."""

    first: str | None = None
    last: str | None = None

    def holds(self, month: str) -> bool:
        """Whether a month lies within."""
        return (self.first is None or self.first <= month) and (
            self.last is None or month <= self.last
        )


ALL_MONTHS = MonthSpan()


def month_span(workspace: Workspace, months: str) -> MonthSpan:
    """The months of an argument (`all`, `2024-03`, `2024-03..2024-05`) as one span.

    Raises SettingError if it is malformed, or names months without passages or with gaps, which a
    search cannot have.
    """
    if months.strip() == "all":
        return ALL_MONTHS
    present = workspace.root.months(tables.PASSAGES)
    selected = select_months(months, present)
    span = MonthSpan(selected[0], selected[-1])
    gaps = [month for month in present if span.holds(month) and month not in selected]
    if gaps:
        raise SettingError(
            f"--months {months} leaves out {', '.join(gaps)}: answers draw on one span of"
            f" months, such as {span.first}..{span.last}"
        )
    return span


SearchFunction = Callable[[Sequence[str], int, Sequence[str]], Sequence[Sequence[Scored[Passage]]]]
"""Queries, a number of passages, and arXiv ids of the only papers (all papers for none) → the
passages of each query, best first."""


def index_search(
    workspace: Workspace, span: MonthSpan = ALL_MONTHS, by: By = "fused"
) -> SearchFunction:
    """A search of the workspace's index, of at most 1,000 passages a query. by: vectors that rank.

    The embedder is loaded once in a process. Raises as `pipeline.index.search.search` does.
    """

    def search(
        queries: Sequence[str], count: int, papers: Sequence[str]
    ) -> Sequence[Sequence[Scored[Passage]]]:
        options = SearchOptions(
            limit=min(count, MOST),
            first_month=span.first,
            last_month=span.last,
            papers=papers,
            by=by,
        )
        return search_many(workspace, queries, options)

    return search


class PassageSearch:
    """Searches one after another, each in a thread: embedder and index take all the cores.

    read_records: reads the records of the papers that a question names; None for a system that is
    shown none.
    """

    def __init__(
        self, search: SearchFunction, read_records: Callable[[str], list[Passage]] | None = None
    ) -> None:
        self._search, self._read_records, self._lock = search, read_records, asyncio.Lock()
        self.seen: dict[str, Passage] = {}
        """Every retrieved passage, by id."""

    async def find(
        self, queries: Sequence[str], count: int, papers: Sequence[str] = ()
    ) -> Sequence[Sequence[Scored[Passage]]]:
        """For each query in order `count` passages, or as many as there are, best first.

        papers: arXiv ids of the only papers; all for none. No queries make no search. Raises as the
        search does.
        """
        if not queries:
            return []
        async with self._lock:
            rankings = await asyncio.to_thread(self._search, queries, count, papers)
        for ranking in rankings:
            self.seen |= {scored.item.passage_id: scored.item for scored in ranking}
        return rankings

    async def records(self, question: str) -> list[Passage]:
        """The records of the papers and authors that a question names, as `named_records`."""
        if self._read_records is None:
            return []
        records = await asyncio.to_thread(self._read_records, question)
        self.seen |= {record.passage_id: record for record in records}
        return records


def searchable(text: str) -> str:
    """A text as a query: one line without control characters, cut at a word; may be empty."""
    line = one_line(_UNSEARCHABLE.sub(" ", text))
    if len(line) <= QUERY_CHARS:
        return line
    return line[: QUERY_CHARS + 1].rpartition(" ")[0] or line[:QUERY_CHARS]
