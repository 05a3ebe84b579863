"""A run's process: seen to live or to be gone, barred once its run is ended, and it ends when it is asked to."""

from __future__ import annotations

import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pytest
from dagster._core.launcher.base import WorkerStatus

from assets.jobs import refresh_corpus
from pipeline.definitions import run_in_process
from pipeline.engine import progress
from pipeline.engine.failures import read_failure
from pipeline.engine.liveness import alive, shown
from pipeline.ops.run_months import dagster_home
from pipeline.running.run_process import end_dead_runs
from pipeline.stages import stage_named
from pipeline.tables import DUMP_MEMBERS
from sensors.stuck_runs import stuck_runs
from tests.assets.conftest import MONTHS, Place
from tests.assets.processes import processor_seconds, start, wait_until

POOL = "qdrant"


@pytest.fixture
def home(empty: Place) -> Iterator[Path]:
    """The folder of a Dagster instance of this test's own."""
    with empty.entered():
        yield dagster_home(empty.workspace())


@pytest.fixture
def instance(home: Path) -> Iterator[dg.DagsterInstance]:
    """That instance."""
    with dg.DagsterInstance.from_config(str(home)) as found:
        yield found


def begun(instance: dg.DagsterInstance) -> dg.DagsterRun:
    """A run that shows as running and holds a slot of a pool."""
    run = instance.create_run_for_job(refresh_corpus_job(), status=dg.DagsterRunStatus.STARTED)
    instance.event_log_storage.set_concurrency_slots(POOL, 1)
    instance.event_log_storage.claim_concurrency_slot(POOL, run.run_id, "embeddings")
    return run


def refresh_corpus_job() -> dg.JobDefinition:
    from pipeline.definitions import defs

    return defs.resolve_job_def(refresh_corpus.name)


def status_of(instance: dg.DagsterInstance, run: dg.DagsterRun) -> dg.DagsterRunStatus:
    found = instance.get_run_by_id(run.run_id)
    assert found is not None
    return found.status


def held(instance: dg.DagsterInstance) -> int:
    """Slots of the pool that are taken."""
    return instance.event_log_storage.get_concurrency_info(POOL).active_slot_count


def waits_for_the_pool(place: Place) -> subprocess.Popen[str]:
    """A run of the command that wants the pool, which another one holds, and has said so."""
    waiting = start(place, "run", "--months", MONTHS[0], "--select", "index_receipts", "--force")
    assert waiting.stderr is not None
    assert POOL in next(line for line in waiting.stderr if "will wait for" in line)
    return waiting


def test_a_run_whose_process_is_gone_is_ended_and_its_slots_are_free(instance: dg.DagsterInstance, home: Path) -> None:
    run = begun(instance)
    (home / "running").mkdir()
    (home / "running" / f"{run.run_id}.lock").touch()  # as a process leaves it that was killed
    assert end_dead_runs(instance, home) == [run.run_id]
    assert status_of(instance, run) is dg.DagsterRunStatus.FAILURE
    assert held(instance) == 0
    assert shown(home) == set()
    assert end_dead_runs(instance, home) == []


