"""How a stage runs: once, again, after a change, after a failure, and beside another run."""

import errno
import threading
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pytest

from pipeline.engine.failures import read_failure
from pipeline.engine.progress import (
    StageAdvanced,
    StageFailed,
    StageFinished,
    StageStarted,
    listening,
)
from pipeline.engine.run import State, run_stage, state
from pipeline.engine.stage import Stage
from pipeline.errors import MissingInput, PermanentFailure, TransientFailure
from pipeline.tables import DUMP_MEMBERS, REPORT
from tests.workspaces import altered, make_workspace

MONTH = "2024-03"


def building(*rows, error=None):
    """A stage's build of these rows."""

    def build(job):
        yield from rows
        if error:
            raise error

    return build


def member(identifier):
    return {"arxiv_id": identifier, "subset": "error"}


def make(build, table=DUMP_MEMBERS, **changes):
    return altered(Stage(), table=table, build=build, **changes)


@pytest.fixture
def workspace(tmp_path):
    return make_workspace(tmp_path)


@pytest.mark.parametrize(
    "change",
    [
        {"version": 2},
        {"inputs": lambda *_: {"zip": "2"}},
        {"outputs_exist": lambda *_: False},
        {"lookups_hold": lambda *_: False},
    ],
    ids=lambda change: next(iter(change)),
)
def test_what_a_month_was_made_of_makes_it_stale_where_it_changes(workspace, change):
    stage = make(building(member("2403.1")), inputs=lambda *_: {"zip": "1"})
    run_stage(stage, workspace, MONTH)
    assert state(stage, workspace, MONTH) is State.DONE
    assert state(altered(stage, **change), workspace, MONTH) is State.STALE


def test_upstream_rows_make_a_month_stale_and_upstream_settings_do_not(workspace):
    below = make(building(), table=REPORT, upstream=(DUMP_MEMBERS,))
    run_stage(make(building(member("2403.1"))), workspace, MONTH)
    run_stage(below, workspace, MONTH)
    run_stage(make(building(member("2403.1")), version=2), workspace, MONTH)
    assert state(below, workspace, MONTH) is State.DONE
    run_stage(make(building(member("2403.2")), version=3), workspace, MONTH)
    assert state(below, workspace, MONTH) is State.STALE


def test_a_missing_upstream_is_named(workspace):
    with pytest.raises(MissingInput, match="needs dump_members"):
        run_stage(make(building(), table=REPORT, upstream=(DUMP_MEMBERS,)), workspace, MONTH)


def test_a_failure_is_kept_until_the_month_succeeds_and_leaves_what_was_there(workspace):
    good = make(building(member("2403.1")))
    run_stage(good, workspace, MONTH)
    bad = make(building(member("2403.2"), error=PermanentFailure("the zip broke")), version=2)
    with pytest.raises(PermanentFailure):
        run_stage(bad, workspace, MONTH)
    assert (
        read_failure(workspace, "dump_members", MONTH)
        == "the zip broke (permanent: fix the cause first, a retry alone fails again)"
    )
    assert workspace.root.rows(DUMP_MEMBERS, MONTH)[0]["arxiv_id"] == "2403.1"
    run_stage(good, workspace, MONTH)
    assert read_failure(workspace, "dump_members", MONTH) is None


def test_listeners_receive_the_events_of_the_block(workspace):
    events = []
    with listening(events.append):
        outcome = run_stage(make(building(*[member(str(n)) for n in range(100)])), workspace, MONTH)
        with pytest.raises(PermanentFailure):
            run_stage(make(building(error=PermanentFailure("no")), version=2), workspace, MONTH)
    run_stage(make(building()), workspace, MONTH)
    assert events == [
        StageStarted("dump_members", MONTH),
        StageAdvanced("dump_members", MONTH, 100, None),
        StageFinished(outcome),
        StageStarted("dump_members", MONTH),
        StageFailed("dump_members", MONTH, "no", exit_code=1),
    ]


def test_a_stage_may_yield_rows_and_batches(workspace):
    def build(job):
        job.expect(3)
        yield member("1")
        yield pa.RecordBatch.from_pylist([member("2"), member("3")], schema=DUMP_MEMBERS.schema)

    by_rows = run_stage(make(building(*[member(str(n)) for n in (1, 2, 3)])), workspace, MONTH)
    provenance = workspace.root.provenance(DUMP_MEMBERS, MONTH)
    mixed = run_stage(make(build, version=2), workspace, MONTH)
    again = workspace.root.provenance(DUMP_MEMBERS, MONTH)
    assert by_rows.rows == mixed.rows == 3
    assert provenance.rows_sha256 == again.rows_sha256


def test_rows_that_cannot_be_written_end_what_makes_them(workspace):
    ended = []

    def build(job):
        try:
            yield {"no such column": 1}
        finally:
            ended.append(job.month)

    with pytest.raises(KeyError):
        run_stage(make(build), workspace, MONTH)
    assert ended == [MONTH]


def test_two_runs_of_one_month_at_once_compute_it_once(workspace):
    def build(job):
        begun.wait()
        yield member("2403.1")

    begun = threading.Event()
    with ThreadPoolExecutor() as threads:
        runs = [threads.submit(run_stage, make(build), workspace, MONTH) for _ in range(2)]
        begun.set()
        assert sorted(run.result().skipped for run in runs) == [False, True]


def test_a_full_disk_is_named_with_its_folder(workspace):
    bad = make(building(error=OSError(errno.ENOSPC, "Error writing bytes to file")))
    with pytest.raises(TransientFailure, match=f"the disk of {workspace.local} is full"):
        run_stage(bad, workspace, MONTH)
    assert "make room there" in str(read_failure(workspace, "dump_members", MONTH))
