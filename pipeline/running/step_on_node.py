"""The process of one step on a node of a cluster: `python -m pipeline.running.step_on_node <run id>`.

It sees to what only the node can know, then runs Dagster's own `dagster api execute_step`, which takes the step from
the environment.
"""

from __future__ import annotations

import os
import socket
import sys

from pipeline.engine import liveness
from pipeline.errors import CiteloomError, SettingError
from pipeline.settings import Settings, load_settings
from resources.dagster_home import share_postgres


def main() -> int:
    """Run the step; the exit code says whether it could begin. What came of it, Dagster's event log says."""
    liveness.end_with_parent(os.getppid())
    try:
        _prepare(load_settings(), sys.argv[1])
    except CiteloomError as error:
        sys.stderr.write(f"{socket.gethostname()}: {error}\n")
        return 2
    from dagster._cli import main as dagster

    sys.argv = ["dagster", "api", "execute_step"]
    dagster()  # type: ignore[no-untyped-call]
    return 0


def _prepare(settings: Settings, run_id: str) -> None:
    """Give Dagster its store, and see that this node sees the folder that the run was started on.

    Raises SettingError where a setting of this node's own, which is a secret, is missing, or the folder is another.
    """
    if settings.dagster_pg_url is None:
        raise SettingError(
            "CITELOOM_DAGSTER_PG_URL is not set on this node: secrets do not travel, so set them where Ray is started"
        )
    share_postgres(settings)
    folder = settings.local_root
    if liveness.sign(folder / "dagster", run_id) is not liveness.Sign.LIVES:
        raise SettingError(
            f"CITELOOM_LOCAL, or else CITELOOM_DATA: {folder} on this node is not the folder of run {run_id}, or the "
            "run has ended: every node must see the same folder at the same path"
        )


if __name__ == "__main__":
    sys.exit(main())