def test_whoever_ends_a_dead_run_and_is_killed_meanwhile_leaves_no_slot_held(
    instance: dg.DagsterInstance, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = begun(instance)
    (home / "running").mkdir()
    (home / "running" / f"{run.run_id}.lock").touch()

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(instance, "report_run_failed", killed)
        with pytest.raises(KeyboardInterrupt):
            end_dead_runs(instance, home)
    assert held(instance) == 0
    assert end_dead_runs(instance, home) == [run.run_id]


def test_a_run_that_has_ended_holds_no_slot_once_its_process_is_gone(instance: dg.DagsterInstance, home: Path) -> None:
    run = begun(instance)
    with alive(home, run.run_id):
        instance.report_run_failed(run)
        end_dead_runs(instance, home)
        assert held(instance) == 1
    assert end_dead_runs(instance, home) == []
    assert held(instance) == 0


def test_a_run_whose_process_lives_is_left_alone(instance: dg.DagsterInstance, home: Path) -> None:
    run = begun(instance)
    with alive(home, run.run_id):
        assert end_dead_runs(instance, home) == []
        assert status_of(instance, run) is dg.DagsterRunStatus.STARTED
        assert held(instance) == 1
    assert shown(home) == set()


def test_a_run_that_never_showed_its_process_is_given_its_time(
    instance: dg.DagsterInstance, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = begun(instance)
    assert end_dead_runs(instance, home) == []
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + 60)
    assert end_dead_runs(instance, home) == [run.run_id]


def test_a_run_that_was_being_cancelled_ends_as_cancelled(instance: dg.DagsterInstance, home: Path) -> None:
    run = begun(instance)
    instance.report_run_canceling(run)
    (home / "running").mkdir()
    (home / "running" / f"{run.run_id}.lock").touch()
    with dg.build_sensor_context(instance=instance) as context:
        told = stuck_runs(context)
    assert run.run_id in str(told.skip_message)
    assert status_of(instance, run) is dg.DagsterRunStatus.CANCELED


def test_the_daemon_is_told_of_a_process_that_is_gone(instance: dg.DagsterInstance, home: Path) -> None:
    """Its monitor asks the launcher, also where no code server is left that could run a sensor."""
    run, launcher = begun(instance), instance.run_launcher
    assert launcher.supports_check_run_worker_health
    with alive(home, run.run_id):
        assert launcher.check_run_worker_health(run).status is WorkerStatus.RUNNING
    (home / "running" / f"{run.run_id}.lock").touch()
    assert launcher.check_run_worker_health(run).status is WorkerStatus.FAILED
    assert status_of(instance, run) is dg.DagsterRunStatus.FAILURE
    assert held(instance) == 0


class _EndsTheRun(progress.Listener):
    """Somebody who ends the run on its page as soon as a stage has begun."""

    def __init__(self, instance: dg.DagsterInstance) -> None:
        self._instance = instance

    def started(self, stage: str, month: str) -> None:
        for run in self._instance.get_runs(dg.RunsFilter(statuses=[dg.DagsterRunStatus.STARTED])):
            self._instance.report_run_canceled(run)


def test_a_run_that_was_ended_by_others_puts_nothing_in_place(
    empty: Place, instance: dg.DagsterInstance, home: Path
) -> None:
    workspace = empty.workspace()
    with progress.listening(_EndsTheRun(instance)):
        result = run_in_process([stage_named("dump_members")], MONTHS[0], home)
    assert not result.succeeded
    assert not workspace.root.file(DUMP_MEMBERS, MONTHS[0]).exists()
    assert "was ended from outside (canceled)" in str(read_failure(workspace, "dump_members", MONTHS[0]))
    assert run_in_process([stage_named("dump_members")], MONTHS[0], home).succeeded


@pytest.mark.slow
def test_a_run_goes_on_whose_pool_is_held_by_one_that_is_killed_while_it_waits(own: Place) -> None:
    with own.entered():
        home = dagster_home(own.workspace())
        with dg.DagsterInstance.from_config(str(home)) as instance:
            holder = begun(instance)
            with alive(home, holder.run_id):
                waiting = waits_for_the_pool(own)
            (home / "running" / f"{holder.run_id}.lock").touch()
            said = waiting.communicate(timeout=120)[1]
            assert waiting.returncode == 0, said
            assert status_of(instance, holder) is dg.DagsterRunStatus.FAILURE


@pytest.mark.slow
def test_a_run_that_waits_for_a_pool_takes_no_core_and_ends_when_asked(own: Place) -> None:
    with own.entered():
        home = dagster_home(own.workspace())
        with dg.DagsterInstance.from_config(str(home)) as instance:
            holder = begun(instance)
            with alive(home, holder.run_id):
                waiting = waits_for_the_pool(own)
                wait_until(lambda: instance.event_log_storage.get_concurrency_info(POOL).pending_step_count == 1)
                before = processor_seconds(waiting.pid)
                time.sleep(3)
                assert processor_seconds(waiting.pid) - before < 1.5
                waiting.send_signal(signal.SIGTERM)
                assert waiting.wait(60) == 130
            assert instance.event_log_storage.get_concurrency_info(POOL).pending_step_count == 0
            others = instance.get_runs(dg.RunsFilter(statuses=[dg.DagsterRunStatus.STARTED]))
            assert [run.run_id for run in others] == [holder.run_id]
