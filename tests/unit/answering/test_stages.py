"""The stages `questions` and `answers` on a small corpus with a real index: rows, ledger, order,
span.
"""

import json

import pytest

from pipeline import tables
from pipeline.answering.answer import hides_failure
from pipeline.answering.questions import read_posed_questions, read_questions
from pipeline.answering.stages import ANSWERS, QUESTIONS
from pipeline.answering.systems import SYSTEMS
from pipeline.engine.run import State, run_stage, state
from pipeline.engine.run_stats import read_timings
from pipeline.errors import SettingError
from pipeline.report.frames import read_ledger
from tests.cases import cases
from tests.scripted_llm import ScriptedLlm
from tests.unit.answering.corpus import FERNS, MARCH, MAY, QUILLNET, UNSIGNED
from tests.unit.answering.scripted_answers import form_answer, forms, more_searches
from tests.unit.answering.stage_runs import (
    BEAM,
    ENTRIES,
    FUSION,
    STAGES,
    answers_of,
    contents,
    entry,
    ledger,
    reading,
    run_all,
    staged,
)

pytestmark = pytest.mark.slow

ORDER = ["beam", "fusion", "authors"]
RULES = (more_searches("ranked lists"), reading)
ALL_SYSTEMS = ",".join(SYSTEMS)


class Run:
    """March and May by every system, each of whose questions asks for a second hop; tests only read
    it.
    """

    def __init__(self, corpus, folder):
        with ScriptedLlm(*RULES) as self.llm:
            self.place = staged(corpus, folder, self.llm, answer_systems=ALL_SYSTEMS)
            self.outcomes = run_all(self.place, stages=[QUESTIONS, ANSWERS])
            self.forms = forms(self.llm)
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


def test_questions_stand_in_the_order_of_the_set_in_the_month_of_their_newest_paper(
    done,
):
    assert [row["question_id"] for row in rows(done.place, QUESTIONS)] == ORDER
    assert [row["question_id"] for row in rows(done.place, QUESTIONS, MAY)] == ["shade"]
    march = done.outcomes["questions"]
    assert (march.notes["of_set"], march.notes["of_other_months"]) == (4, {MAY: 1})
    assert done.may.notes["of_other_months"] == {MARCH: 3}
    assert march.left_out["claim_without_passage"] == 2


def test_a_question_comes_back_from_its_row_with_the_passages_of_its_gold_claims(done):
    assert done.place.settings.questions is not None
    known = {question.id: question for question in read_questions(done.place.settings.questions)}
    texts = {row["passage_id"]: row["text"] for row in done.place.root.rows(tables.PASSAGES, MARCH)}
    posed = read_posed_questions(rows(done.place, QUESTIONS))
    for each in posed:
        given = known[each.question.id]
        assert (each.question.question, each.question.claims) == (given.question, given.claims)
        assert (each.question.papers, each.question.kind) == (given.papers, given.kind)
        assert each.question.month == MARCH
    (passage,) = posed[0].gold_passages[0]
    assert "keeps the best partial hypotheses" in texts[passage]
    assert posed[0].gold_passages[1] == ()


