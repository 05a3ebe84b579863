"""SIGTERM, which drains; parents that are killed; a machine that goes down with a run under way."""

import os
import random
import signal
import subprocess
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass

import dagster as dg
import psutil
import pytest

from tests.assets.conftest import Place
from tests.faults.accounts import Watch, compare
from tests.processes import ask_graphql, family, free_port, is_alive, wait_until
from tests.scripted_llm import ScriptedLlm

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
        twice = texts.total() - len(texts)
    assert end.done, end
    after = compare(calm.root, place.root)
    ours = [name for name in after.files if MONTH in name]
    tell(
        signals=SIGNALS,
        codes=dict(codes),
        longest_seconds=round(longest, 1),
        answers_asked_twice=twice,
        lost=watch.lost + len(ours),
        torn=watch.torn,
    )
    assert codes.keys() <= {0, 130}
    assert codes[130] > 0
    assert longest < SECONDS_TO_EXIT
    assert (twice, ours, watch.lost, watch.torn) == (0, [], 0, 0)


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


@dataclass(frozen=True, slots=True)
class Ui:
    """A `citeloom ui` and everything that it started."""

    place: Place
    port: int
    process: subprocess.Popen[str]

    def ask(self, query, **variables):
        """What its GraphQL answers; None while it is not up."""
        with suppress(OSError):
            return ask_graphql(f"http://127.0.0.1:{self.port}", query, **variables)
        return None

    def launch(self):
        """Launch a run of the month; its id."""
        selector = {
            "repositoryLocationName": "citeloom",
            "repositoryName": "__repository__",
            "jobName": "refresh_corpus",
        }
        wait_until(self._has_loaded_jobs)
        found = self.ask(
            "mutation ($p: ExecutionParams!) { launchRun(executionParams: $p) { __typename "
            "... on LaunchRunSuccess { run { runId } } ... on PythonError { message } } }",
            p={
                "selector": selector,
                "mode": "default",
                "runConfigData": {},
                "executionMetadata": {"tags": [{"key": "dagster/partition", "value": MONTH}]},
            },
        )
        assert "run" in found["launchRun"], found["launchRun"]
        return str(found["launchRun"]["run"]["runId"])

    def _has_loaded_jobs(self):
        """Whether the code server answers: on a busy machine after the webserver does."""
        found = self.ask(
            "query ($r: RepositorySelector!) { repositoryOrError(repositorySelector: $r)"
            " { __typename } }",
            r={"repositoryLocationName": "citeloom", "repositoryName": "__repository__"},
        )
        return bool(found) and found["repositoryOrError"]["__typename"] == "Repository"

    def stored(self, run):
        """The status of a run in Dagster's store, also while the webserver is not up yet."""
        with dg.DagsterInstance.from_config(str(self.place.root / "dagster")) as instance:
            found = instance.get_run_by_id(run)
        return found.status.value if found else ""

    def taken(self):
        """Slots of pools that are taken, by Dagster's store too."""
        with dg.DagsterInstance.from_config(str(self.place.root / "dagster")) as instance:
            events = instance.event_log_storage
            pools = events.get_concurrency_keys()
            return sum(events.get_concurrency_info(pool).active_slot_count for pool in pools)

    def crash(self):
        """End every process of it at once, as the machine's end does."""
        for process in family(self.process.pid) if is_alive(self.process.pid) else ():
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        self.process.wait()


def open_ui(place):
    """Start `citeloom ui` on the place."""
    port = free_port()
    return Ui(place, port, place.start("ui", "--port", str(port)))


@pytest.fixture
def slow(make, tmp_path):
    """A place whose model takes so long that a run stays in the middle of its first answer."""
    with ScriptedLlm(latency=600) as llm:
        yield make(tmp_path / "data", llm_url=llm.url)


def _run_process(ui, run):
    """The process that works on a run, once it asks the model."""
    wait_until(
        lambda: (ui.place.root / "related_work_tasks" / f"{MONTH}.parquet").exists() and ui.taken()
    )
    return int(wait_until(lambda: _said_on_start(ui, run)).split("pid: ")[1].split(")")[0])


def _said_on_start(ui, run):
    events = ui.ask(
        "query ($id: ID!) { logsForRun(runId: $id) "
        "{ ... on EventConnection { events { ... on MessageEvent { message } } } } }",
        id=run,
    )["logsForRun"]["events"]
    messages = [event.get("message", "") for event in events]
    return next((said for said in messages if said.startswith("Started process for run")), "")


def test_a_run_ends_with_the_server_that_started_it_and_a_crash_leaves_none_stuck(slow, tell):
    ui = open_ui(slow)
    try:
        run = ui.launch()
        process = _run_process(ui, run)
        os.kill(psutil.Process(process).ppid(), signal.SIGKILL)
        killed = time.monotonic()
        wait_until(lambda: not is_alive(process))
        as_orphan = time.monotonic() - killed
        wait_until(lambda: ui.stored(run) in ("FAILURE", "CANCELED") and ui.taken() == 0)
        as_stuck = time.monotonic() - killed
    finally:
        ui.crash()
    again = open_ui(slow)
    try:
        second = again.launch()
        _run_process(again, second)
        again.crash()
        third = open_ui(slow)
        started = time.monotonic()
        try:
            wait_until(
                lambda: third.stored(second) in ("FAILURE", "CANCELED") and third.taken() == 0
            )
            after_crash = time.monotonic() - started
        finally:
            third.crash()
    finally:
        again.crash()
    tell(
        seconds_as_orphan=round(as_orphan, 2),
        seconds_stuck=round(as_stuck, 1),
        seconds_stuck_after_crash=round(after_crash, 1),
    )
