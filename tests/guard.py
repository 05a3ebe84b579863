"""Ends what a test has started where the tests end without doing so: interrupted twice, killed, out of memory."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

# The end of the pipe says that the tests' process is gone, however it ended. A session of its own, since Ctrl-C goes to
# every process of the terminal's. Children one by one, since some of them lead process groups of their own.
_WATCH = """
import contextlib, psutil, select, sys
with contextlib.suppress(psutil.NoSuchProcess):
    started = psutil.Process(int(sys.argv[1]))
    while not select.select([sys.stdin], [], [], 1)[0]:
        if started.status() == psutil.STATUS_ZOMBIE:
            sys.exit()
    for process in [started, *started.children(recursive=True)]:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()
"""
_watches: list[subprocess.Popen[bytes]] = []


def end_with_tests(process: subprocess.Popen[Any]) -> None:
    """Have a process and all that it started killed as soon as this process is gone."""
    _watches[:] = [watch for watch in _watches if watch.poll() is None]
    watch = subprocess.Popen(
        [sys.executable, "-c", _WATCH, str(process.pid)], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL, start_new_session=True,
    )  # fmt: skip
    _watches.append(watch)