def test_what_is_not_asked_is_in_the_ledger_and_a_date_is_of_the_set_else_of_metadata_else_the_month(
    corpus, tmp_path
):
    told = BEAM | {"id": "told", "date": "2024-03-02"}
    away = entry("away", "What is away?", [QUILLNET, "2402.00007"], {"It is away.": ""})
    lost = entry("lost", "What sinks?", [QUILLNET], {"It sinks.": "it sinks like a stone"})
    with ScriptedLlm() as llm:
        place = staged(corpus, tmp_path, llm, away, BEAM, FUSION, told, lost)
        outcome = run_stage(QUESTIONS, place, MARCH)
        assert dict(outcome.left_out) == {
            "paper_not_in_corpus": 1,
            "claim_without_passage": 3,
        }
        assert sorted(ledger(place, QUESTIONS)) == [
            ("away", "paper_not_in_corpus"),
            ("beam", "claim_without_passage"),
            ("lost", "claim_without_passage"),
            ("told", "claim_without_passage"),
        ]
        details = {
            item.subject: item.detail for item in read_ledger(place.root, MARCH, [tables.QUESTIONS])
        }
        assert details["beam"] == "it has no evidence: It is old."
        assert details["lost"] == f"no passage of {QUILLNET} holds its evidence: It sinks."
        dates = {row["question_id"]: row["date"] for row in rows(place, QUESTIONS)}
        assert dates == {
            "beam": "2024-03-07",
            "fusion": MARCH,
            "told": "2024-03-02",
            "lost": "2024-03-07",
        }
        place = staged(corpus, tmp_path, llm, max_questions=1)
        assert run_stage(QUESTIONS, place, MARCH).rows == 1
        left = {
            subject for subject, reason in ledger(place, QUESTIONS) if reason == "over_the_limit"
        }
        assert {row["question_id"] for row in rows(place, QUESTIONS)} | left == set(ORDER)
        assert llm.requests == []


# ---- answers ----


def test_every_system_answers_every_question_of_the_month(done):
    for system in SYSTEMS:
        found = answers_of(done.place, system)
        assert [row["question_id"] for row in found] == ORDER
        assert all(row["text"] for row in found)
        writer = f"{system}@scripted" if SYSTEMS[system].calls_model else system
        assert {row["model"] for row in found} == {
            "scripted" if SYSTEMS[system].calls_model else None
        }
        timing = read_timings(done.place.root, f"answers/{writer}", MARCH)[0]
        assert sum(row["calls"] for row in found) == timing.measured.get("llm_calls", 0)
        assert timing.measured["seconds_a_question"] > 0
    paid = sum(row["calls"] for row in rows(done.place, ANSWERS))
    assert paid == done.outcomes["answers"].measured["llm_calls"]
    # WikiChat checks the answer that `direct` gives.
    assert done.forms.count("Text") == len(ORDER)
    settings = json.loads(answers_of(done.place, "arxivbot_fused")[0]["settings"])
    assert settings["answer_hops"] == done.place.settings.answer_hops


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
    for alone in answers_of(done.place, "direct"):
        assert (alone["claims"], alone["shown"], alone["queries"], alone["hops"]) == ([], [], [], 0)
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
        assert llm.at_once == 1
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
    with ScriptedLlm(
        form_answer("Query", '{"query": "photosynthesis ferns light"}'), reading
    ) as llm:
        settings = {
            "answer_candidates": 50,
            "answer_passages": 50,
            "answer_systems": "arxivbot",
        }
        place = staged(corpus, tmp_path, llm, ferns, *ENTRIES, **settings)
        papers = {}
        for month in (MARCH, MAY):
            run_all(place, month, stages=[QUESTIONS, ANSWERS])
            papers[month] = {
                each["arxiv_id"] for row in rows(place, ANSWERS, month) for each in row["shown"]
            }
    assert papers == {MARCH: {QUILLNET, UNSIGNED}, MAY: {QUILLNET, UNSIGNED, FERNS}}


