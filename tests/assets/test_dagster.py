"""What Dagster is told: metadata, checks, sensor, schedule; the code location loads."""

import json
import os
import re
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import dagster as dg
import pytest

from assets.checks import RECORDING_JOB
from assets.details import DETAILS
from assets.stage_asset import is_readable
from pipeline import tables
from pipeline.corpus.sources.stage import PAGES
from pipeline.definitions import defs
from pipeline.embedding.stages import EMBEDDINGS
from pipeline.engine.failures import read_failure
from pipeline.engine.progress import StageStarted, listening
from pipeline.engine.status import month_status, stages_due
from pipeline.index.stages import INDEX_RECEIPTS
from pipeline.stages import STAGES, choose_stages, lookup_stage
from pipeline.storage.provenance import read_provenance
from sensors.months import dump_folder
from tests.assets.conftest import MONTHS
from tests.definitions import load_definitions
from tests.unit.corpus import fake_latexml
from tests.workspaces import altered

PROJECT = Path(__file__).resolve().parents[2]
MONTH = MONTHS[0]
NAMES = [stage.name for stage in STAGES if stage is not PAGES]  # the sample has no sources
# Tables with the figures of which each row is in one.
COUNTED = {"dump_members": "pages/", "papers": "grade/", "passages": "kind/"}


@pytest.fixture
def instance(place):
    """The Dagster instance to which the shared runs were reported."""
    with place.dagster() as found:
        yield found


def materializations(instance, name, month, limit=1):
    """The newest materializations of a month."""
    wanted = dg.AssetRecordsFilter(asset_key=dg.AssetKey(name), asset_partitions=[month])
    records = instance.fetch_materializations(wanted, limit=limit).records
    return [
        record.asset_materialization
        for record in records
        if record.asset_materialization is not None
    ]


def metadata_of(instance, name, month):
    """The metadata of the newest materialization of a month."""
    (newest,) = materializations(instance, name, month)
    return {key: value.value for key, value in newest.metadata.items()}


@pytest.mark.parametrize("name", NAMES)
def test_a_materialization_tells_rows_seconds_bytes_and_what_was_left_out(place, instance, name):
    told = metadata_of(instance, name, MONTH)
    file = place.root / name / f"{MONTH}.parquet"
    written = read_provenance(file)
    assert told["dagster/row_count"] == written.rows
    assert told["bytes"] == file.stat().st_size
    assert told["seconds"] >= 0
    assert told["left_out"] == sum(written.left_out.values())
    assert {key: told[f"left_out/{key}"] for key in written.left_out} == written.left_out
    head, rule, *rows = told["preview"].splitlines()
    columns = sum(is_readable(column) for column in tables.TABLES[name].schema)
    assert len(rows) == min(5, written.rows)
    assert {len(re.findall(r"(?<!\\)\|", line)) for line in (head, rule, *rows)} == {columns + 1}
    assert "&\\#" not in "".join(rows), (
        "an escaped character within an HTML entity is shown as it stands"
    )


def test_figures_of_a_month_count_all_that_its_table_holds(place):
    figures = {name: DETAILS[name](place.workspace(), MONTH) for name in COUNTED}
    sums = {
        name: sum(value for figure, value in figures[name].items() if figure.startswith(kind))
        for name, kind in COUNTED.items()
    }
    assert sums == {name: len(rows_of(place, name)) for name in COUNTED}
    lost = sum(value for figure, value in figures["papers"].items() if "lost/" in figure)
    assert lost == sum(sum(paper["losses"].values()) for paper in rows_of(place, "papers")) > 0


def rows_of(place, name):
    return place.workspace().root.rows(tables.TABLES[name], MONTH)


def test_every_check_ran_on_every_month_and_passed(instance):
    keys = defs.resolve_asset_graph().asset_check_keys
    runs = [(run.job_name, run.tags.get("dagster/partition")) for run in instance.get_runs()]
    # A month is computed in two passes: to the index, then by the stages that ask a model.
    recorded = [(RECORDING_JOB, month) for month in MONTHS for _ in range(2)]
    assert sorted(set(runs) - set(recorded)) == [("check_months", None)]
    assert sorted(run for run in runs if run in recorded) == recorded
    of_a_month = [key for key in keys if key.asset_key != dg.AssetKey("months")]
    assert len(of_a_month) >= 7
    for key in of_a_month:
        records = instance.event_log_storage.get_asset_check_execution_history(key, limit=20)
        assert {(record.partition, record.status.value) for record in records} == {
            (month, "SUCCEEDED") for month in MONTHS
        }


