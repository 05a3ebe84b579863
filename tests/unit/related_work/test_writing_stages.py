"""The stages key_elements and summaries: rows, ledger, what makes them out of date, and several
writers in one table.
"""

import json
from collections import Counter

import pytest

from pipeline import tables
from pipeline.engine.run import State, run_stage, state
from pipeline.errors import MissingInput, SettingError
from pipeline.llm.bundled import stop_bundled
from pipeline.related_work.key_elements import ELEMENT_NAMES
from pipeline.related_work.stages import KEY_ELEMENTS, SUMMARIES
from pipeline.related_work.systems import SYSTEMS
from pipeline.report.frames import read_ledger
from pipeline.tables.writers import writer_name
from tests.models_file import write_models
from tests.month_tables import write_table
from tests.scripted_llm import ScriptedLlm
from tests.unit.related_work.building import beam, corpus_with, paper_row, workspace, write_corpus
from tests.workspaces import make_workspace

pytestmark = pytest.mark.slow

MONTH = "2024-05"
WRITING = (KEY_ELEMENTS, SUMMARIES)
TASKS = {2: ["2403.00003", "2403.00001"], 1: ["2403.00001", "2403.00002", "2403.00004"]}


def write_all(place):
    return [run_stage(stage, place, MONTH) for stage in WRITING]


def stale(place):
    """The stages that are out of date."""
    return {stage.name for stage in WRITING if state(stage, place, MONTH) is State.STALE}


def changed_parts(place):
    """The writers that a run would compute now."""
    parts = place.root.provenance(tables.SUMMARIES, MONTH).notes["parts"]
    now = SUMMARIES.fingerprints(place, MONTH)
    return [name for name, value in now.items() if parts[name]["fingerprint"] != value]


def rows_of(place):
    return sorted(
        place.root.rows(tables.SUMMARIES, MONTH), key=lambda row: (row["task_id"], row["system"])
    )


def test_all_systems_write_side_by_side_from_one_months_tables(tmp_path):
    with corpus_with(tmp_path, TASKS, systems=",".join(SYSTEMS)) as (place, _):
        passage = {"ordinal": 1, "kind": "paragraph"}
        passages = [
            passage | {"arxiv_id": f"2403.{i:05}", "passage_id": f"p{i}", "text": f"Says {i} [@b]."}
            for i in range(1, 7)
        ]
        write_table(place.root, tables.PASSAGES, "2024-03", passages)
        _, outcome = write_all(place)
        rows = rows_of(place)
        assert [(row["task_id"], row["system"]) for row in rows if row["text"]] == [
            (task, system)
            for task in ("2405.00001#S2", "2405.00002#S2")
            for system in sorted(SYSTEMS)
        ]
        assert set(outcome.notes["parts"]) == {
            f"{name}@scripted" if system.calls_model else name for name, system in SYSTEMS.items()
        }
        lead = rows[sorted(SYSTEMS).index("lead")]
        named = {name for sentence in lead["sentences"] for name in sentence["passages"]}
        assert named == {"p1", "p2", "p4"}
        write_table(place.root, tables.PASSAGES, "2024-03", passages[:-1])
        assert stale(place) == {"summaries"}
        # Those alone read passages.
        assert changed_parts(place) == ["lead", "lexrank"]


def test_what_a_limit_cut_is_in_the_ledger_of_every_system(tmp_path):
    """The last sample of every answer ends at the longest length allowed."""

    class CutShort(ScriptedLlm):
        def respond(self, body, key):
            answer = super().respond(body, key)
            last = answer["choices"][-1]
            last["finish_reason"] = "length"
            if "response_format" not in body:
                last["message"]["content"] += " word" * body["max_tokens"]
            return answer

    systems = (
        "chatcite,chatcite_no_elements,chatcite_no_incremental,chatcite_no_reflection,zero_shot"
    )
    long_answer = json.dumps(dict.fromkeys(ELEMENT_NAMES, "word " * 90))
    with CutShort(lambda asked: long_answer if asked.schema is not None else None) as llm:
        place = workspace(llm, tmp_path, systems=systems, element_tokens=96, draft_tokens=512)
        write_corpus(place, {1: ["2403.00001"]})
        left_out = [dict(outcome.left_out) for outcome in write_all(place)]
    assert left_out == [{"shortened": 2}, {"cut": 3}]


