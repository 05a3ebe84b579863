"""The search of a data root's passages, and the months that it is limited to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass

from pipeline import tables
from pipeline.answering.retrieval import RetrievedPassage, Search
from pipeline.arxiv.months import select_months
from pipeline.engine.stage import Workspace
from pipeline.errors import SettingError
from pipeline.index.fusion import By
from pipeline.index.opening import live_index
from pipeline.index.search import search_many
from pipeline.index.search_options import MOST, SearchOptions


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
    chosen = select_months(months, present)
    span = MonthSpan(chosen[0], chosen[-1])
    between = [month for month in present if span.holds(month) and month not in chosen]
    if between:
        raise SettingError(
            f"--months {months} leaves out {', '.join(between)}: answers draw on one span of"
            f" months, such as {span.first}..{span.last}"
        )
    return span


def check_index(workspace: Workspace) -> None:
    """Raise MissingInput if nothing is indexed, before a model is paid for a query."""
    live_index(workspace)


def index_search(workspace: Workspace, span: MonthSpan = ALL_MONTHS, by: By = "fused") -> Search:
    """A search of the workspace's index, for `PassageSearch`; at most 1,000 passages a query. by:
    vectors that rank.

    The embedder is loaded once in a process. The search raises as `pipeline.index.search.search`
    does.
    """

    def search(queries: Sequence[str], count: int) -> list[list[RetrievedPassage]]:
        options = SearchOptions(
            limit=min(count, MOST), first_month=span.first, last_month=span.last, by=by
        )
        return [
            [
                RetrievedPassage.of(asdict(scored.item), scored.item.month, scored.relevance)
                for scored in ranking
            ]
            for ranking in search_many(workspace, queries, options)
        ]

    return search
