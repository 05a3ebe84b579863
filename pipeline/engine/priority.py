"""Lower the CPU priority of a run, so that servers of this machine answer beside it."""

import os

# At 5 a thread that wants the same core as one of Dagster's servers or of `citeloom serve` gets a
# third of that one's processor time, and all of the core while the servers wait.
_NICENESS = 5


def lower_priority() -> None:
    """Lower the priority of this thread and of the threads and processes that it will start.

    A lower one stays as it is.
    """
    if os.getpriority(os.PRIO_PROCESS, 0) < _NICENESS:
        os.setpriority(os.PRIO_PROCESS, 0, _NICENESS)
