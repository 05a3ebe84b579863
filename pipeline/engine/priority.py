"""Let the servers of this machine go before what computes months."""

import os

# At 5 a computing thread gets a third of the processor time of a thread of Dagster's servers or of
# `citeloom serve` that wants the same core, and all of it while they wait.
_NICENESS = 5


def lower_priority() -> None:
    """Lower the priority of this thread and of the threads and processes that it will start.

    A priority that is lower already stays.
    """
    if os.getpriority(os.PRIO_PROCESS, 0) < _NICENESS:
        os.setpriority(os.PRIO_PROCESS, 0, _NICENESS)
