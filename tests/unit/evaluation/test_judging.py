"""The stage `g_scores`: which conversations each judge is led through, its rows, ledger and
reruns.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from pipeline import tables
from pipeline.engine.progress import Outcome
from pipeline.engine.run import run_stage
from pipeline.engine.stage import Job, Workspace
from pipeline.evaluation.g_score.judge import CRITERIA
from pipeline.evaluation.g_score.measures import named_judgement
from pipeline.evaluation.g_score.sample import shown_orders
from pipeline.evaluation.stages import G_SCORES
from pipeline.system_names import RELATED_WORK_SYSTEMS
from pipeline.tables.writers import short_names, writer_name
from tests.models_file import write_models
from tests.month_tables import write_table
from tests.scripted_llm import Asked, ScriptedLlm
from tests.unit.evaluation.made_up import same, summary, task, workspace

pytestmark = pytest.mark.slow

MONTH = "2024-03"
SYSTEMS = ("chatcite", "few_shot", "zero_shot")


@pytest.fixture
def llm() -> Iterator[ScriptedLlm]:
    with ScriptedLlm() as server:
        yield server


def marks(*six: int) -> dict[str, int]:
    return dict(zip(CRITERIA, six, strict=True))


def set_up(
    folder: Path,
    llm: ScriptedLlm,
    tasks: int = 2,
    systems: Sequence[str] = SYSTEMS,
    **settings: Any,
) -> Workspace:
    """A month of tasks with a section of each of the systems."""
    work = workspace(folder, **{"llm_url": llm.url, "llm_model": llm.model, **settings})
    rows = [task(f"2403.9000{number + 1}", same) for number in range(tasks)]
    write_sections(work, rows, systems)
    return work


def write_sections(
    work: Workspace, rows: Sequence[dict[str, Any]], systems: Sequence[str] = SYSTEMS
) -> None:
    write_table(work.root, tables.RELATED_WORK_TASKS, MONTH, rows)
    written = [
        {**summary(row, system), "text": f"Text {number} of {row['task_id']}"}
        for number, system in enumerate(RELATED_WORK_SYSTEMS)
        if system in systems
        for row in reversed(rows)
    ]
    write_table(work.root, tables.SUMMARIES, MONTH, written)


def judged(work: Workspace, **options: Any) -> tuple[list[dict[str, Any]], Outcome]:
    """The rows, with systems in place of writers: all of them call one model."""
    outcome = run_stage(G_SCORES, work, MONTH, **options)
    rows = work.root.rows(tables.G_SCORES, MONTH)
    shown = short_names(writer_name(marks) for row in rows for marks in row["marks"])
    named = [named_judgement(row, shown) for row in rows]
    for row in named:
        row["marks"] = [
            {name: mark for name, mark in marks.items() if name != "model"}
            for marks in row["marks"]
        ]
    return named, outcome


def ledger(work: Workspace) -> list[tuple[str, str, str]]:
    rows = pq.read_table(work.root.ledger_file("g_scores", MONTH)).to_pylist()
    return [(row["subject"], row["reason"], row["detail"]) for row in rows]


def shown(request: dict[str, Any]) -> list[str]:
    return re.findall(r"^Section (\w):$", request["messages"][-1]["content"], re.MULTILINE)


def test_all_systems_are_judged_together_in_every_repeat(tmp_path: Path, llm: ScriptedLlm) -> None:
    rows, _ = judged(set_up(tmp_path, llm, judge_repeats=6))
    assert Counter("".join(shown(request)) for request in llm.requests) == {"ABC": 2 * 6}
    assert {request["temperature"] for request in llm.requests} == {0.0}
    for task_id in ("2403.90001#S2", "2403.90002#S2"):
        mine = [row for row in rows if row["task_id"] == task_id and row["mode"] == "together"]
        assert [row["repeat"] for row in mine] == list(range(6))
        assert [tuple(row["order"]) for row in mine] == list(shown_orders(task_id, SYSTEMS))
        for row in mine:
            assert [each["system"] for each in row["marks"]] == row["order"]
            assert row["best"] in SYSTEMS


def test_the_judge_never_sees_a_systems_name(tmp_path: Path, llm: ScriptedLlm) -> None:
    judged(set_up(tmp_path, llm))
    sent = json.dumps([request["messages"] for request in llm.requests]).lower()
    assert not [
        name for name in RELATED_WORK_SYSTEMS if name in sent or name.replace("_", "-") in sent
    ]


def test_one_system_is_asked_about_once_and_nobody_votes(tmp_path: Path, llm: ScriptedLlm) -> None:
    rows, _ = judged(set_up(tmp_path, llm, tasks=1, systems=("chatcite",)))
    assert [(row["mode"], row["order"], row["best"]) for row in rows] == [
        ("together", ["chatcite"], None)
    ]
    assert llm.generations == 1


def test_marks_lead_back_to_the_systems_in_the_order_shown_and_two_systems_have_two_orders(
    tmp_path: Path,
) -> None:
    def first_is_best(asked: Asked) -> str | None:
        if "B" not in (asked.schema or {})["properties"]:
            return None
        return json.dumps({"A": marks(5, 5, 5, 5, 5, 5), "B": marks(1, 1, 1, 1, 1, 2), "best": "A"})

    with ScriptedLlm(first_is_best) as llm:
        rows, _ = judged(set_up(tmp_path, llm, systems=SYSTEMS[:2], judge_repeats=5))
    assert [(row["task_id"], tuple(row["order"])) for row in rows] == [
        (task_id, order)
        for task_id in ("2403.90001#S2", "2403.90002#S2")
        for order in shown_orders(task_id, SYSTEMS[:2])
    ]
    assert llm.generations == len(rows) == 2 * 2
    for row in rows:
        assert row["best"] == row["order"][0]
        assert row["marks"] == [
            {"system": row["order"][0], **marks(5, 5, 5, 5, 5, 5)},
            {"system": row["order"][1], **marks(1, 1, 1, 1, 1, 2)},
        ]


def test_judges_that_did_not_write_read_the_same_conversations_and_rows_stand_by_judge(
    tmp_path: Path,
) -> None:
    with ScriptedLlm(models=("strict", "another")) as llm:
        models = write_models(tmp_path / "settings", llm.url, "strict", "another")
        settings = {"llm_model": "writer", "models": models, "judges": "strict,another"}
        rows, outcome = judged(set_up(tmp_path, llm, judge_repeats=2, **settings))
        first, second = (
            sorted(
                json.dumps(request["messages"])
                for request in llm.requests
                if request["model"] == name
            )
            for name in ("strict", "another")
        )
    assert first == second
    keys = [
        (row["task_id"], row["mode"], row["judge"], row["repeat"], row["order"]) for row in rows
    ]
    assert keys == sorted(keys)
    assert Counter(row["judge"] for row in rows) == {"strict": 2 * 2, "another": 2 * 2}
    assert outcome.notes == {"judged": {"together": 8}}
    assert outcome.measured["llm_calls"] == len(rows)


def test_judges_together_keep_to_the_limit_on_calls_in_flight(tmp_path: Path) -> None:
    with ScriptedLlm(models=("scripted", "another"), latency=0.02) as llm:
        models = write_models(tmp_path / "settings", llm.url, "another", concurrency=3)
        judged(
            set_up(
                tmp_path, llm, tasks=4, llm_concurrency=3, models=models, judges="scripted,another"
            )
        )
        assert 1 < llm.at_once <= 3


def test_what_cannot_be_judged_is_in_the_ledger_and_the_month_goes_on(tmp_path: Path) -> None:
    def nonsense_for_the_first_task(asked: Asked) -> str | None:
        return "no" if "The one that fails" in asked.prompt else None

    with ScriptedLlm(nonsense_for_the_first_task) as llm:
        work = workspace(tmp_path, llm_url=llm.url, llm_model=llm.model, judge_repeats=2)
        unreadable = {**task("2403.90001"), "description": "The one that fails"}
        without_gold = {**task("2403.90003"), "gold": " \n"}
        write_sections(work, [unreadable, task("2403.90002"), without_gold], SYSTEMS[:2])
        found, outcome = judged(work)
    assert {row["task_id"] for row in found} == {"2403.90002#S2"}
    details = [
        detail.split(":")[0]
        for _, reason, detail in ledger(work)
        if reason == "unreadable_judgement"
    ]
    assert details == ["scripted, together, repeat 0", "scripted, together, repeat 1"]
    assert {entry[:2] for entry in ledger(work)} == {
        ("2403.90001#S2", "unreadable_judgement"),
        ("2403.90003#S2", "no_gold"),
    }
    assert outcome.notes["judged"] == {"together": 2}


def test_a_second_run_pays_nothing_and_more_repeats_pay_for_what_is_new_alone(
    tmp_path: Path, llm: ScriptedLlm
) -> None:
    work = set_up(tmp_path, llm, judge_repeats=1)
    judged(work)
    first, paid = work.root.file(tables.G_SCORES, MONTH).read_bytes(), llm.generations
    _, outcome = judged(work, force=True)
    assert work.root.file(tables.G_SCORES, MONTH).read_bytes() == first
    assert (
        outcome.measured["llm_cached"] == outcome.measured["llm_calls"] == llm.generations == paid
    )
    assert list(G_SCORES.build(Job(work, MONTH, G_SCORES))) == work.root.rows(
        tables.G_SCORES, MONTH
    )
    judged(set_up(tmp_path, llm, judge_repeats=3))
    assert llm.generations == paid + 2 * 2


def test_a_month_without_sections_asks_nobody(tmp_path: Path, llm: ScriptedLlm) -> None:
    rows, outcome = judged(set_up(tmp_path, llm, systems=()))
    assert (rows, llm.requests, outcome.notes) == ([], [], {"judged": {}})


def test_what_does_not_fit_is_cut_alike_for_all_systems_and_recorded_once(
    tmp_path: Path, llm: ScriptedLlm
) -> None:
    work = workspace(
        tmp_path, llm_url=llm.url, llm_model=llm.model, llm_context=4096, judge_repeats=2
    )
    long = " ".join(f"word{number}" for number in range(900))
    row = {**task("2403.90001"), "gold": long}
    write_sections(work, [row], SYSTEMS[:2])
    long_ones = [{**summary(row, system), "text": f"{long} {system}"} for system in SYSTEMS[:2]]
    write_table(work.root, tables.SUMMARIES, MONTH, long_ones)
    rows, _ = judged(work)
    assert [set(each["cut"]) for each in rows] == [{"gold", *SYSTEMS[:2]}] * 2
    assert [entry[:2] for entry in ledger(work)] == [("2403.90001#S2", "cut_for_judge")]
    for request in llm.requests:
        cut = re.findall(
            r"<section_\w>\n(.*?)\n</section_\w>", request["messages"][-1]["content"], re.DOTALL
        )
        assert len(set(cut)) == 1


def test_what_there_is_no_room_for_is_in_the_ledger(tmp_path: Path, llm: ScriptedLlm) -> None:
    work = set_up(tmp_path, llm, tasks=1, llm_context=1400, judge_repeats=1)
    rows, _ = judged(work)
    assert rows == []
    assert [entry[:2] for entry in ledger(work)] == [("2403.90001#S2", "no_room_for_judge")]


def test_one_system_by_two_models_is_two_writers(tmp_path: Path, llm: ScriptedLlm) -> None:
    work = set_up(tmp_path, llm, tasks=1, systems=("chatcite",), judge_repeats=2)
    (row,) = work.root.rows(tables.SUMMARIES, MONTH)
    write_table(
        work.root,
        tables.SUMMARIES,
        MONTH,
        [row, {**row, "model": "large", "text": "Another text."}],
    )
    run_stage(G_SCORES, work, MONTH)
    rows = work.root.rows(tables.G_SCORES, MONTH)
    writers = {"chatcite@some-model", "chatcite@large"}
    together = [row for row in rows if row["mode"] == "together"]
    assert [set(row["order"]) for row in together] == [writers, writers]
    assert {row["best"] for row in together} <= writers
    assert [[writer_name(marks) for marks in row["marks"]] for row in rows] == [
        row["order"] for row in rows
    ]