def test_abstentions_are_counted_and_odd_signs_in_answers_do_not_stop_the_month(corpus, tmp_path):
    nothing = form_answer("Claims", '{"relevant": [], "claims": []}')
    odd = form_answer("Bullets", r'{"bullets": ["Half \ud83d and \u0000 and \u001b[31m."]}')
    with ScriptedLlm(nothing, odd, form_answer("Text", "Null \x00 and \ud83d."), reading) as llm:
        place = staged(
            corpus, tmp_path, llm, BEAM, FUSION, answer_systems="arxivbot,wikichat,direct"
        )
        outcome = run_all(place)["answers"]
    assert [row["abstained"] for row in answers_of(place, "arxivbot")] == [True, True]
    assert notes_of(outcome, "arxivbot@scripted")["abstained"] == 2
    assert notes_of(outcome, "direct@scripted")["abstained"] == 0
    assert outcome.rows == 6


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
    assert [(row["system"], row["question_id"], row["abstained"]) for row in imported] == [
        ("a-site", "beam", False),
        ("chat-site", "beam", True),
        ("chat-site", "fusion", False),
    ]
    assert imported[0]["text"] == "The best ones."
    assert [row["question_id"] for row in answers_of(place, "a-site", MAY)] == ["shade"]
    assert ledger(place, ANSWERS) == [("draft imported", "not_asked")]
    assert ledger(place, ANSWERS, MAY) == []
    assert any(
        "a-site has answers for 3 of 5 questions" in note
        for note in notes_of(outcome, "imported")["imported"]
    )


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
        outcomes = run_all(place, month)
        assert {outcome.rows for outcome in outcomes.values()} == {0}
        assert {bool(outcome.disabled) for outcome in outcomes.values()} == {bool(settings)}
        assert all(outcome.skipped for outcome in run_all(place, month).values())
        assert llm.requests == []


def test_a_system_that_there_is_not_and_a_file_that_is_not_there_are_wrong_settings(
    corpus, tmp_path
):
    with ScriptedLlm() as llm:
        place = staged(corpus, tmp_path, llm, BEAM, answer_systems="direct,oracle")
        run_stage(QUESTIONS, place, MARCH)
        with pytest.raises(SettingError, match="CITELOOM_ANSWER_SYSTEMS names oracle"):
            run_stage(ANSWERS, place, MARCH)
        place = staged(corpus, tmp_path, llm, BEAM, imported_answers=tmp_path / "none.csv")
        with pytest.raises(SettingError, match=r"none\.csv cannot be read"):
            run_stage(ANSWERS, place, MARCH)
        place = staged(corpus, tmp_path, llm, BEAM, questions=tmp_path / "none.jsonl")
        with pytest.raises(SettingError, match=r"none\.jsonl cannot be read"):
            run_stage(QUESTIONS, place, MARCH)


# ---- what a model does not answer ----


def test_a_question_without_an_answer_is_asked_again_by_the_next_run_and_nothing_else(
    corpus, tmp_path
):
    """Every system and the judge; the endpoint fails at one question, and is mended."""

    def failing(asked):
        empty = {"finish_reason": "stop", "message": {"content": None, "reasoning": "Hm."}}
        return empty if FUSION["question"] in asked.prompt else None

    settings = {"answer_systems": "arxivbot,direct,wikichat"}
    with ScriptedLlm(*RULES) as llm:
        place = staged(corpus, tmp_path / "well", llm, **settings)
        run_all(place)
        expected = {stage.name: rows(place, stage) for stage in STAGES}
    with ScriptedLlm(failing, *RULES) as llm:
        place = staged(corpus, tmp_path / "failing", llm, **settings)
        run_all(place)
        assert {row["question_id"] for row in rows(place, ANSWERS)} == {"beam", "authors"}
        assert not any(row["abstained"] for row in rows(place, ANSWERS))
        failed = [(subject, reason) for subject, reason in ledger(place, ANSWERS)]
        assert failed == [
            (f"fusion {system}@scripted", "failed_only_reasoning")
            for system in ("arxivbot", "direct", "wikichat")
        ]
        assert state(ANSWERS, place, MARCH) is State.INCOMPLETE
        del llm.rules[0]
        llm.requests.clear()
        run_all(place)
    assert {stage.name: rows(place, stage) for stage in STAGES} == expected
    assert {state(stage, place, MARCH) for stage in STAGES} == {State.DONE}
    other = "What does beam search keep?"
    assert not [body for body in llm.requests if other in str(body["messages"])]


@cases("unit/answering/cases.toml", "an_abstention_of_an_earlier_version", ["failed", "step"])
def test_an_abstention_of_an_earlier_version_with_a_failed_step_is_no_abstention(failed, step):
    row = {"abstained": True, "trace": json.dumps({"steps": [step]})}
    assert hides_failure(row) is failed
    assert hides_failure(row | {"abstained": False}) is False
