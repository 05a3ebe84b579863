"""The stages `questions` and `answers` on a small corpus with a real index: rows, ledger, order, span."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pipeline import tables
from pipeline.answering.answer import answer_of_row, answer_row
from pipeline.answering.questions import read_posed_questions, read_questions
from pipeline.answering.stages import ANSWERS, QUESTIONS
from pipeline.answering.systems import SYSTEMS
from pipeline.engine.run import run_stage
from pipeline.engine.run_stats import read_timings
from pipeline.engine.stage import Outcome, Stage, Workspace
from pipeline.errors import SettingError
from tests.scripted_llm import Asked, ScriptedLlm
from tests.unit.answering.asking import form_of, forms, wanting
from tests.unit.answering.corpus import FERNS, MARCH, MAY, QUILLNET, UNSIGNED
from tests.unit.answering.staging import (
    AUTHORS,
    BEAM,
    ENTRIES,
    FUSION,
    STAGES,
    answering_forms,
    answers_of,
    contents,
    entry,
    ledger,
    reading,
    run_all,
    staged,
)

ORDER = ["beam", "fusion", "authors"]


def rows(place: Workspace, stage: Stage, month: str = MARCH) -> list[dict[str, Any]]:
    return place.root.rows(stage.table, month)


def notes_of(outcome: Outcome, part: str) -> dict[str, Any]:
    """What the build of one part of `answers` noted."""
    notes: dict[str, Any] = outcome.notes["parts"][part]["notes"]
    return notes


def steps(row: dict[str, Any], stage: str) -> list[dict[str, Any]]:
    return [step for step in json.loads(row["trace"])["steps"] if step["stage"] == stage]


def test_questions_stand_in_the_order_of_the_set_in_the_month_of_their_newest_paper(
    corpus: Workspace, tmp_path: Path
) -> None:
    with ScriptedLlm() as llm:
        place = staged(corpus, tmp_path, llm)
        march, may = (run_stage(QUESTIONS, place, month) for month in (MARCH, MAY))
        assert [row["question_id"] for row in rows(place, QUESTIONS)] == ORDER
        assert [row["question_id"] for row in rows(place, QUESTIONS, MAY)] == ["shade"]
    assert (march.notes["of_set"], march.notes["of_other_months"]) == (4, {MAY: 1})
    assert may.notes["of_other_months"] == {MARCH: 3}
    assert march.notes["gold_claims_without_passage"] == 2
    assert llm.requests == []


def test_a_question_comes_back_from_its_row_with_the_passages_of_its_gold_claims(
    corpus: Workspace, tmp_path: Path
) -> None:
    with ScriptedLlm() as llm:
        place = staged(corpus, tmp_path, llm)
        run_stage(QUESTIONS, place, MARCH)
    known = {question.id: question for question in read_questions(tmp_path / "set.jsonl")}
    texts = {row["passage_id"]: row["text"] for row in place.root.rows(tables.PASSAGES, MARCH)}
    for posed in read_posed_questions(rows(place, QUESTIONS)):
        given = known[posed.question.id]
        assert (posed.question.question, posed.question.claims) == (given.question, given.claims)
        assert (posed.question.papers, posed.question.kind) == (given.papers, given.kind)
        assert posed.question.month == MARCH
    beam = read_posed_questions(rows(place, QUESTIONS))[0]
    (passage,) = beam.gold_passages[0]
    assert "keeps the best partial hypotheses" in texts[passage]
    assert beam.gold_passages[1] == ()


def test_the_date_is_that_of_the_set_else_of_metadata_else_the_month(corpus: Workspace, tmp_path: Path) -> None:
    told = BEAM | {"id": "told", "date": "2024-03-02"}
    with ScriptedLlm() as llm:
        place = staged(corpus, tmp_path, llm, BEAM, FUSION, told)
        run_stage(QUESTIONS, place, MARCH)
    dates = {row["question_id"]: row["date"] for row in rows(place, QUESTIONS)}
    assert dates == {"beam": "2024-03-07", "fusion": MARCH, "told": "2024-03-02"}


def test_what_is_not_asked_is_in_the_ledger_with_its_reason(corpus: Workspace, tmp_path: Path) -> None:
    draft = entry("draft", "What is drafted?", [QUILLNET], {"It is drafted.": ""}, reviewed=False)
    away = entry("away", "What is away?", [QUILLNET, "2402.00007"], {"It is away.": ""})
    with ScriptedLlm() as llm:
        place = staged(corpus, tmp_path, llm, draft, away, *ENTRIES, max_questions=1)
        outcome = run_stage(QUESTIONS, place, MARCH)
    assert outcome.rows == 1
    assert dict(outcome.left_out) == {"not_reviewed": 1, "over_the_limit": 2, "paper_not_in_corpus": 1}
    left = ledger(place, QUESTIONS)
    assert ("draft", "not_reviewed") in left
    assert ("away", "paper_not_in_corpus") in left
    asked = {row["question_id"] for row in rows(place, QUESTIONS)}
    assert asked | {subject for subject, reason in left if reason == "over_the_limit"} == set(ORDER)


def test_every_system_answers_every_question_of_the_month(corpus: Workspace, tmp_path: Path) -> None:
    with ScriptedLlm(reading) as llm:
        place = staged(corpus, tmp_path, llm, answer_systems=",".join(SYSTEMS))
        outcomes = run_all(place)
    for system in SYSTEMS:
        found = answers_of(place, system)
        assert [row["question_id"] for row in found] == ORDER
        assert all(row["text"] for row in found)
        writer = f"{system}@scripted" if SYSTEMS[system].calls_model else system
        assert {row["model"] for row in found} == {"scripted" if SYSTEMS[system].calls_model else None}
        (timing,) = read_timings(place.root, f"answers/{writer}", MARCH)
        assert sum(row["calls"] for row in found) == timing.measured.get("llm_calls", 0)
        assert timing.measured["seconds_a_question"] > 0
    assert sum(row["calls"] for row in rows(place, ANSWERS)) == outcomes["answers"].measured["llm_calls"]
    assert json.loads(answers_of(place, "arxivbot")[0]["settings"])["answer_hops"] == place.settings.answer_hops


def test_a_run_goes_through_the_steps_in_order_and_hops_again_only_when_asked(
    corpus: Workspace, tmp_path: Path
) -> None:
    one_hop = ["query", "search", "rank", "claims", "reflect", "answer"]
    with ScriptedLlm(reading) as llm:
        place = staged(corpus, tmp_path / "enough", llm, BEAM, answer_candidates=4)
        outcome = run_all(place)["answers"]
        (row,) = answers_of(place, "arxivbot")
    assert [step["stage"] for step in json.loads(row["trace"])["steps"]] == one_hop
    assert (row["hops"], len(row["queries"]), notes_of(outcome, "arxivbot@scripted")["second_hops"]) == (1, 1, 0)
    with ScriptedLlm(wanting("ranked lists"), reading) as llm:
        place = staged(corpus, tmp_path / "wanting", llm, BEAM, answer_candidates=4)
        outcome = run_all(place)["answers"]
        (row,) = answers_of(place, "arxivbot")
    names = [step["stage"] for step in json.loads(row["trace"])["steps"]]
    assert names == [*one_hop[:-1], *one_hop[1:4], "answer"]
    assert (row["hops"], row["queries"][1], notes_of(outcome, "arxivbot@scripted")["second_hops"]) == (
        2,
        "ranked lists",
        1,
    )
    hops = [{each["passage_id"] for each in row["shown"] if each["hop"] == hop} for hop in (1, 2)]
    assert not hops[0] & hops[1]


def test_no_claim_rests_on_what_was_not_retrieved_and_six_are_the_most(corpus: Workspace, tmp_path: Path) -> None:
    def greedy(asked: Asked) -> str | None:
        """More claims than were asked for, half of them of passages that there are not."""
        if form_of(asked) != "Claims":
            return None
        named = enumerate((9, 1, 2, 3, 1, 0, -1, 2, 3))
        told = [{"passage": number, "claim": f"Claim {place} of {asked.digest}."} for place, number in named]
        return json.dumps({"relevant": [1, 2, 3, 9], "claims": told})

    with ScriptedLlm(greedy, wanting("merged lists"), reading) as llm:
        place = staged(corpus, tmp_path, llm)
        run_all(place)
    there = {row["passage_id"] for row in place.root.rows(tables.PASSAGES, MARCH)}
    found = rows(place, ANSWERS)
    for row in found:
        shown = {each["passage_id"] for each in row["shown"]}
        assert shown <= there
        assert {claim["passage_id"] for claim in row["claims"]} <= shown
        numbers = {claim["number"] for claim in row["claims"]}
        assert all(set(sentence["claims"]) <= numbers for sentence in row["sentences"])
    assert {len(row["claims"]) for row in answers_of(place, "arxivbot")} == {6}


def test_a_question_is_asked_of_the_papers_up_to_its_month(corpus: Workspace, tmp_path: Path) -> None:
    ferns = entry("early", "Photosynthesis in ferns on the forest floor", [QUILLNET], {"It is green.": ""})
    with ScriptedLlm(answering_forms("Query", '{"query": "photosynthesis ferns light"}'), reading) as llm:
        place = staged(corpus, tmp_path, llm, ferns, *ENTRIES, answer_candidates=50, answer_passages=50)
        run_all(place)
        run_all(place, MAY)
    papers = {
        month: {each["arxiv_id"] for row in answers_of(place, "arxivbot", month) for each in row["shown"]}
        for month in (MARCH, MAY)
    }
    assert papers == {MARCH: {QUILLNET, UNSIGNED}, MAY: {QUILLNET, UNSIGNED, FERNS}}


def test_questions_on_authors_are_answered_from_tables_too(corpus: Workspace, tmp_path: Path) -> None:
    with ScriptedLlm(reading) as llm:
        place = staged(corpus, tmp_path, llm, AUTHORS)
        run_all(place)
    (row,) = answers_of(place, "arxivbot")
    assert row["claims"][0]["source"] == "front_matter"
    assert "Ada Quill (Nib University); Bo Vellum" in row["claims"][0]["text"]
    (alone,) = answers_of(place, "direct")
    assert (alone["claims"], alone["shown"], alone["queries"], alone["hops"]) == ([], [], [], 0)


def test_malformed_rankings_and_verdicts_are_mended_or_recorded(corpus: Workspace, tmp_path: Path) -> None:
    broken = [answering_forms("Ranking", "[99] > [2] > [2] > none"), answering_forms("Check", "I think so")]
    with ScriptedLlm(*broken, reading) as llm:
        place = staged(corpus, tmp_path, llm, BEAM, answer_candidates=6)
        run_all(place)
    (bot,), (chat,) = (answers_of(place, system) for system in ("arxivbot", "wikichat"))
    for row in (bot, chat):
        (window,) = steps(row, "rank")[0]["windows"]
        assert (window["unknown"], window["repeated"], window["order"][0]) == (1, 1, 2)
        assert sorted(window["order"]) == list(range(1, len(window["order"]) + 1))
    checked = steps(chat, "verify")
    assert {step["verdict"] for step in checked} == {"NOT ENOUGH INFO"}
    assert all(step["failure"] for step in checked)
    assert {claim["source"] for claim in chat["claims"]} == {"passage"}


def test_an_answer_that_nothing_bears_out_is_an_abstention_and_counted(corpus: Workspace, tmp_path: Path) -> None:
    nothing = answering_forms("Claims", '{"relevant": [], "claims": []}')
    with ScriptedLlm(nothing, reading) as llm:
        place = staged(corpus, tmp_path, llm, BEAM, FUSION)
        outcomes = run_all(place)
    assert [row["abstained"] for row in answers_of(place, "arxivbot")] == [True, True]
    assert notes_of(outcomes["answers"], "arxivbot@scripted")["abstained"] == 2
    assert notes_of(outcomes["answers"], "direct@scripted")["abstained"] == 0


def test_every_row_is_the_row_of_its_answer(corpus: Workspace, tmp_path: Path) -> None:
    """Also where WikiChat's search finds nothing, or it wants none."""
    idle = answering_forms("Search", '{"search": "no", "question": "", "query": ""}')
    for name, rules in {"reading": [wanting("merge"), reading], "random": [], "idle": [idle, reading]}.items():
        with ScriptedLlm(*rules) as llm:
            place = staged(corpus, tmp_path / name, llm)
            run_all(place)
        for row in rows(place, ANSWERS):
            again = answer_of_row(row)
            assert answer_row(row["question_id"], tables.writer_of(row), again, json.loads(row["settings"])) == row
            assert len(again.shown) == max(again.hops, bool(again.shown))


