"""The command `citeloom export`: what may be published of the tables, as Parquet files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

import typer

from pipeline.doors.cli.common import AsJson, MonthsOption, open_workspace

if TYPE_CHECKING:
    from rich.table import Table

    from pipeline.ops.export import Export

# Tables about papers; the others are about one's own runs.
DEFAULT_TABLES = "metadata, papers, passages, references, ledger"


def export(
    to: Annotated[str, typer.Option("--to", help="A new or an empty folder.")],
    months: MonthsOption = "all",
    tables: Annotated[
        str, typer.Option(metavar="TABLE,…", help="Tables, comma-separated, or all.")
    ] = DEFAULT_TABLES,
    texts: Annotated[
        Literal["none", "open"],
        typer.Option(help="Words of papers to include: none, or of those under an open licence."),
    ] = "none",
    as_json: AsJson = False,
) -> int:
    """Copy the columns of tables that may be published as Parquet files.

    Examples:
      citeloom export --to my-dataset
      citeloom export --to my-dataset --months 2024-03 --texts open
    """
    from pipeline.doors.cli.console import out, print_json, spinner
    from pipeline.ops.export import ExportRequest
    from pipeline.ops.export import export as write_export

    request = ExportRequest(to, months, tables, open_texts=texts == "open")
    with spinner("exporting") as show_step:
        exported = write_export(open_workspace(), request, show_step)
    if as_json:
        print_json(exported.as_json())
    else:
        out.print(_tables_table(exported))
        typer.echo(exported.folder)
    return 0


def _tables_table(exported: Export) -> Table:
    """The exported tables, a row for each."""
    from pipeline.doors.cli.console import make_table

    numbers = ("files", "rows", "KB")
    shown = make_table("Exported", ("table", "columns left out", *numbers), right=numbers)
    for table in exported.tables:
        files = [file for file in exported.files if file.table == table.name]
        rows, size = (sum(file.rows for file in files), sum(file.bytes for file in files) / 1000)
        columns = ", ".join(exported.columns_left_out(table)) or "–"
        shown.add_row(table.name, columns, f"{len(files):,}", f"{rows:,}", f"{size:,.0f}")
    return shown
