"""What holds for every judge: it is named, told no writer's name, and its failures are recorded by
kind and asked for again; they are no verdict.
"""

import json

import pytest

from pipeline import tables
from pipeline.engine.run import State, run_stage, state
from pipeline.errors import PermanentFailure
from pipeline.evaluation.stages import ANSWER_GRADES, CITATION_SUPPORT, G_SCORES
from pipeline.storage.reading import read_table
from tests.models_file import write_models
from tests.month_tables import write_table
from tests.scripted_llm import ScriptedLlm
from tests.unit.evaluation.citation_support.building import TEXTS, passage_rows, reference
from tests.unit.evaluation.made_up import section, task
from tests.unit.evaluation.made_up_answers import write_answers
from tests.workspaces import make_workspace

MONTH = "2024-03"
REFUSED = {
    "finish_reason": "stop",
    "message": {"content": None, "refusal": "I cannot judge this."},
}
EMPTY = {"finish_reason": "stop", "message": {"content": ""}}
# What only the second item of each judge holds in its prompt.
SECOND = {
    G_SCORES: "The second section.",
    CITATION_SUPPORT: "Kites fly",
    ANSWER_GRADES: "<fact>\nGold claim 2 of question 1",
}
SENTENCES = ("Stones are weighed [Reference 1].", "Kites fly [Reference 1]. The second section.")


def month(folder, llm, texts=SENTENCES, **settings):
    """Two tasks and two questions, with sections of these texts, and as many answers."""
    asked = {"llm_url": llm.url, "llm_model": llm.model, "judge_repeats": 1, "support_passages": 1}
    work = make_workspace(folder, **asked | settings)
    tasks = [
        {**task(f"2403.9000{number}"), "references": [reference(1)], "gold": "Gold."}
        for number in (1, 2)
    ]
    sections = [
        section(text, [1], task_id=row["task_id"]) for row, text in zip(tasks, texts, strict=False)
    ]
    write_table(work.root, tables.RELATED_WORK_TASKS, MONTH, tasks)
    write_table(work.root, tables.SUMMARIES, MONTH, sections)
    write_table(work.root, tables.PASSAGES, "2024-01", passage_rows("2401.00001", TEXTS))
    write_answers(work.root, MONTH, questions=2, systems=("direct",) if texts else ())
    return work


def judged(work, stage):
    """The rows of a stage, made now where they are out of date."""
    run_stage(stage, work, MONTH)
    return work.root.rows(stage.table, MONTH)


def of_second(stage, failure):
    """Only the second item fails."""
    return lambda asked: failure if SECOND[stage] in asked.prompt else None


STAGES = pytest.mark.parametrize("stage", SECOND, ids=lambda stage: stage.name)


@STAGES
def test_a_failure_has_its_kind_and_no_verdict_and_is_asked_for_alone(tmp_path, stage):
    with ScriptedLlm() as llm:
        never_failed = judged(month(tmp_path / "well", llm), stage)
    with ScriptedLlm(of_second(stage, EMPTY)) as llm:
        work = month(tmp_path / "mended", llm)
        failed = judged(work, stage)
        assert state(stage, work, MONTH) is State.INCOMPLETE
        ledger = read_table(work.root.ledger_file(stage.name, MONTH)).to_pylist()
        reasons = [row["reason"] for row in ledger if row["reason"].startswith("failed_")]
        assert reasons == ["failed_empty"]
        llm.rules.clear()
        llm.requests.clear()
        assert judged(work, stage) == never_failed != failed
        prompts = [body["messages"][-1]["content"] for body in llm.requests]
        assert [SECOND[stage] in prompt for prompt in prompts] == [True]
        assert state(stage, work, MONTH) is State.DONE


@STAGES
def test_a_judge_that_did_not_write_is_asked_within_its_limit_and_told_no_writers_name(
    tmp_path, stage
):
    with ScriptedLlm(models=("strict",), latency=0.02) as llm:
        models = write_models(tmp_path / "settings", llm.url, "strict", concurrency=1)
        work = month(tmp_path, llm, llm_model="writing", models=models, judges="strict")
        outcome = run_stage(stage, work, MONTH)
        rows = work.root.rows(stage.table, MONTH)
        assert {row["judge"] for row in rows} == {"strict"}
        calls = sum(row["calls"] for row in rows)
        assert calls == outcome.measured["llm_calls"] == llm.generations
        assert (llm.at_once, {body["temperature"] for body in llm.requests}) == (1, {0.0})
        sent = json.dumps(llm.requests).lower().replace("-", "_")
        assert not [name for name in ("zero_shot", "direct", "writing") if name in sent]


@STAGES
def test_a_stage_whose_first_judgements_fail_alike_fails_and_one_without_items_asks_nobody(
    tmp_path, stage
):
    with ScriptedLlm(lambda asked: EMPTY) as llm:
        assert judged(month(tmp_path / "nothing", llm, ()), stage) == llm.requests == []
        work = month(tmp_path, llm)
        with pytest.raises(PermanentFailure, match=f"of {stage.name} failed alike: no answer: it"):
            judged(work, stage)
        llm.rules.clear()
        assert judged(work, stage)
        assert state(stage, work, MONTH) is State.DONE


def test_a_refusal_is_named_in_the_row_of_its_citation(tmp_path):
    with ScriptedLlm(of_second(CITATION_SUPPORT, REFUSED)) as llm:
        first, second = judged(month(tmp_path, llm), CITATION_SUPPORT)
    assert first["unjudged"] is None
    refused = {"verdict": None, "quote": None, "quote_found": None, "calls": 1}
    assert second | refused | {"unjudged": "failed_refused"} == second
