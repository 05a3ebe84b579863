"""What the command line shows: progress, tables, errors. Not here: what any of it means."""

from __future__ import annotations

import json
import sys
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from types import TracebackType
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn
from rich.table import Table

from pipeline.registry import STAGES
from pipeline.stages import Outcome

out = Console(highlight=False)
err = Console(stderr=True, highlight=False)


def print_json(value: Any) -> None:
    """One JSON document on standard output, and nothing else there."""
    sys.stdout.write(json.dumps(value, ensure_ascii=False, indent=2, default=str) + "\n")


def print_error(message: str) -> None:
    """An error for the user, on standard error."""
    err.print(f"[bold red]error:[/] {escape(message)}", soft_wrap=True)


class RunProgress:
    """A listener that shows a run: a bar on a terminal, else a line for every finished stage."""

    def __init__(self, steps: int) -> None:
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        self._bar = Progress(*columns, console=err, transient=True, disable=not err.is_terminal)
        self._task: TaskID = self._bar.add_task("starting", total=steps)

    def __enter__(self) -> RunProgress:
        self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.stop()

    def started(self, stage: str, month: str) -> None:
        """Name what is being worked on."""
        self._bar.update(self._task, description=f"{month} {stage}")

    def advanced(self, stage: str, month: str, rows: int) -> None:
        """Show how far it is."""
        self._bar.update(self._task, description=f"{month} {stage}: {rows:,} rows")

    def finished(self, outcome: Outcome) -> None:
        """Tell what came of a stage."""
        self._bar.advance(self._task)
        done = "kept" if outcome.kept else f"{outcome.seconds:.1f} s"
        left_out = f", left out: {_reasons(outcome.left_out)}" if outcome.left_out else ""
        err.print(f"{outcome.month} {outcome.stage}: {outcome.rows:,} rows, {done}{left_out}", soft_wrap=True)

    def failed(self, stage: str, month: str, message: str) -> None:
        """Tell what went wrong."""
        self._bar.advance(self._task)
        print_error(f"{stage} of {month}: {message}")


def _reasons(left_out: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {reason.replace('_', ' ')}" for reason, count in left_out.items())


def run_table(outcomes: Iterable[Outcome]) -> Table:
    """One row per stage over all months of a run: rows, seconds, what was left out and why."""
    table = Table("stage", title="What was done", title_justify="left")
    for name in ("rows", "seconds"):
        table.add_column(name, justify="right")
    table.add_column("left out, and why")
    found = list(outcomes)
    for stage in STAGES:
        of_stage = [outcome for outcome in found if outcome.stage == stage.name]
        if of_stage:
            table.add_row(stage.name, *_sum(of_stage))
    return table


def _sum(outcomes: Sequence[Outcome]) -> tuple[str, str, str]:
    left_out: Counter[str] = Counter()
    for outcome in outcomes:
        left_out.update(outcome.left_out)
    kept = all(outcome.kept for outcome in outcomes)
    seconds = "done before" if kept else f"{sum(outcome.seconds for outcome in outcomes):.1f}"
    return f"{sum(outcome.rows for outcome in outcomes):,}", seconds, _reasons(dict(sorted(left_out.items()))) or "–"


def status_table(rows: Sequence[Mapping[str, Any]]) -> Table:
    """Months down, stages across: rows and age where done; else how the month stands."""
    table = Table("month", title="Months by stages", title_justify="left")
    for stage in STAGES:
        table.add_column(stage.name.replace("_", " "), justify="right")
    months = dict.fromkeys(row["month"] for row in rows)
    cells = {(row["month"], row["stage"]): _status_cell(row) for row in rows}
    for month in months:
        table.add_row(month, *(cells[month, stage.name] for stage in STAGES))
    return table


def _status_cell(row: Mapping[str, Any]) -> str:
    colour = {"done": "green", "stale": "yellow", "failed": "red", "missing": "dim"}[row["state"]]
    lines = [f"{row['rows']:,} rows" if row["rows"] is not None else "", row["state"]]
    if row["written_at"] is not None:
        lines[1] += f", {_age(time.time() - row['written_at'])}"
    if row["left_out"]:
        lines.append(f"{sum(row['left_out'].values())} left out")
    return "\n".join(f"[{colour}]{line}[/]" for line in lines if line)


def _age(seconds: float) -> str:
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds >= size:
            return f"{int(seconds // size)} {unit}"
    return f"{int(seconds)} s"


def search_table(hits: Sequence[Any]) -> Table:
    """Passages found: score, paper, section and anchor, text. A hit is a `pipeline.index.search.Hit`."""
    table = Table(title=f"{len(hits)} passages", title_justify="left", show_lines=True)
    table.add_column("score", justify="right")
    table.add_column("paper", ratio=1)
    table.add_column("passage", ratio=2)
    for hit in hits:
        path = " › ".join(hit.section_path) or hit.kind.replace("_", " ")
        place = f"{escape(hit.title)}\n[dim]{hit.arxiv_id} · {escape(path)} · #{escape(hit.anchor)}[/]"
        table.add_row(f"{hit.score:.3f}", place, escape(_clip(hit.text)))
    return table


def _clip(text: str, most: int = 360) -> str:
    folded = " ".join(text.split())
    return folded if len(folded) <= most else f"{folded[:most].rsplit(' ', 1)[0]} …"