def test_a_reference_that_left_the_corpus_keeps_its_number_and_lacks_only_where_its_text_is_read(
    tmp_path,
):
    with corpus_with(tmp_path, {1: ["2403.00001", "2403.00099"]}, systems="chatcite,zero_shot") as (
        place,
        llm,
    ):
        elements, _ = write_all(place)
        assert dict(elements.left_out) == {"reference_without_text": 1}
        assert [row["number"] for row in place.root.rows(tables.KEY_ELEMENTS, MONTH)] == [0, 1, 2]
        assert any("# Title of 2403.00099" in str(body["messages"]) for body in llm.requests)
        left_out = read_ledger(place.root, MONTH, [tables.SUMMARIES])
        assert [(item.subject, item.reason) for item in left_out] == [
            ("2405.00001#S2 zero_shot@scripted", "reference_without_text")
        ]
        changed = [paper_row("2403.00001", "It does something else.")]
        write_table(place.root, tables.PAPERS, "2024-03", changed)
        assert changed_parts(place) == ["zero_shot@scripted"]
    assert stale(place) == {"key_elements", "summaries"}


@pytest.mark.parametrize("stage", WRITING)
def test_an_unknown_system_is_a_wrong_setting(tmp_path, stage):
    corpus = corpus_with(tmp_path, TASKS, systems="chatcite,oracle")
    message = "CITELOOM_SYSTEMS names oracle"
    with corpus as (place, llm), pytest.raises(SettingError, match=message):
        run_stage(stage, place, MONTH)
    assert llm.requests == []


def test_rows_stand_by_task_and_number(tmp_path):
    with corpus_with(tmp_path, TASKS, systems="chatcite,zero_shot") as (place, llm):
        run_stage(KEY_ELEMENTS, place, MONTH)
        assert llm.generations == 6  # 2403.00001 stands in two tasks and is asked about once
        summaries = run_stage(SUMMARIES, place, MONTH)
    elements, rows = place.root.rows(tables.KEY_ELEMENTS, MONTH), rows_of(place)
    assert [(row["task_id"], row["number"], row["arxiv_id"]) for row in elements] == [
        (f"2405.0000{number}#S2", place_in_task, arxiv_id)
        for number in sorted(TASKS)
        for place_in_task, arxiv_id in enumerate([f"2405.0000{number}", *TASKS[number]])
    ]
    assert {(row["calls"], row["model"]) for row in elements} == {(1, "scripted")}
    assert [(row["task_id"], row["system"], row["calls"]) for row in rows] == [
        ("2405.00001#S2", "chatcite", 30),
        ("2405.00001#S2", "zero_shot", 1),
        ("2405.00002#S2", "chatcite", 19),
        ("2405.00002#S2", "zero_shot", 1),
    ]
    assert summaries.measured["llm_calls"] == 51
    assert len(json.loads(rows[0]["trace"])["rounds"]) == 3
    assert json.loads(rows[0]["settings"])["chatcite_votes"] == place.settings.chatcite_votes
    assert {n for sentence in rows[0]["sentences"] for n in sentence["references"]} == {1, 2, 3}


@pytest.mark.faults
def test_the_bundled_model_writes_a_section(tmp_path):
    place = make_workspace(
        tmp_path,
        llm_url=None,
        systems="chatcite,zero_shot",
        llm_context=2048,
        llm_concurrency=2,
        **beam(),
        draft_tokens=24,
        element_tokens=16,
    )
    write_corpus(place, {1: ["2403.00001"]})
    try:
        write_all(place)
    finally:
        stop_bundled()
    rows = rows_of(place)
    written = [(row["system"], row["calls"], bool(row["text"])) for row in rows]
    assert written == [("chatcite", 2, True), ("zero_shot", 1, True)]


def test_key_elements_of_other_tasks_are_not_written_from(tmp_path):
    with corpus_with(tmp_path, TASKS, systems="zero_shot") as (unread, llm):
        run_stage(KEY_ELEMENTS, unread, MONTH)
        place = workspace(llm, tmp_path, systems="chatcite")
        missing = f"2405.00001#S2 .*run --months {MONTH} --until key_elements"
        with pytest.raises(MissingInput, match=missing):
            run_stage(SUMMARIES, place, MONTH)
        run_stage(KEY_ELEMENTS, place, MONTH)
        write_corpus(place, {**TASKS, 1: ["2403.00001", "2403.00002", "2403.00005"]})
        with pytest.raises(MissingInput, match=r"2405\.00001#S2 as it is now"):
            run_stage(SUMMARIES, place, MONTH)
        assert llm.generations == 6
        run_stage(KEY_ELEMENTS, place, MONTH)
        assert run_stage(SUMMARIES, place, MONTH).rows == 2