def test_a_failing_blocking_check_stops_its_month_in_both_doors(own):
    """An embedding without its passage: the month's index is not touched, and the check is asked
    again.
    """
    short = altered(EMBEDDINGS, build=lambda job: job.rows(tables.EMBEDDINGS)[1:])
    receipt = own.root / "index_receipts" / f"{MONTH}.parquet"
    before = receipt.stat().st_mtime_ns
    report = own.run_months([short, INDEX_RECEIPTS], [MONTH], force=True)
    assert [(stage, month) for stage, month, _ in report.failures] == [("embeddings", MONTH)]
    assert receipt.stat().st_mtime_ns == before

    run = own.run_in_dagster(["embeddings", "index_receipts"], MONTH)
    assert not run.success
    failed = [found.check_name for found in run.get_asset_check_evaluations() if not found.passed]
    assert failed == ["every_passage_is_embedded"]
    assert receipt.stat().st_mtime_ns == before
    with own.entered():
        workspace = own.workspace()
        assert read_failure(workspace, "check-embeddings", MONTH)
        assert stages_due(STAGES, workspace, MONTH)[:2] == [EMBEDDINGS, INDEX_RECEIPTS]
        (row,) = month_status([EMBEDDINGS], workspace, MONTH)
        assert (row["state"], "permanent" in row["failure"]) == ("failed", True)

    again = own.run_months([EMBEDDINGS, INDEX_RECEIPTS], [MONTH])
    assert [(stage, month) for stage, month, _ in again.failures] == [("embeddings", MONTH)]
    assert receipt.stat().st_mtime_ns == before

    mended = own.run_months([EMBEDDINGS, INDEX_RECEIPTS], [MONTH], force=True)
    assert mended.failures == []
    with own.entered():
        assert read_failure(own.workspace(), "check-embeddings", MONTH) is None


def test_both_doors_give_a_month_the_same_data_and_code_version(own):
    assert own.run_in_dagster(["papers", "passages"], MONTH, force=True).success
    with own.dagster() as instance:
        for name in ("papers", "passages"):
            by_run, by_command = materializations(instance, name, MONTH, limit=2)
            written = read_provenance(own.root / name / f"{MONTH}.parquet")
            for version in ("dagster/data_version", "dagster/code_version"):
                assert by_run.tags[version] == by_command.tags[version]
            assert by_run.tags["dagster/data_version"] == written.rows_sha256
            # The month had no report yet when the command computed it.
            assert by_run.metadata.keys() == {*by_command.metadata.keys(), "report"}
        assert metadata_of(instance, "passages", MONTH)["skipped"] is False
    assert own.run_in_dagster(["papers", "passages"], MONTH).success
    with own.dagster() as instance:
        assert metadata_of(instance, "passages", MONTH)["skipped"] is True


def _cancel_once_started(instance):
    """A user who ends the run on its page as soon as a stage has begun."""

    def cancel(event):
        if isinstance(event, StageStarted):
            for run in instance.get_runs(dg.RunsFilter(statuses=[dg.DagsterRunStatus.STARTED])):
                instance.report_run_canceled(run)

    return cancel


def test_a_run_that_was_ended_by_others_puts_nothing_in_place(empty):
    file = empty.root / "dump_members" / f"{MONTH}.parquet"
    with empty.dagster() as instance, listening(_cancel_once_started(instance)):
        assert not empty.run_in_dagster(["dump_members"], MONTH).success
    assert not file.exists()
    with empty.entered():
        assert read_failure(empty.workspace(), "dump_members", MONTH)
    assert empty.run_in_dagster(["dump_members"], MONTH).success
    assert file.exists()


