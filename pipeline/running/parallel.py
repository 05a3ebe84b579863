"""Several months of a run at once, each in a process of its own, the heaviest first.

What a month's stages make of the month alone is done in such processes. The rest follows in this one, month by month
and oldest first: it reads what earlier months hold, the embedded index and the embedded model belong to one process at
a time, a budget counts what one process spends, and calls of a language model are many at once already.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from pipeline.corpus.dump.catalogue import read_dump
from pipeline.engine import progress, telemetry
from pipeline.engine.process_pool import count_workers
from pipeline.engine.shutdown import DRAIN_SECONDS, KILL_SECONDS
from pipeline.engine.stage import Outcome, Stage, Workspace
from pipeline.ops.run_months import RunReport, dagster_home, failure_of, keep_asked, run_month, tell_of_broken_zips
from pipeline.running.month_process import DONE
from pipeline.settings import Settings
from pipeline.stages import STAGES

# What these make of a month depends on no other month.
_OF_A_MONTH_ALONE = ("dump_members", "metadata", "papers", "passages", "embeddings")
# A server's index takes several months at once; the embedded one belongs to one process.
_ON_A_SERVER = (*_OF_A_MONTH_ALONE, "index_receipts")
_START = "from pipeline.running.month_process import serve; serve()"
# A little longer than a stage takes to drain, after which its process ends by itself.
_SECONDS_TO_END = DRAIN_SECONDS + KILL_SECONDS + 5


def run_months_at_once(
    workspace: Workspace, months: Sequence[str], stages: Sequence[Stage], processes: int, *, force: bool = False
) -> RunReport:
    """Run what the months need, so many at once; what comes of it, and every table, is as `run_months` gives it.

    Settings must be in the environment, from which the processes read them.
    """
    report = RunReport()
    apart, together = _split(workspace.settings, stages)
    with telemetry.run_span(workspace.settings, len(months)), progress.listening(report):
        tell_of_broken_zips(workspace, stages)
        _Crew(workspace, deque(heaviest_first(workspace.settings, months)), apart, force).work(processes)
        for month in months:
            run_month(workspace, _possible(workspace, month, stages, together, report), month, report, force=force)
            keep_asked(workspace, stages, month, report)
    place = {stage.name: number for number, stage in enumerate(STAGES)}
    report.outcomes.sort(key=lambda outcome: (outcome.month, place[outcome.stage]))
    return report


def heaviest_first(settings: Settings, months: Iterable[str]) -> list[str]:
    """The months, those with the most pages first: a heavy one that came last would be waited for alone."""
    dump = read_dump(settings)
    return sorted(months, key=lambda month: (-dump.count_pages(month), month))


def _split(settings: Settings, stages: Sequence[Stage]) -> tuple[list[Stage], list[Stage]]:
    """The stages that run in processes of their own, and those that run in this one."""
    names = _ON_A_SERVER if settings.qdrant_url else _OF_A_MONTH_ALONE
    return [each for each in stages if each.name in names], [each for each in stages if each.name not in names]


def _possible(
    workspace: Workspace, month: str, stages: Sequence[Stage], together: Sequence[Stage], report: RunReport
) -> list[Stage]:
    """Of the stages that follow, those that are not below one that failed."""
    if any((stage, of) == ("run", month) for stage, of, _ in report.failures):
        return []
    lost: set[str] = set()
    for stage in stages:
        below = lost & {table.name for table in stage.upstream}
        if below or (stage not in together and failure_of(workspace, stage, month) is not None):
            lost.add(stage.name)
    return [stage for stage in together if stage.name not in lost]


@dataclass
class _Crew:
    """The processes of a run, and the months that none has taken yet."""

    workspace: Workspace
    waiting: deque[str]
    stages: Sequence[Stage]
    force: bool
    processes: int = 1
    ended: bool = False
    started: list[_Process] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def work(self, processes: int) -> None:
        """Have all months run. However this ends, no process of it is left."""
        self.processes = min(processes, len(self.waiting)) if self.stages else 0
        if not self.processes:
            return
        with _ended_by_sigterm(), ThreadPoolExecutor(self.processes, thread_name_prefix="months") as threads:
            try:
                for done in [threads.submit(self._take_months) for _ in range(self.processes)]:
                    done.result()
            finally:
                self._end()

    def _take_months(self) -> None:
        """Run months in one process until none is left; a process that died is followed by another."""
        process: _Process | None = None
        while (month := self._next()) is not None:
            if process is None or not process.is_alive():
                process = self._start(month)
            if process is not None:
                self._run(process, month)
        if process is not None:
            process.finish()

    def _next(self) -> str | None:
        with self._lock:
            return self.waiting.popleft() if self.waiting and not self.ended else None

    def _start(self, month: str) -> _Process | None:
        try:
            with self._lock:
                if self.ended:
                    return None
                process = _Process(self._environment)
                self.started.append(process)
                return process
        except OSError as error:
            self._tell(["failed", "run", month, f"no process can be started for it ({error.strerror}): run again", 1])
            return None

    @cached_property
    def _environment(self) -> dict[str, str]:
        """This process's, with its import path, and its share of the workers that parse."""
        path = os.pathsep.join(folder or os.getcwd() for folder in sys.path)  # noqa: PTH109 - a path as text
        workers = max(1, count_workers(self.workspace.settings.workers) // self.processes)
        return {**os.environ, "PYTHONPATH": path, "CITELOOM_WORKERS": str(workers)}

    def _run(self, process: _Process, month: str) -> None:
        for event in process.run({"month": month, "stages": [each.name for each in self.stages], "force": self.force}):
            if event[0] == DONE:
                return
            self._tell(event)
        if not self.ended:
            self._tell(["failed", "run", month, _how_it_ended(process.finish()), 1])
            self._free_pools()

    def _tell(self, event: list[Any]) -> None:
        name, *arguments = event
        with self._lock:
            getattr(progress, name)(*([Outcome(**arguments[0])] if name == "finished" else arguments))

    def _free_pools(self) -> None:
        """Let go of what the dead process's run holds: others would wait for it for ever."""
        from assets.jobs import sweep

        with self._lock:
            sweep(dagster_home(self.workspace))

    def _end(self) -> None:
        """Interrupt what still runs, and wait for its end; a second Ctrl-C does not wait."""
        with self._lock:  # so that none is being started
            self.ended = True
        try:
            for process in self.started:
                process.interrupt()
            for process in self.started:
                process.finish()
        except BaseException:
            for process in self.started:
                process.kill()
            raise


class _Process:
    """One process that runs months, and its lifeline: once this end of it is closed, the kernel ends the process."""

    def __init__(self, environment: dict[str, str]) -> None:
        reading, self._lifeline = os.pipe()
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-c", _START, str(reading)],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, pass_fds=(reading,), env=environment, process_group=0,
                text=True, encoding="utf-8",
            )  # fmt: skip
        except OSError:
            os.close(self._lifeline)
            raise
        finally:
            os.close(reading)
        self._ending = threading.Lock()

    def run(self, request: dict[str, Any]) -> Iterable[list[Any]]:
        """The events of a month, of which the last is DONE unless the process died."""
        assert self._process.stdin is not None and self._process.stdout is not None  # noqa: PT018, S101
        with contextlib.suppress(OSError, ValueError):
            self._process.stdin.write(json.dumps(request) + "\n")
            self._process.stdin.flush()
            for line in self._process.stdout:
                yield json.loads(line)

    def is_alive(self) -> bool:
        """Whether the process runs."""
        return self._process.poll() is None

    def interrupt(self) -> None:
        """Do what Ctrl-C does; it has a group of its own, which no terminal's Ctrl-C reaches.

        By SIGTERM, which ends a Python that is just starting without a word.
        """
        if self.is_alive():
            self._process.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """End it where it stands."""
        self._process.kill()

    def finish(self) -> int:
        """Let the process end, or end it where it does not; its exit code. Safe to call again, from any thread."""
        with self._ending:
            if self._process.stdin is not None and not self._process.stdin.closed:
                with contextlib.suppress(OSError):
                    self._process.stdin.close()
                try:
                    self._process.wait(_SECONDS_TO_END)
                except subprocess.TimeoutExpired:
                    self._process.kill()
                    self._process.wait()
                os.close(self._lifeline)
        return self._process.returncode


@contextlib.contextmanager
def _ended_by_sigterm() -> Iterator[None]:
    """Have SIGTERM do within it what Ctrl-C does: by itself it would end this process, and the kernel the others."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _how_it_ended(code: int) -> str:
    if code == -signal.SIGKILL:
        return (
            "its process was killed, most likely for want of memory: what was done stays; run again with a smaller "
            "--parallel"
        )
    how = f"by signal {-code}" if code < 0 else f"with exit code {code}"
    return f"its process ended {how}: what was done stays, run again"
