"""What related work cost, system by system, and what it was estimated to. Only its tables; estimating is elsewhere."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from pipeline import tables
from pipeline.engine.parts import statistics_name
from pipeline.report.filters import words
from pipeline.report.found import Accounts, Cost, Found, Money
from pipeline.report.grid import Grid, Rows, Section, Value

_BESIDE = {
    "key_elements": "Key elements, for all systems that read them",
    "g_scores": "Judging: G-Score",
    "citation_support": "Judging: citations",
    "stability": "Stability: writing and judging again",
}
_TOTAL = "All"


def cost_section(found: Found) -> Section:
    """Calls, tokens and money by system: what follows from the rows, so that it is the same after every run."""
    said = "Calls and tokens of all answers, those kept from an earlier run counted as the rest."
    if not found.prices.set:
        said += " No money, as no price of a model is set."
    return Section("cost", "What it took", (said,), (_cost_grid(found),))


def price_notes(found: Accounts, monies: Iterable[Money | None]) -> list[str]:
    """Which prices the money is by, and where it is not all, or more than all."""
    if not found.prices.set:
        return []
    told = "; ".join(f"{model} {each.read:g} and {each.written:g}" for model, each in found.prices.by_model.items())
    notes = [f"Money, in the currency of the prices, for a million tokens read and written: {told}."]
    unpriced = sorted({model for money in monies if money for model in money.unpriced})
    if unpriced:
        notes.append(f"No price is set of {', '.join(unpriced)}; their tokens are not in the money.")
    if any(money.at_most for money in monies if money):
        notes.append("At most: a row has the tokens of writer and judge together, here all at the dearer price.")
    return notes


def run_section(found: Found) -> Section:
    """Seconds of the runs, and calls, tokens and seconds beside the estimate where one was kept."""
    parts = [grid for grid in (_time_grid(found), estimate_grid(found, list(_lines(found)))) if grid is not None]
    said = [] if found.seconds else ["No run of this month is kept."]
    if not found.expected:
        said.append("No estimate to compare with: citeloom estimate makes one before a run.")
    return Section("run", "Time, and what was expected", said, parts)


def _lines(found: Found) -> Iterator[tuple[str, str, Cost]]:
    """(Table, what to call it, cost) of all that cost anything."""
    names = {shown: name for name, shown in found.shown.items()}
    for system in found.systems:
        part = statistics_name(tables.SUMMARIES.name, names.get(system, system))
        yield part, words(system), found.written[system]
    for table, told in _BESIDE.items():
        cost = found.beside.get(table, Cost())
        if cost.done:
            yield table, told, cost


def _cost_grid(found: Found) -> Grid:
    lines = list(_lines(found))
    rows = [_row(found, told, cost) for _, told, cost in lines]
    money = ("Money",) if found.prices.set else ()
    head = ("What", "Model", "Made", "Calls", "Calls each", "Tokens read", "Tokens written", *money)
    total = _sum(cost for *_, cost in lines)
    rows.append(_row(found, _TOTAL, total))
    about = (
        "Made: sections; or papers read, judgements, citations, repeats. A prompt counts as read once for each of its "
        "samples; an endpoint that gives several samples of one request bills it once."
    )
    notes = price_notes(found, [found.prices.of(cost) for *_, cost in lines])
    return Grid("cost", "Calls and tokens", head, [Rows(rows)], about, notes, strong=(_TOTAL,))


def _sum(costs: Iterator[Cost]) -> Cost:
    total = Cost()
    for cost in costs:
        total.join(cost)
    return total


def _row(found: Found, told: str, cost: Cost) -> list[Value]:
    each = cost.calls / cost.done if cost.done else None
    numbers = [Value(cost.done or None, "count"), Value(cost.calls, "count"), Value(each, "one")]
    tokens = [Value(cost.prompt_tokens, "count"), Value(cost.completion_tokens, "count")]
    money = [money_cell(found.prices.of(cost))] if found.prices.set else []
    models = "" if told == _TOTAL else ", ".join(sorted(cost.models))
    return [Value(told), Value(models), *numbers, *tokens, *money]


def money_cell(money: Money | None) -> Value:
    """Money as a cell; at most so much, where that is all that can be said."""
    return Value(money.value, "three", tag="at most" if money.at_most else "") if money else Value(None, "three")


def _time_grid(found: Found) -> Grid | None:
    lines = [(told, found.seconds[table], cost) for table, told, cost in _lines(found) if table in found.seconds]
    rows = [
        [Value(told), Value(seconds, "one"), Value(cost.calls, "count"), Value(seconds / cost.done, "two")]
        for told, seconds, cost in lines
    ]
    head = ("What", "Seconds", "Calls", "Seconds for each made")
    about = (
        "Of the longest run of the stage with the month as it is, since a later one finds its answers kept. Made: "
        "sections; or papers read, judgements, citations, repeats."
    )
    return Grid("time", "Time", head, [Rows(rows)], about) if rows else None


def estimate_grid(found: Accounts, lines: Sequence[tuple[str, str, Cost]], key: str = "estimate") -> Grid | None:
    """Expected against taken, of those stages that an estimate was kept for. lines: (table, what to call it, cost)."""
    rows = [row for table, told, cost in lines if (row := _estimate_row(found, table, told, cost))]
    head = (
        "What", "Calls expected", "Calls taken", "Tokens expected", "Tokens taken", "Taken of expected",
        "Seconds expected", "Seconds taken", *(("Money expected", "Money paid") if found.prices.set else ()),
    )  # fmt: skip
    about = (
        "As citeloom estimate said before a run, against the longest run. Calls and tokens are all there are, a prompt "
        "once for all its samples; seconds and money are of what no earlier run had answered."
    )
    return Grid(key, "Against the estimate", head, [Rows(rows)], about) if rows else None


def _estimate_row(found: Accounts, table: str, told: str, cost: Cost) -> list[Value] | None:
    expected = found.expected.get(table)
    if expected is None:
        return None
    taken = found.tokens.get(table) or None
    money = [Value(expected.money, "three"), Value(found.paid.get(table), "three")] if found.prices.set else []
    return [
        Value(told), Value(expected.calls, "count"), Value(cost.calls, "count"), Value(expected.tokens, "count"),
        Value(taken, "count"), Value(taken / expected.tokens if taken and expected.tokens else None, "two"),
        Value(expected.seconds, "one"), Value(found.seconds.get(table), "one"), *money,
    ]  # fmt: skip
