"""Endpoints that misbehave: what fails is recorded and asked for again, and nothing else is."""

import sqlite3

import pytest

from pipeline import tables
from pipeline.engine.run import State, run_stage, state
from pipeline.engine.stage import STATES
from pipeline.engine.status import month_status, stages_due
from pipeline.llm.cache import MOST_ASKED
from pipeline.related_work.stages import KEY_ELEMENTS, SUMMARIES
from pipeline.report.frames import read_ledger, read_month
from tests.unit.related_work.building import corpus_with

MONTH = "2024-05"
STAGES = (KEY_ELEMENTS, SUMMARIES)
TASKS = {1: ["2403.00001", "2403.00002"], 2: ["2403.00003", "2403.00001"]}
SYSTEMS = "chatcite,zero_shot"


def message(content, reason="stop", **more):
    return {"finish_reason": reason, "message": {"content": content, **more}}


MISBEHAVIOURS = {
    "empty": message(""),
    "only_reasoning": message(None, reasoning_content="Hm."),
    "refused": message(None, refusal="I cannot."),
    "unreadable": message("{ no JSON"),
}


def run_all(place):
    return [run_stage(stage, place, MONTH) for stage in STAGES]


def states(place):
    return [state(stage, place, MONTH) for stage in STAGES]


def tables_of(place):
    return {stage.name: place.root.rows(stage.table, MONTH) for stage in STAGES}


def ledger_of(place, stage):
    ledger = read_ledger(place.root, MONTH, [stage.table])
    return [item.reason for item in ledger if item.reason.startswith("failed_")]


def of_second_task(choice, kind):
    """A rule by which the endpoint fails at the second target: unreadable JSON at its elements, else
    at its section too.
    """

    def rule(asked):
        concerned = "compares 2 things" in asked.prompt
        return choice if concerned and (kind != "unreadable" or asked.schema) else None

    return rule


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch):
    monkeypatch.setattr("pipeline.llm.endpoint_client.ATTEMPTS", 2)


@pytest.fixture(scope="module")
def never_failed(tmp_path_factory):
    folder = tmp_path_factory.mktemp("well")
    with corpus_with(folder, TASKS, systems=SYSTEMS) as (place, _):
        run_all(place)
        return tables_of(place)


@pytest.mark.parametrize(("kind", "choice"), MISBEHAVIOURS.items(), ids=MISBEHAVIOURS)
def test_a_mended_endpoint_is_asked_for_what_failed_alone(tmp_path, never_failed, kind, choice):
    with corpus_with(tmp_path, TASKS, of_second_task(choice, kind), systems=SYSTEMS) as (
        place,
        llm,
    ):
        run_all(place)
        assert states(place)[0] is State.INCOMPLETE
        assert ledger_of(place, KEY_ELEMENTS) == [f"failed_{kind}"]
        assert "failed_key_elements" in ledger_of(place, SUMMARIES)
        written = {row["task_id"] for row in place.root.rows(tables.SUMMARIES, MONTH)}
        assert "2405.00001#S2" in written
        assert stages_due(STAGES, place, MONTH) == []  # nothing begins it by itself
        answered = {text for text in llm.requested_texts() if "compares 2 things" not in text}
        llm.rules.clear()
        llm.requests.clear()
        if kind == "refused":
            run_all(place)
            assert llm.requests == []
            forget_failures(place)
        run_all(place)
    assert tables_of(place) == never_failed
    assert states(place) == [State.DONE, State.DONE]
    assert not answered & set(llm.requested_texts())


def forget_failures(place):
    with sqlite3.connect(place.cache("llm") / "calls.sqlite") as sql:
        sql.execute("DELETE FROM failures")


def test_a_request_is_asked_three_times_at_most(tmp_path):
    rule = of_second_task(MISBEHAVIOURS["empty"], "empty")
    with corpus_with(tmp_path, TASKS, rule, systems="zero_shot") as (place, llm):
        requests = []
        for _ in range(MOST_ASKED + 1):
            llm.requests.clear()
            run_all(place)
            requests.append(len(llm.requests))
        assert requests == [2, *[1] * (MOST_ASKED - 1), 0]
        assert states(place)[1] is State.INCOMPLETE
        forget_failures(place)
        llm.rules.clear()
        run_all(place)
    assert states(place)[1] is State.DONE


def test_a_model_that_thinks_gets_an_allowance_from_the_first_cut(tmp_path):
    """It thinks 3,000 tokens before each answer, within the limit that it is given."""

    def thinking(asked):
        if asked.body["max_tokens"] < 3000 + 100:
            return message(None, "length", reasoning_content="Hm " * 100)
        return None

    limits = {"llm_context": 32768, "draft_tokens": 200, "element_tokens": 60}
    with corpus_with(tmp_path, TASKS, thinking, systems=SYSTEMS, **limits) as (place, llm):
        run_all(place)
        assert states(place) == [State.DONE, State.DONE]
        assert sum(body["max_tokens"] < 3100 for body in llm.requests) <= 2 * 4


def test_reports_and_commands_count_what_failed(tmp_path):
    rule = of_second_task(MISBEHAVIOURS["empty"], "empty")
    with corpus_with(tmp_path, TASKS, rule, systems=SYSTEMS) as (place, _):
        run_all(place)
    parts = read_month(place.root, MONTH).notes["summaries"]["parts"].values()
    assert [part["notes"][STATES] for part in parts] == [{"failed": 1, "written": 1}] * 2
    shown = {row["stage"]: row for row in month_status(STAGES, place, MONTH)}["summaries"]
    assert (shown["state"], shown["failed_requests"]) == ("incomplete", {"empty": 1})
    assert stages_due(STAGES, place, MONTH, completes=True) == list(STAGES)
