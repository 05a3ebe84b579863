"""Sections on cost: calls, tokens and money of related work and answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pipeline import tables
from pipeline.llm.messages import Prices
from pipeline.report.data import AnswersData, Cost, RelatedWorkData, Writings
from pipeline.report.formatting import answering_system, words
from pipeline.report.grid import Cell, Grid, GridRow, PageSection

_OTHER_COSTS = {
    tables.KEY_ELEMENTS.name: "Key elements, for all systems that use them",
    tables.G_SCORES.name: "Judging: G-Score",
    tables.CITATION_SUPPORT.name: "Judging: citations",
    tables.ANSWER_GRADES.name: "Grading the answers",
}
_TOTAL = "All"
_COLUMNS = ["Stage", "Model", "Items", "Calls", "Tokens read", "Tokens written"]


def related_work_cost(data: RelatedWorkData) -> PageSection | None:
    """Calls, tokens and money of related work; None where no model was called."""
    about = (
        "Items are sections, papers read, judgements or citations. A prompt counts once for each of"
        " its samples; an endpoint that returns several samples for one request bills it once."
    )
    grid = _cost_grid("cost", "Calls and tokens", about, data, words)
    return _section("cost", "Cost", data, grid)


def answers_cost(data: AnswersData) -> PageSection | None:
    """The same of answers; None where no model was called."""
    about = (
        "Items are the questions that a system answered, or the answers that a judge graded. A call"
        " that two answers share counts for both."
    )
    title = "Calls and tokens of answers"
    grid = _cost_grid("answers_cost", title, about, data, answering_system)
    return _section("cost-of-answers", "Cost of answers", data, grid)


def _section(key: str, title: str, data: Writings, grid: Grid) -> PageSection | None:
    if not any(cost.calls for cost in data.all_costs):
        return None
    text = "All answers count, those taken from the cache too."
    if not data.prices:
        text += " There is no column of money because no price of a model is set."
    return PageSection(key, title, (text,), (grid,))


def _cost_grid(
    key: str, title: str, about: str, data: Writings, name: Callable[[str], str]
) -> Grid:
    """A row for each system and stage that called a model, and their sum."""
    costs = {name(system): data.costs[system] for system in data.systems}
    costs |= {_OTHER_COSTS[table]: cost for table, cost in data.other_costs.items()}
    total = Cost()
    rows = []
    for label, cost in costs.items():
        if cost.calls:
            rows.append(_row(label, ", ".join(sorted(cost.models)), cost, data.prices))
            total.calls += cost.calls
            total.tokens_read.update(cost.tokens_read)
            total.tokens_written.update(cost.tokens_written)
    rows.append(_row(_TOTAL, "", total, data.prices))
    columns = [*_COLUMNS, *(["Money", "Money per item"] if data.prices else [])]
    notes = _price_notes(total, data.prices)
    return Grid(key, title, columns, rows, about=about, notes=notes, totals=(_TOTAL,))


def _row(label: str, models: str, cost: Cost, prices: Mapping[str, Prices]) -> GridRow:
    items = cost.items or None
    row = [label, models, items, cost.calls, cost.tokens_read.total(), cost.tokens_written.total()]
    if not prices:
        return row
    money = cost.money(prices)
    per_item = money / items if money is not None and items else None
    return [*row, Cell(money, "three"), Cell(per_item, "three")]


def _price_notes(total: Cost, prices: Mapping[str, Prices]) -> list[str]:
    if not prices:
        return []
    listed = "; ".join(
        f"{model} {price.read:g} and {price.written:g}" for model, price in prices.items()
    )
    notes = [
        f"Prices for a million tokens read and written, in the currency of the settings: {listed}."
    ]
    used = {
        model for model in total.models if total.tokens_read[model] or total.tokens_written[model]
    }
    unpriced = sorted(used - prices.keys())
    if unpriced:
        notes.append(f"No price is set for {', '.join(unpriced)}; the money leaves its tokens out.")
    return notes
