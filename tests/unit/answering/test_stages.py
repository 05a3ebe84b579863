"""The stages `questions` and `answers` on a small corpus with a real index: rows, ledger, order,
span, and what makes a month of them stale.
"""

import json
from pathlib import Path

import pytest

from pipeline import tables
from pipeline.answering.answer import ABSTAINED, hides_failure
from pipeline.answering.stages import ANSWERS, QUESTIONS
from pipeline.answering.systems import SYSTEMS
from pipeline.engine.run import State, run_stage, state
from pipeline.engine.run_stats import read_timings
from pipeline.errors import SettingError
from pipeline.index.opening import close_indexes
from pipeline.report.frames import read_ledger
from tests.cases import cases, cases_beside
from tests.folders import copy_folder
from tests.models_file import write_models
from tests.month_tables import write_table
from tests.scripted_llm import ScriptedLlm
from tests.unit.answering.corpus import FERNS, MARCH, MAY, QUILLNET, UNSIGNED, asking
from tests.unit.answering.scripted_answers import more_searches, say
from tests.unit.answering.stage_runs import (
    BEAM,
    ENTRIES,
    FUSION,
    SHADE,
    STAGES,
    answers_of,
    contents,
    entry,
    ledger,
    reading,
    run_all,
    staged,
    stale,
    write_set,
)
from tests.workspaces import changed

pytestmark = pytest.mark.slow

ORDER = ["beam", "fusion", "authors"]
RULES = (more_searches("ranked lists"), reading)
ALL_SYSTEMS = ",".join(SYSTEMS)


class Run:
    """March and May by every system, each of whose questions asks for a second hop; tests only read
    it.
    """

    def __init__(self, corpus, folder):
        with ScriptedLlm(*RULES) as llm:
            self.place = staged(corpus, folder, llm, answer_systems=ALL_SYSTEMS)
            self.outcomes = run_all(self.place, stages=[QUESTIONS, ANSWERS])
            self.at_once = llm.at_once
            run_all(self.place)
            self.may = run_stage(QUESTIONS, self.place, MAY)
            self.written = contents(self.place)


@pytest.fixture(scope="module")
def done(corpus, tmp_path_factory):
    return Run(corpus, tmp_path_factory.mktemp("stages"))


def rows(place, stage, month=MARCH):
    return place.root.rows(stage.table, month)


def notes_of(outcome, part):
    """What the build of one part of `answers` noted."""
    return outcome.notes["parts"][part]["notes"]


# ---- questions ----


def test_questions_stand_in_the_order_of_the_set_in_the_month_of_their_newest_paper(done):
    assert [row["question_id"] for row in rows(done.place, QUESTIONS)] == ORDER
    assert [row["question_id"] for row in rows(done.place, QUESTIONS, MAY)] == ["shade"]
    assert done.outcomes["questions"].notes == {"of_set": 4, "of_other_months": {MAY: 1}}
    assert done.may.notes["of_other_months"] == {MARCH: 3}


def test_what_is_not_asked_is_in_the_ledger_and_a_date_is_of_the_set_else_of_metadata_else_the_month(
    corpus, tmp_path
):
    told = BEAM | {"id": "told", "date": "2024-03-02"}
    away = entry("away", "What is away?", [QUILLNET, "2402.00007"], {"It is away.": ""})
    lost = entry("lost", "What sinks?", [QUILLNET], {"It sinks.": "it sinks like a stone"})
    with ScriptedLlm() as llm:
        place = staged(corpus, tmp_path, llm, away, BEAM, FUSION, told, lost)
        run_stage(QUESTIONS, place, MARCH)
        left_out = [
            (item.subject, item.reason, item.detail.partition(":")[0])
            for item in read_ledger(place.root, MARCH, [tables.QUESTIONS])
        ]
        assert sorted(left_out) == [
            ("away", "paper_not_in_corpus", "2402.00007 of its papers have no passages"),
            ("beam", "claim_without_passage", "it has no evidence"),
            ("lost", "claim_without_passage", f"no passage of {QUILLNET} holds its evidence"),
            ("told", "claim_without_passage", "it has no evidence"),
        ]
        dates = {row["question_id"]: row["date"] for row in rows(place, QUESTIONS)}
        assert dates == {
            "beam": "2024-03-07",
            "fusion": MARCH,
            "told": "2024-03-02",
            "lost": "2024-03-07",
        }
        place = staged(corpus, tmp_path, llm, max_questions=1)
        assert run_stage(QUESTIONS, place, MARCH).rows == 1
        asked = {row["question_id"] for row in rows(place, QUESTIONS)}
        limited = {(name, "over_the_limit") for name in set(ORDER) - asked}
        assert limited <= set(ledger(place, QUESTIONS))
        assert llm.requests == []


# ---- answers ----


@pytest.mark.parametrize("system", SYSTEMS)
def test_every_system_answers_every_question_of_the_month(done, system):
    found = answers_of(done.place, system)
    assert [row["question_id"] for row in found if row["text"]] == ORDER
    model = "scripted" if SYSTEMS[system].calls_model else None
    assert {row["model"] for row in found} == {model}
    (timing,) = read_timings(
        done.place.root, f"answers/{system}@{model}" if model else f"answers/{system}", MARCH
    )
    assert sum(row["calls"] for row in found) == timing.measured.get("llm_calls", 0)
    assert timing.measured["seconds_a_question"] > 0


