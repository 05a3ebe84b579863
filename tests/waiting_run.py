"""A run of Dagster in a process of its own that waits in the middle of its only step, to be killed
there.
"""

import subprocess
import sys
from contextlib import contextmanager

from tests.processes import end_with_tests

_RUN = """
import sys, time
import dagster as dg

@dg.op
def wait():
    print("waiting", flush=True)
    time.sleep(600)

@dg.job
def waiting():
    wait()

with dg.DagsterInstance.from_config(sys.argv[1]) as instance:
    waiting.execute_in_process(instance=instance)
"""


@contextmanager
def waiting_run(home):
    """The process, in the middle of a run of the instance at `home`; killed afterwards."""
    process = subprocess.Popen(
        [sys.executable, "-c", _RUN, str(home)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    end_with_tests(process)
    try:
        assert any(line == "waiting\n" for line in process.stdout)
        yield process
    finally:
        process.kill()
        process.communicate()