# ---- several writers ----


MODELS = ("scripted", "large")
BOTH = "chatcite,chatcite@large,zero_shot@large"


def place_of(llm, folder, systems, **settings):
    """A workspace whose endpoint serves two models: scripted, the default, and large."""
    file = write_models(folder, llm.url, "large", context=6000)
    return workspace(llm, folder, systems=systems, models=file, **settings)


def rows_by_writer(place):
    rows = {}
    for row in place.root.rows(tables.SUMMARIES, MONTH):
        rows.setdefault(writer_name(row), []).append(row)
    return rows


def test_two_models_write_beside_each_other_and_the_order_of_the_setting_does_not_matter(tmp_path):
    with ScriptedLlm(models=MODELS) as llm:
        place = place_of(llm, tmp_path, BOTH)
        write_corpus(place, TASKS)
        _, summaries = write_all(place)
        file = place.root.file(tables.SUMMARIES, MONTH)
        before = file.read_bytes()
        turned = place_of(llm, tmp_path, ",".join(reversed(BOTH.split(","))))
        assert all(outcome.skipped for outcome in write_all(turned))
        write_all(place_of(llm, tmp_path, "zero_shot@large"))
        write_all(turned)
    assert file.read_bytes() == before
    rows = place.root.rows(tables.SUMMARIES, MONTH)
    assert [(writer_name(row), row["task_id"]) for row in rows] == [
        (writer, task)
        for writer in ("chatcite@large", "chatcite@scripted", "zero_shot@large")
        for task in ("2405.00001#S2", "2405.00002#S2")
    ]
    models = [row["model"] for row in place.root.rows(tables.KEY_ELEMENTS, MONTH)]
    assert Counter(models) == {"large": 7, "scripted": 7}
    assert summaries.measured["llm_calls"] == sum(row["calls"] for row in rows)


def test_a_writer_that_is_added_changed_or_removed_is_the_only_one_computed_or_dropped(tmp_path):
    with ScriptedLlm(models=MODELS) as llm:
        first = place_of(llm, tmp_path, "chatcite,zero_shot")
        write_corpus(first, {2: ["2403.00003"], 1: ["2403.00001", "2403.00099"]})
        write_all(first)
        before = rows_by_writer(first)
        more = place_of(llm, tmp_path, "chatcite,zero_shot,zero_shot@large")
        for context in (6000, 7000):
            write_models(tmp_path, llm.url, "large", context=context)
            # Without the cache, whatever was computed again would be asked again.
            (first.cache("llm") / "calls.sqlite").unlink()
            llm.requests.clear()
            elements, summaries = write_all(more)
            assert Counter(body["model"] for body in llm.requests) == {"large": 2}
            assert (elements.skipped, summaries.measured["llm_calls"]) == (True, 2)
            after = rows_by_writer(more)
            assert set(after) == {*before, "zero_shot@large"}
            assert {name: after[name] for name in before} == before
        left_out = [item.subject for item in read_ledger(more.root, MONTH, [tables.SUMMARIES])]
        assert sorted(left_out) == [
            "2405.00001#S2 zero_shot@large",
            "2405.00001#S2 zero_shot@scripted",
        ]
        llm.requests.clear()
        fewer = place_of(llm, tmp_path, "chatcite")
        write_all(fewer)
        assert llm.requests == []
    assert rows_by_writer(fewer) == {"chatcite@scripted": before["chatcite@scripted"]}


def test_sections_written_elsewhere_are_rows_beside_ours(tmp_path):
    file = tmp_path / "sections.csv"
    file.write_text(
        "task_id,system,section\n"
        '2405.00001#S2,Survey Site,"Others did it [Reference 2]. So did (reference 1)."\n'
        "2405.00002#S2,survey site,\n2405.00009#S2,survey site,Of another month.\n"
    )
    with ScriptedLlm(models=MODELS) as llm:
        place = place_of(llm, tmp_path, "zero_shot", imported_sections=file)
        write_corpus(place, TASKS)
        _, summaries = write_all(place)
        assert all(outcome.skipped for outcome in write_all(place))
        rows = rows_by_writer(place)
        assert list(rows) == ["zero_shot@scripted", "Survey Site"]
        whole, empty = rows["Survey Site"]
        assert [sentence["references"] for sentence in whole["sentences"]] == [[2], [1]]
        assert (whole["model"], whole["calls"], empty["text"]) == (None, 0, "")
        assert len(summaries.notes["parts"]["imported"]["notes"]["imported"]) == 2
