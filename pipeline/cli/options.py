"""Options that mean the same in every command that has them."""

from __future__ import annotations

from typing import Annotated

import typer

AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document instead of tables.")]
AsJsonNotText = Annotated[bool, typer.Option("--json", help="Print one JSON document instead of text.")]
MonthsOption = Annotated[str, typer.Option(help="A month (2024-03), a range (2024-03..2024-05), or all.")]
