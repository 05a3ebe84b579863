"""The stage `g_scores`: each judge's conversations, its rows and its ledger. What holds for every
judge is in `test_judged.py`.
"""

import json
import re
from collections import Counter
from itertools import islice, pairwise, permutations

import pytest

from pipeline import tables
from pipeline.engine.run import run_stage
from pipeline.evaluation.g_score.judge import answer_schema, g_score_request
from pipeline.evaluation.g_score.sample import TaskSections, shown_orders
from pipeline.evaluation.stages import G_SCORES
from pipeline.llm.context import count_message_tokens
from pipeline.stage_names import RELATED_WORK_SYSTEMS
from pipeline.storage.reading import read_table
from pipeline.tables import CRITERIA
from pipeline.tables.writers import parse_writer
from tests.cases import cases
from tests.month_tables import write_table
from tests.scripted_llm import ScriptedLlm
from tests.unit.evaluation.made_up import section, task
from tests.workspaces import make_workspace

pytestmark = pytest.mark.slow

MONTH = "2024-03"
FIRST, SECOND = "2403.90001#S2", "2403.90002#S2"
SYSTEMS = ("chatcite", "few_shot", "zero_shot")


@pytest.fixture
def llm():
    with ScriptedLlm() as server:
        yield server


def task_row(task_id, **changes):
    return {**task(task_id.removesuffix("#S2")), **changes}


ONE = (task_row(FIRST),)


def judged(folder, llm, tasks=ONE, systems=SYSTEMS, text="Text", more=(), **settings):
    """A month of tasks with a section of each of the systems, judged. more: changes of the first
    section, which is there again with each of them. Rows, the run's outcome, and its ledger.
    """
    work = make_workspace(folder, llm_url=llm.url, llm_model=llm.model, **settings)
    write_table(work.root, tables.RELATED_WORK_TASKS, MONTH, tasks)
    sections = [
        section(f"{text} {number} of {row['task_id']}", (), system, row["task_id"], "small")
        for number, system in enumerate(systems)
        for row in reversed(tasks)
    ]
    sections += [{**sections[0], **changes} for changes in more]
    write_table(work.root, tables.SUMMARIES, MONTH, sections)
    outcome = run_stage(G_SCORES, work, MONTH, force=True)
    ledger = read_table(work.root.ledger_file("g_scores", MONTH)).to_pylist()
    entries = [(row["subject"], row["reason"]) for row in ledger]
    return work.root.rows(tables.G_SCORES, MONTH), outcome, entries


def systems_of(row):
    return tuple(parse_writer(name).system for name in row["order"])


def shown_by(llm):
    """The sections of each request, in the order shown."""
    return [
        re.findall(r"<section_\w>\n(.*?)\n</section_\w>", body["messages"][1]["content"], re.DOTALL)
        for body in llm.requests
    ]


def test_systems_are_judged_together_in_each_order_and_marks_lead_back_to_them(tmp_path):
    marks = {
        label: dict.fromkeys(CRITERIA, mark) for label, mark in zip("ABC", (5, 1, 4), strict=True)
    }
    marks["B"]["fluency"] = 2
    answer = json.dumps({**marks, "best": "A"})

    def nonsense_until_repair(asked):
        return answer if len(asked.body["messages"]) > 2 else "I would rather not say."

    with ScriptedLlm(nonsense_until_repair) as llm:
        rows, outcome, _ = judged(tmp_path, llm, (*ONE, task_row(SECOND)), judge_repeats=9)
    every = [(task, order) for task in (FIRST, SECOND) for order in shown_orders(task, SYSTEMS)]
    assert [(row["task_id"], systems_of(row)) for row in rows] == every
    assert [row["repeat"] for row in rows] == [*range(6)] * 2
    assert outcome.notes == {"judged": {"main": 12}}
    texts = [[f"Text {SYSTEMS.index(name)} of {task}" for name in order] for task, order in every]
    assert sorted(shown_by(llm)) == sorted(texts * 2)
    for row in rows:
        columns = [parse_writer(name).columns for name in row["order"]]
        assert row["marks"] == [
            {**writer, **of_label} for writer, of_label in zip(columns, marks.values(), strict=True)
        ]
        assert (row["best"], row["calls"]) == (row["order"][0], 2)


