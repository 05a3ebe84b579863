"""What answering and grading cost, question by question, and how long a run of it took."""

from __future__ import annotations

from collections.abc import Iterator

from pipeline import tables
from pipeline.engine.parts import statistics_name
from pipeline.engine.run_stats import StageTiming
from pipeline.report.answers.found import AnswersFound, name_of
from pipeline.report.costs import estimate_grid, money_cell, price_notes
from pipeline.report.found import Cost, Money, longest_run
from pipeline.report.grid import Grid, Rows, Section, Value
from pipeline.storage.data_root import DataRoot

_TOTAL = "All"


def cost_section(found: AnswersFound) -> Section | None:
    """Calls, tokens and money by system; None where nothing was asked."""
    if not found.costs_anything:
        return None
    lines = list(_lines(found))
    said = (
        "Calls and tokens of all answers, those kept from an earlier run counted as the rest. What a run took in time "
        "is on the page of runs."
    )
    return Section("cost-of-answers", "What it cost", (said,), (_cost_grid(found, lines),))


def _lines(found: AnswersFound) -> Iterator[tuple[str, str, Cost]]:
    """(Table, what to call it, cost) of all that cost anything."""
    names = {shown: name for name, shown in found.shown.items()}
    for system in found.systems:
        if found.written[system].calls:
            part = statistics_name(tables.ANSWERS.name, names.get(system, system))
            yield part, name_of(system), found.written[system]
    if found.grading.calls:
        yield tables.ANSWER_GRADES.name, "Grading the answers", found.grading


def _cost_grid(found: AnswersFound, lines: list[tuple[str, str, Cost]]) -> Grid:
    told = [(name, cost) for _, name, cost in lines]
    if found.trying.calls:
        told.append(("Trying the judge by controls", found.trying))
    total = Cost()
    for _, cost in told:
        total.join(cost)
    monies = [found.prices.of(cost) for _, cost in told]
    rows = [_row(found, name, cost) for name, cost in [*told, (_TOTAL, total)]]
    money = ("Money", "Money each") if found.prices.set else ()
    head = ("What", "Model", "Answers", "Calls", "Calls each", "Tokens read", "Tokens written", "Tokens each", *money)
    about = (
        "Each: for a question that a system answered, or an answer that one judge graded. A call that two answers "
        "share counts for both."
    )
    notes = price_notes(found, monies)
    return Grid("answers_cost", "Calls and tokens of answers", head, [Rows(rows)], about, notes, strong=(_TOTAL,))


def _row(found: AnswersFound, told: str, cost: Cost) -> list[Value]:
    tokens = cost.prompt_tokens + cost.completion_tokens
    counts = [
        Value(cost.done or None, "count"),
        Value(cost.calls, "count"),
        Value(_each(cost.calls, cost.done), "one"),
        Value(cost.prompt_tokens, "count"),
        Value(cost.completion_tokens, "count"),
        Value(_each(tokens, cost.done), "count"),
    ]
    models = "" if told == _TOTAL else ", ".join(sorted(cost.models))
    return [Value(told), Value(models), *counts, *(_money(found, cost) if found.prices.set else ())]


def _money(found: AnswersFound, cost: Cost) -> list[Value]:
    money = found.prices.of(cost)
    each = Money(money.value / cost.done, money.at_most) if money and cost.done else None
    return [money_cell(money), Value(each.value if each else None, "three")]


def _each(number: int, done: int) -> float | None:
    return number / done if done else None


def run_section(root: DataRoot, found: AnswersFound) -> Section | None:
    """Seconds of the runs of a month's answers, and what was expected; None where there is nothing to tell."""
    grids = [_time_grid(root, found), estimate_grid(found, list(_lines(found)), "answers_estimate")]
    there = [grid for grid in grids if grid is not None]
    return Section("run-of-answers", "Answers to questions", (), there) if there else None


def _time_grid(root: DataRoot, found: AnswersFound) -> Grid | None:
    (month,) = found.months
    rows = []
    for table, told, cost in _lines(found):
        longest = longest_run(root, table, month)
        if longest is not None:
            rows.append([Value(told), Value(longest.seconds, "one"), *_pace(longest, cost)])
    head = ("What", "Seconds", "Seconds each", "Requests", "Seconds a request", "Seconds of requests each")
    about = (
        "Of the longest run of the stage with the month as it is, since a later one finds its answers kept. Seconds "
        "each: of the run, many questions being under way at once. Seconds of requests each: what the requests of one "
        "question, or of one answer's grading, take one after another, as a single reader waits for them."
    )
    return Grid("answers_time", "Time of answers", head, [Rows(rows)], about) if rows else None


def _pace(run: StageTiming, cost: Cost) -> list[Value]:
    done, requests = cost.done or None, _number(run, "llm_requests") or None
    spent = _number(run, "llm_request_seconds")
    each = _number(run, "seconds_a_question") or (run.seconds / done if done else None)
    return [
        Value(each, "two"),
        Value(requests, "count"),
        Value(spent / requests if spent is not None and requests else None, "two"),
        Value(spent / done if spent is not None and done else None, "two"),
    ]


def _number(run: StageTiming, name: str) -> float | None:
    """What a run measured under this name, where it is a number."""
    value = run.measured.get(name)
    return float(value) if isinstance(value, int | float) else None
