"""Dagster's default launcher, with a look at the processes of runs: dagster.yaml names it, the daemon asks it.

The sensor `stuck_runs` does the same, but needs the code server, which may be what died.
"""

from __future__ import annotations

from pathlib import Path

import dagster as dg
from dagster._core.launcher.base import CheckRunHealthResult, WorkerStatus
from dagster._core.launcher.default_run_launcher import DefaultRunLauncher

from pipeline.running.run_process import end_dead_runs


class WatchedRunLauncher(DefaultRunLauncher):
    """Starts runs as the default one does, and ends those whose process is gone."""

    @property
    def supports_check_run_worker_health(self) -> bool:
        """Whether the monitor is to ask."""
        return True

    def check_run_worker_health(self, run: dg.DagsterRun) -> CheckRunHealthResult:
        """Whether the process of a run lives. Every dead run is ended, and its pools' slots are free with it."""
        if run.run_id in end_dead_runs(self._instance, Path(self._instance.root_directory)):
            return CheckRunHealthResult(WorkerStatus.FAILED, "the process that ran it is gone")
        return CheckRunHealthResult(WorkerStatus.RUNNING)
