"""The command `citeloom`: its commands, their names and groups, and the exit codes.

Exit codes: 0 done, 1 a stage failed or a thing is not there, 2 a setting or an argument is wrong.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Annotated

import typer

from pipeline import __version__
from pipeline.cli import (
    ask,
    backfill,
    doctor,
    estimate,
    export,
    fetch,
    grading,
    harvest,
    index,
    quality,
    questions,
    refresh,
    relate,
    run,
    search,
    status,
    study,
    ui,
    verify_model,
    wikipedia,
)
from pipeline.cli.exit_codes import ended

Commands = Mapping[str, Callable[..., int | None]]

# As --help lists them: a panel's title, then its commands.
PANELS: Mapping[str, Commands] = {
    "The corpus": {
        "demo": run.demo,
        "run": run.run,
        "refresh": refresh.refresh,
        "status": status.status,
        "retry-failed": backfill.retry_failed,
        "estimate": estimate.estimate,
        "harvest": harvest.harvest,
        "fetch-html": fetch.fetch_html,
        "import-wikipedia": wikipedia.import_wikipedia,
        "export": export.export,
    },
    "Search and write": {
        "search": search.search,
        "ask": ask.ask,
        "chat": ask.chat,
        "relate": relate.relate,
        "import-tasks": relate.import_tasks,
    },
    "The index": {
        "audit": index.audit,
        "reindex": index.reindex,
        "snapshot": index.snapshot,
    },
    "Looking after it": {
        "ui": ui.ui,
        "doctor": doctor.doctor,
        "quality": quality.quality,
        "verify-model": verify_model.verify_model,
    },
}
# A group's name, what it is for, its commands.
GROUPS: tuple[tuple[str, str, Commands], ...] = (
    (
        "study",
        "Have people rate what systems wrote, blind.",
        {"export": study.export, "import": study.import_, "results": study.results},
    ),
    (
        "questions",
        "Review drafted questions, and check question sets.",
        {"review": questions.review, "check": questions.check},
    ),
    (
        "grading",
        "Have people grade answers to questions, blind.",
        {"sheets": grading.sheets, "import": grading.import_, "results": grading.results},
    ),
)

app = typer.Typer(
    help="Turns the ar5iv dump of arXiv into a searchable corpus of computer-science papers, and writes from it.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def main() -> None:
    """Entry point of the command. A usage error under `--json` is a JSON document too."""
    import click

    try:
        sys.exit(app(standalone_mode=False))
    except click.ClickException as error:
        if "--json" in sys.argv:
            from pipeline.cli.console import print_json

            print_json({"error": "UsageError", "message": error.format_message()})
        error.show()
        sys.exit(error.exit_code)
    except click.Abort:
        sys.exit(130)


@app.callback(invoke_without_command=True)
def _root(version: Annotated[bool, typer.Option("--version", help="Print the version and end.")] = False) -> None:
    if version:
        typer.echo(f"citeloom {__version__}")
        raise typer.Exit


def _register(group: typer.Typer, commands: Commands, panel: str | None = None) -> None:
    for name, function in commands.items():
        group.command(name, rich_help_panel=panel)(ended(function))


for _title, _commands in PANELS.items():
    _register(app, _commands, _title)
for _name, _purpose, _commands in GROUPS:
    _group = typer.Typer(help=_purpose, no_args_is_help=True)
    _register(_group, _commands)
    app.add_typer(_group, name=_name, rich_help_panel="With people")
