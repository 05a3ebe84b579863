"""A process of `citeloom run --parallel`: it takes months, one after another, and tells what comes of each."""

from __future__ import annotations

import json
import os
import signal
import sys
from contextlib import suppress
from dataclasses import asdict
from typing import Any, TextIO

from pipeline.engine import progress
from pipeline.engine.process_pool import end_when_closed
from pipeline.engine.stage import Outcome, Workspace, record_failure
from pipeline.ops.run_months import RunReport, run_month
from pipeline.ops.services import release_services
from pipeline.settings import load_settings
from pipeline.stages import stage_named

DONE = "done"


class _Teller(progress.Listener):
    """Writes every event as a line: `["finished", {…}]`."""

    def __init__(self, told: TextIO) -> None:
        self._told = told

    def tell(self, event: str, *arguments: Any) -> None:
        self._told.write(json.dumps([event, *arguments], default=str) + "\n")
        self._told.flush()

    def started(self, stage: str, month: str) -> None:
        self.tell("started", stage, month)

    def advanced(self, stage: str, month: str, done: int, total: int | None) -> None:
        self.tell("advanced", stage, month, done, total)

    def finished(self, outcome: Outcome) -> None:
        self.tell("finished", asdict(outcome))

    def failed(self, stage: str, month: str, message: str, exit_code: int = 1) -> None:
        self.tell("failed", stage, month, message, exit_code)

    def noted(self, message: str) -> None:
        self.tell("noted", message)


def serve() -> None:
    """Run the months that come over standard input, each a line `{"month", "stages", "force"}`, until it is closed.

    The one argument of this process is a file descriptor, the lifeline that the parent holds open. Settings come from
    the environment, as in any run.
    """
    end_when_closed(int(sys.argv[1]))
    # What libraries print is no event.
    with os.fdopen(os.dup(1), "w", encoding="utf-8") as told:
        os.dup2(2, 1)
        teller, workspace = _Teller(told), Workspace(load_settings())
        with suppress(KeyboardInterrupt), progress.listening(teller):
            signal.signal(signal.SIGTERM, signal.default_int_handler)
            try:
                for line in sys.stdin:
                    _run(workspace, json.loads(line))
                    teller.tell(DONE)
            finally:
                release_services()


def _run(workspace: Workspace, request: dict[str, Any]) -> None:
    month, stages = request["month"], [stage_named(name) for name in request["stages"]]
    report = RunReport()
    try:
        with progress.listening(report):
            run_month(workspace, stages, month, report, force=request["force"])
    except Exception as error:
        progress.failed("run", month, record_failure(workspace, "run", month, error))
