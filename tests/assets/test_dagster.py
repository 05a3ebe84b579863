"""What Dagster is told: metadata, checks, sensor, schedule; the code location loads."""

from __future__ import annotations

import base64
import os
import re
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from assets.stage_asset import is_readable
from pipeline import tables
from pipeline.definitions import build_defs, defs, run_in_process
from pipeline.engine.failures import record_failure
from pipeline.engine.run import State, state
from pipeline.engine.status import stages_due
from pipeline.errors import PermanentFailure
from pipeline.ops.run_months import dagster_home, run_months, status
from pipeline.stages import STAGES, choose_stages
from pipeline.storage.provenance import read_provenance
from pipeline.storage.writing import MonthWriter
from sensors.dump import dump_folder
from tests.assets.conftest import MONTHS, Place

PROJECT = Path(__file__).resolve().parents[2]
NAMES = [stage.name for stage in STAGES]
GROUPS = {"corpus", "search", "related_work", "answers", "evaluation"}


@pytest.fixture
def instance(place: Place) -> Iterator[dg.DagsterInstance]:
    """The Dagster instance that recorded the shared runs."""
    with place.entered(), dg.DagsterInstance.from_config(str(place.root / "dagster")) as found:
        yield found


def metadata_of(instance: dg.DagsterInstance, name: str, month: str) -> dict[str, Any]:
    """The metadata of the newest materialization of a month."""
    wanted = dg.AssetRecordsFilter(asset_key=dg.AssetKey(name), asset_partitions=[month])
    materialization = instance.fetch_materializations(wanted, limit=1).records[0].asset_materialization
    assert materialization is not None
    return {key: value.value for key, value in materialization.metadata.items()}


@pytest.mark.parametrize("name", NAMES)
def test_a_materialization_tells_rows_seconds_bytes_and_what_was_left_out(
    place: Place, instance: dg.DagsterInstance, name: str
) -> None:
    for month in MONTHS:
        told = metadata_of(instance, name, month)
        written = read_provenance(place.root / name / f"{month}.parquet")
        assert written is not None
        assert told["dagster/row_count"] == written.rows
        assert told["bytes"] == (place.root / name / f"{month}.parquet").stat().st_size
        assert told["seconds"] >= 0
        assert told["left_out"] == sum(written.left_out.values())
        assert {key: told[f"left_out/{key}"] for key in written.left_out} == written.left_out


@pytest.mark.parametrize("name", NAMES)
def test_a_preview_is_a_table_of_at_most_five_rows(instance: dg.DagsterInstance, name: str) -> None:
    told = metadata_of(instance, name, "2024-04")
    head, rule, *rows = told["preview"].splitlines()
    columns = sum(is_readable(column) for column in tables.TABLES[name].schema)
    assert len(rows) == min(5, told["dagster/row_count"])
    assert {len(re.findall(r"(?<!\\)\|", line)) for line in (head, rule, *rows)} == {columns + 1}
    assert "&\\#" not in "".join(rows), "an escaped character within an HTML entity is shown as it stands"


def test_the_lengths_of_passages_come_as_a_picture(instance: dg.DagsterInstance) -> None:
    found = re.fullmatch(
        r"!\[\w+\]\(data:image/png;base64,(.+)\)", str(metadata_of(instance, "passages", "2024-03")["lengths"])
    )
    assert found is not None
    assert base64.b64decode(found[1], validate=True).startswith(b"\x89PNG\r\n")


@pytest.mark.parametrize("name", NAMES)
def test_an_asset_says_what_it_is(name: str) -> None:
    spec = next(spec for spec in defs.resolve_all_asset_specs() if spec.key == dg.AssetKey(name))
    assert spec.group_name in GROUPS
    assert len(spec.description or "") > 40
    assert spec.kinds
    columns = spec.metadata["dagster/column_schema"].columns
    assert [column.name for column in columns] == tables.TABLES[name].schema.names
    assert all(column.description for column in columns)


