"""The estimate against what runs then do: calls exactly, tokens and time from what was seen."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from pipeline import tables
from pipeline.cli import app
from pipeline.errors import MissingInput, SettingError
from pipeline.estimate import LLM_STAGES, Estimate, estimate, sum_parts
from pipeline.llm.budget import BudgetReached
from pipeline.llm.cache import CallCache, Paid
from pipeline.llm.messages import Spent
from pipeline.stages import Workspace, run_stage
from tests.scripted_llm import ScriptedLlm
from tests.unit.related_work.building import workspace, write_corpus

MONTH = "2024-05"
TASKS = {2: ["2403.00003", "2403.00001"], 1: ["2403.00001", "2403.00002", "2403.00004"]}
SETTINGS: dict[str, Any] = {"systems": "chatcite,zero_shot", "llm_price_read": 2.0, "llm_price_written": 8.0}


def run_all(place: Workspace) -> list[Any]:
    return [run_stage(stage, place, MONTH) for stage in LLM_STAGES]


def calls_of(found: Estimate) -> list[tuple[str, str | None, int, int]]:
    return [(part.stage, part.system, part.calls, part.to_pay) for part in found.parts]


@pytest.mark.parametrize(("samples", "votes", "kept"), [(3, 5, 2), (1, 1, 1), (2, 3, 4)])
def test_calls_are_those_that_the_run_then_makes(tmp_path: Path, samples: int, votes: int, kept: int) -> None:
    chosen = {"chatcite_samples": samples, "chatcite_votes": votes, "chatcite_kept": kept}
    with ScriptedLlm() as llm:
        place = workspace(llm, tmp_path, **SETTINGS | chosen)
        write_corpus(place, TASKS)
        found = estimate(place, [MONTH])
        assert llm.requests == []
        outcomes = run_all(place)
    asked = {outcome.stage: outcome.measured["llm_calls"] for outcome in outcomes}
    paid = {outcome.stage: outcome.measured["llm_calls"] - outcome.measured["llm_cached"] for outcome in outcomes}
    for stage in LLM_STAGES:
        part = sum_parts([part for part in found.parts if part.stage == stage.name])
        assert (part.calls, part.to_pay) == (asked[stage.name], paid[stage.name]), stage.name
    assert sum(paid.values()) == llm.generations == found.total().to_pay
    assert found.total().money > 0


def test_an_estimate_keeps_nothing_and_asks_nobody(tmp_path: Path) -> None:
    with ScriptedLlm() as llm:
        place = workspace(llm, tmp_path, **SETTINGS)
        write_corpus(place, TASKS)
        first = estimate(place, [MONTH])
        assert estimate(place, [MONTH]) == first
    assert llm.requests == []
    assert not (tmp_path / "summaries").exists()


def test_what_is_done_or_answered_is_not_to_be_paid(tmp_path: Path) -> None:
    with ScriptedLlm() as llm:
        place = workspace(llm, tmp_path, **SETTINGS)
        write_corpus(place, TASKS)
        before = estimate(place, [MONTH])
        run_all(place)
        done = estimate(place, [MONTH])
        more = estimate(workspace(llm, tmp_path, **SETTINGS | {"chatcite_votes": 7}), [MONTH])
    assert done.total().to_pay == 0
    assert (done.total().money, done.total().seconds) == (0, 0)
    assert [part.calls for part in done.parts] == [part.calls for part in before.parts]
    by_name = {(part.stage, part.system): part for part in more.parts}
    assert by_name["key_elements", None].to_pay == by_name["summaries", "zero_shot"].to_pay == 0
    # The first round's samples and five of its seven votes are kept, with their real texts; what comes after depends.
    assert 0 < by_name["summaries", "chatcite"].to_pay < by_name["summaries", "chatcite"].calls


def test_a_done_month_whose_answers_are_gone_is_still_done(tmp_path: Path) -> None:
    with ScriptedLlm() as llm:
        place = workspace(llm, tmp_path, **SETTINGS)
        write_corpus(place, TASKS)
        run_all(place)
        for file in (tmp_path / "cache" / "llm").iterdir():
            file.unlink()
        assert estimate(place, [MONTH]).total().to_pay == 0


def see(place: Workspace, bounds: dict[int, float]) -> None:
    """Let it be as if requests with these bounds on their answers had taken so many seconds."""
    with contextlib.closing(CallCache(place.cache("llm") / "calls.sqlite")) as cache:
        for bound, seconds in bounds.items():
            for number in range(5):
                cache.write(f"{bound} {number}", {}, {}, Paid("scripted", bound, Spent(1, 100, 10), seconds))


def test_time_is_that_of_calls_that_wait_for_one_another(tmp_path: Path) -> None:
    with ScriptedLlm() as llm:
        place = workspace(llm, tmp_path, **SETTINGS, llm_concurrency=100)
        write_corpus(place, TASKS)
        settings = place.settings
        see(place, {7 * settings.element_tokens + 200: 3.0, settings.draft_tokens: 2.0, settings.vote_tokens: 1.0})
        see(place, {64 + 128 * 2: 5.0})
        free = estimate(place, [MONTH])
        narrow = estimate(workspace(llm, tmp_path, **SETTINGS, llm_concurrency=1), [MONTH])
    # Key elements at once; three rounds of a draft and a vote for the longer task, the baseline beside them; a score.
    assert free.total().seconds == pytest.approx(3 + 3 * (2 + 1) + 5)
    assert {(part.stage, part.system): round(part.seconds, 6) for part in free.parts} == {
        ("key_elements", None): 3.0, ("summaries", "chatcite"): 9.0, ("summaries", "zero_shot"): 2.0,
        ("scores", None): 5.0,
    }  # fmt: skip
    # One slot: every sample is a request of its own, and none has company.
    calls = {(part.stage, part.system): part.to_pay for part in narrow.parts}
    drafts, votes = calls["summaries", "chatcite"] - 5 * 5 + calls["summaries", "zero_shot"], 5 * 5
    assert narrow.total().seconds == pytest.approx(3 * calls["key_elements", None] + 2 * drafts + votes + 5 * 2)
    assert "of the last 20 requests" in free.notes[0]


def test_a_month_without_tasks_says_what_to_run_first(tmp_path: Path) -> None:
    with ScriptedLlm() as llm:
        place = workspace(llm, tmp_path)
        with pytest.raises(MissingInput, match=r"run --months 2024-05 --until related_work_tasks first"):
            estimate(place, [MONTH])
        write_corpus(place, TASKS)
        found = estimate(place, ["2024-03", MONTH])
    assert (found.months, found.not_ready) == ((MONTH,), ("2024-03",))
    assert any("2024-03" in note for note in found.notes)


def test_two_months_do_not_pay_for_the_same_call_twice(tmp_path: Path) -> None:
    with ScriptedLlm() as llm:
        place = workspace(llm, tmp_path, **SETTINGS)
        write_corpus(place, TASKS)
        found = estimate(place, [MONTH, MONTH])
    assert found.total().to_pay == estimate(place, [MONTH]).total().to_pay
    assert found.total().calls == 2 * estimate(place, [MONTH]).total().calls


def test_an_estimate_over_the_budget_says_so(tmp_path: Path) -> None:
    with ScriptedLlm() as llm:
        place = workspace(llm, tmp_path, **SETTINGS, llm_budget_calls=5, llm_budget_money=1000.0)
        write_corpus(place, TASKS)
        found = estimate(place, [MONTH])
    over = [note for note in found.notes if "BUDGET" in note]
    assert over == ["CITELOOM_LLM_BUDGET_CALLS is 5: the run will end there, and can be gone on with"]


def test_money_without_a_price_is_a_wrong_setting(tmp_path: Path) -> None:
    with ScriptedLlm() as llm, pytest.raises(SettingError, match="CITELOOM_LLM_PRICE_READ"):
        estimate(workspace(llm, tmp_path, llm_budget_money=1.0), [MONTH])


def test_the_json_of_an_estimate_has_parts_and_total(tmp_path: Path) -> None:
    with ScriptedLlm() as llm:
        place = workspace(llm, tmp_path, **SETTINGS)
        write_corpus(place, TASKS)
        told = estimate(place, [MONTH]).as_json()
    assert [part["stage"] for part in told["parts"]] == ["key_elements", "summaries", "summaries", "scores"]
    assert told["total"]["to_pay"] == sum(part["to_pay"] for part in told["parts"])
    assert "month" not in told["total"]


@pytest.fixture
def command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[ScriptedLlm, Path]]:
    """The settings of a command that is run in this process: a data root with tasks, a scripted endpoint."""
    with ScriptedLlm() as llm:
        write_corpus(workspace(llm, tmp_path), TASKS)
        for name, value in {"data": tmp_path, "llm_url": llm.url, "llm_model": llm.model}.items():
            monkeypatch.setenv(f"CITELOOM_{name.upper()}", str(value))
        monkeypatch.setenv("COLUMNS", "160")
        yield llm, tmp_path


def test_the_command_prints_a_table_and_asks_nobody(command: tuple[ScriptedLlm, Path]) -> None:
    done = CliRunner().invoke(app, ["estimate", "--months", MONTH, "--systems", "zero_shot"])
    assert done.exit_code == 0, done.output
    assert "key_elements" in done.stdout
    assert "zero_shot" in done.stdout
    assert "chatcite" not in done.stdout
    assert command[0].requests == []


def test_the_command_prints_one_json_document(command: tuple[ScriptedLlm, Path]) -> None:
    done = CliRunner().invoke(app, ["estimate", "--months", MONTH, "--json"])
    told = json.loads(done.stdout)
    assert {part["system"] for part in told["parts"]} >= {None, "zero_shot"}
    assert told["months"] == [MONTH]


def test_the_command_refuses_a_system_that_there_is_not(command: tuple[ScriptedLlm, Path]) -> None:
    done = CliRunner().invoke(app, ["estimate", "--months", MONTH, "--systems", "oracle", "--json"])
    assert done.exit_code == 2
    assert "oracle" in json.loads(done.stdout)["message"]


def test_runs_at_their_ceiling_go_on_to_the_rows_of_an_undisturbed_one(tmp_path: Path) -> None:
    with ScriptedLlm() as llm:
        undisturbed = workspace(llm, tmp_path / "undisturbed", **SETTINGS)
        write_corpus(undisturbed, TASKS)
        needed = estimate(undisturbed, [MONTH]).total().to_pay
        run_all(undisturbed)
    with ScriptedLlm() as llm:
        write_corpus(workspace(llm, tmp_path / "stopped", **SETTINGS), TASKS)
        for limit in (20, 21, 22):  # each another ceiling, hence a budget of its own, as a process has
            place = workspace(llm, tmp_path / "stopped", **SETTINGS, llm_budget_calls=limit)
            try:
                run_all(place)
            except BudgetReached:
                assert estimate(place, [MONTH]).total().to_pay == needed - llm.generations
        assert llm.generations == needed
    for table in (tables.KEY_ELEMENTS, tables.SUMMARIES, tables.SCORES):
        assert place.root.file(table, MONTH).read_bytes() == undisturbed.root.file(table, MONTH).read_bytes()
