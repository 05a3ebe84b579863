"""The schedule `refresh` under a real daemon, from its tick to the last month's answers. Slow: a
tier of its own.
"""

import json

import pytest

from pipeline.storage.data_root import DataRoot
from pipeline.tables import ANSWERS, INDEX_RECEIPTS, PAPERS, SUMMARIES
from tests.monthly_dump import write_monthly_dump
from tests.processes import ask_graphql, wait_until
from tests.ui.test_ui import start

pytestmark = [pytest.mark.faults, pytest.mark.ui, pytest.mark.slow]

MONTHS = ["2024-03", "2024-04", "2024-05"]
SCHEDULE = {
    "repositoryName": "__repository__",
    "repositoryLocationName": "citeloom",
    "scheduleName": "refresh",
}
START = """mutation($schedule: ScheduleSelector!) { startSchedule(scheduleSelector: $schedule) {
    __typename ... on ScheduleStateResult { scheduleState { id status } } ... on PythonError { message } } }"""
STOP = """mutation($id: String!) { stopRunningSchedule(id: $id) {
    __typename ... on ScheduleStateResult { scheduleState { status } } ... on PythonError { message } } }"""
RUNS = (
    "{ runsOrError(limit: 50) { ... on Runs { results { jobName status tags { key value } } } } }"
)
ENDED = {"SUCCESS", "FAILURE", "CANCELED"}


@pytest.fixture
def running(tmp_path, llm, oai, monkeypatch):
    """A `citeloom ui` on an empty data root, its schedule due every minute and with a budget."""
    monkeypatch.setenv(
        "XDG_CACHE_HOME", str(tmp_path / "machine")
    )  # a pace of its own for asking arXiv
    (tmp_path / "data").mkdir()
    dump = write_monthly_dump(tmp_path / "dump")
    server = start(
        tmp_path / "data",
        llm,
        DUMP_DIR=dump,
        OAI_URL=oai.url,
        REFRESH_CRON="* * * * *",
        REFRESH_LLM_TOKENS=50_000_000,
        ANSWER_SYSTEMS="direct",
        SYSTEMS="zero_shot",
    )
    yield server
    server.stop()


def runs(running):
    """Every run: its part of the refresh (the job, where it bears none), how it stands, its
    tags.
    """
    found = []
    for run in ask_graphql(running.url, RUNS)["runsOrError"]["results"]:
        tags = {tag["key"]: tag["value"] for tag in run["tags"]}
        found.append((tags.get("citeloom/refresh", run["jobName"]), run["status"], tags))
    return found


def test_a_tick_refreshes_every_month_that_is_due_down_to_its_answers(running, oai):
    state = ask_graphql(running.url, START, schedule=SCHEDULE)["startSchedule"]["scheduleState"]
    assert state["status"] == "RUNNING"
    # Not before it works: at the end of its tick the daemon writes how the schedule stood at the
    # tick's beginning.
    at_work = {"STARTED", *ENDED}
    wait_until(
        lambda: any(status in at_work for _, status, _ in runs(running)), "the schedule's first run"
    )
    assert (
        ask_graphql(running.url, STOP, id=state["id"])["stopRunningSchedule"]["scheduleState"][
            "status"
        ]
        == "STOPPED"
    )

    def ended():
        there = runs(running)
        below = {tags["dagster/partition"] for part, _, tags in there if part == "downstream"}
        return (
            there
            if below == set(MONTHS) and all(status in ENDED for _, status, _ in there)
            else None
        )

    there = wait_until(ended, "the last run of the refresh")
    assert {status for _, status, _ in there} == {"SUCCESS"}
    for part in ("corpus", "downstream"):
        assert (
            sorted(tags["dagster/partition"] for each, _, tags in there if each == part) == MONTHS
        )
    assert (
        len({tags["citeloom/llm_budget"] for part, _, tags in there if part == "downstream"}) == 1
    )
    root = DataRoot(running.root)
    for table in (INDEX_RECEIPTS, SUMMARIES, ANSWERS):
        assert root.months(table) == MONTHS, table.name
    assert oai.asked, "the harvest asked"

    def summaries():
        return [
            json.loads(file.read_text()) for file in (running.root / "refreshes").glob("*.json")
        ]

    wait_until(
        lambda: summaries() and not any(status not in ENDED for _, status, _ in runs(running)),
        "the summary",
    )
    (summary,) = summaries()
    assert list(summary["months"]) == MONTHS
    assert summary["changes"]["papers_new"] == sum(
        len(root.rows(PAPERS, month, ["arxiv_id"])) for month in MONTHS
    )
    assert summary["changes"]["vectors_made"] > 0
    assert summary["failures"] == []
