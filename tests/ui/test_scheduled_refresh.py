"""The schedule `refresh` under a real daemon, from its tick to the last month's answers. Slow: a
tier of its own.
"""

import json

import pytest

from pipeline.storage.data_root import DataRoot
from pipeline.tables import ANSWERS, INDEX_RECEIPTS, SUMMARIES
from tests.assets.conftest import make_place
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
    # A pace of its own for asking arXiv.
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "machine"))
    place = make_place(
        tmp_path / "data",
        llm_url=llm.url,
        llm_model=llm.model,
        dump_dir=write_monthly_dump(tmp_path / "dump"),
        oai_url=oai.url,
        refresh_cron="* * * * *",
        refresh_llm_tokens=50_000_000,
        answer_systems="direct",
        systems="zero_shot",
    )
    server = start(place)
    yield server
    server.stop()


def runs(running):
    """Every run: its part of the refresh (the job, where it bears none), its status, its tags."""
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
    stopped = ask_graphql(running.url, STOP, id=state["id"])["stopRunningSchedule"]
    assert stopped["scheduleState"]["status"] == "STOPPED"

    def months_of(part):
        return sorted(tags["dagster/partition"] for each, _, tags in runs(running) if each == part)

    def has_ended():
        is_over = all(status in ENDED for _, status, _ in runs(running))
        return is_over and months_of("downstream") == MONTHS

    wait_until(has_ended, "the last run of the refresh")
    assert {status for _, status, _ in runs(running)} == {"SUCCESS"}
    assert months_of("corpus") == MONTHS
    tags = [tags for part, _, tags in runs(running) if part == "downstream"]
    assert len({each["citeloom/llm_budget"] for each in tags}) == 1
    root = DataRoot(running.root)
    for table in (INDEX_RECEIPTS, SUMMARIES, ANSWERS):
        assert root.months(table) == MONTHS, table.name
    assert oai.asked, "the harvest asked"

    def summaries():
        files = (running.root / "refreshes").glob("*.json")
        return has_ended() and [json.loads(file.read_text()) for file in files]

    (summary,) = wait_until(summaries, "the summary")
    assert list(summary["months"]) == MONTHS
    assert summary["failures"] == []
