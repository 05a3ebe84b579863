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
from pipeline.tables import CRITERIA
from pipeline.tables.writers import parse_writer, writer_name
from tests.month_tables import write_table
from tests.scripted_llm import ScriptedLlm
from tests.unit.evaluation.made_up import section, task, workspace

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


ONE = (task_row(FIRST),)
BOTH = (*ONE, task_row(SECOND))


def judged(folder, llm, tasks=BOTH, systems=SYSTEMS, text="Text", more=(), **settings):
    """A month of tasks with a section of each of the systems, judged. more: changes of the first
    section, which is there again with each of them. Rows, the run's outcome, and its ledger.
    """
    work = workspace(folder, llm_url=llm.url, llm_model=llm.model, **settings)
    write_table(work.root, tables.RELATED_WORK_TASKS, MONTH, tasks)
    sections = [
        section(f"{text} {number} of {row['task_id']}", (), system, row["task_id"], "small")
        for number, system in enumerate(systems)
        for row in reversed(tasks)
    ]
    sections += [{**sections[0], **changes} for changes in more]
    write_table(work.root, tables.SUMMARIES, MONTH, sections)
    outcome = run_stage(G_SCORES, work, MONTH, force=True)
    ledger = pq.read_table(work.root.ledger_file("g_scores", MONTH)).to_pylist()
    told = [(row["subject"], row["reason"], row["detail"]) for row in ledger]
    return work.root.rows(tables.G_SCORES, MONTH), outcome, told


def systems_of(row):
    return tuple(parse_writer(name).system for name in row["order"])


def sets_of(rows):
    return {row["candidate_set"]: set(row["order"]) for row in rows}


def test_all_systems_are_judged_together_in_every_repeat(tmp_path, llm):
    rows, outcome, _ = judged(tmp_path, llm, judge_repeats=6)
    prompts = [request["messages"][-1]["content"] for request in llm.requests]
    labels = ["".join(re.findall(r"^Section (\w):$", prompt, re.MULTILINE)) for prompt in prompts]
    assert Counter(labels) == {"ABC": 2 * 6}
    assert outcome.notes == {"judged": {"main": 2 * 6}}
    assert [
        (row["task_id"], row["candidate_set"], row["repeat"], systems_of(row)) for row in rows
    ] == [
        (task_id, "main", repeat, order)
        for task_id in (FIRST, SECOND)
        for repeat, order in enumerate(shown_orders(task_id, SYSTEMS))
    ]
    for row in rows:
        assert [writer_name(marks) for marks in row["marks"]] == row["order"]
        assert row["best"] in row["order"]


def test_one_system_is_asked_about_once_and_nobody_votes(tmp_path, llm):
    (row,), _, _ = judged(tmp_path, llm, ONE, ("chatcite",), judge_repeats=2)
    assert (systems_of(row), row["best"], llm.generations) == (("chatcite",), None, 1)


def test_marks_lead_back_to_the_systems_in_the_order_shown_and_two_systems_have_two_orders(
    tmp_path,
):
    best, worst = dict.fromkeys(CRITERIA, 5), {**dict.fromkeys(CRITERIA, 1), "fluency": 2}
    answer = json.dumps({"A": best, "B": worst, "best": "A"})
    with ScriptedLlm(lambda asked: answer) as llm:
        rows, _, _ = judged(tmp_path, llm, systems=SYSTEMS[:2], judge_repeats=5)
    assert [systems_of(row) for row in rows] == [
        order for task_id in (FIRST, SECOND) for order in shown_orders(task_id, SYSTEMS[:2])
    ]
    assert llm.generations == len(rows) == 2 * 2
    for row in rows:
        first, second = (parse_writer(name).columns for name in row["order"])
        assert row["marks"] == [{**first, **best}, {**second, **worst}]
        assert row["best"] == row["order"][0]


