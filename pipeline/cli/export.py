"""The command `citeloom export`: tables as a data set for other people's tools."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Annotated

import typer

from pipeline.cli.options import AsJson, MonthsOption
from pipeline.engine.stage import Workspace
from pipeline.ops.export.data_files import DEFAULT_TABLES
from pipeline.ops.export.rights import Texts
from pipeline.settings import load_settings

if TYPE_CHECKING:
    from rich.table import Table

    from pipeline.ops.export.export import ExportResult


def export(
    to: Annotated[str, typer.Option("--to", help="Folder, or a hub's repository (hf://datasets/OWNER/NAME).")],
    months: MonthsOption = "all",
    tables: Annotated[
        str, typer.Option(help="Tables, with commas between, or all; without --texts their ids and numbers.")
    ] = ",".join(DEFAULT_TABLES),
    texts: Annotated[
        Texts, typer.Option(help="Whose words: none, of papers under an open licence, or all (a folder alone).")
    ] = Texts.NONE,
    as_json: AsJson = False,
) -> int:
    """Write tables as a Hugging Face data set, and say what of it may leave the machine."""
    from pipeline.cli.console import out, print_json, print_note, waiting
    from pipeline.ops.export.export import ExportRequest
    from pipeline.ops.export.export import export as write

    with waiting("exporting") as step:
        made = write(Workspace(load_settings()), ExportRequest(to, months, tables, texts), step)
    if as_json:
        print_json(made.as_json())
        return 0
    out.print(_files_table(made))
    for note in [*made.contents.notes, *made.terms]:
        print_note(note)
    typer.echo(made.commit or str(made.folder))
    return 0


def _files_table(made: ExportResult) -> Table:
    """What was exported, a row for each table."""
    from rich.table import Table

    by_table = defaultdict(list)
    for file in made.contents.files:
        by_table[file.table].append(file)
    table = Table("table", "columns left out")
    for name in ("months", "rows", "KB"):
        table.add_column(name, justify="right")
    for exported in made.contents.tables:
        files = by_table[exported.table.name]
        size = sum(file.bytes for file in files) / 1000
        numbers = (f"{len(files):,}", f"{sum(file.rows for file in files):,}", f"{size:,.0f}")
        table.add_row(exported.table.name, ", ".join(exported.columns_left_out) or "–", *numbers)
    return table
