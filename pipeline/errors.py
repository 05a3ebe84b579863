"""The errors that citeloom raises on purpose; each says what is at fault and what to do."""

from __future__ import annotations

import errno
from importlib.util import find_spec

from pipeline.text import one_line


class CiteloomError(Exception):
    """Base of every error whose message is written for the user; shown without a traceback."""


class SettingError(CiteloomError):
    """A setting or an argument is wrong. The command ends with exit code 2."""


def exit_code_of(error: BaseException) -> int:
    """What a command ends with: 2 for a wrong setting or argument, else 1."""
    return 2 if isinstance(error, SettingError) else 1


def missing_package(user: str, extra: str, *modules: str) -> str:
    """The sentence where a module of an extra is not installed; empty where all are.

    user: the setting or command that needs them. Nothing is imported.
    """
    absent = next((module for module in modules if find_spec(module) is None), None)
    return f"{user} needs {absent}: pip install 'citeloom[{extra}]'" if absent else ""


def require_packages(user: str, extra: str, *modules: str) -> None:
    """Raise SettingError with the sentence of `missing_package`."""
    if message := missing_package(user, extra, *modules):
        raise SettingError(message)


def unexpected(error: Exception, file: object) -> str:
    """The message for an unexpected error, whose traceback is in `file`; one line."""
    return f"unexpected {type(error).__name__}: {one_line(str(error))}; its traceback is in {file}"


class PermanentFailure(CiteloomError):
    """A failure that a rerun cannot clear: a file is broken, a table of another version."""


class MissingInput(PermanentFailure):
    """An upstream table, file or folder is not there."""


class TransientFailure(CiteloomError):
    """A failure that may pass: a server that does not answer, a rate limit. Worth a retry."""


def name_full_disk(error: Exception, folder: object) -> Exception:
    """A failure that names the folder, in place of an error of a full disk; any other as it is."""
    if getattr(error, "errno", None) not in (errno.ENOSPC, errno.EDQUOT):
        return error
    full = TransientFailure(
        f"the disk of {folder} is full: make room there, then repeat the command; finished work is"
        " kept"
    )
    full.__cause__ = error
    return full
