"""Several writers in one table: what is computed again when one is added, changed or removed, and
after a kill.
"""

from collections import Counter

import pytest

from pipeline import tables
from pipeline.engine.run import run_stage
from pipeline.engine.run_stats import read_timings
from pipeline.errors import SettingError
from pipeline.related_work.stages import KEY_ELEMENTS, SUMMARIES
from pipeline.storage.reading import read_table
from pipeline.tables.writers import writer_name
from tests.scripted_llm import ScriptedLlm
from tests.unit.related_work.building import workspace, write_corpus

pytestmark = pytest.mark.slow

MONTH = "2024-05"
TASKS = {2: ["2403.00003", "2403.00001"], 1: ["2403.00001", "2403.00002"]}
MODELS = ("scripted", "large")
BOTH = "chatcite,chatcite@large,zero_shot@large"


def place_of(llm, folder, systems, **settings):
    """A workspace whose endpoint serves two models: scripted, the default, and large."""
    file = folder / "models.toml"
    file.write_text(f'[large]\nurl = "{llm.url}"\ncontext = 6000\n')
    return workspace(llm, folder, systems=systems, models=file, **settings)


def write(place):
    return run_stage(KEY_ELEMENTS, place, MONTH), run_stage(SUMMARIES, place, MONTH)


def rows_by_writer(place):
    rows = {}
    for row in place.root.rows(tables.SUMMARIES, MONTH):
        rows.setdefault(writer_name(row), []).append(row)
    return rows


def models_called(llm):
    return Counter(str(body["model"]) for body in llm.requests)


def test_two_models_write_beside_each_other_and_the_order_of_the_setting_does_not_matter(tmp_path):
    with ScriptedLlm(models=MODELS) as llm:
        place = place_of(llm, tmp_path, BOTH)
        write_corpus(place, TASKS)
        elements, summaries = write(place)
        called = models_called(llm)
        rows = rows_by_writer(place)
        timings = {
            writer: read_timings(place.root, f"summaries/{writer}", MONTH) for writer in rows
        }
        file = place.root.file(tables.SUMMARIES, MONTH)
        before = file.read_bytes()
        turned = place_of(llm, tmp_path, ",".join(reversed(BOTH.split(","))))
        assert all(outcome.skipped for outcome in write(turned))
        write(place_of(llm, tmp_path, "zero_shot@large"))
        write(turned)
    assert file.read_bytes() == before
    assert list(rows) == ["chatcite@large", "chatcite@scripted", "zero_shot@large"]
    assert all(
        [row["task_id"] for row in mine] == ["2405.00001#S2", "2405.00002#S2"]
        for mine in rows.values()
    )
    assert set(called) == {"scripted", "large"}
    models = [row["model"] for row in place.root.rows(tables.KEY_ELEMENTS, MONTH)]
    assert Counter(models) == {"large": 6, "scripted": 6}
    assert elements.measured["llm_calls"] == 12
    assert summaries.measured["llm_calls"] == sum(
        row["calls"] for mine in rows.values() for row in mine
    )
    for writer, mine in rows.items():
        (timing,) = timings[writer]
        assert timing.measured["llm_calls"] == sum(row["calls"] for row in mine)


def test_adding_a_writer_computes_that_writer_alone_and_keeps_what_was_left_out_for_others(
    tmp_path,
):
    with ScriptedLlm(models=MODELS) as llm:
        first = place_of(llm, tmp_path, "chatcite,zero_shot")
        write_corpus(first, {2: ["2403.00003"], 1: ["2403.00001", "2403.00099"]})
        write(first)
        before = rows_by_writer(first)
        # Without the cache, whatever was computed again would be asked again.
        (first.cache("llm") / "calls.sqlite").unlink()
        llm.requests.clear()
        more = place_of(llm, tmp_path, "chatcite,zero_shot,zero_shot@large")
        elements, summaries = write(more)
        assert models_called(llm) == {"large": 2}
        with pytest.raises(SettingError, match="CITELOOM_SYSTEMS names the model huge"):
            run_stage(SUMMARIES, place_of(llm, tmp_path, "zero_shot@huge"), MONTH)
    assert elements.skipped
    assert summaries.measured["llm_calls"] == 2
    after = rows_by_writer(more)
    assert {name: rows for name, rows in after.items() if name in before} == before
    assert set(after) - set(before) == {"zero_shot@large"}
    ledger = read_table(more.root.ledger_file("summaries", MONTH))
    assert sorted(ledger["subject"].to_pylist()) == [
        "2405.00001#S2 zero_shot@large",
        "2405.00001#S2 zero_shot@scripted",
    ]
    assert summaries.left_out == {"reference_without_text": 2}


def test_changing_a_writer_computes_it_alone_and_removing_it_removes_its_rows(tmp_path):
    with ScriptedLlm(models=MODELS) as llm:
        place = place_of(llm, tmp_path, BOTH)
        write_corpus(place, TASKS)
        write(place)
        before = rows_by_writer(place)
        (place.cache("llm") / "calls.sqlite").unlink()
        llm.requests.clear()
        (place.settings.models or tmp_path).write_text(
            f'[large]\nurl = "{llm.url}"\ncontext = 7000\n'
        )
        write(place)
        assert set(models_called(llm)) == {"large"}
        assert rows_by_writer(place)["chatcite@scripted"] == before["chatcite@scripted"]
        llm.requests.clear()
        fewer = place_of(llm, tmp_path, "chatcite")
        elements, summaries = write(fewer)
        assert llm.requests == []
    assert rows_by_writer(fewer) == {"chatcite@scripted": before["chatcite@scripted"]}
    assert (elements.rows, summaries.rows) == (6, 2)


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
        paid = len(llm.requests)
        file.write_text("task_id,system,section\n2405.00001#S2,zero_shot,It is.\n")
        with pytest.raises(
            SettingError, match=r"sections\.csv line 2: zero_shot is a system of citeloom"
        ):
            run_stage(SUMMARIES, place, MONTH)
        file.write_text("title,system,section\nTarget 1,site,It is.\n")
        run_stage(SUMMARIES, place, MONTH)
        assert len(llm.requests) == paid
    assert [row["task_id"] for row in rows_by_writer(place)["site"]] == ["2405.00001#S2"]
