"""Calls, tokens and money of related work and answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pipeline import tables
from pipeline.llm.messages import Prices
from pipeline.report.frames import USAGE, Row, Writings
from pipeline.report.grid import Cell, Grid, GridRow, PageSection

_OTHER_COSTS = {
    tables.KEY_ELEMENTS.name: "Key elements, for all systems that use them",
    tables.G_SCORES.name: "Judging: G-Score",
    tables.CITATION_SUPPORT.name: "Judging: citations",
    tables.ANSWER_GRADES.name: "Grading the answers",
}
_TOTAL = "All"


def cost_section(key: str, title: str, data: Writings) -> PageSection | None:
    """A row for each system and stage that called a model, and their sum; None where no model was
    called.
    """
    stages: dict[str, Sequence[Row]] = {
        data.title_of(system): rows for system, rows in data.costs.items()
    }
    stages |= {_OTHER_COSTS[table]: rows for table, rows in data.other_costs.items()}
    called = {name: rows for name, rows in stages.items() if any(row["calls"] for row in rows)}
    if not called:
        return None
    everything = [row for rows in called.values() for row in rows]
    grid_rows = [_row(name, rows, data.prices) for name, rows in called.items()]
    grid_rows.append(_row(_TOTAL, everything, data.prices))
    columns = ["Stage", "Model", "Items", "Calls", "Tokens read", "Tokens written"]
    notes: list[str] = []
    if data.prices:
        columns += ["Money", "Money per item"]
        listed = "; ".join(
            f"{model} {price.read:g} and {price.written:g}" for model, price in data.prices.items()
        )
        notes = [f"Prices for a million tokens read and written: {listed}."]
        used = {row["model"] for row in everything if row["model"] and row["prompt_tokens"]}
        if unpriced := sorted(used - data.prices.keys()):
            names = ", ".join(unpriced)
            notes.append(f"No price is set for {names}; the money leaves its tokens out.")
    about = "Answers from the cache count too; a call that two items share counts for both."
    table = "answers_cost" if "answers" in key else "cost"
    grid = Grid(
        table, title, columns, grid_rows, about=about, notes=notes,
        totals=(_TOTAL,),
    )  # fmt: skip
    return PageSection(key, title, (), (grid,))


def _row(name: str, rows: Sequence[Row], prices: Mapping[str, Prices]) -> GridRow:
    calls, read, written = (sum(row[column] or 0 for row in rows) for column in USAGE)
    items = None if name == _TOTAL else sum(row["rows"] for row in rows)
    models = sorted({row["model"] for row in rows if row["model"]})
    cells = [name, "" if name == _TOTAL else ", ".join(models), items, calls, read, written]
    if not prices:
        return cells
    paid = [
        prices[row["model"]].cost(row["prompt_tokens"] or 0, row["completion_tokens"] or 0)
        for row in rows
        if row["model"] in prices
    ]
    money = sum(paid) if paid else None
    per_item = money / items if items and money is not None else None
    return [*cells, Cell(money, "three"), Cell(per_item, "three")]
