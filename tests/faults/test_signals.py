"""SIGTERM, which drains; parents that are killed; a machine that goes down with a run under way."""

import os
import random
import signal
import time
from collections import Counter
from contextlib import suppress

import dagster as dg
import psutil
import pytest

from tests.faults.accounts import Watch, count_wrong
from tests.processes import ask_graphql, family, is_alive, wait_until
from tests.scripted_llm import ScriptedLlm
from tests.ui.test_ui import start

MONTH = "2024-03"
SIGNALS = 10
# The targets: a service manager's patience, and ours with what outlives its parent, and with a run
# that shows as running or holds a pool though its process is gone. Nothing else in these tests
# depends on time.
SECONDS_TO_EXIT = 30


def test_a_run_that_is_asked_to_end_loses_no_answer(zygote, calm, make, tmp_path, seed, tell):
    chance, longest, codes = random.Random(seed), 0.0, Counter[int]()
    with ScriptedLlm(latency=0.05) as llm:
        place = make(tmp_path / "data", llm_url=llm.url)
        watch = Watch(place.root)
        for _ in range(SIGNALS):
            wanted = llm.generations + chance.randint(1, 12)
            process = zygote.start(place, [MONTH])
            wait_until(lambda: llm.generations >= wanted or not is_alive(process))  # noqa: B023
            time.sleep(chance.uniform(0, 0.1))
            asked = time.monotonic()
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGTERM)
            codes[zygote.end().code] += 1
            longest = max(longest, time.monotonic() - asked)
            watch.look()
        end = zygote.run(place, [MONTH])
        texts = llm.requested_texts()
    assert end.done, end
    wrong = count_wrong(calm, watch, MONTH)
    wrong["answers_asked_twice"] = texts.total() - len(texts)
    tell(signals=SIGNALS, codes=dict(codes), longest_seconds=round(longest, 1), **wrong)
    assert codes.keys() <= {0, 130}
    assert codes[130] > 0
    assert longest < SECONDS_TO_EXIT
    assert not any(wrong.values())


def _in_an_answer(place, llm):
    """A run that waits for an answer that takes longer than it may."""
    process = place.start("run", "--months", MONTH, "--until", "key_elements")
    wait_until(lambda: llm.requests)
    return process


def test_a_stage_that_does_not_end_is_ended(make, tmp_path, tell):
    with ScriptedLlm(latency=600) as llm:
        process = _in_an_answer(make(tmp_path / "data", llm_url=llm.url), llm)
        asked = time.monotonic()
        process.send_signal(signal.SIGTERM)
        code = process.wait()
        seconds = time.monotonic() - asked
    tell(code=code, seconds=round(seconds, 1))
    assert code == 130
    assert seconds < SECONDS_TO_EXIT


def test_a_second_signal_ends_it_at_once(make, tmp_path):
    with ScriptedLlm(latency=600) as llm:
        process = _in_an_answer(make(tmp_path / "data", llm_url=llm.url), llm)
        process.send_signal(signal.SIGTERM)
        assert any("asked to end" in line for line in process.stderr)
        process.send_signal(signal.SIGTERM)
        assert process.wait() == 128 + signal.SIGTERM


@pytest.fixture
def slow(make, tmp_path):
    """A place whose model takes so long that a run stays in the middle of its first answer."""
    with ScriptedLlm(latency=600) as llm:
        yield make(tmp_path / "data", llm_url=llm.url)


def launch(ui):
    """Launch a run of the month; its id."""
    selector = {
        "repositoryLocationName": "citeloom",
        "repositoryName": "__repository__",
        "jobName": "refresh_corpus",
    }
    launched = ask_graphql(
        ui.url,
        "mutation ($p: ExecutionParams!) { launchRun(executionParams: $p) { __typename "
        "... on LaunchRunSuccess { run { runId } } ... on PythonError { message } } }",
        p={
            "selector": selector,
            "mode": "default",
            "runConfigData": {},
            "executionMetadata": {"tags": [{"key": "dagster/partition", "value": MONTH}]},
        },
    )["launchRun"]
    assert "run" in launched, launched
    return str(launched["run"]["runId"])


def has_let_go(ui, run):
    """Whether Dagster's store has a run as ended, and no slot of a pool as taken."""
    with dg.DagsterInstance.from_config(str(ui.root / "dagster")) as instance:
        status = instance.get_run_by_id(run).status
        return status.value in ("FAILURE", "CANCELED") and not slots_taken(instance)


def slots_taken(instance):
    events = instance.event_log_storage
    pools = events.get_concurrency_keys()
    return sum(events.get_concurrency_info(pool).active_slot_count for pool in pools)


def crash(ui):
    """End every process of it at once, as the machine's end does."""
    for process in family(ui.process.pid) if is_alive(ui.process.pid) else ():
        with suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)
    ui.process.wait()


def process_of(ui, run):
    """The process that works on a run, once it asks the model."""

    def asks():
        with dg.DagsterInstance.from_config(str(ui.root / "dagster")) as instance:
            tasks = ui.root / "related_work_tasks" / f"{MONTH}.parquet"
            return tasks.exists() and slots_taken(instance)

    wait_until(asks)
    return int(wait_until(lambda: said_on_start(ui, run)).split("pid: ")[1].split(")")[0])


def said_on_start(ui, run):
    events = ask_graphql(
        ui.url,
        "query ($id: ID!) { logsForRun(runId: $id) "
        "{ ... on EventConnection { events { ... on MessageEvent { message } } } } }",
        id=run,
    )["logsForRun"]["events"]
    messages = [event.get("message", "") for event in events]
    return next((said for said in messages if said.startswith("Started process for run")), "")


def test_a_run_ends_with_the_server_that_started_it_and_a_crash_leaves_none_stuck(slow, tell):
    ui = start(slow)
    try:
        run = launch(ui)
        process = process_of(ui, run)
        os.kill(psutil.Process(process).ppid(), signal.SIGKILL)
        killed = time.monotonic()
        wait_until(lambda: not is_alive(process))
        as_orphan = time.monotonic() - killed
        wait_until(lambda: has_let_go(ui, run))
        as_stuck = time.monotonic() - killed
    finally:
        crash(ui)
    again = start(slow)
    try:
        second = launch(again)
        process_of(again, second)
    finally:
        crash(again)
    started = time.monotonic()
    third = start(slow)
    try:
        wait_until(lambda: has_let_go(third, second))
        after_crash = time.monotonic() - started
    finally:
        crash(third)
    tell(
        seconds_as_orphan=round(as_orphan, 2),
        seconds_stuck=round(as_stuck, 1),
        seconds_stuck_after_crash=round(after_crash, 1),
    )
