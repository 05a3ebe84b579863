"""Printing for every command: tables, JSON, errors and notes, and the progress of a run."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import product
from typing import TYPE_CHECKING, Any

import orjson
from rich.console import Console
from rich.markup import escape
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
)
from rich.table import Table
from rich.text import Text

from pipeline.doors.cli.common import check_file, open_workspace
from pipeline.engine.progress import (
    AllMonthsFinished,
    Event,
    Notice,
    Outcome,
    RunPlanned,
    StageAdvanced,
    StageClock,
    StageFailed,
    StageFinished,
    StageStarted,
    listening,
)
from pipeline.identity.months import describe_months
from pipeline.stage_names import STAGE_NAMES, plain_name
from pipeline.text import UNSAFE, number_of, visible

if TYPE_CHECKING:
    from pathlib import Path

    from pipeline.report.grid import Cell, PageSection


class _SafeConsole(Console):
    """A console that replaces control characters, so that no text can steer the terminal, and cuts
    off no column of a table that is wider than the terminal.
    """

    def print(self, *objects: Any, crop: bool = False, **options: Any) -> None:
        # In a pipe, a note would else come before or within what was printed earlier. Python itself
        # reports a closed one.
        with suppress(OSError):
            sys.stdout.flush()
        super().print(*objects, crop=crop, **options)

    def render_str(self, text: str, **options: Any) -> Text:
        return super().render_str(visible(text), **options)


# Without emoji: ":key:" in a title is text, and `escape` does not protect it.
out = _SafeConsole(highlight=False, emoji=False)
err = _SafeConsole(stderr=True, highlight=False, emoji=False)


def print_json(value: Any, *, is_line: bool = False) -> None:
    """Print one JSON document on standard output; a command prints nothing else there, or several
    of one line each.
    """
    # The status of 424 months has 9,000 rows: 0.03 s, and 0.6 s by the library's own json.
    options = (
        (0 if is_line else orjson.OPT_INDENT_2)
        | orjson.OPT_NON_STR_KEYS
        | orjson.OPT_PASSTHROUGH_DATETIME
        | orjson.OPT_APPEND_NEWLINE
    )
    text = orjson.dumps(value, default=str, option=options).decode()
    # orjson leaves DEL, C1 and marks of direction as they are.
    sys.stdout.write(UNSAFE.sub(lambda sign: f"\\u{ord(sign[0]):04x}", text))


def print_noun(noun: Any, form: str = "") -> None:
    """Print a noun or a collection of them. form: `json`, or a format of CITATION_FORMATS for its
    papers; by default Markdown, which a terminal shows formatted.
    """
    from pipeline.doors import present

    if form == "json":
        print_json(present.as_json(noun))
    elif form:
        from pipeline.corpus.citation_formats import entries_of

        print(entries_of(noun, form))
    else:
        print_markdown(present.as_markdown(noun))


def print_markdown(text: str) -> None:
    """Print Markdown; formatted, with links, on a terminal."""
    if out.is_terminal:
        from rich.markdown import Markdown

        out.print(Markdown(text, hyperlinks=True))
    else:
        sys.stdout.write(f"{visible(text)}\n")


def print_failures(failures: Sequence[tuple[str, str, str]]) -> None:
    """Print which stages failed in which months, if any did. failures: (stage, month, message)."""
    months: dict[str, list[str]] = {}
    for stage, month, _ in failures:
        months.setdefault(plain_name(stage), []).append(month)
    named = "; ".join(f"{stage} of {describe_months(of)}" for stage, of in months.items())
    if failures:
        print_error(
            f"{len(failures)} failed (messages above): {named}; fix the cause and repeat the"
            " command"
        )


def print_error(message: str) -> None:
    """Print an error on standard error."""
    err.print(f"[bold red]error:[/] {escape(message)}", soft_wrap=True)


def print_note(*messages: str) -> None:
    """Print notes on standard error, those that are not empty."""
    for message in filter(None, messages):
        err.print(escape(message), soft_wrap=True)


def make_table(
    title: str, columns: Sequence[str], right: Collection[str] = (), **options: Any
) -> Table:
    """A table of plain text. right: the columns that are aligned right. options: those of
    `rich.table.Table`.
    """
    table = Table(title=title, title_justify="left", caption_justify="left", **options)
    for column in columns:
        # A heading may wrap, but never inside a word.
        longest_word = max(map(len, column.split()), default=0)
        table.add_column(
            column, justify="right" if column in right else "left", min_width=longest_word
        )
    return table


def print_section(section: PageSection) -> None:
    """Print a section: its paragraphs as notes, and a table per group of rows of its grids."""
    for paragraph in section.paragraphs:
        print_note(paragraph)
    for grid in section.grids:
        for group in grid.groups:
            table = make_table(
                escape(f"{grid.title}: {group.title}" if group.title else grid.title), ()
            )
            for column, heading in enumerate(grid.columns):
                table.add_column(
                    escape(heading), justify="right" if grid.numeric(column) else "left"
                )
            for row in group.rows:
                table.add_row(*map(_cell_text, row))
            out.print(table)


def _cell_text(cell: Cell) -> Text:
    """A cell of a table, its marked words bold."""
    text = Text(visible(cell.plain()))
    text.highlight_words([visible(mark) for mark in cell.marks if mark], "bold reverse")
    return text


@contextmanager
def spinner(message: str) -> Iterator[Callable[[str], None]]:
    """Show that the command is busy: a spinner on a terminal, else one line. Yields a function that
    shows the step.
    """
    if not err.is_terminal:
        print_note(message)
        yield lambda step: None
        return
    with err.status(escape(message)) as status:
        yield lambda step: status.update(escape(f"{message}: {step}"))


class Terminal:
    """What the commands of a plug-in check files and print with."""

    check_file = staticmethod(check_file)
    workspace = staticmethod(open_workspace)
    spinner = staticmethod(spinner)
    note = staticmethod(print_note)
    section = staticmethod(print_section)
    noun = staticmethod(print_noun)
    json = staticmethod(print_json)

    @staticmethod
    def text(text: str) -> None:
        """Print a text as it is."""
        out.print(text, markup=False, soft_wrap=True)

    @staticmethod
    def write(file: Path, content: bytes) -> None:
        """Write a file, whole or not at all."""
        from pipeline.storage.writing import write_whole  # loads pyarrow

        write_whole(file, content)


@contextmanager
def showing() -> Iterator[None]:
    """Show the progress of the stages that run within the block."""
    progress = RunProgress()
    with progress, listening(progress.show):
        yield


class RunProgress:
    """Shows a run: a bar on a terminal, else a line for every finished stage."""

    def __init__(self) -> None:
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=20),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            console=err,
            transient=True,
            disable=not err.is_terminal,
        )
        self._task: TaskID = self._bar.add_task("starting", total=None)
        self._clocks: dict[tuple[str, str], StageClock] = {}
        self._steps: set[tuple[str, str]] = set()
        self._failures: dict[str, str] = {}

    def __enter__(self) -> RunProgress:
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def show(self, event: Event) -> None:
        """Show what an event says."""
        match event:
            case RunPlanned(months, stages):
                self._steps |= set(product(stages, months))  # what is planned twice counts once
                self._bar.update(self._task, total=len(self._steps))
            case StageStarted(stage, month):
                self._clocks[stage, month] = StageClock()
                self._bar.update(self._task, description=f"{month} {plain_name(stage)}")
            case StageAdvanced(stage, month, done, total):
                self._advance(stage, month, done, total)
            case StageFinished(outcome):
                self._finish(outcome)
            case StageFailed(stage, month, message):
                self._fail(stage, month, message)
            case AllMonthsFinished(stage, seconds):
                print_note(f"{plain_name(stage)} of all months: finished in {seconds:.1f} s")
            case Notice(message):
                print_note(message)

    def _advance(self, stage: str, month: str, done: int, total: int | None) -> None:
        """Show how far the stage is and its time left; without a terminal, every half minute."""
        clock = self._clocks.setdefault((stage, month), StageClock())
        progress = f"{month} {plain_name(stage)}: {clock.describe(done, total)}"
        self._bar.update(self._task, description=progress)
        if not err.is_terminal and clock.is_due():
            print_note(progress)

    def _finish(self, outcome: Outcome) -> None:
        """Print what a stage did, unless its month was up to date: the closing table counts
        those.
        """
        self._bar.advance(self._task)
        if outcome.disabled or outcome.skipped:
            return
        left_out = f", left out: {_describe_reasons(outcome.left_out)}" if outcome.left_out else ""
        err.print(
            f"{outcome.month} {plain_name(outcome.stage)}: {number_of(outcome.rows, 'row')},"
            f" {outcome.seconds:.1f} s"
            f"{left_out}",
            soft_wrap=True,
        )

    def _fail(self, stage: str, month: str, message: str) -> None:
        """Print why a stage failed."""
        self._bar.advance(self._task)
        failed = f"{plain_name(stage)} of {month}"
        first = self._failures.setdefault(message, failed)
        print_error(f"{failed}: {message if first == failed else f'as {first}'}")


def _describe_reasons(left_out: Mapping[str, int]) -> str:
    return ", ".join(f"{count:,} {reason.replace('_', ' ')}" for reason, count in left_out.items())


def run_table(outcomes: Iterable[Outcome]) -> Table:
    """One row per stage over the months for which it ran: rows, seconds, what was left out and why;
    "up to date" where it ran for none.
    """
    table = make_table(
        "What was done",
        ("stage", "rows", "seconds", "left out, and why"),
        right=("rows", "seconds"),
    )
    by_stage: dict[str, list[Outcome]] = {name: [] for name in STAGE_NAMES}
    for outcome in outcomes:
        if not outcome.disabled:
            by_stage.setdefault(outcome.stage, []).append(outcome)
    for stage, of_stage in by_stage.items():
        if not of_stage:
            continue
        computed = [outcome for outcome in of_stage if not outcome.skipped]
        left_out: Counter[str] = Counter()
        for outcome in computed:
            left_out.update(outcome.left_out)
        table.add_row(
            plain_name(stage),
            f"{sum(outcome.rows for outcome in computed):,}" if computed else "up to date",
            f"{sum(outcome.seconds for outcome in computed):.1f}",
            _describe_reasons(dict(sorted(left_out.items()))) or "–",
        )
    return table
