"""Processes that tests start: without a developer's settings, waited for, and ended where the tests
end.
"""

import json
import os
import re
import signal
import subprocess
import sys
import time
import urllib.request
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import TypeVar

import psutil

from benchmarks.harness import free_ports

T = TypeVar("T")
# Seconds after which a test gives up waiting: for what will never come, not for a slow or busy
# machine.
PATIENCE = 600.0
PROJECT = Path(__file__).resolve().parents[1]
SPAWN = get_context("spawn")
COMMAND = str(Path(sys.executable).with_name("citeloom"))

# The end of the pipe says that the tests' process is gone, however it ended: interrupted twice,
# killed, out of memory. A session of its own, since Ctrl-C goes to every process of the terminal's.
# Children one by one, since some of them lead process groups of their own.
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
_watches = []


def end_with_tests(process):
    """Have a process and all that it started killed as soon as this process is gone."""
    _watches[:] = [watch for watch in _watches if watch.poll() is None]
    watch = subprocess.Popen(
        [sys.executable, "-c", _WATCH, str(process.pid)],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    _watches.append(watch)


def start_python(code, *arguments, **options):
    """Start Python code, with pipes for what it reads and prints; `options` as for Popen."""
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    return subprocess.Popen(
        [sys.executable, "-c", code, *arguments], cwd=PROJECT, **pipes | options
    )


def in_new_process(function, *arguments):
    """What a function returns in a process of its own, and how many more MB that held at most."""
    with ProcessPoolExecutor(1, SPAWN) as pool:
        return pool.submit(_measured, function, arguments).result()


def _measured(function, arguments):
    before = _most_megabytes()
    result = function(*arguments)
    return result, _most_megabytes() - before


def _most_megabytes():
    status = Path("/proc/self/status").read_text()
    return int(re.findall(r"VmHWM:\s+(\d+) kB", status)[0]) // 1024


def start_logged(arguments, folder, environment, log):
    """Start the command in a process group of its own; what it prints goes to a file."""
    with log.open("wb") as output:
        process = subprocess.Popen(
            [COMMAND, *arguments],
            env=environment,
            cwd=folder,
            stdout=output,
            stderr=output,
            start_new_session=True,
            preexec_fn=_with_default_signals,
        )
    end_with_tests(process)
    return process


def _with_default_signals():
    """Undo what the starter ignores: a shell in the background hands ignored SIGINT on to its
    children.
    """
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGQUIT):
        signal.signal(number, signal.SIG_DFL)


def environment_without_settings():
    """This process's environment without the settings of citeloom and Dagster."""
    return {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("CITELOOM_", "DAGSTER_"))
    }


def free_port():
    """A port of loopback on which nobody listens."""
    return free_ports(1)[0]


def wait_until(happens, what="what was waited for", seconds=PATIENCE):
    """The first true value of a function that is called repeatedly; raises TimeoutError."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if value := happens():
            return value
        time.sleep(0.05)
    raise TimeoutError(f"no {what} within {seconds:.0f} s")


def is_alive(process):
    """Whether a process runs; a zombie does not."""
    try:
        return psutil.Process(process).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def family(process):
    """A process and its descendants."""
    return [process, *(child.pid for child in psutil.Process(process).children(recursive=True))]


def listening(processes):
    """The addresses on which any of the processes accepts TCP connections."""
    mine = set(processes)
    connections = [each for each in psutil.net_connections("tcp") if each.pid in mine]
    return sorted(each.laddr.ip for each in connections if each.status == psutil.CONN_LISTEN)


def ask_graphql(url, query, **variables):
    """The data with which Dagster's webserver answers a GraphQL query."""
    body = json.dumps({"query": query, "variables": variables}).encode()
    request = urllib.request.Request(f"{url}/graphql", body, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request) as response:
        answer = json.load(response)
    assert "errors" not in answer, answer
    return answer["data"]
