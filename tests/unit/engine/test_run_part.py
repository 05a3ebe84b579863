"""Parts of the months: how they are divided and held, and processes of which one is killed."""

import json
import subprocess
import sys
from collections import Counter
from itertools import product
from pathlib import Path

import pytest

from pipeline.engine.locks import month_lease
from pipeline.engine.progress import Notice, listening
from pipeline.errors import SettingError
from pipeline.ops.preflight import check_part
from pipeline.ops.run_months import divide_months, run_months, run_part
from pipeline.stages import choose_stages
from pipeline.storage.provenance import read_provenance
from tests.fake_clock import FakeClock
from tests.object_store import BUCKET, ObjectStore
from tests.processes import end_with_tests
from tests.small_months import write_small_months
from tests.workspaces import changed, make_workspace

PROJECT = Path(__file__).resolve().parents[3]
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

order = json.loads(sys.argv[1])
workspace = Workspace(load_settings(_env_file=None, **order["settings"]))
waited = []

def wait(event):
    if isinstance(event, StageStarted) and event.stage == "papers" and not waited:
        waited.append(event.month)
        print(event.month, flush=True)
        sys.stdin.readline()

with listening(wait):
    report = run_part(
        workspace, order["months"], choose_stages(order["until"]), order["part"],
        lease_seconds=order["lease_seconds"],
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
    order = {
        "settings": settings,
        "months": MONTHS,
        "until": UNTIL,
        "part": part,
        "lease_seconds": lease_seconds,
    }
    process = subprocess.Popen(
        [sys.executable, "-c", RUN, json.dumps(order)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=PROJECT,
    )
    end_with_tests(process)
    return process


def digests(workspace):
    """The digest of the rows of every stage's month."""
    files = {
        (month, stage.name): workspace.root.file(stage.table, month)
        for month, stage in product(MONTHS, choose_stages(UNTIL))
    }
    return {key: read_provenance(file).rows_sha256 for key, file in files.items()}


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
