"""Who unpickles: each class or function that a pickle names, with the source file at whose order it was looked up.

By Python's audit event `pickle.find_class`, which tells of the C module's work as of Python's own
(https://docs.python.org/3/library/audit_events.html). Not seen: other processes, and pickles that name nothing, which
can run nothing.
"""

from __future__ import annotations

import sys
import sysconfig
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

_STANDARD = sysconfig.get_path("stdlib")
_records: list[list[tuple[str, str]]] = []
_installed = False


@contextmanager
def unpickled() -> Iterator[list[tuple[str, str]]]:
    """(what was looked up, the file that ordered it) while the block runs."""
    global _installed
    if not _installed:  # a hook cannot be taken out again
        sys.addaudithook(_note)
        _installed = True
    found: list[tuple[str, str]] = []
    _records.append(found)
    try:
        yield found
    finally:
        _records.remove(found)


def _note(event: str, arguments: tuple[Any, ...]) -> None:
    if event == "pickle.find_class" and _records:
        module, name = arguments
        who = _orderer(sys._getframe(1))
        for record in _records:
            record.append((f"{module}.{name}", who))


def _orderer(frame: FrameType | None) -> str:
    """The innermost source file that is no part of Python itself."""
    while frame is not None:
        file = frame.f_code.co_filename
        if "site-packages" in file or not (file.startswith(_STANDARD) or file.startswith("<")):
            return file
        frame = frame.f_back
    return "Python itself"
