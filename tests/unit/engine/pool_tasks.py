"""Work for the tests of the process pool. A worker imports this module by name, so it is apart from
the tests.
"""

import os
import signal
import sys
import threading
import time
from pathlib import Path

from pipeline.engine.process_pool import time_limit

ANSWER_BYTES = 100_000_000


class Unpicklable(Exception):
    """An exception that cannot be made again from its arguments."""

    def __init__(self, one, two):
        super().__init__(one + two)


def double(chunk):
    """Each number twice."""
    return [2 * number for number in chunk]


def double_slowly(chunk):
    """Each number twice; small ones take longest, so answers arrive in the wrong order."""
    time.sleep(0.2 if chunk[0] < 2 else 0.0)
    return double(chunk)


def segfault_on_13(chunk):
    """Each number twice; 13 ends the process as a bug in a library would."""
    if 13 in chunk:
        os.kill(os.getpid(), signal.SIGSEGV)
    return double(chunk)


def loop_on_13(chunk):
    """Each number twice, with a limit of processor time for each; 13 never ends."""
    for number in chunk:
        with time_limit(0.2):
            while number == 13:
                pass
    return double(chunk)


def kill_self(chunk):
    """End as Linux ends a process where memory runs out."""
    os.kill(os.getpid(), signal.SIGKILL)


def kill_self_once(chunk):
    """End as Linux ends a process where memory runs out, but finish at the second attempt."""
    file = Path(chunk[0])
    if not file.exists():
        file.touch()
        kill_self([])
    return "done"


def kill_self_while_answering(chunk):
    """A large answer; where the chunk is 13, the process is killed when part of it is sent."""

    def kill_once_part_is_sent():
        # The message's length goes ahead in a write of its own; the kernel counts the long one only
        # once it is over.
        before = written_bytes()
        while written_bytes() == before:
            pass
        kill_self([])

    if 13 in chunk:
        threading.Thread(target=kill_once_part_is_sent, daemon=True).start()
    return bytes(ANSWER_BYTES)


def written_bytes():
    """The bytes that this process has written to files and pipes."""
    return int(Path("/proc/self/io").read_text().split("wchar:")[1].split()[0])


def allocate_4_gb(chunk):
    """The bytes that could be allocated; 0 where memory is refused."""
    try:
        return len(bytearray(4 * 1024**3))
    except MemoryError:
        return 0


def fail(chunk):
    """Raise an exception with the chunk in its message."""
    raise KeyError(f"no {chunk[0]}")


def fail_unpicklably(chunk):
    """Raise an exception that cannot be unpickled."""
    raise Unpicklable("some", "thing")


def describe_worker(chunk):
    """The worker's process id, its limit of threads, and whether the tests' main module was
    imported.
    """
    return os.getpid(), os.environ["OMP_NUM_THREADS"], "pytest" in sys.modules


def work_forever(chunk):
    """Write the process id to a file, then never end."""
    file = Path(chunk[0])
    file.with_suffix(".new").write_text(str(os.getpid()))
    file.with_suffix(".new").rename(file)
    while True:
        pass