def test_half_a_character_and_a_control_in_an_answer_do_not_stop_the_month(corpus: Workspace, tmp_path: Path) -> None:
    odd = r'{"relevant": [1], "claims": [{"passage": 1, "claim": "Half \ud83d and \u0000 and \u001b[31m."}]}'
    with ScriptedLlm(answering_forms("Claims", odd), answering_forms("Text", "Null \x00 and \ud83d."), reading) as llm:
        place = staged(corpus, tmp_path, llm, BEAM, answer_systems=",".join(SYSTEMS))
        outcomes = run_all(place)
    assert outcomes["answers"].rows == len(SYSTEMS)


def test_a_rerun_asks_nothing_and_writes_the_same_bytes(corpus: Workspace, tmp_path: Path) -> None:
    with ScriptedLlm() as llm:
        place = staged(corpus, tmp_path, llm)
        run_all(place)
        before, asked = contents(place), len(llm.requests)
        assert all(outcome.skipped for outcome in run_all(place).values())
        for stage in STAGES:
            run_stage(stage, place, MARCH, force=True)
        assert len(llm.requests) == asked
    assert contents(place) == before


def test_neither_order_nor_company_of_the_systems_nor_concurrency_changes_an_answer(
    corpus: Workspace, tmp_path: Path
) -> None:
    with ScriptedLlm() as llm:
        place = staged(corpus, tmp_path / "one", llm, answer_systems="arxivbot,wikichat,direct")
        run_all(place)
    with ScriptedLlm() as llm:
        turned = staged(corpus, tmp_path / "two", llm, answer_systems="direct,wikichat,arxivbot", llm_concurrency=1)
        run_all(turned)
        assert llm.at_once == 1
    assert contents(turned) == contents(place)
    with ScriptedLlm() as llm:
        alone = staged(corpus, tmp_path / "three", llm, answer_systems="wikichat")
        run_all(alone)
    assert rows(alone, ANSWERS) == answers_of(place, "wikichat")