def test_second_hops_and_questions_on_authors_are_in_the_rows_of_who_has_them(done):
    bot = answers_of(done.place, "arxivbot_fused")
    for row in bot:
        assert (row["hops"], row["queries"][1]) == (2, "ranked lists")
        hops = [
            {each["passage_id"] for each in row["shown"] if each["hop"] == hop} for hop in (1, 2)
        ]
        assert not hops[0] & hops[1]
    record = bot[2]["shown"][0]
    assert (record["arxiv_id"], record["kind"]) == (QUILLNET, "front_matter")
    assert bot[2]["claims"][0]["passage_id"] == record["passage_id"]
    outcome = done.outcomes["answers"]
    assert notes_of(outcome, "arxivbot_fused@scripted")["second_hops"] == 3
    assert notes_of(outcome, "direct@scripted")["second_hops"] == 0


def test_neither_order_nor_company_of_the_systems_nor_concurrency_changes_an_answer(
    done, corpus, tmp_path
):
    asked = [QUESTIONS, ANSWERS]
    with ScriptedLlm(*RULES) as llm:
        turned = ",".join(reversed(SYSTEMS))
        place = staged(corpus, tmp_path / "turned", llm, answer_systems=turned, llm_concurrency=1)
        run_all(place, stages=asked)
        assert (llm.at_once, done.at_once > 1) == (1, True)
        assert contents(place, stages=asked) == {
            stage.name: done.written[stage.name] for stage in asked
        }
        alone = staged(corpus, tmp_path / "alone", llm, answer_systems="wikichat")
        run_all(alone, stages=asked)
    assert rows(alone, ANSWERS) == answers_of(done.place, "wikichat")


def test_a_question_is_asked_of_the_papers_up_to_its_month(corpus, tmp_path):
    ferns = entry(
        "early", "Photosynthesis in ferns on the forest floor", [QUILLNET], {"It is green.": ""}
    )
    query = say("Query", {"query": "photosynthesis ferns light"})
    with ScriptedLlm(query, reading) as llm:
        most = {"answer_candidates": 50, "answer_passages": 50}
        place = staged(corpus, tmp_path, llm, ferns, *ENTRIES, answer_systems="arxivbot", **most)
        papers = {}
        for month in (MARCH, MAY):
            run_all(place, month, stages=[QUESTIONS, ANSWERS])
            papers[month] = {
                each["arxiv_id"] for row in rows(place, ANSWERS, month) for each in row["shown"]
            }
    assert papers == {MARCH: {QUILLNET, UNSIGNED}, MAY: {QUILLNET, UNSIGNED, FERNS}}


def test_imported_answers_stand_beside_ours_and_what_is_not_asked_is_told(corpus, tmp_path):
    file = tmp_path / "answers.csv"
    file.write_text(
        "question_id,system,answer\n"
        "fusion,chat-site,By reciprocal ranks.\nbeam,chat-site,\nbeam,a-site,The best ones.\n"
        "draft,a-site,A draft.\nshade,a-site,Light.\n"
    )
    away = [QUILLNET, "2402.00007"]
    draft = entry("draft", "What is drafted?", away, {"It is drafted.": ""})
    with ScriptedLlm(reading) as llm:
        settings = {"imported_answers": file, "answer_systems": "direct"}
        place = staged(corpus, tmp_path, llm, draft, *ENTRIES, **settings)
        outcome = run_all(place)["answers"]
        run_all(place, MAY, stages=[QUESTIONS, ANSWERS])
    imported = [row for row in rows(place, ANSWERS) if row["system"] not in SYSTEMS]
    assert [(row["system"], row["question_id"], row["text"]) for row in imported] == [
        ("a-site", "beam", "The best ones."),
        ("chat-site", "beam", ABSTAINED),
        ("chat-site", "fusion", "By reciprocal ranks."),
    ]
    assert [row["question_id"] for row in answers_of(place, "a-site", MAY)] == ["shade"]
    assert ledger(place, ANSWERS) == [("draft imported", "not_asked")]
    assert len(notes_of(outcome, "imported")["imported"]) == 3


@pytest.mark.parametrize(
    ("settings", "month"),
    [({"questions": "", "dump_dir": "elsewhere"}, MARCH), ({}, MAY)],
    ids=["no question set", "a month without a question"],
)
def test_without_a_question_a_stage_is_there_without_rows_and_asks_nothing(
    corpus, tmp_path, settings, month
):
    with ScriptedLlm(reading) as llm:
        place = staged(corpus, tmp_path, llm, BEAM, **settings)
        outcomes = run_all(place, month).values()
        assert {(outcome.rows, bool(outcome.disabled)) for outcome in outcomes} == {
            (0, bool(settings))
        }
        assert all(outcome.skipped for outcome in run_all(place, month).values())
        assert llm.requests == []


