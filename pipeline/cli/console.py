"""What the command line shows: progress, tables, errors."""

from __future__ import annotations

import json
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn
from rich.style import Style
from rich.table import Table
from rich.text import Text

from pipeline.arxiv.months import describe_months
from pipeline.engine.failures import Failure
from pipeline.engine.progress import Listener, StageClock, duration, listening
from pipeline.engine.stage import Outcome
from pipeline.evaluation.quality import Finding
from pipeline.index.audit import KINDS
from pipeline.passages.text import without_markers
from pipeline.stages import STAGES

# Without emoji: a title's ":key:" is no picture, and `escape` leaves it one.
out = Console(highlight=False, emoji=False)
err = Console(stderr=True, highlight=False, emoji=False)


def print_json(value: Any) -> None:
    """One JSON document on standard output, and nothing else there."""
    sys.stdout.write(json.dumps(value, ensure_ascii=False, indent=2, default=str) + "\n")


def print_error(message: str) -> None:
    """An error for the user, on standard error."""
    err.print(f"[bold red]error:[/] {escape(message)}", soft_wrap=True)


def print_note(message: str) -> None:
    """Something that the user should know, on standard error."""
    err.print(escape(message), soft_wrap=True)


@contextmanager
def waiting(message: str) -> Iterator[Callable[[str], None]]:
    """Show that something takes its time: a spinner on a terminal, else a line. Gives what shows how far it is, on a
    terminal alone."""
    if err.is_terminal:
        with err.status(escape(message)) as shown:
            yield lambda step: shown.update(escape(f"{message}: {step}"))
    else:
        print_note(message)
        yield lambda step: None


@contextmanager
def showing(steps: int) -> Iterator[None]:
    """Show what the stages within are at. steps: months of stages that there are in all."""
    shown = RunProgress(steps)
    with shown, listening(shown):
        yield


class RunProgress(Listener):
    """A listener that shows a run: a bar on a terminal, else a line for every finished stage."""

    def __init__(self, steps: int) -> None:
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        self._bar = Progress(*columns, console=err, transient=True, disable=not err.is_terminal)
        self._task: TaskID = self._bar.add_task("starting", total=steps)
        self._clocks: dict[tuple[str, str], StageClock] = {}

    def __enter__(self) -> RunProgress:
        self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.stop()

    def started(self, stage: str, month: str) -> None:
        """Name what is being worked on."""
        self._clocks[stage, month] = StageClock()
        self._bar.update(self._task, description=f"{month} {stage}")

    def advanced(self, stage: str, month: str, done: int, total: int | None) -> None:
        """Show how far it is, and how long it will take; where there is no terminal, at times in a line of its own."""
        clock = self._clocks.setdefault((stage, month), StageClock())
        told = f"{month} {stage}: {clock.describe(done, total)}"
        self._bar.update(self._task, description=told)
        if not err.is_terminal and clock.is_due():
            print_note(told)

    def finished(self, outcome: Outcome) -> None:
        """Tell what came of a stage."""
        self._bar.advance(self._task)
        if outcome.disabled:
            return
        done = "kept" if outcome.skipped else f"{outcome.seconds:.1f} s"
        left_out = f", left out: {_reasons(outcome.left_out)}" if outcome.left_out else ""
        err.print(f"{outcome.month} {outcome.stage}: {outcome.rows:,} rows, {done}{left_out}", soft_wrap=True)

    def failed(self, stage: str, month: str, message: str, exit_code: int = 1) -> None:
        """Tell what went wrong."""
        self._bar.advance(self._task)
        print_error(f"{stage} of {month}: {message}")

    def noted(self, message: str) -> None:
        """Tell what the run waits for."""
        print_note(message)