def test_wikichat_and_the_model_alone_pay_for_its_own_answer_once(corpus: Workspace, tmp_path: Path) -> None:
    with ScriptedLlm(reading) as llm:
        place = staged(corpus, tmp_path, llm, BEAM)
        run_all(place, stages=[QUESTIONS, ANSWERS])
        assert forms(llm).count("Text") == 1
    (alone,), (chat,) = (answers_of(place, system) for system in ("direct", "wikichat"))
    assert steps(chat, "generate")[0]["text"] == alone["text"]
    assert alone["calls"] == 1


def test_imported_answers_stand_beside_ours_and_what_is_not_asked_is_told(corpus: Workspace, tmp_path: Path) -> None:
    file = tmp_path / "answers.csv"
    file.write_text(
        "question_id,system,answer\n"
        "fusion,chat-site,By reciprocal ranks.\nbeam,chat-site,\nbeam,a-site,The best ones.\n"
        "draft,a-site,A draft.\nshade,a-site,Light.\n"
    )
    draft = entry("draft", "What is drafted?", [QUILLNET], {"It is drafted.": ""}, reviewed=False)
    with ScriptedLlm(reading) as llm:
        place = staged(corpus, tmp_path, llm, draft, *ENTRIES, imported_answers=file)
        outcome = run_all(place)["answers"]
        run_all(place, MAY, stages=[QUESTIONS, ANSWERS])
    imported = [row for row in rows(place, ANSWERS) if row["system"] not in SYSTEMS]
    found = [(row["system"], row["question_id"], row["text"]) for row in imported]
    assert found[0] == ("a-site", "beam", "The best ones.")
    assert [each[:2] for each in found[1:]] == [("chat-site", "beam"), ("chat-site", "fusion")]
    assert [row["abstained"] for row in imported] == [False, True, False]
    assert [row["question_id"] for row in answers_of(place, "a-site", MAY)] == ["shade"]
    assert ledger(place, ANSWERS) == [("draft imported", "not_asked")]
    assert ledger(place, ANSWERS, MAY) == []
    assert any("a-site has answers for 3 of 5 questions" in note for note in notes_of(outcome, "imported")["imported"])