def test_a_disabled_stage_says_why_and_its_months_are_empty_in_both_doors(own):
    there = own.with_settings(llm_url="", systems="lead")
    with there.entered():
        spec = load_definitions().resolve_asset_graph().get(dg.AssetKey("citation_support"))
    assert "no endpoint is set" in spec.description.partition("To enable it")[0]
    (own.root / "citation_support" / f"{MONTH}.parquet").unlink()
    assert not there.run_in_dagster(["scores"], MONTH).success
    assert there.run_in_dagster(["citation_support", "scores"], MONTH).success
    assert there.workspace().root.read(tables.CITATION_SUPPORT, MONTH).num_rows == 0
    report = there.run_months(choose_stages(select=["citation_support"]), [MONTHS[1]])
    assert [(outcome.rows, outcome.disabled) for outcome in report.outcomes] == [(0, True)]


def test_all_assets_and_checks_are_described_with_the_columns_of_their_tables():
    for spec in defs.resolve_all_asset_specs():
        assert spec.description, spec.key
        name = spec.key.to_user_string()
        if name in NAMES:
            columns = spec.metadata["dagster/column_schema"].columns
            assert [column.name for column in columns] == tables.TABLES[name].schema.names
    checks = [spec for check in defs.asset_checks for spec in check.check_specs]
    assert [check.key for check in checks if not check.description] == []


def stale_in_dagster(place):
    """Stages and months that Dagster shows as out of date, and what reads one of these.

    Dagster compares a month with its own inputs alone, `citeloom status` counts what is below as
    well.
    """
    fields = " ".join(
        f'm{month.replace("-", "")}: staleStatus(partition: "{month}")' for month in MONTHS
    )
    keys = ", ".join(f'{{path: ["{name}"]}}' for name in NAMES)
    query = f"{{ assetNodes(assetKeys: [{keys}]) {{ assetKey {{ path }} {fields} }} }}"
    with place.entered():
        program = str(Path(sys.executable).with_name("dagster-graphql"))
        command = [program, "-m", "pipeline.definitions", "-t", query]
        done = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True)
    (answer,) = (
        line for line in done.stdout.splitlines() if line.startswith("{")
    )  # beside lines of logs
    nodes = json.loads(answer)["data"]["assetNodes"]
    states = {node["assetKey"]["path"][-1]: node for node in nodes}
    stale = set()
    for stage in map(lookup_stage, NAMES):
        for month in MONTHS:
            below = any((table.name, month) in stale for table in stage.upstream)
            if below or states[stage.name][f"m{month.replace('-', '')}"] == "STALE":
                stale.add((stage.name, month))
    return stale


def stale_in_status(place):
    """Stages and months that `citeloom status` shows as out of date."""
    rows = place.told("status")["stages"]
    return {(row["stage"], row["month"]) for row in rows if row["state"] == "stale"}


@pytest.mark.faults
def test_dagster_and_the_command_line_agree_on_what_is_out_of_date(own):
    assert stale_in_dagster(own) == stale_in_status(own) == set()

    fewer = own.with_settings(max_questions=5, chatcite_samples=3)
    by_settings = stale_in_status(fewer)
    assert {stage for stage, _ in by_settings} >= {"questions", "summaries", "report"}
    assert stale_in_dagster(fewer) == by_settings

    strict = own.with_settings(categories="cs.IR")
    strict.run_months(choose_stages(select=["papers"]), [MONTHS[2]])
    by_input = stale_in_status(strict)
    assert ("papers", MONTHS[0]) in by_input
    assert ("papers", MONTHS[2]) not in by_input
    assert ("passages", MONTHS[2]) in by_input
    assert stale_in_dagster(strict) == by_input

    own.run_months(choose_stages(select=["papers"]), [MONTHS[2]])
    fewer = own.with_settings(max_questions=5)
    due = ["questions", "answers", "answer_grades", "answer_scores", "report"]
    assert fewer.run_in_dagster(due, MONTHS[0]).success
    assert not fewer.run_months(choose_stages(select=due), MONTHS[1:]).failures
    assert stale_in_dagster(fewer) == stale_in_status(fewer) == set()


def test_a_month_that_the_dump_lacks_holds_nothing(empty):
    """The newest partition is the present month, which a dump never has: its run ends well, and
    with no row.
    """
    assert empty.run_in_dagster(NAMES[: NAMES.index("passages") + 1], "2024-06").success
    assert empty.workspace().root.read(tables.PASSAGES, "2024-06").num_rows == 0


