"""What related work and answers cost: calls, tokens and money by system, and the times of runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pyarrow as pa

from pipeline import tables
from pipeline.engine.run_stats import StageTiming, read_timings
from pipeline.llm.messages import Prices
from pipeline.report.formatting import answering_system, words
from pipeline.report.grid import Cell, Grid, Row, Section, with_rows
from pipeline.storage.data_root import DataRoot

if TYPE_CHECKING:
    from pipeline.report.answers_data import AnswersData
    from pipeline.report.related_work_data import RelatedWorkData

USAGE = ("calls", "prompt_tokens", "completion_tokens")
_OTHER_COSTS = {
    tables.KEY_ELEMENTS.name: "Key elements, for all systems that use them",
    tables.G_SCORES.name: "Judging: G-Score",
    tables.CITATION_SUPPORT.name: "Judging: citations",
}
_TOTAL = "All"


@dataclass(slots=True)
class Cost:
    """What something cost, answers from the cache included. items: how many rows it made."""

    items: int = 0
    calls: int = 0
    tokens: Counter[tuple[str, str]] = field(default_factory=Counter)
    """(Model, `prompt_tokens` or `completion_tokens`) → tokens."""

    def add(self, table: pa.Table, model: str) -> None:
        """Add the rows of a month. model: the column with the model whose tokens these are."""
        self.items += table.num_rows
        sums = table.group_by(model, use_threads=False).aggregate([(name, "sum") for name in USAGE])
        for row in sums.to_pylist():
            self.calls += row["calls_sum"] or 0
            for name in USAGE[1:]:
                self.tokens[row[model] or "", name] += row[f"{name}_sum"] or 0

    @property
    def models(self) -> set[str]:
        """Every model that wrote or judged, one that needs no tokens too."""
        return {model for model, _ in self.tokens if model}

    def tokens_of(self, kind: str) -> int:
        """Tokens of one kind, `prompt_tokens` or `completion_tokens`, of all models."""
        return sum(number for (_, name), number in self.tokens.items() if name == kind)


def money_of(cost: Cost, prices: Mapping[str, Prices]) -> float | None:
    """Money for the tokens of models with a price, answers from the cache included; None where no
    model has one.
    """
    if not cost.models & prices.keys():
        return None
    return sum(
        prices[model].cost(
            cost.tokens[model, "prompt_tokens"], cost.tokens[model, "completion_tokens"]
        )
        for model in sorted(cost.models & prices.keys())
    )


@dataclass(frozen=True, slots=True)
class CostLine:
    """One line of the tables of costs. stage: name of the stage or its part, where it has run
    statistics.
    """

    stage: str
    label: str
    cost: Cost


def related_work_costs(data: RelatedWorkData) -> list[CostLine]:
    """Each system that wrote, then what was paid beside the sections."""
    lines = [
        CostLine(data.part_of(tables.SUMMARIES, system), words(system), data.written[system])
        for system in data.systems
    ]
    beside = [
        CostLine(name, label, data.beside.get(name, Cost())) for name, label in _OTHER_COSTS.items()
    ]
    return lines + [line for line in beside if line.cost.items]


def answer_costs(data: AnswersData) -> list[CostLine]:
    """Each system that called a model, then grading."""
    lines = [
        CostLine(
            data.part_of(tables.ANSWERS, system), answering_system(system), data.written[system]
        )
        for system in data.systems
    ]
    lines.append(CostLine(tables.ANSWER_GRADES.name, "Grading the answers", data.grading))
    return [line for line in lines if line.cost.calls]


def related_work_cost_section(data: RelatedWorkData) -> Section:
    """Calls, tokens and money of related work; the same after every run, since it follows from the
    rows.
    """
    about = (
        "Items are sections, papers read, judgements or citations. A prompt counts once for each of"
        " its samples; an endpoint that returns several samples for one request bills it once."
    )
    said = "All answers count, those taken from the cache too."
    if not data.prices:
        said += " There is no column of money because no price of a model is set."
    grid = _cost_grid("cost", "Calls and tokens", about, related_work_costs(data), data.prices)
    return Section("cost", "Cost", (said,), (grid,))


def answer_cost_section(data: AnswersData) -> Section | None:
    """The same of answers; None where no model was called."""
    if not data.called_model:
        return None
    lines = answer_costs(data)
    about = (
        "Items are the questions that a system answered, or the answers that a judge graded. A call"
        " that two answers share counts for both."
    )
    said = "All answers count, those taken from the cache too. Times are on the page of runs."
    grid = _cost_grid("answers_cost", "Calls and tokens of answers", about, lines, data.prices)
    return Section("cost-of-answers", "Cost of answers", (said,), (grid,))


def _cost_grid(
    key: str, title: str, about: str, lines: Sequence[CostLine], prices: Mapping[str, Prices]
) -> Grid:
    total = Cost()
    for line in lines:
        total.calls += line.cost.calls
        total.tokens.update(line.cost.tokens)
    columns = [
        "Stage",
        "Model",
        "Items",
        "Calls",
        "Calls per item",
        "Tokens read",
        "Tokens written",
        "Tokens per item",
    ]
    if prices:
        columns += ["Money", "Money per item"]
    rows = [_cost_row(line, prices) for line in [*lines, CostLine("", _TOTAL, total)]]
    notes = _price_notes([line.cost for line in lines], prices)
    return Grid(key, title, columns, rows, about=about, notes=notes, totals=(_TOTAL,))


def _cost_row(line: CostLine, prices: Mapping[str, Prices]) -> Row:
    cost = line.cost
    read, written = cost.tokens_of("prompt_tokens"), cost.tokens_of("completion_tokens")
    models = "" if line.label == _TOTAL else ", ".join(sorted(cost.models))
    calls_per_item = Cell(_per_item(cost.calls, cost.items), "one")
    tokens_per_item = Cell(_per_item(read + written, cost.items), "count")
    row = [
        line.label,
        models,
        cost.items or None,
        cost.calls,
        calls_per_item,
        read,
        written,
        tokens_per_item,
    ]
    if not prices:
        return row
    money = money_of(cost, prices)
    return [*row, Cell(money, "three"), Cell(_per_item(money, cost.items), "three")]


def _per_item(number: float | None, items: int) -> float | None:
    return number / items if number is not None and items else None


def _price_notes(costs: Sequence[Cost], prices: Mapping[str, Prices]) -> list[str]:
    if not prices:
        return []
    listed = "; ".join(
        f"{model} {price.read:g} and {price.written:g}" for model, price in prices.items()
    )
    notes = [
        f"Prices for a million tokens read and written, in the currency of the settings: {listed}."
    ]
    paid = {
        model for cost in costs for (model, _), number in cost.tokens.items() if number and model
    }
    unpriced = paid - prices.keys()
    if unpriced:
        notes.append(
            f"No price is set for {', '.join(sorted(unpriced))}; the money leaves its tokens out."
        )
    return notes


def run_sections(
    root: DataRoot, month: str, related: RelatedWorkData, answers: AnswersData
) -> list[Section]:
    """Times of the runs of a month, which differ from run to run."""
    grids = _time_grids(root, month, "time", related_work_costs(related))
    paragraphs = [] if grids else ["No run of this month is recorded."]
    sections = [Section("run", "Related work", paragraphs, grids)]
    grids = _time_grids(root, month, "answers_time", answer_costs(answers))
    return (
        [*sections, Section("run-of-answers", "Answers to questions", (), grids)]
        if grids
        else sections
    )


def _time_grids(root: DataRoot, month: str, key: str, lines: Sequence[CostLine]) -> list[Grid]:
    rows = []
    for line in lines:
        runs = read_timings(root, line.stage, month)
        if runs:
            rows.append(_time_row(line, max(runs, key=lambda run: run.seconds)))
    columns = [
        "Stage",
        "Seconds",
        "Seconds per item",
        "Requests",
        "Seconds per request",
        "Request seconds per item",
    ]
    about = (
        "Of the longest run of the stage on the month, since later runs take their answers from the"
        " cache. Seconds per item: of the whole run, which works on many items at once. Request"
        " seconds per item: the requests of one item one after another, which is what a single"
        " reader waits for."
    )
    return with_rows(Grid(key, "Time", columns, rows, about=about))


def _time_row(line: CostLine, run: StageTiming) -> Row:
    items, requests, waited = (
        line.cost.items,
        run.measured.get("llm_requests"),
        run.measured.get("llm_request_seconds"),
    )
    per_request = waited / requests if waited is not None and requests else None
    per_item = run.measured.get("seconds_a_question") or _per_item(run.seconds, items)
    return [
        line.label,
        Cell(run.seconds, "one"),
        per_item,
        requests or None,
        per_request,
        _per_item(waited, items),
    ]
