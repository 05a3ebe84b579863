"""Every stage over the sample corpus: what comes out, is kept, or becomes stale."""

import zipfile

import pytest

from pipeline import tables
from pipeline.engine.status import stages_due
from pipeline.evaluation.rouge import FLOOR
from pipeline.index.edge import EdgeCollections
from pipeline.ops.run_months import run_months
from pipeline.related_work.tasks import RELATED_WORK_TASKS
from pipeline.stages import STAGES, choose_stages
from tests.assets.conftest import MONTHS, rewrite_zip
from tests.unit.index.building import opened_by_another_process

PAGES = {"2024-03": 10, "2024-04": 10, "2024-05": 8}
LEFT_OUT = {
    "2403.90006": "not_computer_science",
    "2403.90008": "not_computer_science",
    "2404.90007": "withdrawn",
    "2404.90008": "not_computer_science",
    "2405.90008": "not_computer_science",
}
ERRORS, NO_PROBLEM = "ar5iv-04-2024-errors.zip", "ar5iv-04-2024-no-problem.zip"


def count(place, table, month):
    """Rows of a month as the file itself holds them."""
    return len(place.workspace().root.rows(table, month))


def ledger(place, stage, month):
    """What a stage left out of a month: subject to reason."""
    import pyarrow.parquet as pq

    rows = pq.read_table(place.workspace().root.ledger_file(stage, month)).to_pylist()
    return {row["subject"]: row["reason"] for row in rows}


@pytest.mark.parametrize("month", MONTHS)
def test_pages_are_papers_or_in_the_ledger(place, month):
    assert (
        count(place, tables.DUMP_MEMBERS, month)
        == count(place, tables.METADATA, month)
        == PAGES[month]
    )
    assert count(place, tables.PAPERS, month) == PAGES[month] - len(ledger(place, "papers", month))


def test_the_ledger_names_what_is_withdrawn_and_what_is_not_computer_science(place):
    found = {}
    for month in MONTHS:
        found |= ledger(place, "papers", month)
    assert found == LEFT_OUT


@pytest.mark.parametrize("month", MONTHS)
def test_each_task_has_its_elements_summaries_and_scores(place, month):
    root = place.workspace().root
    tasks = root.rows(tables.RELATED_WORK_TASKS, month, ["task_id", "references"])
    pairs = {
        (task["task_id"], system) for task in tasks for system in place.workspace().settings.systems
    }
    assert count(place, tables.KEY_ELEMENTS, month) == sum(
        1 + len(task["references"]) for task in tasks
    )
    assert {
        tuple(row.values()) for row in root.rows(tables.SUMMARIES, month, ["task_id", "system"])
    } == pairs
    scored = {tuple(row.values()) for row in root.rows(tables.SCORES, month, ["task_id", "system"])}
    floor = {(task["task_id"], FLOOR) for task in tasks} if len(tasks) > 1 else set()
    assert scored == pairs | floor


def test_a_changed_setting_makes_stale_what_is_below_it_and_nothing_else(own):
    changed = own.with_settings(min_references=3)
    with changed.entered():
        due = [stage.name for stage in stages_due(STAGES, changed.workspace(), "2024-05")]
    below = {RELATED_WORK_TASKS.name}
    for stage in STAGES:  # in the order in which they run
        below |= {stage.name} if below & {table.name for table in stage.upstream} else set()
    assert due == [stage.name for stage in STAGES if stage.name in below]


def test_what_is_below_a_change_is_kept_where_the_rows_came_out_the_same(own):
    """Other rows could have come of it: the month has far fewer tasks than either bound."""
    changed = own.with_settings(max_tasks=999)
    with changed.entered():
        report = run_months(changed.workspace(), ["2024-04"], STAGES)
    made = [outcome.stage for outcome in report.outcomes if not outcome.skipped]
    assert made == ["related_work_tasks"]


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
            assert not own.run_months(
                choose_stages(select=["index_receipts"]), ["2024-03"], force=force
            ).failures
        with opened_by_another_process(folder / EdgeCollections(folder, name).live()):
            pass


def test_a_page_that_changed_is_read_again_and_only_its_month(own, dump):
    name = "no-problem/2404/2404.90001.html"
    with zipfile.ZipFile(dump / NO_PROBLEM) as pages:
        page = pages.read(name)
    rewrite_zip(dump / NO_PROBLEM, {name: page.replace(b"Reciprocal", b"Rec1procal")})
    here = own.with_settings(dump_dir=dump)
    with here.entered():
        # The rewritten zip holds every page at another place, hence all months are listed anew, but
        # not read anew.
        report = run_months(here.workspace(), MONTHS, choose_stages("passages"))
    read = {
        outcome.month
        for outcome in report.outcomes
        if outcome.stage == "passages" and not outcome.skipped
    }
    assert report.failures == []
    assert read == {"2024-04"}
