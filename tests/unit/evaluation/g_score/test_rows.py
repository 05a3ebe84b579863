"""The stage `g_scores`: each judge's conversations, its rows, ledger and reruns."""

import json
import re
from collections import Counter

import pyarrow.parquet as pq
import pytest

from pipeline import tables
from pipeline.engine.run import run_stage
from pipeline.evaluation.g_score.sample import shown_orders
from pipeline.evaluation.stages import G_SCORES
from pipeline.system_names import RELATED_WORK_SYSTEMS
from pipeline.tables import CRITERIA
from pipeline.tables.writers import parse_writer, writer_name
from tests.models_file import write_models
from tests.month_tables import write_table
from tests.scripted_llm import ScriptedLlm
from tests.unit.evaluation.made_up import summary, task, workspace

pytestmark = pytest.mark.slow

MONTH = "2024-03"
FIRST, SECOND, THIRD = (f"2403.9000{number}#S2" for number in (1, 2, 3))
SYSTEMS = ("chatcite", "few_shot", "zero_shot")


@pytest.fixture
def llm():
    with ScriptedLlm() as server:
        yield server


def task_row(task_id, **changes):
    return {**task(task_id.removesuffix("#S2")), **changes}


BOTH = (task_row(FIRST), task_row(SECOND))


def set_up(
    folder,
    llm,
    tasks=BOTH,
    systems=SYSTEMS,
    text="Text",
    **settings,
):
    """A month of tasks with a section of each of the systems."""
    work = workspace(folder, **{"llm_url": llm.url, "llm_model": llm.model, **settings})
    write_table(work.root, tables.RELATED_WORK_TASKS, MONTH, tasks)
    sections = [
        {**summary(row, system), "text": f"{text} {number} of {row['task_id']}"}
        for number, system in enumerate(systems)
        for row in reversed(tasks)
    ]
    write_table(work.root, tables.SUMMARIES, MONTH, sections)
    return work


def judged(work, **options):
    outcome = run_stage(G_SCORES, work, MONTH, **options)
    return work.root.rows(tables.G_SCORES, MONTH), outcome


def systems_of(row):
    return tuple(parse_writer(name).system for name in row["order"])


def ledger(work):
    rows = pq.read_table(work.root.ledger_file("g_scores", MONTH)).to_pylist()
    return [(row["subject"], row["reason"], row["detail"]) for row in rows]


def test_all_systems_are_judged_together_in_every_repeat_and_never_by_name(tmp_path, llm):
    rows, _ = judged(set_up(tmp_path, llm, judge_repeats=6))
    prompts = [request["messages"][-1]["content"] for request in llm.requests]
    labels = ["".join(re.findall(r"^Section (\w):$", prompt, re.MULTILINE)) for prompt in prompts]
    assert Counter(labels) == {"ABC": 2 * 6}
    assert {request["temperature"] for request in llm.requests} == {0.0}
    sent = json.dumps(llm.requests).lower().replace("-", "_")
    assert [name for name in RELATED_WORK_SYSTEMS if name in sent] == []
    for task_id in (FIRST, SECOND):
        mine = [row for row in rows if row["task_id"] == task_id]
        assert [(row["candidate_set"], row["repeat"]) for row in mine] == [
            ("main", n) for n in range(6)
        ]
        assert [systems_of(row) for row in mine] == list(shown_orders(task_id, SYSTEMS))
        for row in mine:
            assert [writer_name(marks) for marks in row["marks"]] == row["order"]
            assert row["best"] in row["order"]


def test_one_system_is_asked_about_once_and_nobody_votes(tmp_path, llm):
    (row,), _ = judged(set_up(tmp_path, llm, [task_row(FIRST)], ("chatcite",)))
    assert (row["candidate_set"], systems_of(row), row["best"]) == ("main", ("chatcite",), None)
    assert llm.generations == 1


def test_marks_lead_back_to_the_systems_in_the_order_shown_and_two_systems_have_two_orders(
    tmp_path,
):
    best, worst = dict.fromkeys(CRITERIA, 5), {**dict.fromkeys(CRITERIA, 1), "fluency": 2}
    answer = json.dumps({"A": best, "B": worst, "best": "A"})
    with ScriptedLlm(lambda asked: answer) as llm:
        rows, _ = judged(set_up(tmp_path, llm, systems=SYSTEMS[:2], judge_repeats=5))
    assert [(row["task_id"], systems_of(row)) for row in rows] == [
        (task_id, order)
        for task_id in (FIRST, SECOND)
        for order in shown_orders(task_id, SYSTEMS[:2])
    ]
    assert llm.generations == len(rows) == 2 * 2
    for row in rows:
        assert row["best"] == row["order"][0]
        assert row["marks"] == [
            {**parse_writer(name).columns, **marks}
            for name, marks in zip(row["order"], (best, worst), strict=True)
        ]


def test_a_judge_that_did_not_write_is_asked_within_its_limit(tmp_path):
    with ScriptedLlm(models=("strict",), latency=0.02) as llm:
        models = write_models(tmp_path / "settings", llm.url, "strict", concurrency=3)
        settings = {"llm_model": "writer", "models": models, "judges": "strict"}
        rows, outcome = judged(
            set_up(tmp_path, llm, judge_repeats=2, llm_concurrency=3, **settings)
        )
        assert 1 < llm.at_once <= 3
    columns = ("task_id", "candidate_set", "section_repeat", "judge", "repeat")
    keys = [[row[name] for name in columns] for row in rows]
    assert keys == sorted(keys)
    assert Counter(row["judge"] for row in rows) == {"strict": 2 * 2}
    assert outcome.notes == {"judged": {"main": 4}}
    assert outcome.measured["llm_calls"] == len(rows)


