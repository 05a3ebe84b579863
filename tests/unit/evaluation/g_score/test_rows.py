"""The stage `g_scores`: each judge's conversations, its rows and its ledger. What holds for every
judge is in `test_judged.py`.
"""

import json
import re

import pytest

from pipeline import tables
from pipeline.engine.run import run_stage
from pipeline.evaluation.g_score.sample import shown_orders
from pipeline.evaluation.stages import G_SCORES
from pipeline.storage.reading import read_table
from pipeline.tables import CRITERIA
from pipeline.tables.writers import parse_writer
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


def sets_of(rows):
    return {row["candidate_set"]: set(row["order"]) for row in rows}


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
    assert (sets_of(rows).keys(), outcome.notes) == ({"main"}, {"judged": {"main": 12}})
    texts = [[f"Text {SYSTEMS.index(name)} of {task}" for name in order] for task, order in every]
    assert sorted(shown_by(llm)) == sorted(texts * 2)
    for row in rows:
        columns = [parse_writer(name).columns for name in row["order"]]
        assert row["marks"] == [
            {**writer, **of_label} for writer, of_label in zip(columns, marks.values(), strict=True)
        ]
        assert (row["best"], row["calls"]) == (row["order"][0], 2)


def test_a_system_alone_is_asked_about_once_without_a_vote_and_each_repeat_keeps_its_number(
    tmp_path, llm
):
    more = [{"repeat": 2, "text": "Again."}]
    rows, _, _ = judged(tmp_path, llm, systems=SYSTEMS[:1], more=more, judge_repeats=2)
    assert [(systems_of(row), row["best"], row["section_repeat"]) for row in rows] == [
        (("chatcite",), None, 0),
        (("chatcite",), None, 2),
    ]
    assert llm.generations == 2


def test_a_repeat_is_judged_in_the_sets_of_which_every_writer_with_a_model_repeats(tmp_path, llm):
    lead = {"system": "lead", "model": None, "text": "Lead."}
    more = [lead, {"repeat": 1, "text": "Again."}, {"repeat": 2, "text": "Once more."}]
    systems = ("chatcite", "chatcite_no_reflection")
    rows, _, _ = judged(tmp_path, llm, systems=systems, more=more, judge_repeats=1)
    columns = ("candidate_set", "section_repeat", "repeat")
    assert [tuple(row[name] for name in columns) for row in rows] == [
        ("ablations", 0, 0),
        ("main", 0, 0),
        ("main", 1, 0),
        ("main", 2, 0),
    ]
    main = [row["order"] for row in rows[1:]]
    assert sorted(main[0]) == ["chatcite@small", "lead"]
    assert main == [main[0]] * 3
    beside = [{*texts} - {"Lead."} for texts in shown_by(llm) if "Lead." in texts]
    assert sorted(map(list, beside)) == [["Again."], ["Once more."], [f"Text 0 of {FIRST}"]]


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


def test_the_ablations_are_judged_in_a_conversation_of_their_own(tmp_path, llm):
    ablations = ("chatcite_no_elements", "chatcite_no_incremental")
    systems = ("few_shot", "chatcite", "zero_shot", *ablations, "imported")
    large = [{"model": "large"}]
    rows, _, _ = judged(tmp_path, llm, systems=systems, more=large, judge_repeats=1)
    both = {"chatcite@small", "few_shot@small"}
    assert sets_of(rows) == {
        "ablations": both | {f"{name}@small" for name in ablations},
        "main": both | {"few_shot@large", "zero_shot@small", "imported@small"},
    }
    named = json.dumps({"two": ["few_shot", "chatcite@small"], "none": ["lead"]})
    rows, _, _ = judged(tmp_path, llm, systems=systems, candidate_sets=named)
    assert sets_of(rows) == {"two": both}