def test_every_check_ran_on_every_month_and_passed(instance: dg.DagsterInstance) -> None:
    kind = dg.DagsterEventType.ASSET_CHECK_EVALUATION
    verdicts = {}
    for run in instance.get_runs():
        for entry in instance.all_logs(run.run_id, of_type=kind):
            assert entry.dagster_event is not None
            found = entry.dagster_event.asset_check_evaluation_data
            verdicts[found.asset_check_key.to_user_string(), found.partition] = found.passed
    keys = defs.resolve_asset_graph().asset_check_keys
    expected = {key.to_user_string() for key in keys if key.asset_key != dg.AssetKey("months")}
    assert verdicts == {(name, month): True for name in expected for month in MONTHS}
    assert len(expected) >= 9


def test_a_failed_check_stops_what_is_below_it(own: Place) -> None:
    """An embedding without its passage: the month's index is not touched."""
    with own.entered():
        workspace = own.workspace()
        file = workspace.root.file(tables.EMBEDDINGS, "2024-03")
        written, rows = read_provenance(file), workspace.root.rows(tables.EMBEDDINGS, "2024-03")
        assert written is not None
        with MonthWriter(tables.EMBEDDINGS, file) as writer:
            for row in rows[1:]:
                writer.add(row)
            writer.commit(written)
        stages = [stage for stage in STAGES if stage.name in {"embeddings", "index_receipts"}]
        before = (own.root / "index_receipts" / "2024-03.parquet").stat().st_mtime_ns
        result = run_in_process(stages, "2024-03", dagster_home(workspace))
        assert not result.succeeded
        assert list(result.blocked) == ["embeddings"]
        assert (own.root / "index_receipts" / "2024-03.parquet").stat().st_mtime_ns == before


def test_a_check_that_did_not_hold_is_asked_again_before_anything_below_runs(own: Place) -> None:
    """Else a second run would find the stage done, and go on below it as if the check had never spoken."""
    with own.entered():
        workspace = own.workspace()
        record_failure(workspace, "check-embeddings", "2024-03", PermanentFailure("its check does not hold"))
        due = [stage.name for stage in stages_due(STAGES, workspace, "2024-03")]
        assert due[0] == "embeddings"
        assert "index_receipts" in due
        told = {row["stage"]: row for row in status(workspace, ["2024-03"])}
        assert (told["embeddings"]["state"], told["embeddings"]["failure"]) == ("failed", "its check does not hold")
        report = run_months(workspace, ["2024-03"], STAGES)
        assert not report.failures
        assert all(outcome.skipped for outcome in report.outcomes)
        assert {row["state"] for row in status(workspace, ["2024-03"])} == {"done"}


def test_a_month_that_is_kept_says_so(own: Place) -> None:
    with own.entered():
        home = dagster_home(own.workspace())
        assert run_in_process(choose_stages("passages"), "2024-03", home).succeeded
        with dg.DagsterInstance.from_config(str(home)) as instance:
            assert metadata_of(instance, "passages", "2024-03")["kept"] is True
            assert metadata_of(instance, "passages", "2024-04")["kept"] is False


def test_a_workspace_can_be_given_instead_of_the_settings(empty: Place) -> None:
    with empty.entered():
        workspace = empty.workspace()
    given = build_defs(workspace=dg.ResourceDefinition.hardcoded_resource(workspace))
    with dg.DagsterInstance.ephemeral() as instance:
        result = given.resolve_job_def("refresh_corpus").execute_in_process(
            partition_key="2024-05", instance=instance, asset_selection=[dg.AssetKey("dump_members")]
        )
    assert result.success
    assert state(STAGES[0], workspace, "2024-05") is State.DONE


