"""The checks over all months, the warnings of a month's data, and the message about a failed
run.
"""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from pytest_httpserver import HTTPServer

from assets.operations import expected_month
from assets.partitions import offer_months
from pipeline import tables
from pipeline.definitions import build_defs, defs
from pipeline.engine.failures import record_failure
from pipeline.engine.finish import ALL_MONTHS, mark_unfinished
from pipeline.engine.run import run_stage
from pipeline.errors import PermanentFailure, TransientFailure
from pipeline.stages import choose_stages
from pipeline.storage.provenance import read_provenance
from pipeline.storage.writing import MonthWriter
from sensors.failures import failed_runs, message_of
from sensors.months import computed_months
from tests.assets.conftest import MONTHS, Place

BAD = "2024-04"


def check_months(place: Place) -> dict[str, Any]:
    """What the job of the checks over all months finds: name of the check → its evaluation."""
    with place.entered(), dg.DagsterInstance.ephemeral() as instance:
        given = build_defs(workspace=dg.ResourceDefinition.hardcoded_resource(place.workspace()))
        done = given.resolve_job_def("check_months").execute_in_process(instance=instance)
        assert done.success
        return {found.check_name: found for found in done.get_asset_check_evaluations()}


def told(found: Any) -> dict[str, Any]:
    return {name: value.value for name, value in found.metadata.items()}


def test_where_all_is_well_the_checks_say_so_and_without_a_deadline_no_month_is_expected(
    place: Place,
) -> None:
    found = check_months(place)
    check = found["every_month_is_up_to_date"]
    assert (check.passed, told(check)) == (True, {"months": 3, "failed": 0, "stale": 0})
    for name in ("papers", "index_receipts"):
        check = found[f"newest_month_of_{name}_exists"]
        assert (check.passed, told(check)) == (True, {"newest": "2024-05", "expected": "none"})


def test_failed_and_stale_months_are_named_with_what_mends_them(own: Place) -> None:
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
            own.with_settings(page_errors="drop_page").workspace(),
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


def test_a_failure_that_another_run_has_cleared_is_no_more_told(own: Place) -> None:
    with own.entered():
        record_failure(own.workspace(), "scores", BAD, PermanentFailure("x"))
    assert check_months(own)["every_month_is_up_to_date"].passed


def test_a_month_whose_status_could_not_be_read_is_named(own: Place) -> None:
    with own.entered():
        record_failure(own.workspace(), "run", BAD, TransientFailure("the store does not answer"))
    facts = told(check_months(own)["every_month_is_up_to_date"])
    assert facts["failed"] == 1
    assert "the store does not answer" in facts["to_repair"]


def test_a_damaged_table_without_a_recorded_failure_is_repaired_by_a_run(own: Place) -> None:
    (own.root / "scores" / f"{BAD}.parquet").write_bytes(b"damaged")
    facts = told(check_months(own)["every_month_is_up_to_date"])
    assert facts["failed"] == 1
    assert f"citeloom run --months {BAD} --select scores," in facts["to_repair"]
    assert "--failed" not in facts["to_repair"].split("```")[1]


def test_months_that_were_never_run_are_no_fault_and_a_missing_dump_is_told(empty: Place) -> None:
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
def test_a_month_is_expected_so_many_days_after_its_end(
    days: int, today: date, expected: str
) -> None:
    assert expected_month(today, days) == expected


def test_an_overdue_month_warns(place: Place) -> None:
    found = check_months(place.with_settings(fresh_days=1))
    for name in ("papers", "index_receipts"):
        check = found[f"newest_month_of_{name}_exists"]
        assert (check.passed, check.severity) == (False, dg.AssetCheckSeverity.WARN)
        assert told(check)["newest"] == "2024-05"


def test_the_checks_over_all_months_are_no_part_of_a_months_run() -> None:
    nodes = {node.name for node in defs.resolve_job_def("refresh_corpus").nodes}
    assert not [name for name in nodes if name.startswith("months_")]
    assert "papers_most_pages_are_read_whole" in nodes


def test_a_month_outside_the_bounds_warns_and_fails_nothing(own: Place) -> None:
    """Every page of the month breaks off: far more than the bound lets pass."""
    with own.entered():
        workspace = own.workspace()
        file = workspace.root.file(tables.PAPERS, BAD)
        written, rows = read_provenance(file), workspace.root.rows(tables.PAPERS, BAD)
        assert written is not None
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
    facts = told(found)
    assert (found.passed, found.severity) == (False, dg.AssetCheckSeverity.WARN)
    assert facts["cut_off"] == 1.0


