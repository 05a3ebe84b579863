"""The ceiling: never passed, answers in flight kept, and the next run goes on where this one
ended.
"""

import asyncio
import contextlib
import sqlite3
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.errors import SettingError, TransientFailure
from pipeline.llm.budget import Budget, BudgetReached, Limits, run_budget
from pipeline.llm.client import check_model, open_client
from pipeline.llm.loop import run, side_by_side
from pipeline.llm.messages import Message, Prices, Spent
from pipeline.settings import load_settings
from tests.scripted_llm import ScriptedLlm
from tests.unit.llm.test_client import workspace

pytestmark = pytest.mark.slow


def ask_many(place, prompts, samples=1):
    async def one(client, number):
        messages = [Message("user", f"number {number}")]
        await client.samples(messages, samples, temperature=0.7, max_tokens=50)

    async def inside():
        async with open_client(place) as client:
            await side_by_side(one(client, number) for number in range(prompts))
        return client.usage.measured()

    return run(inside())


def kept_answers(place, table="answers"):
    with sqlite3.connect(place.cache("llm") / "calls.sqlite") as cache:
        return cache.execute(f"SELECT count(*) FROM {table}").fetchone()[0]


def test_a_run_ends_at_its_ceiling_and_the_next_one_pays_for_the_rest_alone(tmp_path):
    with ScriptedLlm(latency=0.02) as llm:
        place = workspace(llm, tmp_path, llm_budget_calls=7)
        with pytest.raises(BudgetReached, match=r"7 of 7 calls .* CITELOOM_LLM_BUDGET_CALLS") as e:
            ask_many(place, 12)
        assert llm.generations == kept_answers(place) == 7
        # Another ceiling, hence another budget.
        measured = ask_many(workspace(llm, tmp_path, llm_budget_calls=8), 12)
        assert llm.generations == 12
    assert (measured["llm_calls"], measured["llm_cached"]) == (12, 7)
    assert not isinstance(e.value, TransientFailure), "it would be tried again"


def test_the_stages_of_a_run_share_one_budget_and_answers_from_the_cache_cost_nothing(tmp_path):
    with ScriptedLlm() as llm:
        place = workspace(llm, tmp_path, llm_budget_calls=5)
        ask_many(place, 5)
        assert ask_many(place, 5)["llm_cached"] == 5
        with pytest.raises(BudgetReached):
            ask_many(place, 8)
        assert llm.generations == 5


def test_a_request_for_several_samples_counts_each_of_them(tmp_path):
    with ScriptedLlm() as llm:
        place = workspace(llm, tmp_path, llm_budget_calls=7, llm_concurrency=3)
        with pytest.raises(BudgetReached):
            ask_many(place, 4, samples=3)
    assert llm.generations == 6


def test_money_has_a_ceiling_too(tmp_path):
    with ScriptedLlm() as llm:
        place = workspace(llm, tmp_path, llm_price="0/10", llm_budget_money=0.001)
        with pytest.raises(BudgetReached, match="CITELOOM_LLM_BUDGET_MONEY"):
            ask_many(place, 60)
    written = run_budget(place.settings, place.cache("llm")).spent.completion_tokens
    assert 0 < written * 10.0 / 1e6 <= 0.001


@pytest.mark.parametrize(
    "changes",
    [{"usage": None}, {"usage": {"prompt_tokens": 1, "completion_tokens": 1}}, {"choices": []}],
    ids=["no usage", "too little usage", "no choice"],
)
def test_no_answer_is_free(tmp_path, changes):
    with ScriptedLlm() as llm:
        llm.changes = changes
        with pytest.raises(BudgetReached):
            ask_many(workspace(llm, tmp_path, llm_budget_tokens=200), 25)
    assert 2 <= len(llm.requests) < 10


def test_a_ceiling_on_money_needs_a_price():
    with pytest.raises(SettingError, match="CITELOOM_LLM_PRICE"):
        check_model(load_settings(llm_budget_money=1.0, _env_file=None))