def test_what_cannot_be_judged_is_in_the_ledger_and_the_month_goes_on(tmp_path):
    tasks = [
        task_row(FIRST, description="The one that fails"),
        task_row(SECOND),
        task_row(THIRD, gold=" \n"),
    ]
    fails = lambda asked: "no" if "The one that fails" in asked.prompt else None  # noqa: E731
    with ScriptedLlm(fails) as llm:
        work = set_up(tmp_path, llm, tasks, SYSTEMS[:2], judge_repeats=2)
        rows, outcome = judged(work)
    assert {row["task_id"] for row in rows} == {SECOND}
    assert outcome.notes["judged"] == {"main": 2}
    assert {entry[:2] for entry in ledger(work)} == {
        (FIRST, "failed_unreadable"),
        (THIRD, "no_gold"),
    }
    details = [detail.split(":")[0] for subject, _, detail in ledger(work) if subject == FIRST]
    assert details == [f"scripted, candidate set main, repeat {repeat}" for repeat in (0, 1)]


def test_more_repeats_pay_for_what_is_new_alone_and_a_repair_counts_as_a_call(
    tmp_path,
):
    def nonsense_until_repair(asked):
        return None if len(asked.body["messages"]) > 2 else "I would rather not say."

    with ScriptedLlm(nonsense_until_repair) as llm:
        rows, first = judged(set_up(tmp_path, llm, judge_repeats=1))
        again, second = judged(set_up(tmp_path, llm, judge_repeats=1), force=True)
        assert again == rows
        assert [row["calls"] for row in rows] == [2, 2]
        assert llm.generations == first.measured["llm_calls"] == second.measured["llm_cached"] == 4
        judged(set_up(tmp_path, llm, judge_repeats=3))
        assert llm.generations == 4 + 2 * 2 * 2


def test_a_month_without_sections_asks_nobody(tmp_path, llm):
    rows, outcome = judged(set_up(tmp_path, llm, systems=()))
    assert (rows, llm.requests, outcome.notes) == ([], [], {"judged": {}})


def test_what_does_not_fit_is_cut_alike_for_all_systems_and_recorded_once(tmp_path, llm):
    long = " ".join(f"word{number}" for number in range(900))
    tasks = [task_row(FIRST, gold=long)]
    work = set_up(tmp_path, llm, tasks, SYSTEMS[:2], long, llm_context=4096, judge_repeats=2)
    rows, _ = judged(work)
    assert [set(row["cut"]) for row in rows] == [{"gold", *row["order"]} for row in rows]
    assert [entry[:2] for entry in ledger(work)] == [(FIRST, "cut_for_judge")]
    for request in llm.requests:
        prompt = request["messages"][-1]["content"]
        sections = re.findall(r"<section_\w>\n(.*?)\n</section_\w>", prompt, re.DOTALL)
        assert len(set(sections)) == 1


def test_what_there_is_no_room_for_is_in_the_ledger(tmp_path, llm):
    work = set_up(tmp_path, llm, [task_row(FIRST)], llm_context=1400, judge_repeats=1)
    assert judged(work)[0] == []
    assert [entry[:2] for entry in ledger(work)] == [(FIRST, "no_room_for_judge")]


def test_the_ablations_are_judged_in_a_conversation_of_their_own(tmp_path, llm):
    ablations = ("chatcite_no_elements", "chatcite_no_incremental")
    systems = (*SYSTEMS, *ablations, "imported")
    work = set_up(tmp_path, llm, [task_row(FIRST)], systems, judge_repeats=1)
    rows = work.root.rows(tables.SUMMARIES, MONTH)
    large = {**next(row for row in rows if row["system"] == "few_shot"), "model": "large"}
    write_table(work.root, tables.SUMMARIES, MONTH, [*rows, large])
    found, _ = judged(work)
    assert {row["candidate_set"]: sorted(row["order"]) for row in found} == {
        "ablations": [f"{name}@some-model" for name in ("chatcite", *ablations, "few_shot")],
        "main": sorted(
            ["few_shot@large", *(f"{name}@some-model" for name in (*SYSTEMS, "imported"))]
        ),
    }
    named = json.dumps({"two": ["few_shot", "chatcite@some-model"], "none": ["lead"]})
    found, _ = judged(set_up(tmp_path, llm, [task_row(FIRST)], systems, candidate_sets=named))
    assert {row["candidate_set"]: sorted(row["order"]) for row in found} == {
        "two": ["chatcite@some-model", "few_shot@some-model"]
    }


def test_a_repeat_keeps_its_number_where_the_one_before_was_not_written(tmp_path, llm):
    work = set_up(tmp_path, llm, [task_row(FIRST)], judge_repeats=1)
    rows = work.root.rows(tables.SUMMARIES, MONTH)
    again = [{**row, "repeat": 2} for row in rows]
    write_table(work.root, tables.SUMMARIES, MONTH, [*rows, *again])
    assert [row["section_repeat"] for row in judged(work)[0]] == [0, 2]


def test_one_system_by_two_models_is_two_writers(tmp_path, llm):
    work = set_up(tmp_path, llm, [task_row(FIRST)], ("chatcite",), judge_repeats=2)
    (row,) = work.root.rows(tables.SUMMARIES, MONTH)
    large = {**row, "model": "large", "text": "Another text."}
    write_table(work.root, tables.SUMMARIES, MONTH, [row, large])
    rows, _ = judged(work)
    writers = {"chatcite@some-model", "chatcite@large"}
    assert [set(row["order"]) for row in rows] == [writers, writers]
    assert {row["best"] for row in rows} <= writers