def test_what_cannot_be_judged_is_in_the_ledger_and_the_month_goes_on(tmp_path):
    tasks = [
        task_row(FIRST, description="The one that fails"),
        task_row(SECOND),
        task_row(THIRD, gold=" \n"),
    ]
    fails = lambda asked: "no" if "The one that fails" in asked.prompt else None  # noqa: E731
    with ScriptedLlm(fails) as llm:
        rows, outcome, told = judged(tmp_path, llm, tasks, SYSTEMS[:2], judge_repeats=2)
    assert {row["task_id"] for row in rows} == {SECOND}
    assert outcome.notes["judged"] == {"main": 2}
    assert Counter(entry[:2] for entry in told) == {
        (FIRST, "failed_unreadable"): 2,
        (THIRD, "no_gold"): 1,
    }
    places = {detail.split(":")[0] for subject, _, detail in told if subject == FIRST}
    assert places == {f"scripted, candidate set main, repeat {number}" for number in (0, 1)}


def test_more_repeats_pay_for_what_is_new_alone_and_a_repair_counts_as_a_call(tmp_path):
    def nonsense_until_repair(asked):
        return None if len(asked.body["messages"]) > 2 else "I would rather not say."

    with ScriptedLlm(nonsense_until_repair) as llm:
        rows, _, _ = judged(tmp_path, llm, judge_repeats=1)
        assert [row["calls"] for row in rows] == [2, 2]
        assert llm.generations == 4
        judged(tmp_path, llm, judge_repeats=3)
        assert llm.generations == 4 + 2 * 2 * 2


def test_a_month_without_sections_asks_nobody(tmp_path, llm):
    rows, outcome, _ = judged(tmp_path, llm, systems=())
    assert (rows, llm.requests, outcome.notes) == ([], [], {"judged": {}})


def test_what_does_not_fit_is_cut_alike_for_all_systems_and_recorded_once(tmp_path, llm):
    long = " ".join(f"word{number}" for number in range(900))
    limits = {"llm_context": 4096, "judge_repeats": 2}
    rows, _, told = judged(tmp_path, llm, [task_row(FIRST, gold=long)], SYSTEMS[:2], long, **limits)
    assert [set(row["cut"]) for row in rows] == [{"gold", *row["order"]} for row in rows]
    assert [entry[:2] for entry in told] == [(FIRST, "cut_for_judge")]
    for request in llm.requests:
        prompt = request["messages"][-1]["content"]
        sections = re.findall(r"<section_\w>\n(.*?)\n</section_\w>", prompt, re.DOTALL)
        assert len(set(sections)) == 1
    rows, _, told = judged(tmp_path, llm, ONE, llm_context=1400, judge_repeats=1)
    assert rows == []
    assert [entry[:2] for entry in told] == [(FIRST, "no_room_for_judge")]


def test_the_ablations_are_judged_in_a_conversation_of_their_own(tmp_path, llm):
    ablations = ("chatcite_no_elements", "chatcite_no_incremental")
    systems = ("few_shot", "chatcite", "zero_shot", *ablations, "imported")
    large = [{"model": "large"}]
    rows, _, _ = judged(tmp_path, llm, ONE, systems, more=large, judge_repeats=1)
    both = {"chatcite@small", "few_shot@small"}
    assert sets_of(rows) == {
        "ablations": both | {f"{name}@small" for name in ablations},
        "main": both | {"few_shot@large", "zero_shot@small", "imported@small"},
    }
    named = json.dumps({"two": ["few_shot", "chatcite@small"], "none": ["lead"]})
    rows, _, _ = judged(tmp_path, llm, ONE, systems, candidate_sets=named)
    assert sets_of(rows) == {"two": both}


def test_a_repeat_keeps_its_number_where_the_one_before_was_not_written(tmp_path, llm):
    again = [{"repeat": 2}]
    rows, _, _ = judged(tmp_path, llm, ONE, SYSTEMS[:1], more=again, judge_repeats=1)
    assert [row["section_repeat"] for row in rows] == [0, 2]
