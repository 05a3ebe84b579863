"""Parts of the months: how they are divided and held, and processes of which one is killed; and the loop
over months, of which one that cannot be read fails alone.
"""

import json
from collections import Counter
from itertools import product

import pytest

from pipeline.engine.failures import check_name, record_failure
from pipeline.engine.finish import ALL_MONTHS
from pipeline.engine.locks import month_lease
from pipeline.engine.progress import Notice, listening
from pipeline.engine.stage import Stage
from pipeline.errors import MissingInput, SettingError
from pipeline.ops.preflight import check_part
from pipeline.ops.run_months import divide_months, run_months, run_part
from pipeline.stages import choose_stages
from pipeline.tables import KEY_ELEMENTS
from tests.fake_clock import FakeClock
from tests.object_store import BUCKET, ObjectStore
from tests.processes import end_with_tests, start_python
from tests.small_months import write_small_months
from tests.workspaces import changed, make_workspace

MONTHS = [f"2023-{number:02}" for number in range(1, 9)]
MONTH = MONTHS[0]
UNTIL = "embeddings"
STAGES = [stage.name for stage in choose_stages(UNTIL)]
# Runs a part; before the papers of its first month it says so and waits for a line.
RUN = """
import json, sys
from pipeline.engine.progress import StageStarted, listening
from pipeline.engine.stage import Workspace
from pipeline.ops.run_months import run_part
from pipeline.settings import load_settings
from pipeline.stages import choose_stages

settings, months, until, part, lease_seconds = json.loads(sys.argv[1])
workspace = Workspace(load_settings(_env_file=None, **settings))
waited = []

def wait(event):
    if isinstance(event, StageStarted) and event.stage == "papers" and not waited:
        waited.append(event.month)
        print(event.month, flush=True)
        sys.stdin.readline()

with listening(wait):
    report = run_part(
        workspace, months, choose_stages(until), part, lease_seconds=lease_seconds
    )
computed = [(outcome.month, outcome.stage) for outcome in report.outcomes if not outcome.skipped]
print(json.dumps([computed, report.failures]))
"""


@pytest.fixture
def small(tmp_path):
    """The settings of a dump of small months."""
    return write_small_months(tmp_path / "dump", MONTHS) | {"arxiv_api": False, "workers": 1}


@pytest.fixture
def workspace(tmp_path, small):
    return make_workspace(tmp_path / "data", **small)


def start(settings, part, lease_seconds):
    """A process that runs a part."""
    order = json.dumps([settings, MONTHS, UNTIL, part, lease_seconds])
    process = start_python(RUN, order)
    end_with_tests(process)
    return process


def digests(workspace):
    """The digest of the rows of every stage's month."""
    return {
        (month, stage.name): workspace.root.provenance(stage.table, month).rows_sha256
        for month, stage in product(MONTHS, choose_stages(UNTIL))
    }


@pytest.mark.slow
def test_of_four_machines_one_is_killed_and_the_others_run_its_months_each_once(
    tmp_path, small, workspace
):
    """Each has a folder for locks of its own, as a machine has; the lease of the one that is killed
    runs out at once.
    """
    processes = [
        start(
            {**small, "data": str(workspace.root.path), "local": str(tmp_path / f"local{number}")},
            [number, 4],
            0.0 if number == 2 else 1e6,
        )
        for number in (1, 2, 3, 4)
    ]
    at_work = [process.stdout.readline().strip() for process in processes]
    assert at_work == [part[0] for part in divide_months(workspace, MONTHS, 4)]
    killed = processes.pop(1)
    killed.kill()
    killed.communicate()
    ends = [json.loads(process.communicate("\n")[0]) for process in processes]
    assert [failures for _, failures in ends] == [[], [], []]
    computed = Counter(tuple(step) for steps, _ in ends for step in steps)
    assert set(computed.values()) == {1}
    # What the killed one had done.
    before = {(at_work[1], stage) for stage in ("pages", "dump_members", "metadata")}
    assert set(product(MONTHS, STAGES)) - set(computed) == before
    calm = make_workspace(tmp_path / "calm", **small)
    assert run_months(calm, MONTHS, choose_stages(UNTIL)).failures == []
    assert digests(workspace) == digests(calm)
    assert list((workspace.root.path / "leases").iterdir()) == []


def test_parts_have_all_months_once_and_about_as_many_bytes(tmp_path):
    sizes = {month: number for number, month in enumerate(MONTHS, start=1)}
    dump = write_small_months(tmp_path / "dump", MONTHS, pages=sizes)
    workspace = make_workspace(tmp_path / "data", **dump)
    parts = divide_months(workspace, MONTHS, 3)
    assert sorted(month for part in parts for month in part) == MONTHS
    assert parts == [sorted(part) for part in parts]
    assert sorted(sum(sizes[month] for month in part) for part in parts) == [11, 12, 13]
    assert divide_months(workspace, reversed(MONTHS), 3) == parts
    assert [len(part) for part in divide_months(workspace, MONTHS[:2], 3)] == [1, 1, 0]


