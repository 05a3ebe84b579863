"""The command `citeloom`: its commands, their names and groups.

The modules of the commands import only typer, so that --help and a wrong argument are answered at
once; what a command needs is imported when it runs.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Annotated

import typer

from pipeline import __version__
from pipeline.doors.cli import (
    annotate,
    ask,
    demo,
    doctor,
    export,
    index,
    papers,
    refresh,
    relate,
    run,
    search,
    serve,
    sources,
    status,
)
from pipeline.doors.cli.exit_codes import with_exit_code
from pipeline.plugins import COMMANDS, plugins
from pipeline.stage_names import STAGE_NAMES, plain_name

Commands = Mapping[str, Callable[..., int | None]]

PANELS: Mapping[str, Commands] = {
    "The corpus": {
        "demo": demo.demo,
        "run": run.run,
        "refresh": refresh.refresh,
        "status": status.status,
        "estimate": status.estimate,
        "harvest": sources.harvest,
        "convert": sources.convert,
        "fetch-html": sources.fetch_html,
        "export": export.export,
    },
    "Search and read": {
        "search": search.search,
        "find-quote": papers.find_quote,
        "paper": papers.paper,
        "papers": papers.papers,
        "ask": ask.ask,
        "chat": ask.chat,
        "serve": serve.serve,
        "mcp": serve.mcp,
    },
    "Write and check": {
        "relate": relate.relate,
        "import-tasks": relate.import_tasks,
        **plugins(COMMANDS),
    },
    "Operation": {
        "ui": serve.ui,
        "doctor": doctor.doctor,
        "audit": index.audit,
        "reindex": index.reindex,
    },
}
"""The panels of --help: title → the commands in it."""

GROUPS: Mapping[str, tuple[str, Commands]] = {
    "annotate": (
        "Have people rate related-work sections and grade answers, blind.",
        {"export": annotate.export, "import": annotate.import_},
    ),
}
"""Commands of two words: group → its help, its commands."""
GROUPS_PANEL = "Write and check"

EPILOGS = dict.fromkeys(
    ("run", "refresh"), f"Stages, in order: {', '.join(map(plain_name, STAGE_NAMES))}."
)

app = typer.Typer(
    help=(
        "Turn the ar5iv dump of arXiv into a searchable corpus of computer-science papers, and"
        " write from it."
    ),
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def main() -> None:
    """Entry point of the command. With --json, a usage error is a JSON document too."""
    if "--json" not in sys.argv:
        app()
    try:
        sys.exit(app(standalone_mode=False))
    except typer.TyperException as error:
        from pipeline.doors.cli.console import print_error, print_json

        print_json({"error": "UsageError", "message": error.format_message()})
        print_error(error.format_message())
        sys.exit(error.exit_code)
    except typer.Abort:
        sys.exit(130)


@app.callback(invoke_without_command=True)
def _root(
    version: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False,
) -> None:
    if version:
        typer.echo(f"citeloom {__version__}")
        raise typer.Exit


def _register(group: typer.Typer, commands: Commands, panel: str | None = None) -> None:
    for name, function in commands.items():
        group.command(name, rich_help_panel=panel, epilog=EPILOGS.get(name))(
            with_exit_code(function)
        )


for _title, _commands in PANELS.items():
    _register(app, _commands, _title)
for _name, (_purpose, _commands) in GROUPS.items():
    _group = typer.Typer(help=_purpose, no_args_is_help=True)
    _register(_group, _commands)
    app.add_typer(_group, name=_name, rich_help_panel=GROUPS_PANEL)
