"""The command `citeloom` as a process that tests signal and kill."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from tests.assets.conftest import Place
from tests.guard import end_with_tests


def start(place: Place, *arguments: str) -> subprocess.Popen[str]:
    """`citeloom` in a process group of its own, its progress lines to be read."""
    others = {name: value for name, value in os.environ.items() if not name.startswith("CITELOOM_")}
    process = subprocess.Popen(
        [str(Path(sys.executable).with_name("citeloom")), *arguments],
        env={**others, "COLUMNS": "200", "NO_COLOR": "1", **place.variables},
        cwd=place.root, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip
    end_with_tests(process)
    return process


def wait_until(holds: Callable[[], object], seconds: float = 120) -> None:
    """Wait until something holds; it takes long on a machine that is loaded by others."""
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, "it never came to hold"
        time.sleep(0.05)


def processor_seconds(process: int) -> float:
    """What a process has taken of the processor so far."""
    after_name = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(after_name[11]) + int(after_name[12])) / os.sysconf("SC_CLK_TCK")


def is_alive(process: int) -> bool:
    """Whether a process runs; one that has ended and that nobody has asked after does not."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False