@pytest.mark.parametrize(
    ("stage", "settings", "message"),
    [
        (ANSWERS, {"answer_systems": ("oracle",)}, "CITELOOM_ANSWER_SYSTEMS names oracle"),
        (ANSWERS, {"imported_answers": Path("none.csv")}, r"none\.csv cannot be read"),
        (QUESTIONS, {"questions": Path("none.jsonl")}, r"none\.jsonl cannot be read"),
    ],
)
def test_a_system_or_a_file_that_is_not_there_is_a_wrong_setting(done, stage, settings, message):
    with pytest.raises(SettingError, match=message):
        run_stage(stage, changed(done.place, **settings), MARCH)


# ---- what a model does not answer ----


def test_a_question_without_an_answer_is_asked_again_by_the_next_run_and_nothing_else(
    done, corpus, tmp_path
):
    """Every system and the judge; the endpoint fails at one question, and is mended."""

    def failing(asked):
        empty = {"finish_reason": "stop", "message": {"content": None, "reasoning": "Hm."}}
        return empty if FUSION["question"] in asked.prompt else None

    with ScriptedLlm(failing, *RULES) as llm:
        place = staged(corpus, tmp_path, llm, answer_systems=ALL_SYSTEMS)
        run_all(place)
        written = [(row["question_id"], row["abstained"]) for row in rows(place, ANSWERS)]
        assert set(written) == {("beam", False), ("authors", False), ("fusion", False)}
        assert written.count(("fusion", False)) == 1, "that of the system without a model"
        assert ledger(place, ANSWERS) == [
            (f"fusion {name}@scripted", "failed_only_reasoning")
            for name, system in sorted(SYSTEMS.items())
            if system.calls_model
        ]
        assert state(ANSWERS, place, MARCH) is State.INCOMPLETE
        del llm.rules[0]
        llm.requests.clear()
        run_all(place)
    assert contents(place) == done.written
    assert {state(stage, place, MARCH) for stage in STAGES} == {State.DONE}
    assert not [body for body in llm.requests if BEAM["question"] in str(body["messages"])]


@cases("unit/answering/cases.toml", "an_abstention_of_an_earlier_version", ["failed", "step"])
def test_an_abstention_of_an_earlier_version_with_a_failed_step_is_no_abstention(failed, step):
    row = {"abstained": True, "trace": json.dumps({"steps": [step]})}
    assert hides_failure(row) is failed
    assert hides_failure(row | {"abstained": False}) is False


# ---- what is stale ----

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
def copy(corpus, whole, tmp_path, llm):
    """A copy of it to write into."""
    close_indexes()
    copy_folder(whole.root.path.parent, tmp_path)
    return staged(corpus, tmp_path, llm)


def other(copy, llm, **settings):
    """The same data root under other settings."""
    return asking(copy, llm, **{"questions": copy.settings.questions} | settings)


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
    copy, llm
):
    moved = write_set(copy.root.path / "elsewhere", *ENTRIES)
    assert stale(other(copy, llm, questions=moved)) == set()
    more = SHADE | {"id": "more", "question": "What grows in shade?"}
    write_set(copy.settings.questions.parent, *ENTRIES, more)  # type: ignore[union-attr]
    assert stale(copy) == {"questions"}  # whose notes say how many the other months have
    assert run_stage(QUESTIONS, copy, MARCH).rows == 3
    assert stale(copy) == set()
    run_stage(QUESTIONS, copy, MAY)
    assert stale(copy, MAY) == ALL_ASKING | {CLOSEST, "answer_scores"}


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
def test_a_changed_input_makes_stale_what_reads_it(copy, table, month, change, in_march, in_may):
    rows = [row | change for row in copy.root.rows(table, MARCH)]
    write_table(copy.root, table, month, rows)
    assert (stale(copy), stale(copy, MAY)) == (in_march, in_may)


def test_a_file_of_imported_answers_is_read_again_when_it_or_the_set_changes(copy, llm, tmp_path):
    file = tmp_path / "answers.csv"
    file.write_text("question_id,system,answer\nbeam,site,Hypotheses.\n")
    place = other(copy, llm, imported_answers=file)
    assert stale(place) == {ELSEWHERE}
    run_all(place)
    file.write_text("question_id,system,answer\nbeam,site,Partial hypotheses.\n")
    assert stale(place) == {ELSEWHERE}
    run_all(place)
    write_set(
        tmp_path,
        *ENTRIES,
        entry("new", "What is new?", [QUILLNET, "2402.00007"], {"It is new.": ""}),
    )
    assert stale(place) == {"questions", ELSEWHERE}  # whose notes say how many questions it leaves


def test_a_gold_claim_that_is_mended_is_graded_anew_from_answers_that_cost_nothing(
    copy,
):
    mended = BEAM | {"claims": [BEAM["claims"][0]]}
    write_set(
        copy.settings.questions.parent, *(mended if entry is BEAM else entry for entry in ENTRIES)
    )  # type: ignore[union-attr]
    run_stage(QUESTIONS, copy, MARCH)
    measured = run_all(copy)["answers"].measured
    assert measured["llm_cached"] == measured["llm_calls"] > 0