def _reasons(left_out: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {reason.replace('_', ' ')}" for reason, count in left_out.items())


def run_table(outcomes: Iterable[Outcome]) -> Table:
    """One row per stage over all months of a run: rows, seconds, what was left out and why."""
    table = Table("stage", title="What was done", title_justify="left")
    for name in ("rows", "seconds"):
        table.add_column(name, justify="right")
    table.add_column("left out, and why")
    found = [outcome for outcome in outcomes if not outcome.disabled]
    for stage in STAGES:
        of_stage = [outcome for outcome in found if outcome.stage == stage.name]
        if of_stage:
            table.add_row(stage.name, *_sum(of_stage))
    return table


def failures_table(failures: Iterable[Failure], title: str = "Failed") -> Table:
    """A line for each failure: where, whether a rerun can clear it, what it says."""
    table = Table("month", "stage", "a rerun", "message", title=title, title_justify="left", show_lines=True)
    for failure in failures:
        table.add_row(failure.month, failure.stage, failure.kind, Text(failure.message))
    return table


def quality_table(found: Sequence[Finding]) -> Table:
    """A line a month, a column a measure; what is out of line stands in yellow."""
    measures = list(dict.fromkeys(each.measure for each in found))
    table = Table("month", title="Measures by month", title_justify="left")
    for measure in measures:
        table.add_column(measure.replace("_", " "), justify="right")
    for month in dict.fromkeys(each.month for each in found):
        cells = {each.measure: each for each in found if each.month == month}
        table.add_row(month, *(_measure_cell(cells.get(measure)) for measure in measures))
    return table


def _measure_cell(found: Finding | None) -> str:
    if found is None:
        return "–"
    return f"{found.value:.4g}" if found.holds else f"[yellow]{found.value:.4g}[/]"


def _sum(outcomes: Sequence[Outcome]) -> tuple[str, str, str]:
    left_out: Counter[str] = Counter()
    for outcome in outcomes:
        left_out.update(outcome.left_out)
    kept = all(outcome.skipped for outcome in outcomes)
    seconds = "done before" if kept else f"{sum(outcome.seconds for outcome in outcomes):.1f}"
    return f"{sum(outcome.rows for outcome in outcomes):,}", seconds, _reasons(dict(sorted(left_out.items()))) or "–"


# Stages down and months across fit a terminal for a few months; beyond that, one line per month must do.
MONTHS_IN_DETAIL, MONTHS_ACROSS = 12, 4


def status_tables(rows: Sequence[Mapping[str, Any]]) -> list[Table]:
    """How months stand: every stage of a few months, or a line for each of many."""
    months = list(dict.fromkeys(row["month"] for row in rows))
    if len(months) > MONTHS_IN_DETAIL:
        return [_status_summary(rows, months)]
    starts = range(0, len(months), MONTHS_ACROSS)
    return [_status_detail(rows, months[start : start + MONTHS_ACROSS]) for start in starts]


def _status_detail(rows: Sequence[Mapping[str, Any]], months: Sequence[str]) -> Table:
    table = Table("stage", *months)
    cells = {(row["month"], row["stage"]): _status_cell(row) for row in rows}
    off = {(row["month"], row["stage"]) for row in rows if row["off"]}
    for stage in STAGES:
        if any((month, stage.name) in cells.keys() - off for month in months):
            table.add_row(stage.name, *(cells[month, stage.name] for month in months))
    return table


def _status_summary(rows: Sequence[Mapping[str, Any]], months: Sequence[str]) -> Table:
    states = list(_COLOURS)
    table = Table("month", *states, "left out")
    for month in months:
        of_month = [row for row in rows if row["month"] == month]
        counts = Counter(row["state"] for row in of_month)
        left_out = sum(sum(row["left_out"].values()) for row in of_month)
        table.add_row(month, *(f"[{_COLOURS[state]}]{counts[state]}[/]" for state in states), f"{left_out:,}")
    return table


_COLOURS = {"done": "green", "stale": "yellow", "failed": "red", "missing": "dim"}


def _status_cell(row: Mapping[str, Any]) -> str:
    facts = [row["state"]] if row["state"] != "done" else []
    if row["rows"] is not None:
        facts += [f"{row['rows']:,}", duration(time.time() - row["written_at"])]
    if row["left_out"]:
        facts.append(f"{sum(row['left_out'].values())} left out")
    return f"[{_COLOURS[row['state']]}]{' · '.join(facts)}[/]"


def search_table(hits: Sequence[Any], first: int = 1, query: str | None = None) -> Table | str:
    """Passages found: number, score, paper, section and anchor, text. A hit is a `pipeline.index.search.Hit`.

    first: the first number. query: shown above, where there are several.
    """
    from pipeline.index.answers import visible

    above = "" if query is None else f"{escape(visible(query))}: "
    if not hits:
        return f"{above}No passage was found."
    title = f"{above}{len(hits)} passage{'s' * (len(hits) > 1)}"
    table = Table(title=title, title_justify="left", show_lines=True)
    table.add_column("", justify="right")
    table.add_column("score", justify="right")
    table.add_column("paper", ratio=1)
    table.add_column("passage", ratio=2)
    for number, hit in enumerate(hits, first):
        text = Text(_clip(visible(without_markers(hit.text))))
        table.add_row(str(number), f"{hit.score:.3f}", _paper_of(hit), text)
    return table


def _paper_of(hit: Any) -> Text:
    """Title, which a terminal may link to the passage, and where the passage stands."""
    from pipeline.index.answers import place, visible

    told = Text(visible(hit.title), style=Style(link=hit.passage_url))
    anchor = f" · #{hit.anchor}" if hit.anchor else ""
    return Text.assemble(told, "\n", (visible(f"{hit.arxiv_id} · {place(hit)}{anchor}"), "dim"))


# Ids of one kind and month that are shown; --json has them all.
IDS_SHOWN = 5


def audit_table(audit: Any) -> Table:
    """A line for each month, or where they are many, for each that is not as it should be. `audit` is a
    `pipeline.index.upkeep.Audit`."""
    verdict = "as the tables ask for" if audit.clean else "[red]not as the tables ask for[/]"
    names = ", ".join(dict.fromkeys(month.collection for month in audit.months))
    told = f"{audit.describe()}\n{escape(names)}"
    title = f"The index is {verdict}"
    table = Table("month", title=title, title_justify="left", caption=told, caption_justify="left")
    columns = ("expected", "present", *KINDS)
    for name in columns:
        table.add_column(name, justify="right")
    shown = [month for month in audit.months if not month.clean or len(audit.months) <= MONTHS_IN_DETAIL]
    for month in shown:
        values = (getattr(month, name) for name in columns)
        counts = (f"{value if isinstance(value, int) else len(value):,}" for value in values)
        table.add_row(month.month, *counts, style=None if month.clean else "red")
    return table


def audit_lines(audit: Any) -> Iterator[str]:
    """What is wrong, by name: the first ids of each kind, and months that could not be audited or mended."""
    for month in audit.months:
        for kind in KINDS:
            if ids := getattr(month, kind):
                yield f"{month.month} {kind}: {_first_of(ids)}"
    for collection, ids in audit.outside:
        if ids:
            yield f"{collection} foreign, of no month: {_first_of(ids)}"
    yield from (f"{month}: {message}" for month, message in audit.failures)
    if audit.beside:
        yield (
            f"searches ask {audit.live}, into which the vectors of {describe_months(list(audit.beside))} "
            f"do not belong: citeloom run makes them anew by the settings, citeloom reindex changes over"
        )
    if audit.strangers or not all(month.clean for month in audit.months):
        yield "citeloom audit --repair mends what is in the index; --json names every point"


def _first_of(ids: Sequence[object]) -> str:
    more = f" and {len(ids) - IDS_SHOWN:,} more" if len(ids) > IDS_SHOWN else ""
    return ", ".join(map(str, ids[:IDS_SHOWN])) + more


def reindex_lines(done: Any) -> Iterator[str]:
    """What came of changing over. `done` is a `pipeline.index.reindex.Reindexed`."""
    if not done.done:
        reasons = [f"{stage} of {month} failed" for stage, month, _ in done.failures]
        if done.audit is not None and not done.audit.clean:
            reasons.append(f"its audit found {done.audit.describe()}, which citeloom audit names")
        yield f"{done.collection} is not whole ({'; '.join(reasons)}), so searches go on asking {done.live}."
        yield "Once mended, citeloom reindex goes on from there."
        return
    if done.before == done.live:
        yield f"Searches ask {done.live} already, which is made as the settings say: nothing was loaded."
    else:
        yield f"Searches ask {done.live} now, and no more {done.before}."
    if done.dropped:
        yield f"Deleted: {', '.join(done.dropped)}."
    if done.kept:
        yield f"Still there, and asked by nobody: {', '.join(done.kept)}; citeloom reindex --drop-old deletes them."


def verdict_table(verdict: Any) -> Table:
    """How a model's vectors compare with FlagEmbedding's. `verdict` is a `pipeline.embedding.verify.Verdict`."""
    told = "the same vectors as FlagEmbedding's" if verdict.holds else "[red]not the same vectors as FlagEmbedding's[/]"
    title = f"{escape(verdict.model)} on {', '.join(verdict.devices)}, {verdict.precision}: {told}"
    caption = "cosines at least, weights differ at most; token ids in both sparse vectors, and in one alone"
    table = Table("text", title=title, title_justify="left", caption=caption, caption_justify="left")
    bounds = verdict.bounds
    for name in (
        f"dense ≥ {bounds.dense}",
        f"ColBERT ≥ {bounds.colbert}",
        f"weights ≤ {bounds.weights}",
        "ids",
        "alone",
    ):
        table.add_column(name, justify="right")
    for row in verdict.texts:
        values = (f"{row.dense:.6f}", f"{row.colbert:.6f}", f"{row.weights:.0e}", str(row.ids), str(row.other_ids))
        table.add_row(row.text, *values, style=None if row.holds else "red")
    return table


def estimate_table(estimate: Any) -> Table:
    """What the LLM stages would cost, over all months. `estimate` is a `pipeline.ops.estimate.Estimate`."""
    from pipeline.ops.estimate import sum_parts

    table = Table(title=f"To pay in {', '.join(estimate.months)}", title_justify="left")
    # It folds: in 80 signs a line, "key_ele…" would be no name to give anywhere.
    table.add_column("stage", overflow="fold", min_width=len("key_elements"))
    money = ("money",) if estimate.priced else ()
    for name in ("calls", "answered", "to pay", "tokens read", "written", *money, "time"):
        table.add_column(name, justify="right", no_wrap=True)
    for stage in dict.fromkeys(part.stage for part in estimate.parts):
        parts = [part for part in estimate.parts if part.stage == stage]
        table.add_row(stage, *_estimate_cells(sum_parts(parts), priced=estimate.priced))
    table.add_section()
    table.add_row("all", *_estimate_cells(estimate.total(), priced=estimate.priced), style="bold")
    return table


def _estimate_cells(part: Any, *, priced: bool) -> list[str]:
    counts = (part.calls, part.answered, part.to_pay, part.prompt_tokens, part.completion_tokens)
    money = [f"{part.money:,.2f}"] if priced else []
    return [*(f"{count:,}" for count in counts), *money, duration(part.seconds) if part.seconds else "–"]


def _clip(text: str, most: int = 360) -> str:
    folded = " ".join(text.split())
    return folded if len(folded) <= most else f"{folded[:most].rsplit(' ', 1)[0]} …"
