"""What holds for every judge: a failure is recorded by its kind and asked for again, and no verdict."""

import pytest

from pipeline import tables
from pipeline.engine.run import State, run_stage, state
from pipeline.errors import PermanentFailure
from pipeline.evaluation.stages import ANSWER_GRADES, CITATION_SUPPORT, G_SCORES
from pipeline.storage.reading import read_table
from tests.month_tables import write_table
from tests.scripted_llm import ScriptedLlm
from tests.unit.evaluation.citation_support.building import TEXTS, passage_rows, reference
from tests.unit.evaluation.made_up import summary, task, workspace
from tests.unit.evaluation.made_up_answers import write_answers

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


def month(folder, llm):
    """Two sections of two tasks with a citation each, and two answers."""
    work = workspace(
        folder, llm_url=llm.url, llm_model=llm.model, judge_repeats=1, support_passages=1
    )
    tasks = [
        {**task(f"2403.9000{number}"), "references": [reference(1)], "gold": "Gold."}
        for number in (1, 2)
    ]
    texts = ("Stones are weighed [Reference 1].", "Kites fly [Reference 1]. The second section.")
    sections = [
        {
            **summary(row, "zero_shot"),
            "text": text,
            "sentences": [{"text": text, "references": [1]}],
        }
        for row, text in zip(tasks, texts, strict=True)
    ]
    write_table(work.root, tables.RELATED_WORK_TASKS, MONTH, tasks)
    write_table(work.root, tables.SUMMARIES, MONTH, sections)
    write_table(work.root, tables.PASSAGES, "2024-01", passage_rows("2401.00001", TEXTS))
    write_answers(work.root, MONTH, questions=2, systems=("direct",))
    return work


def ledger(work, stage):
    return read_table(work.root.ledger_file(stage.name, MONTH)).to_pylist()


def of_second(stage, failure):
    """Only the second item fails."""
    return lambda asked: failure if SECOND[stage] in asked.prompt else None


STAGES = pytest.mark.parametrize("stage", SECOND, ids=lambda stage: stage.name)


@STAGES
def test_a_failure_has_its_kind_and_no_verdict_and_is_asked_for_alone(tmp_path, stage):
    with ScriptedLlm() as llm:
        work = month(tmp_path / "well", llm)
        run_stage(stage, work, MONTH)
        never_failed = work.root.rows(stage.table, MONTH)
    with ScriptedLlm(of_second(stage, EMPTY)) as llm:
        work = month(tmp_path / "mended", llm)
        run_stage(stage, work, MONTH)
        assert state(stage, work, MONTH) is State.INCOMPLETE
        (entry,) = [row for row in ledger(work, stage) if row["reason"].startswith("failed_")]
        assert entry["reason"] == "failed_empty"
        failed = work.root.rows(stage.table, MONTH)
        llm.rules.clear()
        llm.requests.clear()
        run_stage(stage, work, MONTH)
        prompts = [body["messages"][-1]["content"] for body in llm.requests]
        assert [SECOND[stage] in prompt for prompt in prompts] == [True]
        assert state(stage, work, MONTH) is State.DONE
        assert work.root.rows(stage.table, MONTH) == never_failed != failed


@STAGES
def test_a_stage_whose_first_judgements_fail_alike_fails(tmp_path, stage):
    with ScriptedLlm(lambda asked: EMPTY) as llm:
        work = month(tmp_path, llm)
        with pytest.raises(PermanentFailure, match=f"of {stage.name} failed alike: no answer: it"):
            run_stage(stage, work, MONTH)
        llm.rules.clear()
        run_stage(stage, work, MONTH)
        assert state(stage, work, MONTH) is State.DONE


def test_a_refusal_is_named_in_the_row_of_its_citation(tmp_path):
    with ScriptedLlm(of_second(CITATION_SUPPORT, REFUSED)) as llm:
        work = month(tmp_path, llm)
        run_stage(CITATION_SUPPORT, work, MONTH)
    first, second = work.root.rows(tables.CITATION_SUPPORT, MONTH)
    assert (first["unjudged"], second["unjudged"]) == (None, "failed_refused")
    assert (second["verdict"], second["quote"], second["quote_found"]) == (None, None, None)
    assert second["calls"] == 1
