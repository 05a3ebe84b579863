"""What makes a month of questions, answers and grades stale, and what does not."""

import pytest

from pipeline import tables
from pipeline.answering.stages import QUESTIONS
from pipeline.engine.run import run_stage
from pipeline.index.opening import close_indexes
from tests.cases import cases_beside
from tests.folders import copy_folder
from tests.models_file import write_models
from tests.month_tables import write_table
from tests.scripted_llm import ScriptedLlm
from tests.unit.answering.corpus import MARCH, MAY, QUILLNET, asking
from tests.unit.answering.stage_runs import (
    BEAM,
    ENTRIES,
    SHADE,
    entry,
    reading,
    run_all,
    staged,
    stale,
    write_set,
)

pytestmark = pytest.mark.slow

BOT, CHAT, ALONE, ELSEWHERE = (
    "answers arxivbot_fused",
    "answers wikichat",
    "answers direct",
    "answers imported",
)
CLOSEST = "answers passages"
ALL_ASKING = {BOT, CHAT, ALONE, "answer_grades"}


@pytest.fixture(scope="module")
def llm():
    with ScriptedLlm(reading) as served:
        yield served


@pytest.fixture(scope="module")
def whole(corpus, tmp_path_factory, llm):
    """A data root of which both months are done; tests only read it."""
    place = staged(corpus, tmp_path_factory.mktemp("whole"), llm)
    for month in (MARCH, MAY):
        run_all(place, month)
        assert stale(place, month) == set()
    return place


@pytest.fixture
def done(corpus, whole, tmp_path, llm):
    """A copy of it to write into."""
    close_indexes()
    copy_folder(whole.root.path.parent, tmp_path)
    return staged(corpus, tmp_path, llm)


def other(done, llm, **settings):
    """The same data root under other settings."""
    return asking(done, llm, **{"questions": done.settings.questions} | settings)


@cases_beside("setting", "value", "changed")
def test_a_setting_makes_stale_what_it_changes(
    whole,
    llm,
    tmp_path,
    setting,
    value,
    changed,
):
    models = write_models(tmp_path, llm.url, "another", context=whole.settings.llm_context)
    assert stale(other(whole, llm, **{"models": models, setting: value})) == set(changed)


def test_a_set_in_another_place_is_the_same_and_a_question_of_another_month_changes_no_answer(
    done, llm
):
    moved = write_set(done.root.path / "elsewhere", *ENTRIES)
    assert stale(other(done, llm, questions=moved)) == set()
    more = SHADE | {"id": "more", "question": "What grows in shade?"}
    write_set(done.settings.questions.parent, *ENTRIES, more)  # type: ignore[union-attr]
    assert stale(done) == {"questions"}  # whose notes say how many the other months have
    assert run_stage(QUESTIONS, done, MARCH).rows == 3
    assert stale(done) == set()
    run_stage(QUESTIONS, done, MAY)
    assert stale(done, MAY) == ALL_ASKING | {CLOSEST, "answer_scores"}


@pytest.mark.parametrize(
    ("table", "month", "change", "in_march", "in_may"),
    [
        (tables.INDEX_RECEIPTS, MAY, {}, set(), {BOT, CHAT, CLOSEST}),
        (tables.INDEX_RECEIPTS, "2024-02", {}, {BOT, CHAT, CLOSEST}, {BOT, CHAT, CLOSEST}),
        # Metadata concerns who reads records, and dates the questions.
        (
            tables.METADATA,
            MARCH,
            {"published": "2024-03-08"},
            {"questions", BOT, CLOSEST},
            {BOT, CLOSEST},
        ),
        # May asks about a paper of March too.
        (tables.PASSAGES, MARCH, {"text": "Other."}, *[{"questions", "answer_grades"}] * 2),
    ],
    ids=["what comes later", "what came before", "metadata", "passages"],
)
def test_a_changed_input_makes_stale_what_reads_it(done, table, month, change, in_march, in_may):
    rows = [row | change for row in done.root.rows(table, MARCH)]
    write_table(done.root, table, month, rows)
    assert (stale(done), stale(done, MAY)) == (in_march, in_may)


def test_a_month_that_asks_nothing_depends_on_no_earlier_month(corpus, tmp_path, llm):
    place = staged(corpus, tmp_path, llm, BEAM)
    run_all(place, MAY)
    write_table(place.root, tables.INDEX_RECEIPTS, MARCH, [])
    assert stale(place, MAY) == set()


def test_a_file_of_imported_answers_is_read_again_when_it_or_the_set_changes(done, llm, tmp_path):
    file = tmp_path / "answers.csv"
    file.write_text("question_id,system,answer\nbeam,site,Hypotheses.\n")
    place = other(done, llm, imported_answers=file)
    assert stale(place) == {ELSEWHERE}
    run_all(place)
    file.write_text("question_id,system,answer\nbeam,site,Partial hypotheses.\n")
    assert stale(place) == {ELSEWHERE}
    run_all(place)
    moved = tmp_path / "moved.csv"
    moved.write_bytes(file.read_bytes())
    assert stale(other(done, llm, imported_answers=moved)) == set()
    write_set(
        tmp_path,
        *ENTRIES,
        entry("new", "What is new?", [QUILLNET, "2402.00007"], {"It is new.": ""}),
    )
    assert stale(place) == {"questions", ELSEWHERE}  # whose notes say how many questions it leaves


def test_a_gold_claim_that_is_mended_is_graded_anew_from_answers_that_cost_nothing(
    done,
):
    mended = BEAM | {"claims": [BEAM["claims"][0]]}
    write_set(
        done.settings.questions.parent, *(mended if entry is BEAM else entry for entry in ENTRIES)
    )  # type: ignore[union-attr]
    run_stage(QUESTIONS, done, MARCH)
    measured = run_all(done)["answers"].measured
    assert measured["llm_cached"] == measured["llm_calls"] > 0
