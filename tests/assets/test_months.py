"""The checks over all months, the warnings of a month's data, and the run that finishes them."""

from dataclasses import replace
from datetime import date

import dagster as dg
import pytest

from assets.operations import expected_month
from pipeline import tables
from pipeline.corpus import stages as corpus_stages
from pipeline.definitions import build_defs, defs
from pipeline.engine.failures import record_failure
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


def check_months(place):
    """What the job of the checks over all months finds: name of the check → its evaluation."""
    with place.entered(), dg.DagsterInstance.ephemeral() as instance:
        given = build_defs(workspace=dg.ResourceDefinition.hardcoded_resource(place.workspace()))
        done = given.resolve_job_def("check_months").execute_in_process(instance=instance)
        assert done.success
        return {found.check_name: found for found in done.get_asset_check_evaluations()}


def told(found):
    return {name: value.value for name, value in found.metadata.items()}


def test_where_all_is_well_the_checks_say_so_and_without_a_deadline_no_month_is_expected(place):
    found = check_months(place)
    check = found["every_month_is_up_to_date"]
    assert (check.passed, told(check)) == (True, {"months": 3, "failed": 0, "stale": 0})
    for name in ("papers", "index_receipts"):
        check = found[f"newest_month_of_{name}_exists"]
        assert (check.passed, told(check)) == (True, {"newest": "2024-05", "expected": "none"})


def test_failed_and_stale_months_are_named_with_what_mends_them(own):
    with own.entered():
        record_failure(
            own.workspace(),
            "scores",
            BAD,
            PermanentFailure("scores of | <b>x</b> are broken: mend them"),
        )
        (own.root / "scores" / f"{BAD}.parquet").unlink()
        run_stage(
            choose_stages(select=["papers"])[0],
            own.with_settings(categories="cs.IR").workspace(),
            MONTHS[2],
        )
    found = check_months(own)["every_month_is_up_to_date"]
    facts = told(found)
    assert (found.passed, found.severity) == (False, dg.AssetCheckSeverity.WARN)
    assert found.description == f"to repair: {BAD}, {MONTHS[2]}"
    assert (facts["failed"], facts["stale"]) == (1, 1)
    assert f"citeloom run --failed --months {BAD}" in facts["to_repair"]
    assert f"citeloom run --months {MONTHS[2]} --select papers," in facts["to_repair"]
    assert "fix the cause first" in facts["to_repair"]
    assert "<b>" not in facts["to_repair"]


def test_a_failure_that_another_run_has_cleared_is_no_more_told(own):
    with own.entered():
        record_failure(own.workspace(), "scores", BAD, PermanentFailure("x"))
    assert check_months(own)["every_month_is_up_to_date"].passed


def test_what_the_checks_found_is_found_again_by_whoever_materializes_the_months(own):
    """A materialization without an evaluation would hide the last one."""
    check = dg.AssetCheckKey(dg.AssetKey("months"), "every_month_is_up_to_date")
    with own.dagster() as instance:
        record_failure(own.workspace(), "run", BAD, PermanentFailure("x"))
        own.run_months(choose_stages(select=["report"]), [MONTHS[0]], force=True)
        mark_unfinished(own.workspace(), choose_stages(select=["report"])[0])
        given = load_definitions(
            workspace=dg.ResourceDefinition.hardcoded_resource(own.workspace())
        )
        given.resolve_job_def("finish_months").execute_in_process(instance=instance)
        found = instance.event_log_storage.get_asset_check_execution_history(check, limit=2)
        made = instance.fetch_materializations(dg.AssetKey("months"), limit=2).records
    assert [record.status.value for record in found] == ["FAILED", "FAILED"]
    for evaluation, materialization in zip(found, made, strict=True):
        assert evaluation.event.timestamp >= materialization.timestamp


def test_a_month_whose_status_could_not_be_read_is_named(own):
    with own.entered():
        record_failure(own.workspace(), "run", BAD, TransientFailure("the store does not answer"))
    facts = told(check_months(own)["every_month_is_up_to_date"])
    assert facts["failed"] == 1
    assert "the store does not answer" in facts["to_repair"]


def test_a_damaged_table_without_a_recorded_failure_is_repaired_by_a_run(own):
    (own.root / "scores" / f"{BAD}.parquet").write_bytes(b"damaged")
    facts = told(check_months(own)["every_month_is_up_to_date"])
    assert facts["failed"] == 1
    assert f"citeloom run --months {BAD} --select scores," in facts["to_repair"]
    assert "--failed" not in facts["to_repair"].split("```")[1]