@pytest.mark.parametrize(
    ("settings", "off"),
    [
        ({"answer_systems": "direct"}, set()),
        ({"questions": "", "dump_dir": "elsewhere"}, {stage.name for stage in STAGES}),
    ],
)
def test_a_stage_that_is_off_is_there_without_rows_and_asks_nothing(
    corpus: Workspace, tmp_path: Path, settings: dict[str, Any], off: set[str]
) -> None:
    with ScriptedLlm(reading) as llm:
        place = staged(corpus, tmp_path, llm, BEAM, **settings)
        outcomes = run_all(place)
        assert {name for name, outcome in outcomes.items() if outcome.disabled} == off
        assert {outcome.rows for name, outcome in outcomes.items() if name in off} <= {0}
        assert all(outcome.skipped for outcome in run_all(place).values())
    assert off != {stage.name for stage in STAGES} or llm.requests == []


def test_a_month_without_a_question_asks_nobody_and_needs_no_index(corpus: Workspace, tmp_path: Path) -> None:
    with ScriptedLlm() as llm:
        place = staged(corpus, tmp_path, llm, BEAM)
        outcomes = run_all(place, MAY)
    assert {outcome.rows for outcome in outcomes.values()} == {0}
    assert llm.requests == []


def test_a_system_that_there_is_not_and_a_file_that_is_not_there_are_wrong_settings(
    corpus: Workspace, tmp_path: Path
) -> None:
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
