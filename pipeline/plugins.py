"""What a package beside the pipeline adds to it, by entry points of this distribution.

    citeloom.commands   commands of the command line: name → a function as `doors.cli` has them
    citeloom.drafts     functions on a draft: `check`, `cite`, `relate`

Entry points of other distributions are not looked for: reading the files of all that are installed
would take longer than `citeloom --help` does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from importlib.metadata import EntryPoint, PackageNotFoundError, distribution
from typing import Any

from pipeline.errors import SettingError

COMMANDS, DRAFTS = "citeloom.commands", "citeloom.drafts"


def plugins(group: str) -> dict[str, Callable[..., Any]]:
    """The functions of a group by name, imported; none whose package is not there."""
    found = {entry.name: _load(entry) for entry in _entries(group)}
    return {name: function for name, function in found.items() if function is not None}


def of_drafts(name: str) -> Callable[..., Any]:
    """A function of the group `citeloom.drafts`, which alone is imported. Raises SettingError where
    its package is not there.
    """
    function = next((_load(entry) for entry in _entries(DRAFTS) if entry.name == name), None)
    if function is None:
        raise SettingError(
            f"{name}: this installation has no package drafts, which reads LaTeX, Markdown and"
            " bibliographies: install citeloom with it"
        )
    return function


def _entries(group: str) -> Iterable[EntryPoint]:
    try:
        return distribution("citeloom").entry_points.select(group=group)
    except PackageNotFoundError:  # code that was copied, and not installed
        return ()


def _load(entry: EntryPoint) -> Callable[..., Any] | None:
    try:
        function: Callable[..., Any] = entry.load()
    except ModuleNotFoundError as error:
        if error.name != entry.module.partition(".")[0]:
            raise
        return None
    return function
