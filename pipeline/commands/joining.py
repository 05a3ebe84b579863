"""What all modules of commands share: how a command ends, and options that mean the same in each.

Not here: any command.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Annotated, ParamSpec

import typer

P = ParamSpec("P")
Guard = Callable[..., int]
"""Calls a command's function, shows what went wrong, gives the exit code; `pipeline.cli` hands it over."""

AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document instead of tables.")]
AsJsonNotText = Annotated[bool, typer.Option("--json", help="Print one JSON document instead of text.")]
MonthsOption = Annotated[str, typer.Option(help="A month (2024-03), a range (2024-03..2024-05), or all.")]


def ended(function: Callable[P, int | None], guarded: Guard) -> Callable[P, None]:
    """A command of a function: it ends with the exit code that `guarded` gives."""

    @wraps(function)
    def run(*arguments: P.args, **options: P.kwargs) -> None:
        raise typer.Exit(guarded(function, *arguments, **options))

    return run
