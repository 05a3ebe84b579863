"""The loop of the command line: its order, a month that fails and is run again, an unreachable
Dagster, an index that it lets go of.
"""

import zipfile
from itertools import product

import dagster as dg
import pytest

from pipeline.corpus.passages.stages import PASSAGES
from pipeline.engine.failures import record_failure
from pipeline.errors import PermanentFailure
from pipeline.index.edge import EdgeCollections
from pipeline.index.stages import INDEX_RECEIPTS
from pipeline.stages import CORPUS_STAGES, STAGES, choose_stages
from tests.assets.conftest import MONTHS, digests, make_place
from tests.monthly_dump import write_monthly_dump
from tests.postgres import PASSWORD
from tests.unit.index.building import opened_by_another_process
from tests.workspaces import altered

MORE = "ar5iv-2405-more.zip"
UNTIL = "references"


@pytest.fixture
def monthly(tmp_path):
    """A dump of one zip a month, but for one page of 2024-05, which lies in MORE."""
    folder = write_monthly_dump(tmp_path / "monthly")
    with zipfile.ZipFile(folder / "ar5iv-2405.zip") as old:
        name, page = "error/2405/2405.90004.html", old.read("error/2405/2405.90004.html")
    with zipfile.ZipFile(folder / MORE, "w") as new:
        new.writestr(name.replace("90004", "90014"), page)
    return folder


def test_all_months_go_through_the_corpus_before_any_asks_a_language_model(finished):
    corpus, others = list(CORPUS_STAGES), list(STAGES[len(CORPUS_STAGES) :])
    expected = [*product(MONTHS, corpus), *product(MONTHS, others)]
    assert finished.failures == []
    assert finished.computed == [(month, stage.name) for month, stage in expected]


def test_a_bad_month_is_reported_and_once_retried_all_tables_are_those_of_an_undisturbed_run(
    tmp_path, monthly, llm
):
    """References look back at earlier months, so they show that what follows is in order too."""
    disturbed, calm = (
        make_place(tmp_path / name, dump_dir=monthly, llm_url=llm.url, llm_model="scripted")
        for name in ("disturbed", "calm")
    )
    assert disturbed.invoke("run", "--until", "dump_members").exit_code == 0
    whole = (monthly / MORE).read_bytes()
    (monthly / MORE).write_bytes(whole[:-100])
    unknown = disturbed.invoke("run", "--months", "2024-06")
    assert "no month of 2024-06" in unknown.stderr
    assert MORE in unknown.stderr
    report = disturbed.told("run", "--until", UNTIL, exit_code=1)
    assert [(failure["stage"], failure["month"]) for failure in report["failures"]] == [
        ("dump", "all months"), ("dump_members", "2024-05"),
    ]  # fmt: skip
    assert [(outcome["month"], outcome["stage"]) for outcome in report["outcomes"]] == [
        *((month, stage.name) for month in MONTHS[:2] for stage in choose_stages(UNTIL)),
        ("2024-05", "pages"),
    ]

    (failed,) = disturbed.told("status", "--failed")["failed"]
    assert (failed["stage"], failed["month"]) == ("dump_members", "2024-05")
    assert "fix the cause first" in failed["kind"]
    run = disturbed.run_in_dagster(["dump_members"], "2024-05")
    (step,) = [event for event in run.all_events if event.is_step_failure]
    assert MORE in step.step_failure_data.user_failure_data.description
    (monthly / MORE).write_bytes(whole)
    assert disturbed.told("run", "--failed")["failures"] == []
    assert calm.invoke("run", "--until", UNTIL).exit_code == 0
    assert digests(disturbed.root) == digests(calm.root)
    assert len(digests(calm.root)) == 2 * len(MONTHS) * len(choose_stages(UNTIL))


def test_a_retry_begins_no_stage_that_neither_failed_nor_has_a_month(empty):
    with empty.entered():
        record_failure(
            empty.workspace(), "dump_members", MONTHS[0], PermanentFailure("a zip is broken")
        )
    listed = empty.invoke("status", "--failed", "--months", MONTHS[0])
    assert listed.stdout.startswith(f"dump of {MONTHS[0]}: a zip is broken (permanent: ")
    outcomes = empty.told("run", "--failed")["outcomes"]
    assert [(outcome["month"], outcome["stage"]) for outcome in outcomes] == [
        (MONTHS[0], "dump_members")
    ]
    for command in (["run", "--failed"], ["status", "--failed"]):
        assert "o failure is recorded" in empty.invoke(*command).output
    nothing = empty.told("run", "--failed")
    assert (nothing["outcomes"], nothing["failures"]) == ([], [])


def test_where_dagsters_storage_cannot_be_reached_the_work_goes_on_and_says_so(empty):
    there = empty.with_settings(dagster_pg_url=f"postgresql://citeloom:{PASSWORD}@127.0.0.1:1/runs")
    done = there.invoke("run", "--until", "metadata")
    assert done.exit_code == 0, done.stderr
    assert len(list(empty.root.glob("metadata/*.parquet"))) == len(MONTHS)
    notes = [line for line in done.stderr.splitlines() if "CITELOOM_DAGSTER_PG_URL" in line]
    assert len(notes) == 1, done.stderr
    assert "the work goes on" in notes[0]
    assert PASSWORD not in done.stderr + done.stdout


def test_dagster_shows_the_newest_result_of_a_check_whichever_door_computes_its_month(
    tmp_path, monthly
):
    place, month = make_place(tmp_path / "again", dump_dir=monthly), "2024-03"
    key = dg.AssetCheckKey(dg.AssetKey("passages"), "every_paper_has_passages")
    empty = altered(PASSAGES, build=lambda job: [])
    place.run_months(choose_stages("papers"), [month])
    computations = [
        (False, lambda: place.run_months([empty], [month])),
        (True, lambda: place.run_months([PASSAGES], [month], force=True)),
        (False, lambda: place.run_months([empty], [month], force=True)),
        (False, lambda: place.run_in_dagster(["passages"], month)),
        (True, lambda: place.run_in_dagster(["passages"], month, force=True)),
    ]
    for computation, (passed, compute) in enumerate(computations, 1):
        compute()
        with place.dagster() as instance:
            events = instance.event_log_storage
            (mark,) = events.get_asset_check_partition_info([key])
            results = events.get_asset_check_execution_history(key, limit=10)
        status = "SUCCEEDED" if passed else "FAILED"
        assert (mark.partition_key, mark.is_current) == (month, True)
        assert (mark.latest_execution_status.value, results[0].status.value) == (status, status)
        assert len(results) == computation


@pytest.mark.parametrize(
    ("door", "force"), [("command", True), ("command", False), ("dagster", True)]
)
def test_a_month_in_the_in_process_index_lets_go_of_it(own, force, door):
    """Another run, or a search, can open it while this process is busy with the month's LLM
    stages.
    """
    name = own.workspace().settings.qdrant_collection
    folder = own.root / "qdrant-edge" / name
    with own.entered():
        if door == "dagster":
            assert own.run_in_dagster(["index_receipts"], "2024-03", force=force).success
        else:
            assert not own.run_months([INDEX_RECEIPTS], ["2024-03"], force=force).failures
        with opened_by_another_process(folder / EdgeCollections(folder, name).live()):
            pass