def test_a_month_that_the_dump_lacks_holds_nothing(empty: Place) -> None:
    """The newest partition is the present month, which a dump never has: its run ends well, and with no row."""
    with empty.entered():
        workspace = empty.workspace()
        assert run_in_process(choose_stages("passages"), "2024-06", dagster_home(workspace)).succeeded
        assert workspace.root.read(tables.PASSAGES, "2024-06").num_rows == 0


def months_asked_for(answer: dg.SensorResult | dg.SkipReason) -> list[str | None]:
    """The months for which the sensor asks for runs."""
    assert isinstance(answer, dg.SensorResult), answer
    return [request.partition_key for request in answer.run_requests or ()]


def ask_sensor(place: Place, cursor: str | None) -> Any:
    """What the sensor answers, a SensorResult or a SkipReason, given what it remembers."""
    with place.entered(), dg.DagsterInstance.ephemeral() as instance:
        context = dg.build_sensor_context(
            instance=instance, cursor=cursor, resources={"workspace": place.workspace()},
            repository_def=defs.get_repository_def(),
        )  # fmt: skip
        return dump_folder(context)


def test_the_sensor_asks_for_each_month_once_and_again_when_its_pages_change(empty: Place, dump: Path) -> None:
    here = empty.with_settings(dump_dir=dump)
    first = ask_sensor(here, None)
    assert months_asked_for(first) == list(MONTHS)
    assert isinstance(ask_sensor(here, first.cursor), dg.SkipReason)
    with zipfile.ZipFile(dump / "ar5iv-04-2024-more-errors.zip", "w") as more:
        more.writestr("error/2405/2405.90009.html", "<html><body>new</body></html>")
    second = ask_sensor(here, first.cursor)
    assert months_asked_for(second) == ["2024-05"]
    assert isinstance(ask_sensor(here, second.cursor), dg.SkipReason)


def test_a_page_that_comes_and_goes_twice_is_asked_for_each_time(empty: Place, dump: Path) -> None:
    """Dagster runs no run_key twice; the sensor's own memory keeps it from asking twice for the same state."""
    here, page, cursor, keys = empty.with_settings(dump_dir=dump), dump / "2405" / "2405.90009.html", None, []
    page.parent.mkdir()
    for there in (False, True, False, True):
        page.write_text("<html><body>new</body></html>") if there else page.unlink(missing_ok=True)
        answer = ask_sensor(here, cursor)
        assert "2024-05" in months_asked_for(answer)
        cursor = answer.cursor
        keys += [request.run_key for request in answer.run_requests if request.run_key]
    assert len(keys) == len(set(keys))


def test_the_sensor_asks_for_a_month_that_is_new_in_the_dump(empty: Place, dump: Path) -> None:
    here = empty.with_settings(dump_dir=dump)
    first = ask_sensor(here, None)
    with zipfile.ZipFile(dump / "ar5iv-06-2024-errors.zip", "w") as more:
        more.writestr("error/2406/2406.90001.html", "<html><body>new</body></html>")
    assert months_asked_for(ask_sensor(here, first.cursor)) == ["2024-06"]


def test_the_sensor_skips_with_a_reason_where_there_is_no_dump(empty: Place, tmp_path: Path) -> None:
    answer = ask_sensor(empty.with_settings(dump_dir=tmp_path / "nowhere"), None)
    assert isinstance(answer, dg.SkipReason)
    assert "nowhere" in (answer.skip_message or "")


@pytest.mark.parametrize(
    "command", ["dg check defs", "dagster definitions validate -w workspace.yaml"], ids=["dg", "dagster"]
)
def test_the_code_location_passes_the_tools_own_check(command: str, tmp_path: Path) -> None:
    program, *arguments = command.split()
    done = subprocess.run(
        [str(Path(sys.executable).with_name(program)), *arguments],
        cwd=PROJECT, env={**os.environ, "DAGSTER_HOME": str(tmp_path), "CITELOOM_DATA": str(tmp_path / "data")},
        capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Warning" not in done.stderr.replace("SupersessionWarning", "")
