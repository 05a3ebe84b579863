"""Runs of Dagster whose process is gone are failed, so that their pools' slots become free; others
are left alone.
"""

import os
import subprocess
import sys
import time

import dagster as dg
import pytest

from resources.dead_runs import dead_runs
from sensors.stuck_runs import stuck_runs
from tests.processes import end_with_tests

WAITING_RUN = """
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


@pytest.fixture
def instance(empty):
    with empty.dagster() as found:
        yield found


@pytest.fixture
def process(instance):
    """A process in the middle of the only step of a run of that instance, to be killed there."""
    command = [sys.executable, "-c", WAITING_RUN, os.environ["DAGSTER_HOME"]]
    started = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    end_with_tests(started)
    try:
        assert any(line == "waiting\n" for line in started.stdout)
        yield started
    finally:
        started.kill()
        started.communicate()


def status_of(instance, run):
    found = instance.get_run_by_id(run.run_id)
    return found.status


def evaluate_sensor(instance):
    """What the sensor says it did."""
    with dg.build_sensor_context(instance=instance) as context:
        answer = stuck_runs(context)
    assert isinstance(answer, dg.SkipReason)
    return answer.skip_message or ""


def test_a_run_whose_process_lives_is_left_alone_and_one_whose_process_is_gone_fails(
    instance, process
):
    (run,) = instance.get_runs()
    assert dead_runs(instance) == []
    evaluate_sensor(instance)
    assert status_of(instance, run) is dg.DagsterRunStatus.STARTED
    process.kill()
    process.wait()
    assert [dead.run_id for dead in dead_runs(instance)] == [run.run_id]
    pools = instance.event_log_storage
    pools.claim_concurrency_slot("llm", run.run_id, "summaries")
    assert run.run_id in evaluate_sensor(instance)
    assert not pools.get_concurrency_info("llm").active_run_ids
    assert status_of(instance, run) is dg.DagsterRunStatus.FAILURE
    assert dead_runs(instance) == []


def test_a_run_that_was_being_cancelled_ends_as_cancelled(instance, process):
    (run,) = instance.get_runs()
    instance.report_run_canceling(run)
    process.kill()
    process.wait()
    evaluate_sensor(instance)
    assert status_of(instance, run) is dg.DagsterRunStatus.CANCELED


def test_a_process_number_that_a_younger_process_has_is_that_of_one_that_is_gone(instance, process):
    (run,) = instance.get_runs()
    events = instance.all_logs(run.run_id, of_type=dg.DagsterEventType.ENGINE_EVENT)
    event = next(
        entry for entry in events if entry.dagster_event and "pid" in entry.dagster_event.message
    )
    older = instance.create_run_for_job(
        dg.job(name="older")(lambda: None), status=dg.DagsterRunStatus.STARTED
    )
    instance.store_event(event._replace(run_id=older.run_id, timestamp=time.time() - 3600))
    assert [dead.run_id for dead in dead_runs(instance)] == [older.run_id]


def test_a_run_whose_events_name_no_process_yet_is_left_to_run_monitoring(instance):
    run = instance.create_run_for_job(
        dg.job(name="new")(lambda: None), status=dg.DagsterRunStatus.STARTING
    )
    assert dead_runs(instance) == []
    assert status_of(instance, run) is dg.DagsterRunStatus.STARTING