def months_asked_for(answer):
    """The months for which the sensor asks for runs, without a key: Dagster runs none twice, and a
    page may come and go twice.
    """
    assert isinstance(answer, dg.SensorResult), answer
    assert not any(request.run_key for request in answer.run_requests)
    return [request.partition_key for request in answer.run_requests]


def ask_sensor(place, cursor, instance=None):
    """What the sensor answers, a SensorResult or a SkipReason, given what it remembers."""
    with place.entered(), ExitStack() as stack:
        instance = instance or stack.enter_context(dg.DagsterInstance.ephemeral())
        context = dg.build_sensor_context(
            instance=instance,
            cursor=cursor,
            resources={"workspace": place.workspace()},
            repository_def=defs.get_repository_def(),
        )
        return dump_folder(context)


def test_the_sensor_asks_for_each_month_once_and_again_whenever_its_pages_change(empty, dump):
    here = empty.with_settings(dump_dir=dump)
    page = dump / "2405" / "2405.90009.html"
    page.parent.mkdir()
    cursor, asked = None, []
    for there in (False, True, False, True):
        page.write_text("<html><body>new</body></html>") if there else page.unlink(missing_ok=True)
        answer = ask_sensor(here, cursor)
        asked.append(months_asked_for(answer))
        cursor = answer.cursor
        assert isinstance(ask_sensor(here, cursor), dg.SkipReason)
    assert asked == [list(MONTHS), ["2024-05"], ["2024-05"], ["2024-05"]]
    (dump / "broken.zip").write_bytes(b"no zip")
    assert "broken.zip" in ask_sensor(here, cursor).skip_message
    lost = ask_sensor(here.with_settings(dump_dir=dump / "nowhere"), None)
    assert "nowhere" in lost.skip_message


def test_the_sensor_asks_for_a_month_whose_sources_have_come(empty, tmp_path, monkeypatch):
    fake_latexml.install(tmp_path / "bin", monkeypatch)
    for name in ("dump", "sources"):
        (tmp_path / name).mkdir()
    here = empty.with_settings(
        dump_dir=tmp_path / "dump", sources=tmp_path / "sources", convert_unsafe=True
    )
    cursor = None
    for number in (1, 2):
        tar = tmp_path / "sources" / f"arXiv_src_2404_00{number}.tar"
        tar.write_bytes(fake_latexml.tar_of({}))
        answer = ask_sensor(here, cursor)
        assert months_asked_for(answer) == ["2024-04"]
        cursor = answer.cursor
        assert isinstance(ask_sensor(here, cursor), dg.SkipReason)


def test_a_month_whose_newest_runs_died_before_their_first_step_is_asked_for_again(empty, dump):
    here = empty.with_settings(dump_dir=dump)
    cursor = ask_sensor(here, None).cursor
    tags = {"dagster/sensor_name": "dump_folder", "dagster/partition": MONTH}

    @dg.op
    def stage():
        raise ValueError("a fault of the stage")

    @dg.job
    def months():
        stage()

    def end_runs(count):
        for _ in range(count):
            run = instance.create_run_for_job(months, tags=tags)
            instance.report_run_failed(run, "the process that ran it is gone")

    with dg.DagsterInstance.ephemeral() as instance:
        end_runs(1)
        assert months_asked_for(ask_sensor(here, cursor, instance)) == [MONTH]
        months.execute_in_process(instance=instance, tags=tags, raise_on_error=False)
        assert isinstance(ask_sensor(here, cursor, instance), dg.SkipReason)
        end_runs(7)
        assert months_asked_for(ask_sensor(here, cursor, instance)) == [MONTH]
        end_runs(1)
        # It dies each time: somebody has to look at it.
        assert isinstance(ask_sensor(here, cursor, instance), dg.SkipReason)


def test_the_code_location_passes_the_tools_own_check(tmp_path):
    done = subprocess.run(
        [str(Path(sys.executable).with_name("dg")), "check", "defs"],
        cwd=PROJECT,
        env={**os.environ, "DAGSTER_HOME": str(tmp_path), "CITELOOM_DATA": str(tmp_path / "data")},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Warning" not in done.stderr.replace("SupersessionWarning", "")
