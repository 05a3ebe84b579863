"""The checks over all months, the warnings of a month's data, and the run that finishes them."""

from dataclasses import replace
from datetime import date

import dagster as dg
import pytest

from assets.operations import (
    every_month_is_up_to_date,
    expected_month,
    index_is_fresh,
    papers_are_fresh,
)
from pipeline import tables
from pipeline.corpus.stages import most_pages_are_read_whole
from pipeline.definitions import build_defs, defs
from pipeline.engine.failures import RUN, record_failure
from pipeline.engine.finish import mark_unfinished
from pipeline.engine.run import run_stage
from pipeline.errors import PermanentFailure, TransientFailure
from pipeline.stages import choose_stages
from pipeline.storage.provenance import read_provenance
from pipeline.storage.writing import MonthWriter
from sensors.months import computed_months
from tests.assets.conftest import MONTHS
from tests.definitions import load_definitions

BAD = "2024-04"
(REPORT,) = choose_stages(select=["report"])


def evaluated(check, place):
    """Whether a check over all months passes, and its metadata; where it does not, it warns."""
    with place.entered():
        found = check(place.workspace())
    assert found.severity is dg.AssetCheckSeverity.WARN
    return found.passed, {name: value.value for name, value in found.metadata.items()}


def finish_months(instance, workspace, *, make=build_defs):
    """Run the job that finishes the months."""
    made = make(workspace=dg.ResourceDefinition.hardcoded_resource(workspace))
    job = made.resolve_job_def("finish_months")
    return job.execute_in_process(instance=instance, raise_on_error=False)


def test_the_newest_month_has_a_deadline_where_the_settings_give_one(place):
    late = place.with_settings(fresh_days=1)
    for check in (papers_are_fresh, index_is_fresh):
        assert evaluated(check, place) == (True, {"newest": "2024-05", "expected": "none"})
        passed, facts = evaluated(check, late)
        assert (passed, facts["newest"]) == (False, "2024-05")


def test_months_to_repair_are_named_with_what_mends_them(own):
    with own.entered():
        workspace = own.workspace()
        failure = PermanentFailure("scores of | <b>x</b> are broken: mend them")
        record_failure(workspace, "scores", BAD, failure)
        # Another run has cleared the failure.
        assert evaluated(every_month_is_up_to_date, own) == (
            True,
            {"months": 3, "failed": 0, "stale": 0},
        )
        record_failure(workspace, RUN, BAD, TransientFailure("the store does not answer"))
        workspace.root.file(tables.SCORES, BAD).unlink()
        workspace.root.file(tables.SCORES, MONTHS[0]).write_bytes(b"damaged")
        other = own.with_settings(categories="cs.IR").workspace()
        run_stage(choose_stages(select=["papers"])[0], other, MONTHS[2])
    passed, facts = evaluated(every_month_is_up_to_date, own)
    assert (passed, facts["failed"], facts["stale"]) == (False, 2, 1)
    table, commands, _ = facts["to_repair"].split("```")
    assert [line.partition(",")[0] for line in commands.split("\n")[1:-1]] == [
        f"citeloom run --months {MONTHS[0]} --select scores",
        f"citeloom run --failed --months {BAD}",
        f"citeloom run --months {MONTHS[2]} --select papers",
    ]
    assert "fix the cause first" in table
    assert "the store does not answer" in table
    assert "<b>" not in table


def test_what_the_checks_found_is_found_again_by_whoever_materializes_the_months(own):
    """A materialization without an evaluation would hide the last one."""
    check = dg.AssetCheckKey(dg.AssetKey("months"), "every_month_is_up_to_date")
    with own.dagster() as instance:
        workspace = own.workspace()
        record_failure(workspace, RUN, BAD, PermanentFailure("x"))
        own.run_months([REPORT], [MONTHS[0]], force=True)
        mark_unfinished(workspace, REPORT)
        finish_months(instance, workspace, make=load_definitions)
        found = instance.event_log_storage.get_asset_check_execution_history(check, limit=2)
        made = instance.fetch_materializations(dg.AssetKey("months"), limit=2).records
    assert [record.status.value for record in found] == ["FAILED", "FAILED"]
    for evaluation, materialization in zip(found, made, strict=True):
        assert evaluation.event.timestamp >= materialization.timestamp


def test_months_that_were_never_run_are_no_fault_and_a_missing_dump_is_told(empty):
    passed, facts = evaluated(every_month_is_up_to_date, empty)
    assert (passed, facts["months"]) == (True, 3)
    lost = empty.with_settings(dump_dir=empty.root / "nowhere")
    passed, facts = evaluated(every_month_is_up_to_date, lost)
    assert (passed, "nowhere" in facts["dump"]) == (False, True)


def test_a_month_is_expected_so_many_days_after_its_end():
    assert expected_month(date(2026, 1, 1), 0) == ""
    days = (date(2024, 6, 20), date(2024, 6, 21), date(2024, 7, 21))
    assert [expected_month(today, 20) for today in days] == ["2024-04", "2024-05", "2024-06"]


def test_the_checks_over_all_months_are_no_part_of_a_months_run():
    nodes = {node.name for node in defs.resolve_job_def("refresh_corpus").nodes}
    assert not [name for name in nodes if name.startswith("months_")]
    assert "papers_most_pages_are_read_whole" in nodes


def test_a_month_of_twenty_pages_that_break_off_is_outside_the_bounds_which_warns(own):
    root = own.workspace().root
    file = root.file(tables.PAPERS, BAD)
    written, rows = read_provenance(file), root.rows(tables.PAPERS, BAD)

    def write(cut_off):
        with MonthWriter(tables.PAPERS, file) as writer:
            for row in cut_off:
                writer.add(row | {"truncated": True})
            writer.commit(replace(written, notes=written.notes | {"cut_off": len(cut_off)}))

    write(rows)
    result = own.run_in_dagster(["papers"], BAD)
    checks = {check.check_name: check for check in result.get_asset_check_evaluations()}
    found = checks["most_pages_are_read_whole"]
    assert (len(rows) < 20, found.passed) == (True, True)
    assert found.severity is dg.AssetCheckSeverity.WARN
    assert found.metadata["cut_off"].value == pytest.approx(1.0)
    write(rows * 3)
    outside = most_pages_are_read_whole(own.workspace(), BAD)
    assert not outside.passed
    assert "papers that break off 100% (at most 20%): citeloom status" in outside.description


def test_months_are_finished_by_one_run_once_no_more_are_computed(empty):
    with empty.entered(), dg.DagsterInstance.ephemeral() as instance:
        workspace = empty.workspace()
        resources = {"workspace": workspace}
        context = dg.build_sensor_context(instance=instance, resources=resources)

        def key():
            answer = computed_months(context)
            return answer.run_key if isinstance(answer, dg.RunRequest) else None

        assert key() is None
        mark_unfinished(workspace, REPORT)
        assert key() is None
        first = key()
        assert first == key() is not None  # Dagster starts one run for a key
        done = finish_months(instance, workspace)
        assert key() is None
    (made,) = done.asset_materializations_for_node("months")
    assert made.metadata["finished"].value == "report"


def test_an_overall_page_that_cannot_be_written_fails_the_run_in_words(empty):
    page = empty.root / "reports" / "index.html"
    page.mkdir(parents=True)
    with empty.entered(), dg.DagsterInstance.ephemeral() as instance:
        mark_unfinished(empty.workspace(), REPORT)
        done = finish_months(instance, empty.workspace())
    (failed,) = [event for event in done.all_events if event.is_step_failure]
    assert str(page) in failed.step_failure_data.user_failure_data.description
