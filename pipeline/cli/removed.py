"""Commands that left: for one version each is refused with what to use instead."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import NoReturn

import typer

from pipeline.cli.exit_codes import run_command
from pipeline.errors import SettingError

REMOVED = {
    "cited-by": "run citeloom paper ID --cited-by",
    "import-wikipedia": (
        "citeloom no longer reads Wikipedia; citeloom ask --system wikichat answers from the corpus"
    ),
    "quality": "citeloom run and the Dagster UI show what the checks of a month find",
    "questions": "write a question set as docs/methods/questions.md describes",
    "references": "run citeloom paper ID --references",
    "retry-failed": "run citeloom run --failed, or citeloom status --failed for the list",
    "snapshot": (
        "take a snapshot with Qdrant itself, as docs/how-to/operate.md describes, or load the index"
        " again"
    ),
    "verify-judge": "run python -m benchmarks.judges, which measures judges",
}
"""Command → what to use instead."""

# Also --help and every option that the command used to take.
_TAKES_ANYTHING = {
    "allow_extra_args": True,
    "ignore_unknown_options": True,
    "help_option_names": [],
}


def add_refusals(app: typer.Typer, present: Collection[str]) -> None:
    """Add a hidden command for each that left and is not present; it ends with exit code 2."""
    for name in REMOVED.keys() - set(present):
        app.command(name, hidden=True, context_settings=_TAKES_ANYTHING)(_refusal(name))


def _refusal(name: str) -> Callable[[typer.Context], None]:
    def fail(*, as_json: bool) -> NoReturn:
        raise SettingError(f"citeloom {name} was removed: {REMOVED[name]}")

    def refuse(context: typer.Context) -> None:
        raise typer.Exit(run_command(fail, as_json="--json" in context.args))

    return refuse
