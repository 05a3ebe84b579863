"""What the tests of workers have done in them.

A worker imports this module by its name, which is why these are no functions of the test modules.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Sequence
from pathlib import Path

from pipeline.engine.process_pool import time_limit


class Unpicklable(Exception):
    """An exception that cannot be made again from its arguments."""

    def __init__(self, one: str, two: str) -> None:
        super().__init__(one + two)


def double(chunk: Sequence[int]) -> list[int]:
    """Each number twice."""
    return [2 * number for number in chunk]


def double_slowly(chunk: Sequence[int]) -> list[int]:
    """Each number twice; small ones take longest, so that answers come in the wrong order."""
    time.sleep(0.2 if chunk[0] < 2 else 0.0)
    return double(chunk)


def double_unless_deadly(chunk: Sequence[int]) -> list[int]:
    """Each number twice; 13 ends the process as a fault in a library would."""
    if 13 in chunk:
        os.kill(os.getpid(), signal.SIGSEGV)
    return double(chunk)


def be_killed(chunk: Sequence[int]) -> None:
    """End as Linux ends a process where memory runs out."""
    os.kill(os.getpid(), signal.SIGKILL)


def be_killed_once(chunk: Sequence[str]) -> str:
    """End as Linux ends a process where memory runs out, but the second time go on."""
    file = Path(chunk[0])
    if not file.exists():
        file.touch()
        be_killed([])
    return "done"


def double_within_a_limit(chunk: Sequence[int]) -> list[int]:
    """Each number twice; 13 takes for ever."""
    for number in chunk:
        with time_limit(0.2):
            while number == 13:
                pass
    return double(chunk)


def fill_memory(chunk: Sequence[int]) -> int:
    """Ask for four GB."""
    try:
        return len(bytearray(4 * 1024**3))
    except MemoryError:
        return 0


def fail(chunk: Sequence[int]) -> None:
    """Raise what no chunk is to raise."""
    raise KeyError(f"no {chunk[0]}")


def fail_unpicklably(chunk: Sequence[int]) -> None:
    """Raise what cannot travel."""
    raise Unpicklable("some", "thing")


def tell_process(chunk: Sequence[int]) -> tuple[int, str]:
    """The worker's process and how many threads a library may start in it."""
    return os.getpid(), os.environ["OMP_NUM_THREADS"]


def work_for_ever(chunk: Sequence[str]) -> None:
    """Leave the process's id in a file, then never end."""
    file = Path(chunk[0])
    file.with_suffix(".new").write_text(str(os.getpid()))
    file.with_suffix(".new").rename(file)
    while True:
        pass