@cases("unit/evaluation/g_score/conversations.toml")
def test_a_conversation_has_the_sections_of_a_candidate_set_and_each_repeat_one_of_its_own(
    tmp_path, llm, case
):
    settings = {name: json.dumps(case[name]) for name in ("candidate_sets",) if name in case}
    more = [
        {name: None if value == "none" else value for name, value in changes.items()}
        for changes in case.get("more", ())
    ]
    rows, _, _ = judged(
        tmp_path, llm, systems=case["systems"], more=more, judge_repeats=1, **settings
    )
    columns = ("candidate_set", "section_repeat")
    found = [[*(row[name] for name in columns), *sorted(row["order"])] for row in rows]
    assert found == case["conversations"]
    # Those of a set are in one order, and each has other texts.
    orders = {row["candidate_set"]: row["order"] for row in rows}
    assert [orders[row["candidate_set"]] for row in rows] == [row["order"] for row in rows]
    assert len({tuple(texts) for texts in shown_by(llm)}) == len(rows)
    assert [row["best"] is None for row in rows] == [len(row["order"]) == 1 for row in rows]


def test_what_does_not_fit_is_cut_alike_for_all_systems_and_recorded_once(tmp_path, llm):
    long = " ".join(f"word{number}" for number in range(900))
    limits = {"llm_context": 4096, "judge_repeats": 2}
    tasks = [task_row(FIRST, gold=long)]
    rows, _, ledger = judged(tmp_path, llm, tasks, SYSTEMS[:2], long, **limits)
    assert [set(row["cut"]) for row in rows] == [{"gold", *row["order"]} for row in rows]
    assert ledger == [(FIRST, "cut_for_judge")]
    assert [len({*texts}) for texts in shown_by(llm)] == [1]


def test_what_has_no_room_or_no_gold_section_is_in_the_ledger(tmp_path, llm):
    tasks = (*ONE, task_row(SECOND, gold=" \n"))
    rows, _, ledger = judged(tmp_path, llm, tasks, llm_context=1400, judge_repeats=1)
    assert (rows, llm.requests) == ([], [])
    assert sorted(ledger) == [(FIRST, "no_room_for_judge"), (SECOND, "no_gold")]


TASK = "2403.90001#S2"
SECTIONS = {"a": "Both [Reference 1] and we learn weights.", "b": "There is [Reference 1]."}
LONG = "A sentence about $\\alpha_{i}$ and [Reference 1]. " * 2000


def asked(order, context=8192, target="# A target", gold="As [1] did.", sections=SECTIONS):
    texts = TaskSections(TASK, target, "[Reference 1] Cited Work", gold, sections)
    return g_score_request(texts, order, context)


def orders(systems, repeats=None):
    return list(islice(shown_orders(TASK, RELATED_WORK_SYSTEMS[:systems]), repeats))


def test_the_first_order_depends_on_the_task_alone_and_is_the_one_that_answers_were_kept_under():
    systems = ["chatcite", "few_shot", "litllm", "zero_shot"]
    kept = ("zero_shot", "chatcite", "litllm", "few_shot")
    assert next(shown_orders(TASK, systems)) == next(shown_orders(TASK, reversed(systems))) == kept
    assert list(shown_orders(TASK, [])) == []


def test_every_order_comes_once_and_none_is_missing():
    for systems in range(1, 6):
        every = permutations(sorted(RELATED_WORK_SYSTEMS[:systems]))
        assert sorted(orders(systems)) == [*every]


@pytest.mark.parametrize("systems", range(2, 9))
def test_each_system_stands_in_every_place_and_behind_every_other_equally_often(systems):
    found = orders(systems, systems if systems % 2 == 0 else 2 * systems)
    places = Counter((place, name) for order in found for place, name in enumerate(order))
    followers = Counter(pair for order in found for pair in pairwise(order))
    assert (len(places), {*places.values()}) == (systems**2, {len(found) // systems})
    assert (len(followers), len({*followers.values()})) == (systems * (systems - 1), 1)
    # After every second repeat each mean place is the middle.
    found = orders(systems, 6 if systems > 2 else 2)
    for repeats in range(2, len(found) + 1, 2):
        sums = Counter[str]()
        for order in found[:repeats]:
            sums.update({name: place for place, name in enumerate(order)})
        assert set(sums.values()) == {repeats * (systems - 1) / 2}


ONES = dict.fromkeys(CRITERIA, 1)


@pytest.mark.parametrize(
    "change",
    [
        {"A": {**ONES, "consistency": 0}},
        {"A": {**ONES, "consistency": 6}},
        {"best": "C"},
        {"best": None},
        {"B": None},
        {"C": ONES},
    ],
)
def test_an_answer_that_does_not_fit_is_refused(change):
    with pytest.raises(ValueError, match="Judgement"):
        answer_schema("AB").model_validate({"A": ONES, "B": ONES, "best": "A", **change})


@pytest.mark.parametrize("context", [2048, 4096, 8192])
def test_a_conversation_its_answer_and_a_repair_fit_into_the_context(context):
    made = asked("abc", context, LONG, LONG, {"a": LONG, "b": LONG, "c": "short"})
    assert count_message_tokens(made.messages) + 2 * (64 + 3 * 128) <= context
    assert set(made.cut) >= {"a", "b", "gold"}
    assert "c" not in made.cut
