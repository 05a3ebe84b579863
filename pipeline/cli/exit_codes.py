"""How every command ends: its exit code, what is told of an error, what is stopped."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec

import typer

from pipeline.errors import CiteloomError, SettingError, exit_code_of, unforeseen
from pipeline.settings import Settings, load_settings

P = ParamSpec("P")


def ended(function: Callable[P, int | None]) -> Callable[P, None]:
    """A command of a function: it ends with the exit code that `guarded` gives."""

    @wraps(function)
    def run(*arguments: P.args, **options: P.kwargs) -> None:
        raise typer.Exit(guarded(function, *arguments, **options))

    return run


def guarded(function: Callable[P, int | None], *arguments: P.args, **options: P.kwargs) -> int:
    """Call a command's function, show what went wrong, without secrets, and end what it started; the exit code.

    With `as_json` among the options, an error is a JSON document too.
    """
    from pipeline.cli.console import print_error, print_json

    try:
        return function(*arguments, **options) or 0
    except KeyboardInterrupt:
        print_error("interrupted; what was done stays, run the same command to go on")
        return 130
    except Exception as error:
        clean = _without_secrets(error)
        message = str(clean) if isinstance(clean, CiteloomError) else _unforeseen(clean)
        if options.get("as_json"):
            print_json({"error": type(clean).__name__, "message": message})
        print_error(message)
        return exit_code_of(clean)
    finally:
        _release()


def _without_secrets(error: Exception) -> Exception:
    from pipeline.engine.redaction import collect_secrets, redact_error

    try:
        settings: Settings | None = load_settings()
    except SettingError:
        settings = None  # wrong settings are told of without their secrets
    return redact_error(error, collect_secrets(settings))


def _unforeseen(error: Exception) -> str:
    """Put the traceback of an error that nobody foresaw into a file of its own; the message for the user."""
    import tempfile
    import traceback

    with tempfile.NamedTemporaryFile("w", prefix="citeloom-", suffix=".log", delete=False) as file:
        file.write("".join(traceback.format_exception(error)))
    return unforeseen(error, file.name)


def _release() -> None:
    """End what the command may have started; a command that started nothing pays no import for it."""
    if {"pipeline.index", "pipeline.llm"} & sys.modules.keys():
        from pipeline.ops.services import release_services

        release_services()
