"""Sections on cost: calls, tokens and money of related work and answers, and the times of runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from pipeline import tables
from pipeline.engine.run_stats import StageTiming, read_timings
from pipeline.llm.messages import Prices
from pipeline.report.data import AnswersData, Cost, RelatedWorkData, ReportData, Writings
from pipeline.report.formatting import answering_system, words
from pipeline.report.grid import Cell, Grid, GridRow, Section

_OTHER_COSTS = {
    tables.KEY_ELEMENTS.name: "Key elements, for all systems that use them",
    tables.G_SCORES.name: "Judging: G-Score",
    tables.CITATION_SUPPORT.name: "Judging: citations",
    tables.ANSWER_GRADES.name: "Grading the answers",
}
_TOTAL = "All"


@dataclass(frozen=True, slots=True)
class CostLine:
    """One line of the tables of costs. stage: name of the stage or its part, where it has run
    statistics.
    """

    stage: str
    label: str
    cost: Cost

    def per_item(self, number: float | None) -> float | None:
        items = self.cost.items
        return number / items if number is not None and items else None

    def row(self, prices: Mapping[str, Prices]) -> GridRow:
        """The line with its money where there are prices."""
        cost = self.cost
        read, written = cost.tokens_of("prompt_tokens"), cost.tokens_of("completion_tokens")
        row = [
            self.label,
            "" if self.label == _TOTAL else ", ".join(sorted(cost.models)),
            cost.items or None,
            cost.calls,
            Cell(self.per_item(cost.calls), "one"),
            read,
            written,
            Cell(self.per_item(read + written), "count"),
        ]
        if not prices:
            return row
        money = cost.money(prices)
        return [*row, Cell(money, "three"), Cell(self.per_item(money), "three")]


def _lines(data: Writings, name: Callable[[str], str]) -> list[CostLine]:
    """A line for each system that wrote, then for extracting, judging and grading."""
    systems = [
        CostLine(data.statistics_of(system), name(system), data.costs[system])
        for system in data.systems
    ]
    others = [
        CostLine(stage, _OTHER_COSTS[stage], cost)
        for stage, cost in data.other_costs.items()
        if cost.items
    ]
    return systems + others


def _answer_lines(data: AnswersData) -> list[CostLine]:
    return [line for line in _lines(data, answering_system) if line.cost.calls]


def related_work_cost(data: RelatedWorkData) -> Section:
    """Calls, tokens and money of related work; the same after every run, since it follows from the
    rows.
    """
    about = (
        "Items are sections, papers read, judgements or citations. A prompt counts once for each of"
        " its samples; an endpoint that returns several samples for one request bills it once."
    )
    text = "All answers count, those taken from the cache too."
    if not data.prices:
        text += " There is no column of money because no price of a model is set."
    grid = _cost_grid("cost", "Calls and tokens", about, _lines(data, words), data.prices)
    return Section("cost", "Cost", (text,), (grid,))


def answers_cost(data: AnswersData) -> Section | None:
    """The same of answers; None where no model was called."""
    if not data.called_model:
        return None
    about = (
        "Items are the questions that a system answered, or the answers that a judge graded. A call"
        " that two answers share counts for both."
    )
    text = "All answers count, those taken from the cache too. Times are on the page of runs."
    title = "Calls and tokens of answers"
    grid = _cost_grid("answers_cost", title, about, _answer_lines(data), data.prices)
    return Section("cost-of-answers", "Cost of answers", (text,), (grid,))


def _cost_grid(
    key: str, title: str, about: str, lines: Sequence[CostLine], prices: Mapping[str, Prices]
) -> Grid:
    columns = [
        "Stage",
        "Model",
        "Items",
        "Calls",
        "Calls per item",
        "Tokens read",
        "Tokens written",
        "Tokens per item",
        *(["Money", "Money per item"] if prices else []),
    ]
    tokens = Counter[tuple[str, str]]()
    for line in lines:
        tokens.update(line.cost.tokens)
    total = CostLine("", _TOTAL, Cost(0, sum(line.cost.calls for line in lines), tokens))
    rows = [line.row(prices) for line in (*lines, total)]
    notes = _price_notes(total.cost, prices)
    return Grid(key, title, columns, rows, about=about, notes=notes, totals=(_TOTAL,))


def _price_notes(total: Cost, prices: Mapping[str, Prices]) -> list[str]:
    if not prices:
        return []
    listed = "; ".join(
        f"{model} {price.read:g} and {price.written:g}" for model, price in prices.items()
    )
    notes = [
        f"Prices for a million tokens read and written, in the currency of the settings: {listed}."
    ]
    paid = {model for (model, _), number in total.tokens.items() if number and model}
    unpriced = sorted(paid - prices.keys())
    if unpriced:
        notes.append(f"No price is set for {', '.join(unpriced)}; the money leaves its tokens out.")
    return notes


def time_sections(data: ReportData) -> list[Section]:
    """Times of the runs of a month, which differ from run to run."""
    related = _time_grid("time", _lines(data.related, words), data)
    answers = _time_grid("answers_time", _answer_lines(data.answers), data)
    none = "No run of this month is recorded."
    sections = [
        Section("run", "Related work", (), (related,))
        if related.rows
        else Section("run", "Related work", (none,))
    ]
    if answers.rows:
        sections.append(Section("run-of-answers", "Answers to questions", (), (answers,)))
    return sections


def _time_grid(key: str, lines: Sequence[CostLine], data: ReportData) -> Grid:
    (month,) = data.months
    rows = []
    for line in lines:
        runs = read_timings(data.root, line.stage, month.month)
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
    return Grid(key, "Time", columns, rows, about=about)


def _time_row(line: CostLine, run: StageTiming) -> GridRow:
    requests = run.measured.get("llm_requests")
    waited = run.measured.get("llm_request_seconds")
    return [
        line.label,
        Cell(run.seconds, "one"),
        run.measured.get("seconds_a_question") or line.per_item(run.seconds),
        requests or None,
        waited / requests if waited is not None and requests else None,
        line.per_item(waited),
    ]
