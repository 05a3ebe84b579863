"""The command `citeloom export`: tables as a data set."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from pipeline.cli.common import AsJson, MonthsOption, open_workspace

if TYPE_CHECKING:
    from rich.table import Table

    from pipeline.ops.export.card import Contents

# Tables about papers; the others are about one's own runs. Vectors are exported only on request:
# they are text.
DEFAULT_TABLES = "metadata, papers, passages, references, ledger"


def export(
    to: Annotated[str, typer.Option("--to", help="Folder, which the export replaces.")],
    months: MonthsOption = "all",
    tables: Annotated[
        str,
        typer.Option(
            metavar="TABLE,…",
            help="Tables, comma-separated, or all; ids and numbers unless --texts.",
        ),
    ] = DEFAULT_TABLES,
    texts: Annotated[
        Literal["none", "open", "all"],
        typer.Option(
            help=(
                "Texts to include: none, those of papers under an open licence, or all (not to be"
                " published)."
            )
        ),
    ] = "none",
    as_json: AsJson = False,
) -> int:
    """Write tables as a data set (Parquet, card, Croissant), and say which of it may be published.

    Examples:
      citeloom export --to my-dataset
      citeloom export --to my-dataset --months 2024-03 --texts open
    """
    from pipeline.cli.console import out, print_json, print_note, spinner
    from pipeline.ops.export.export import ExportRequest
    from pipeline.ops.export.export import export as write_dataset
    from pipeline.ops.export.rights import Texts

    with spinner("exporting") as show_step:
        exported = write_dataset(
            open_workspace(), ExportRequest(to, months, tables, Texts(texts)), show_step
        )
    if as_json:
        print_json(exported.as_json())
        return 0
    out.print(_tables_table(exported))
    for note in [*exported.notes, *exported.terms]:
        print_note(note)
    typer.echo(exported.to)
    return 0


def _tables_table(exported: Contents) -> Table:
    """The exported tables, a row for each."""
    from pipeline.cli.console import make_table

    by_table = defaultdict(list)
    for file in exported.files:
        by_table[file.table.name].append(file)
    numbers = ("months", "rows", "KB")
    table = make_table("Exported", ("table", "columns left out", *numbers), right=numbers)
    for exported_table in exported.tables:
        files = by_table[exported_table.table.name]
        size = sum(file.bytes for file in files) / 1000
        counts = (f"{len(files):,}", f"{sum(file.rows for file in files):,}", f"{size:,.0f}")
        table.add_row(
            exported_table.table.name, ", ".join(exported_table.columns_left_out) or "–", *counts
        )
    return table
