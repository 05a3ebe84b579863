"""The end of a command: its exit code, the message of an error, and the services that it started.

Exit codes: 0 done, 1 a stage failed or something is missing, 2 a setting or an argument is wrong,
130 interrupted, 141 nobody reads the output any more.
"""

from __future__ import annotations

import errno
import os
import signal
import sys
from collections.abc import Callable
from functools import wraps
from types import FrameType
from typing import ParamSpec

import typer

from pipeline.errors import (
    CiteloomError,
    SettingError,
    exit_code_of,
    name_full_disk,
    unexpected,
)
from pipeline.identity.months import check_selection
from pipeline.text import clip

P = ParamSpec("P")
# Access rights: no change of the program lets it read or write such a file.
_REFUSED = (errno.EACCES, errno.EPERM, errno.EROFS)


def with_exit_code(function: Callable[P, int | None]) -> Callable[P, None]:
    """A typer command of a function that returns its exit code."""

    @wraps(function)
    def command(*arguments: P.args, **options: P.kwargs) -> None:
        raise typer.Exit(run_command(function, *arguments, **options))

    return command


def run_command(function: Callable[P, int | None], *arguments: P.args, **options: P.kwargs) -> int:
    """Call a command's function; print errors redacted, stop services, return the exit code.

    SIGTERM ends it as Ctrl-C does. If `as_json` is among the options, an error is a JSON document
    too. The option `months` is checked first, so that a malformed one is an error of its own,
    before other errors.
    """
    from pipeline.doors.cli.console import print_error, print_json

    previous = signal.signal(signal.SIGTERM, _interrupt)
    try:
        if "months" in options:
            check_selection(str(options["months"]))
        return function(*arguments, **options) or 0
    except KeyboardInterrupt:
        print_error("interrupted; finished work is kept, run the same command to continue")
        return 130
    except BrokenPipeError:  # whoever read the output, such as `head`, has ended
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 128 + signal.SIGPIPE
    except Exception as error:
        redacted = _redact(name_full_disk(error, "CITELOOM_DATA or of temporary files"))
        if isinstance(redacted, CiteloomError):
            message = str(redacted)
        elif isinstance(redacted, OSError) and redacted.errno in _REFUSED and redacted.filename:
            message = (
                f"{redacted.filename} cannot be used ({redacted.strerror}): let this user read and"
                " write there, or name another folder (CITELOOM_DATA and CITELOOM_LOCAL name those"
                " of the corpus)"
            )
        else:
            message = _write_traceback(redacted)
        message = "\n".join(map(clip, message.splitlines()))
        if options.get("as_json"):
            print_json({"error": type(redacted).__name__, "message": message})
        print_error(message)
        return exit_code_of(redacted)
    finally:
        _release_services()
        signal.signal(signal.SIGTERM, previous)


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def _redact(error: Exception) -> Exception:
    """The error without secrets. A command that has not read the settings has no secret to
    repeat.
    """
    if "pipeline.settings" not in sys.modules:
        return error
    from pipeline.engine.redaction import collect_secrets, redact_error
    from pipeline.settings import load_settings

    try:
        return redact_error(error, collect_secrets(load_settings()))
    except SettingError:  # messages about wrong settings leave secret values out
        return redact_error(error, collect_secrets(None))


def _write_traceback(error: Exception) -> str:
    """Write an unexpected error's traceback to a file; returns the message for the user."""
    import tempfile
    import traceback

    with tempfile.NamedTemporaryFile("w", prefix="citeloom-", suffix=".log", delete=False) as file:
        file.write("".join(traceback.format_exception(error)))
    return unexpected(error, file.name)


def _release_services() -> None:
    """Stop what the command may have started, without importing it if it was never used."""
    if {"pipeline.index", "pipeline.llm"} & sys.modules.keys():
        from pipeline.ops.services import release_services

        release_services()