def test_months_that_were_never_run_are_no_fault_and_a_missing_dump_is_told(empty):
    found = check_months(empty)["every_month_is_up_to_date"]
    assert (found.passed, told(found)["months"]) == (True, 3)
    found = check_months(empty.with_settings(dump_dir=empty.root / "nowhere"))[
        "every_month_is_up_to_date"
    ]
    assert not found.passed
    assert "nowhere" in told(found)["dump"]


@pytest.mark.parametrize(
    ("days", "today", "expected"),
    [
        (0, date(2026, 1, 1), ""),
        (20, date(2024, 6, 20), "2024-04"),
        (20, date(2024, 6, 21), "2024-05"),
        (20, date(2024, 7, 21), "2024-06"),
    ],
)
def test_a_month_is_expected_so_many_days_after_its_end(days, today, expected):
    assert expected_month(today, days) == expected


def test_an_overdue_month_warns(place):
    found = check_months(place.with_settings(fresh_days=1))
    for name in ("papers", "index_receipts"):
        check = found[f"newest_month_of_{name}_exists"]
        assert (check.passed, check.severity) == (False, dg.AssetCheckSeverity.WARN)
        assert told(check)["newest"] == "2024-05"


def test_the_checks_over_all_months_are_no_part_of_a_months_run():
    nodes = {node.name for node in defs.resolve_job_def("refresh_corpus").nodes}
    assert not [name for name in nodes if name.startswith("months_")]
    assert "papers_most_pages_are_read_whole" in nodes


@pytest.mark.parametrize("fewest", [1, 20])
def test_a_month_outside_the_bounds_warns_and_fails_nothing(own, fewest, monkeypatch):
    """Every page of a month breaks off: far more than the bound lets pass, where the month has
    pages enough.
    """
    monkeypatch.setattr(corpus_stages, "FEWEST_PAGES", fewest)
    with own.entered():
        workspace = own.workspace()
        file = workspace.root.file(tables.PAPERS, BAD)
        written, rows = read_provenance(file), workspace.root.rows(tables.PAPERS, BAD)
        with MonthWriter(tables.PAPERS, file) as writer:
            for row in rows:
                writer.add({**row, "truncated": True})
            writer.commit(replace(written, notes={**written.notes, "cut_off": len(rows)}))
        result = own.run_in_dagster(["papers"], BAD)
        assert result.success
        (found,) = [
            check
            for check in result.get_asset_check_evaluations()
            if check.check_name == "most_pages_are_read_whole"
        ]
    assert len(rows) < 20
    assert told(found)["cut_off"] == 1.0
    assert (found.passed, found.severity) == (fewest > 1, dg.AssetCheckSeverity.WARN)
    if not found.passed:
        assert "papers that break off 100% (at most 20%): citeloom status" in found.description


def test_months_are_finished_by_one_run_once_no_more_are_computed(empty):
    with empty.entered(), dg.DagsterInstance.ephemeral() as instance:
        workspace, cursor = empty.workspace(), None
        keys = []
        for is_new in (False, True, False, False):
            if is_new:
                mark_unfinished(workspace, choose_stages(select=["report"])[0])
            context = dg.build_sensor_context(
                instance=instance, cursor=cursor, resources={"workspace": workspace}
            )
            answer = computed_months(context)
            cursor = context.cursor
            keys.append(answer.run_key if isinstance(answer, dg.RunRequest) else None)
        given = build_defs(workspace=dg.ResourceDefinition.hardcoded_resource(workspace))
        done = given.resolve_job_def("finish_months").execute_in_process(instance=instance)
        context = dg.build_sensor_context(
            instance=instance, cursor=cursor, resources={"workspace": workspace}
        )
        assert isinstance(computed_months(context), dg.SkipReason)
    assert keys[:2] == [None, None]
    assert keys[2] == keys[3] is not None  # Dagster starts one run for a key
    (made,) = done.asset_materializations_for_node("months")
    assert made.metadata["finished"].value == "report"


def test_an_overall_page_that_cannot_be_written_fails_the_run_in_words(empty):
    page = empty.root / "reports" / "index.html"
    page.mkdir(parents=True)
    with empty.entered(), dg.DagsterInstance.ephemeral() as instance:
        workspace = empty.workspace()
        mark_unfinished(workspace, choose_stages(select=["report"])[0])
        given = build_defs(workspace=dg.ResourceDefinition.hardcoded_resource(workspace))
        done = given.resolve_job_def("finish_months").execute_in_process(
            instance=instance, raise_on_error=False
        )
    (failed,) = [event for event in done.all_events if event.is_step_failure]
    assert str(page) in failed.step_failure_data.user_failure_data.description
