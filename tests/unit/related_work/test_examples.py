"""Which sections of other papers are shown as examples of style."""

from dataclasses import replace

from pipeline import tables
from pipeline.engine.run import State, run_stage, state
from pipeline.llm.context import count_tokens
from pipeline.related_work.examples import (
    Example,
    choose_examples,
    corpus_examples,
    example_inputs,
    shipped,
)
from pipeline.related_work.prompt_files import style_examples
from pipeline.related_work.stages import SUMMARIES
from pipeline.related_work.summary import cited_numbers
from pipeline.settings import Settings
from tests.month_tables import write_table
from tests.scripted_llm import ScriptedLlm
from tests.unit.related_work.building import make_task, prompts, task_row, workspace, write_corpus

GOLD = "Boats float [Reference 1], and nets sink [Reference 2]."


def example(arxiv_id, *cites):
    return Example(arxiv_id, frozenset(cites), f"Section of {arxiv_id}.")


def test_neither_the_targets_own_section_nor_one_that_cites_it_or_is_cited_by_it():
    found = [
        example("2401.00001", "2405.00001"),
        example("2401.00002"),
        example("2405.00001"),
        example("2401.00003", "9"),
    ]
    row = {"arxiv_id": "2405.00001", "references": [{"arxiv_id": "2401.00002"}]}
    assert choose_examples(found, row, 2) == ("Section of 2401.00003.", shipped()[0])
    assert choose_examples([], row, 2) == shipped(), "those written for this project"
    assert all(len(cited_numbers(text)) >= 4 for text in shipped())


def settings_with(context):
    return Settings(llm_url="http://127.0.0.1:1/v1", llm_context=context, _env_file=None)


def test_examples_take_an_eighth_of_the_context_at_most():
    task = replace(make_task(1), examples=shipped())
    assert sum(map(count_tokens, style_examples(task, 2, settings_with(1024)))) <= 128
    assert style_examples(task, 2, settings_with(8192)) == list(shipped())
    assert style_examples(task, 0, settings_with(8192)) == []


def earlier(place, month, number, gold=GOLD):
    row = task_row(number, ["2403.00001"]) | {
        "arxiv_id": f"{month[2:4]}{month[5:]}.0000{number}",
        "gold": gold,
    }
    write_table(place.root, tables.RELATED_WORK_TASKS, month, [row])


def test_sections_come_from_the_newest_earlier_months_that_have_tasks(tmp_path):
    with ScriptedLlm() as llm:
        place = workspace(llm, tmp_path)
    for number, month in enumerate(("2023-01", "2023-02", "2023-03", "2023-04"), 1):
        earlier(place, month, number)
    write_table(place.root, tables.RELATED_WORK_TASKS, "2023-05", [])
    earlier(place, "2023-06", 6)
    earlier(place, "2023-07", 7, gold="It cites [Reference 1] alone.")
    chosen = {
        month: [example.arxiv_id for example in corpus_examples(place, month)]
        for month in ("2023-06", None)
    }
    assert chosen == {
        "2023-06": ["2304.00004", "2303.00003", "2302.00002"],
        None: ["2306.00006", "2304.00004"],
    }
    assert {name for name in example_inputs(place, "2023-06") if "tasks" in name} == {
        f"examples related_work_tasks {month}" for month in ("2023-02", "2023-03", "2023-04")
    }


def test_a_month_with_few_shot_shows_them_and_is_out_of_date_when_they_change(tmp_path):
    with ScriptedLlm() as llm:
        place = workspace(llm, tmp_path, systems="few_shot")
        write_corpus(place, {1: ["2403.00001", "2403.00002"]})
        earlier(place, "2024-04", 5)
        citing = {"arxiv_id": "2404.00005", "key": "b", "cited_arxiv_id": "2403.00006"}
        of_target = citing | {"cited_arxiv_id": "2405.00001"}
        shown = []
        for references in ([citing], [citing, of_target]):
            write_table(place.root, tables.REFERENCES, "2024-04", references)
            assert state(SUMMARIES, place, "2024-05") is not State.DONE
            run_stage(SUMMARIES, place, "2024-05")
            shown.append("Boats float" in prompts(llm)[-1])
    assert shown == [True, False]
