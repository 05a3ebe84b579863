"""Several writers in one table: what is computed again when one is added, changed or removed, and
after a kill.
"""

from collections import Counter

import pytest

from pipeline import tables
from pipeline.engine.run import run_stage
from pipeline.related_work.stages import KEY_ELEMENTS, SUMMARIES
from pipeline.report.frames import read_ledger
from pipeline.tables.writers import writer_name
from tests.models_file import write_models
from tests.scripted_llm import ScriptedLlm
from tests.unit.related_work.building import workspace, write_corpus

pytestmark = pytest.mark.slow

MONTH = "2024-05"
TASKS = {2: ["2403.00003", "2403.00001"], 1: ["2403.00001", "2403.00002"]}
MODELS = ("scripted", "large")
BOTH = "chatcite,chatcite@large,zero_shot@large"


def place_of(llm, folder, systems, **settings):
    """A workspace whose endpoint serves two models: scripted, the default, and large."""
    file = write_models(folder, llm.url, "large", context=6000)
    return workspace(llm, folder, systems=systems, models=file, **settings)


def write(place):
    return run_stage(KEY_ELEMENTS, place, MONTH), run_stage(SUMMARIES, place, MONTH)


def rows_by_writer(place):
    rows = {}
    for row in place.root.rows(tables.SUMMARIES, MONTH):
        rows.setdefault(writer_name(row), []).append(row)
    return rows


def test_two_models_write_beside_each_other_and_the_order_of_the_setting_does_not_matter(tmp_path):
    with ScriptedLlm(models=MODELS) as llm:
        place = place_of(llm, tmp_path, BOTH)
        write_corpus(place, TASKS)
        elements, summaries = write(place)
        file = place.root.file(tables.SUMMARIES, MONTH)
        before = file.read_bytes()
        turned = place_of(llm, tmp_path, ",".join(reversed(BOTH.split(","))))
        assert all(outcome.skipped for outcome in write(turned))
        write(place_of(llm, tmp_path, "zero_shot@large"))
        write(turned)
    assert file.read_bytes() == before
    rows = place.root.rows(tables.SUMMARIES, MONTH)
    assert [(writer_name(row), row["task_id"]) for row in rows] == [
        (writer, task)
        for writer in ("chatcite@large", "chatcite@scripted", "zero_shot@large")
        for task in ("2405.00001#S2", "2405.00002#S2")
    ]
    models = [row["model"] for row in place.root.rows(tables.KEY_ELEMENTS, MONTH)]
    assert Counter(models) == {"large": 6, "scripted": 6}
    calls = sum(row["calls"] for row in rows)
    assert [each.measured["llm_calls"] for each in (elements, summaries)] == [12, calls]


def test_a_writer_that_is_added_changed_or_removed_is_the_only_one_computed_or_dropped(tmp_path):
    with ScriptedLlm(models=MODELS) as llm:
        first = place_of(llm, tmp_path, "chatcite,zero_shot")
        write_corpus(first, {2: ["2403.00003"], 1: ["2403.00001", "2403.00099"]})
        write(first)
        before = rows_by_writer(first)
        more = place_of(llm, tmp_path, "chatcite,zero_shot,zero_shot@large")
        for context in (6000, 7000):
            write_models(tmp_path, llm.url, "large", context=context)
            # Without the cache, whatever was computed again would be asked again.
            (first.cache("llm") / "calls.sqlite").unlink()
            llm.requests.clear()
            elements, summaries = write(more)
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
        write(fewer)
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
        _, summaries = write(place)
        assert all(outcome.skipped for outcome in write(place))
        rows = rows_by_writer(place)
        assert list(rows) == ["zero_shot@scripted", "Survey Site"]
        whole, empty = rows["Survey Site"]
        assert [sentence["references"] for sentence in whole["sentences"]] == [[2], [1]]
        assert (whole["model"], whole["calls"], empty["text"]) == (None, 0, "")
        assert len(summaries.notes["parts"]["imported"]["notes"]["imported"]) == 2
