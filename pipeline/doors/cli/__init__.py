"""The command `citeloom`: a module per group of commands, registered by `app`."""

import gc
import os


def main() -> None:
    """Entry point of the command."""
    # Python looks for modules in the working folder first where it is started with -c or -m, as for
    # worker processes and the Dagster UI: a draft's folder may hold a multiprocessing.py.
    os.environ["PYTHONSAFEPATH"] = "1"
    from pipeline.doors.cli.app import main as run

    try:
        run()
    finally:
        # Else the interpreter's end searches all of torch for cycles: a second or more.
        gc.freeze()
