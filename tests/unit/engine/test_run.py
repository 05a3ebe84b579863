"""How a stage runs: once, again, after a change, after a failure, and beside another run; what is
recorded of failures and of the time it takes, and told meanwhile.
"""

import errno
import threading
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pytest

from pipeline import errors
from pipeline.engine.checks import run_checks
from pipeline.engine.failures import all_failures, read_failure, record_failure
from pipeline.engine.progress import (
    StageAdvanced,
    StageFailed,
    StageFinished,
    StageStarted,
    listening,
)
from pipeline.engine.run import State, run_stage, state
from pipeline.engine.run_stats import StageTiming, note_timing, read_timings
from pipeline.engine.stage import CheckResult, MonthCheck, Stage
from pipeline.errors import MissingInput, PermanentFailure, TransientFailure
from pipeline.stages import lookup_stage
from pipeline.storage.data_root import DataRoot
from pipeline.tables import DUMP_MEMBERS, REPORT
from tests.cases import cases_beside
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
    assert read_failure(workspace, "dump_members", MONTH).startswith("the zip broke")
    assert workspace.root.rows(DUMP_MEMBERS, MONTH)[0]["arxiv_id"] == "2403.1"
    run_stage(good, workspace, MONTH)
    assert read_failure(workspace, "dump_members", MONTH) is None


def test_listeners_receive_the_events_of_the_block(workspace):
    events = []
    with listening(events.append):
        rows = map(member, map(str, range(100)))
        outcome = run_stage(make(building(*rows)), workspace, MONTH)
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

    run_stage(make(building(*map(member, "123"))), workspace, MONTH)
    by_rows = workspace.root.provenance(DUMP_MEMBERS, MONTH)
    run_stage(make(build, version=2), workspace, MONTH)
    mixed = workspace.root.provenance(DUMP_MEMBERS, MONTH)
    assert by_rows.rows == mixed.rows == 3
    assert by_rows.rows_sha256 == mixed.rows_sha256


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


@cases_beside("name", "stage", "error", "message", "kind")
def test_a_failure_says_whether_a_rerun_can_clear_it(workspace, name, stage, error, message, kind):
    record_failure(workspace, name, "2024-03", getattr(errors, error, IndexError)(message))
    (failure,) = all_failures(workspace.root)
    assert kind in failure.kind
    assert (failure.stage, failure.stage_name, failure.month) == (name, stage, "2024-03")
    assert message in failure.message


def test_a_failure_of_a_stage_that_no_longer_exists_is_not_listed(workspace):
    record_failure(workspace, "question_drafts", "2024-03", PermanentFailure("x"))
    assert all_failures(workspace.root) == []


def test_a_damaged_note_is_listed_all_the_same(workspace):
    record_failure(workspace, "papers", "2024-03", PermanentFailure("x"))
    (workspace.root.path / "failures" / "papers-2024-03.json").write_bytes(b"[1")
    (failure,) = all_failures(workspace.root)
    assert "is damaged" in failure.message


def test_a_check_that_could_not_be_evaluated_is_no_failure_once_it_passes(workspace):
    record_failure(workspace, "check-index_receipts", "2024-03", TransientFailure("x"))
    check = MonthCheck(lambda workspace, month: CheckResult(True, {}), warning=True)
    stage = altered(lookup_stage("index_receipts"), checks=(check,))
    assert run_checks(stage, workspace, "2024-03")
    assert list(all_failures(workspace.root)) == []


def test_the_last_twenty_runs_with_the_same_inputs_are_kept(tmp_path):
    root = DataRoot(tmp_path)
    note_timing(root, "scores", "2024-03", StageTiming("other", 1.0, {}))
    runs = [StageTiming("a", float(number), {"llm_calls": number}) for number in range(25)]
    for run in runs:
        note_timing(root, "scores", "2024-03", run)
    note_timing(root, "scores", "2024-04", runs[0])
    assert read_timings(root, "scores", "2024-03") == runs[5:]
    note_timing(root, "scores", "2024-03", StageTiming("b", 2.0, {}))
    assert read_timings(root, "scores", "2024-03") == [StageTiming("b", 2.0, {})]


def test_a_file_that_cannot_be_read_counts_for_nothing(tmp_path):
    file = tmp_path / "timings" / "scores" / "2024-03.json"
    file.parent.mkdir(parents=True)
    for damage in ("{", "[3]", '[{"seconds": "long"}]'):
        file.write_text(damage)
        assert read_timings(DataRoot(tmp_path), "scores", "2024-03") == []
