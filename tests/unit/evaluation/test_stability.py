"""Stability: what is repeated, in which orders, by which calls, and how far the repeats lie apart."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from pipeline import tables
from pipeline.engine.run import State, run_stage, state
from pipeline.engine.stage import Outcome, Workspace
from pipeline.errors import MissingInput
from pipeline.evaluation.stability import FIGURE_3, Target, orders, reordered, spread
from pipeline.evaluation.stages import STABILITY
from pipeline.related_work.stages import KEY_ELEMENTS, SUMMARIES
from pipeline.tables import CRITERIA
from tests.models_file import write_models
from tests.scripted_llm import Asked, ScriptedLlm
from tests.unit.related_work.building import make_elements, make_task, workspace, write_corpus

pytestmark = pytest.mark.slow

MONTH = "2024-05"
TASKS = {
    2: ["2403.00003", "2403.00001"],
    1: ["2403.00001", "2403.00002", "2403.00004", "2403.00005"],
    3: ["2403.00006", "2403.00002", "2403.00001"],
}
FEW = {"systems": "chatcite", "chatcite_samples": 2, "chatcite_votes": 1, "chatcite_kept": 1}
Undisturbed = tuple[Workspace, Outcome, ScriptedLlm]


def prepared(llm: ScriptedLlm, folder: Path, **settings: Any) -> Workspace:
    """A workspace whose tasks have their key elements."""
    place = workspace(llm, folder, **{"stability_tasks": 2, "stability_repeats": 3, **FEW, **settings})
    write_corpus(place, TASKS)
    run_stage(KEY_ELEMENTS, place, MONTH)
    return place


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Undisturbed]:
    """A month that was repeated by default, for tests that change nothing of it."""
    with ScriptedLlm() as llm:
        place = prepared(llm, tmp_path_factory.mktemp("undisturbed"))
        yield place, run_stage(STABILITY, place, MONTH), llm


def rows_of(place: Workspace, **wanted: Any) -> list[dict[str, Any]]:
    rows = place.root.rows(tables.STABILITY, MONTH)
    return [row for row in rows if all(row[name] == value for name, value in wanted.items())]


def ledger(place: Workspace) -> list[tuple[str, str]]:
    rows = pq.read_table(place.root.ledger_file("stability", MONTH)).to_pylist()
    return [(row["subject"], row["reason"]) for row in rows]


def test_the_first_tasks_are_repeated_with_and_without_reflection(undisturbed: Undisturbed) -> None:
    place, outcome, _ = undisturbed
    found = [(row["task_id"], row["system"], row["varied"], row["repeat"]) for row in rows_of(place)]
    assert found == sorted(found)
    # Task 2 has two references, thus two orders.
    assert Counter(each[:3] for each in found) == {
        (task, system, varied): 2 if (task, varied) == ("2405.00002#S2", "order") else 3
        for task in ("2405.00001#S2", "2405.00002#S2")
        for system in FIGURE_3
        for varied in ("order", "samples")
    }
    assert dict(outcome.left_out) == {"no_other_order": 1}
    assert ledger(place) == [("2405.00002#S2", "no_other_order")]


def test_every_writer_that_calls_a_model_is_repeated(tmp_path: Path) -> None:
    with ScriptedLlm(models=("scripted", "other")) as llm:
        models = write_models(tmp_path / "settings", llm.url, "other")
        systems = "chatcite,few_shot,zero_shot@other,lead"
        place = prepared(llm, tmp_path, models=models, systems=systems, stability_tasks=1)
        outcome = run_stage(STABILITY, place, MONTH)
    writers = {(row["system"], row["model"]) for row in rows_of(place)}
    assert writers == {
        ("chatcite", "scripted"),
        ("chatcite_no_reflection", "scripted"),
        ("few_shot", "scripted"),
        ("zero_shot", "other"),
    }
    assert {row["calls"] for row in rows_of(place, system="zero_shot")} == {1 + 1}
    assert len({row["text"] for row in rows_of(place, system="few_shot", varied="samples")}) == 3
    assert outcome.measured["llm_calls"] == sum(row["calls"] for row in rows_of(place))


def test_rows_say_what_was_written_and_what_it_is_worth(undisturbed: Undisturbed) -> None:
    place, _, _ = undisturbed
    for row in rows_of(place):
        assert (row["model"], row["judge"]) == ("scripted", "scripted")
        assert row["g_score"] == pytest.approx(statistics.fmean(row[f"g_{criterion}"] for criterion in CRITERIA))
        assert row["coverage"] == 1
        assert all(0 <= row[metric] <= 100 for metric in ("rouge1", "rouge2", "rougeL", "rougeLsum"))
        assert row["prompt_tokens"] > 0 < row["completion_tokens"]
    # One draft for each of four references, and one judgement.
    assert {row["calls"] for row in rows_of(place, task_id="2405.00001#S2", system="chatcite_no_reflection")} == {5}
    assert {row["calls"] for row in rows_of(place, task_id="2405.00001#S2", system="chatcite")} == {4 * (2 + 1) + 1}


def test_other_samples_keep_the_order_and_other_orders_keep_the_samples(undisturbed: Undisturbed) -> None:
    place, _, _ = undisturbed
    first = {"task_id": "2405.00001#S2", "system": "chatcite"}
    samples, order = (rows_of(place, **first, varied=varied) for varied in ("samples", "order"))
    assert {tuple(row["order"]) for row in samples} == {(1, 2, 3, 4)}
    assert len({tuple(row["order"]) for row in order}) == 3
    assert all(sorted(row["order"]) == [1, 2, 3, 4] for row in order)
    assert order[0]["order"] == [1, 2, 3, 4]
    assert order[0]["text"] == samples[0]["text"]
    assert len({row["text"] for row in samples}) == 3
    without = [rows_of(place, **first | {"system": "chatcite_no_reflection"}, varied=v) for v in ("samples", "order")]
    assert all(len({row["text"] for row in rows}) == 3 for rows in without)


def test_repeat_0_is_the_section_of_the_month_and_pays_for_none_of_it(tmp_path: Path) -> None:
    with ScriptedLlm() as llm:
        place = prepared(llm, tmp_path, systems=",".join(FIGURE_3))
        run_stage(SUMMARIES, place, MONTH)
        run_stage(STABILITY, place, MONTH)
    for system in FIGURE_3:
        section = next(row for row in place.root.rows(tables.SUMMARIES, MONTH) if row["system"] == system)
        for varied in ("samples", "order"):
            (row,) = rows_of(place, task_id=section["task_id"], system=system, varied=varied, repeat=0)
            assert row["text"] == section["text"]
    paid = Counter(
        (str(body["messages"]), body["seed"] + place)
        for body in llm.requests
        if "response_format" not in body
        for place in range(body.get("n", 1))
    )
    assert set(paid.values()) == {1}


def test_a_second_run_pays_nothing_and_writes_the_same_bytes(undisturbed: Undisturbed) -> None:
    place, _, llm = undisturbed
    before, asked = place.root.file(tables.STABILITY, MONTH).read_bytes(), len(llm.requests)
    settings = place.settings.model_copy(update={"llm_concurrency": 50})
    outcome = run_stage(STABILITY, Workspace(settings), MONTH, force=True)
    assert len(llm.requests) == asked
    assert place.root.file(tables.STABILITY, MONTH).read_bytes() == before
    assert outcome.measured["llm_cached"] == outcome.measured["llm_calls"] == sum(r["calls"] for r in rows_of(place))


def test_a_judge_of_its_own_only_marks_and_keeps_with_the_writer_to_the_limit_on_calls(tmp_path: Path) -> None:
    with ScriptedLlm(models=("scripted", "strict"), latency=0.01) as llm:
        models = write_models(tmp_path / "settings", llm.url, "strict", concurrency=2)
        place = prepared(llm, tmp_path, models=models, judges="strict", llm_concurrency=2)
        llm.at_once = 0
        outcome = run_stage(STABILITY, place, MONTH)
        assert llm.at_once == 2
    assert {(row["model"], row["judge"]) for row in rows_of(place)} == {("scripted", "strict")}
    assert {"response_format" in body for body in llm.requests if body["model"] == "strict"} == {True}
    assert outcome.measured["llm_calls"] == sum(row["calls"] for row in rows_of(place))


def test_a_section_that_could_not_be_judged_has_no_score_and_is_in_the_ledger(tmp_path: Path) -> None:
    def rule(asked: Asked) -> str | None:
        judged = asked.schema is not None and "consistency" in asked.body["messages"][0]["content"]
        return "no marks" if judged and "Target 2" in asked.prompt else None

    with ScriptedLlm(rule) as llm:
        place = prepared(llm, tmp_path)
        outcome = run_stage(STABILITY, place, MONTH)
    unjudged = rows_of(place, g_score=None)
    assert {row["task_id"] for row in unjudged} == {"2405.00002#S2"}
    assert len(unjudged) == outcome.left_out["unreadable_judgement"] == 2 * (2 + 3)
    assert ("2405.00002#S2 chatcite@scripted order 1", "unreadable_judgement") in ledger(place)
    assert all(each.tasks == 1 for each in spread(rows_of(place)))


def test_without_tasks_nothing_is_asked(tmp_path: Path) -> None:
    with ScriptedLlm() as llm:
        place = workspace(llm, tmp_path)
        write_corpus(place, TASKS)
        run_stage(KEY_ELEMENTS, place, MONTH)
        asked = len(llm.requests)
        outcome: Outcome = run_stage(STABILITY, place, MONTH)
        assert len(llm.requests) == asked
    assert (outcome.rows, outcome.notes["off"]) == (0, "CITELOOM_STABILITY_TASKS is 0")
    assert outcome.disabled


def test_more_repeats_or_another_judge_make_a_month_stale(tmp_path: Path) -> None:
    with ScriptedLlm() as llm:
        place = prepared(llm, tmp_path, stability_tasks=1)
        run_stage(STABILITY, place, MONTH)
        given = {"stability_tasks": 1, "stability_repeats": 3, **FEW}
        assert state(STABILITY, workspace(llm, tmp_path, **given, llm_concurrency=9), MONTH) is State.DONE
        judge = {"models": write_models(tmp_path / "settings", llm.url, "other"), "judges": "other"}
        for change in ({"stability_repeats": 4}, judge, {"chatcite_votes": 2}):
            assert state(STABILITY, workspace(llm, tmp_path, **given | change), MONTH) is State.STALE


def test_orders_begin_with_the_own_and_are_the_same_for_every_count() -> None:
    numbers = list(range(1, 11))
    found = orders("2405.00001#S2", numbers, 8)
    assert found[0] == tuple(numbers)
    assert len(set(found)) == 8
    assert all(sorted(order) == numbers for order in found)
    assert orders("2405.00001#S2", numbers, 3) == found[:3]
    assert orders("2405.00002#S2", numbers, 8)[1:] != found[1:]


@pytest.mark.parametrize(("references", "there_are"), [(0, 1), (1, 1), (2, 2), (3, 6), (4, 9)])
def test_no_order_comes_twice_where_there_are_few(references: int, there_are: int) -> None:
    found = orders("t", range(1, references + 1), 9)
    assert len(found) == len(set(found)) == there_are


def test_a_reordered_task_keeps_numbers_with_their_papers() -> None:
    task, elements = make_task(3), make_elements(4)
    moved, known = reordered(Target({}, task, elements), (3, 1, 2))
    assert [reference.number for reference in moved.references] == [3, 1, 2]
    assert [reference.title for reference in moved.references] == [f"Reference title {i}" for i in (3, 1, 2)]
    assert [text.splitlines()[0] for text in moved.texts[1:]] == [f"# Reference title {i}" for i in (3, 1, 2)]
    assert known == [elements[0], elements[3], elements[1], elements[2]]
    assert moved.numbers == task.numbers


def repeated(values: Mapping[str, Sequence[float | None]], system: str = "chatcite") -> list[dict[str, Any]]:
    return [
        {"task_id": task, "system": system, "varied": "samples", "repeat": place, "g_score": value}
        for task, given in values.items()
        for place, value in enumerate(given)
    ]


def test_spread_is_over_runs_and_within_tasks() -> None:
    values = {"a": [1.0, 2.0, 3.0, 5.0], "b": [2.0, 2.0, 4.0, 3.0]}
    (found,) = spread(list(reversed(repeated(values))))
    runs = [1.5, 2.0, 3.5, 4.0]
    assert found.runs == tuple(runs)
    assert (found.low, found.high, found.mean) == (1.5, 4.0, 2.75)
    assert found.median == 2.75
    assert found.sd == pytest.approx(np.std(runs, ddof=1))
    assert found.sd_of_a_task == pytest.approx(np.sqrt(statistics.fmean(np.var(v, ddof=1) for v in values.values())))
    assert found.tasks == 2


def test_a_task_that_lacks_a_score_is_in_no_run_and_what_was_not_repeated_has_no_spread() -> None:
    (found,) = spread(repeated({"a": [1.0, 3.0], "b": [5.0, None]}))
    assert (found.runs, found.tasks) == ((1.0, 3.0), 1)
    assert spread([]) == []
    assert spread(repeated({"a": [3.0]})) == []
    assert spread(repeated({"a": [3.0, None], "b": [None, 2.0]})) == []


def test_systems_and_what_was_varied_stand_apart() -> None:
    rows = repeated({"a": [1.0, 2.0]}) + repeated({"a": [4.0, 4.0]}, "chatcite_no_reflection")
    rows += [row | {"varied": "order"} for row in rows]
    names = [(each.system, each.varied, each.mean) for each in spread(rows)]
    assert names == [
        ("chatcite", "order", 1.5),
        ("chatcite", "samples", 1.5),
        ("chatcite_no_reflection", "order", 4.0),
        ("chatcite_no_reflection", "samples", 4.0),
    ]


def test_key_elements_of_other_references_are_not_repeated_from(tmp_path: Path) -> None:
    with ScriptedLlm() as llm:
        place = prepared(llm, tmp_path)
        write_corpus(place, {**TASKS, 1: TASKS[1][:2]})
        with pytest.raises(MissingInput, match="--until key_elements"):
            run_stage(STABILITY, place, MONTH)