def failed_run(place: Place, instance: dg.DagsterInstance) -> Any:
    """The context of the sensor after a run that failed."""
    given = build_defs(workspace=dg.ResourceDefinition.hardcoded_resource(place.workspace()))
    offer_months(instance, [BAD])
    done = given.resolve_job_def("refresh_corpus").execute_in_process(
        instance=instance,
        partition_key=BAD,
        raise_on_error=False,
        asset_selection=[dg.AssetKey("papers")],
    )
    ended = next(event for event in done.all_events if event.is_job_failure)
    return dg.build_run_status_sensor_context(
        sensor_name="failed_runs",
        dagster_instance=instance,
        dagster_run=done.dagster_run,
        dagster_event=ended,
        resources={"workspace": place.workspace()},
    ).for_run_failure()


@pytest.mark.parametrize("status", [200, 404])
def test_a_failed_run_is_told_to_the_webhook_and_one_that_refuses_does_no_harm(
    empty: Place, httpserver: HTTPServer, status: int
) -> None:
    httpserver.expect_request("/sEcReT").respond_with_data("", status=status)
    here = empty.with_settings(webhook_url=httpserver.url_for("/sEcReT"))
    with here.entered(), dg.DagsterInstance.ephemeral() as instance:
        answer = failed_runs(failed_run(here, instance))
    (request, _) = httpserver.log[0]
    text = json.loads(request.data)["text"]
    assert text.startswith(
        f"citeloom: refresh_corpus failed for {BAD}\n• papers: papers of {BAD} needs dump_members"
    )
    assert f"citeloom run --failed --months {BAD}" in text
    assert isinstance(answer, dg.SkipReason)
    assert ("sent a message for run" if status == 200 else "it answers 404") in (
        answer.skip_message or ""
    )
    assert "sEcReT" not in (answer.skip_message or "")


def test_without_an_address_nobody_is_told(empty: Place) -> None:
    with empty.entered(), dg.DagsterInstance.ephemeral() as instance:
        answer = failed_runs(failed_run(empty, instance))
    assert isinstance(answer, dg.SkipReason)
    assert "CITELOOM_WEBHOOK_URL is not set" in (answer.skip_message or "")


def test_the_message_names_the_cause_of_an_error_that_no_stage_has_described() -> None:
    @dg.op
    def broken() -> None:
        raise RuntimeError("a check cannot be evaluated") from OSError("the disk is\nread-only")

    @dg.job
    def broken_job() -> None:
        broken()

    run = broken_job.execute_in_process(raise_on_error=False)
    (step,) = [event for event in run.all_events if event.is_step_failure]
    ended = next(event for event in run.all_events if event.is_job_failure)
    text = message_of(run.dagster_run, [step], ended)
    assert "• broken: OSError: the disk is read-only" in text
    assert "• broken_job: " in message_of(run.dagster_run, [], ended)


def test_months_are_finished_by_one_run_once_no_more_are_computed(empty: Place) -> None:
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


def test_a_fault_in_the_file_of_watches_is_reported_and_the_overall_page_is_made(
    empty: Place, tmp_path: Path
) -> None:
    file = tmp_path / "watches.toml"
    file.write_text("[[watch]]\nname = 'a'\n")
    here, page = empty.with_settings(watches=file), empty.root / "reports" / "index.html"
    stages = choose_stages(select=["index", "report"])
    message = f"CITELOOM_WATCHES: {file}, line 1: query: Field required"
    report = here.run_months(stages, [])
    assert (report.failures, report.exit_code) == ([("index_receipts", ALL_MONTHS, message)], 2)
    assert page.exists()

    page.unlink()
    with here.entered(), dg.DagsterInstance.ephemeral() as instance:
        workspace = here.workspace()
        mark_unfinished(workspace, stages[1])
        given = build_defs(workspace=dg.ResourceDefinition.hardcoded_resource(workspace))
        done = given.resolve_job_def("finish_months").execute_in_process(
            instance=instance, raise_on_error=False
        )
    (failed,) = [event for event in done.all_events if event.is_step_failure]
    assert message in failed.step_failure_data.user_failure_data.description
    assert page.exists()