def test_what_was_spent_is_measured_with_its_cost(tmp_path):
    with ScriptedLlm() as llm:
        priced = ask_many(workspace(llm, tmp_path, llm_price="1000000/2000000"), 2)
        free = ask_many(workspace(llm, tmp_path), 2)
    tokens = priced["llm_prompt_tokens"] + priced["llm_completion_tokens"]
    assert priced["llm_cost"] == tokens + priced["llm_completion_tokens"]
    assert "llm_cost" not in free
    assert free["llm_cached_tokens"] == tokens


def test_an_answer_that_was_under_way_when_another_task_failed_is_kept(tmp_path):
    waiting = threading.Event()

    def slow(asked):
        waiting.wait()
        return "paid for"

    async def fail():
        while not llm.requests:
            await asyncio.sleep(0.01)
        waiting.set()
        raise ValueError("another task")

    async def both(place):
        async with open_client(place) as client:
            messages = [Message("user", "slow")]
            paid = client.complete(messages, temperature=0.7, max_tokens=50)
            await side_by_side([paid, fail()])

    with ScriptedLlm(slow) as llm:
        place = workspace(llm, tmp_path)
        with pytest.raises(ValueError, match="another task"):
            run(both(place))
        assert kept_answers(place) == 1
        assert kept_answers(place, "claims") == 0


@given(
    st.integers(1, 50),
    st.lists(st.tuples(st.integers(1, 6), st.integers(0, 6), st.booleans()), max_size=60),
)
def test_what_is_spent_and_set_aside_never_passes_the_ceiling(limit, steps):
    budget = Budget(Limits(calls=limit))
    flying = []
    for worst, real, lands in steps:
        if lands and flying:
            reserved = flying.pop(0)
            budget.settle(reserved, Spent(min(real, reserved.calls)), Prices())
        try:
            if budget.reserve(Spent(worst), Prices()):
                flying.append(Spent(worst))
        except BudgetReached:
            assert budget.spent.calls + worst > limit
        assert budget.spent.calls + sum(each.calls for each in flying) <= limit


def shared(folder, calls, name="november"):
    """A budget as one more run that names it would have it."""
    return Budget(Limits(calls=calls), name, folder / "budgets.sqlite")


def test_runs_that_name_a_budget_share_its_ceiling(tmp_path):
    paid = []
    with ScriptedLlm(latency=0.01) as llm:
        # Each another ceiling, hence an object of its own, as a process has.
        for name, calls in (("november", 7), ("november", 9), ("december", 5)):
            place = workspace(llm, tmp_path, llm_budget_calls=calls, llm_budget_name=name)
            before = llm.generations
            with pytest.raises(BudgetReached, match=f"all runs that name '{name}' share this one"):
                ask_many(place, 40)
            paid.append(llm.generations - before)
    assert paid == [7, 2, 5]


@pytest.mark.faults
def test_what_a_killed_run_had_in_flight_stays_booked(tmp_path):
    assert shared(tmp_path, 7).reserve(Spent(3), Prices())  # and never settled
    next_run = shared(tmp_path, 7)
    assert next_run.reserve(Spent(4), Prices())
    assert not next_run.reserve(Spent(1), Prices())  # its own four may yet cost less
    next_run.settle(Spent(4), Spent(4), Prices())
    with pytest.raises(BudgetReached, match="7 of 7 calls"):
        next_run.reserve(Spent(1), Prices())


def test_runs_at_once_never_pass_a_shared_ceiling(tmp_path):
    def spend():
        budget, spent = shared(tmp_path, 50), 0
        with contextlib.suppress(BudgetReached):
            while budget.reserve(Spent(1), Prices()):
                budget.settle(Spent(1), Spent(1), Prices())
                spent += 1
        return spent

    with ThreadPoolExecutor(4) as runs:
        assert sum(run.result() for run in [runs.submit(spend) for _ in range(4)]) == 50