def test_references_wait_until_every_month_has_its_metadata(workspace):
    notices = []

    def listen(event):
        if isinstance(event, Notice):
            notices.append(event.message.split()[0])

    def run_second_part():
        """Months of which a part computed references while the other part's month is at work."""
        with month_lease(changed(workspace, local=workspace.local / "other"), other[0]) as holder:
            assert holder == ""
            with listening(listen):
                report = run_part(workspace, MONTHS[:2], choose_stages("references"), (2, 2))
        assert {outcome.month for outcome in report.outcomes} <= set(own)
        return [outcome.month for outcome in report.outcomes if outcome.stage == "references"]

    other, own = divide_months(workspace, MONTHS[:2], 2)
    assert run_second_part() == []
    assert notices[:2] == [other[0], "references"]
    run_months(workspace, other, choose_stages("metadata"))
    assert run_second_part() == own


@pytest.mark.parametrize("store", [False, True], ids=["disk", "store"])
def test_a_lease_holds_until_it_runs_out_or_is_released(tmp_path, monkeypatch, store):
    clock = FakeClock()
    with ObjectStore() as objects:
        for name, value in objects.variables.items():
            monkeypatch.setenv(name, value)
        data = f"s3://{BUCKET}/root" if store else tmp_path / "data"
        one, other = (make_workspace(data, local=tmp_path / name) for name in ("one", "other"))
        with month_lease(one, MONTH, 60.0, clock) as holder:
            assert holder == ""
            with month_lease(other, MONTH, 60.0, clock) as holder:
                assert MONTH in holder
            clock.time += 61
            with month_lease(other, MONTH, 60.0, clock) as holder:
                assert holder == ""
                with month_lease(one, MONTH, 60.0, clock) as holder:
                    assert MONTH in holder
        with month_lease(one, MONTH, 60.0, clock) as holder:
            assert holder == ""


def test_a_lease_whose_holder_on_this_machine_is_gone_is_taken_over_at_once(tmp_path):
    workspace = make_workspace(tmp_path)
    file = workspace.root.path / "leases" / f"{MONTH}.json"
    with month_lease(workspace, MONTH):
        left_behind = file.read_bytes()
    file.write_bytes(left_behind)
    with month_lease(workspace, MONTH) as holder:
        assert holder == ""


def test_what_is_of_all_months_is_refused_in_parts(workspace):
    for until in ("index", None):
        with pytest.raises(SettingError):
            check_part(workspace.settings, choose_stages(until))
    check_part(workspace.settings, choose_stages(UNTIL))
    server = changed(workspace, qdrant_url="http://127.0.0.1:9")
    check_part(server.settings, choose_stages("index"))


SOME = MONTHS[:3]


class Finishing(Stage):
    """A stage without rows that counts the calls of `finish`, which fail while there is an error."""

    table = KEY_ELEMENTS

    def __init__(self):
        self.calls = 0
        self.error = None

    def build(self, job):
        return ()

    def finish(self, workspace):
        self.calls += 1
        if self.error is not None:
            raise self.error


def test_a_month_whose_status_the_store_does_not_give_fails_and_the_others_go_on(
    tmp_path, monkeypatch
):
    stage = Finishing()
    with ObjectStore() as store:
        for name, value in (store.variables | {"AWS_MAX_ATTEMPTS": "1"}).items():
            monkeypatch.setenv(name, value)
        workspace = make_workspace(f"s3://{BUCKET}/root", local=tmp_path)
        record_failure(
            workspace, check_name(stage.name), SOME[1], MissingInput("an earlier failure")
        )
        refused = f"/root/failures/{check_name(stage.name)}-{SOME[1]}.json"
        store.before = lambda method, path, query: method == "GET" and path.endswith(refused)
        report = run_months(workspace, SOME, [stage])
        assert [(stage_name, month) for stage_name, month, _ in report.failures] == [
            ("run", SOME[1])
        ]
        assert "cannot be reached" in report.failures[0][2]
        assert [outcome.month for outcome in report.outcomes] == [SOME[0], SOME[2]]
        assert report.exit_code == 1
        assert f"run-{SOME[1]}.json" in store.objects("root/failures/")
        store.before = lambda method, path, query: None
        assert run_months(workspace, SOME, [stage]).failures == []
        assert f"run-{SOME[1]}.json" not in store.objects("root/failures/")


def test_a_stage_is_finished_once_after_its_months_and_not_where_none_was_computed(tmp_path):
    workspace = make_workspace(tmp_path)
    stage = Finishing()
    run_months(workspace, SOME, [stage])
    assert stage.calls == 1
    run_months(workspace, SOME, [stage])
    assert stage.calls == 1


def test_a_finish_that_failed_or_was_left_out_is_made_up_for_by_the_next_command(tmp_path):
    workspace = make_workspace(tmp_path)
    stage = Finishing()
    stage.error = MissingInput("no room")
    run_months(workspace, SOME, [stage], finish=False)
    assert stage.calls == 0
    report = run_months(workspace, SOME, [stage])
    assert report.failures == [(stage.name, ALL_MONTHS, "no room")]
    stage.error = None
    assert run_months(workspace, [], [stage]).failures == []
    assert run_months(workspace, [], [stage]).failures == []
    assert stage.calls == 2
