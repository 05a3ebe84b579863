"""The stages `answer_grades` and `answer_scores` on a small corpus: who is graded, by whom, on
what, and what is kept.
"""

import json
import re

import pytest

from pipeline import tables
from pipeline.answering.stages import QUESTIONS
from pipeline.answering.systems import SYSTEMS as ALL_SYSTEMS
from pipeline.engine.run import run_stage
from pipeline.evaluation.answers.measures import answer_measures
from pipeline.evaluation.stages import ANSWER_GRADES, ANSWER_SCORES
from pipeline.index.opening import close_indexes
from pipeline.settings import Settings
from tests.scripted_llm import ScriptedLlm
from tests.unit.answering.corpus import FERNS, MARCH, MAY, QUILLNET, build_corpus
from tests.unit.answering.stage_runs import BEAM, ENTRIES, FUSION, ledger, reading, run_all, staged
from tests.unit.evaluation.answers.graded import fence, form_of

pytestmark = pytest.mark.slow

# `passages` answers nothing that could be graded.
SYSTEMS = [
    name
    for name in Settings.model_fields["answer_systems"].default
    if ALL_SYSTEMS[name].calls_model
]


def judging(asked):
    """A judge by the letter: every sentence is a claim; it is correct where a gold claim or a
    passage has its words, and a gold claim is held where the answer has its words.
    """
    answer, claim, fact = (fence(asked, name) for name in ("answer", "claim", "fact"))
    match form_of(asked):
        case "AnswerClaims":
            told = {"claims": re.split(r"(?<=\.)\s+", answer)}
        case "ClaimFinding":
            again = asked.prompt.count(claim.rstrip(".")) > 1
            told = {"quote": claim, "verdict": "correct" if again else "wrong"}
        case "GoldFinding":
            told = {"quote": fact, "verdict": "held" if fact in answer else "not"}
        case _:
            return None
    return json.dumps(told)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """A small corpus with a real index, which tests only read."""
    yield build_corpus(tmp_path_factory.mktemp("corpus") / "data")
    close_indexes()


@pytest.fixture
def llm():
    with ScriptedLlm(judging, reading) as server:
        yield server


def grades(place, month=MARCH):
    return place.root.rows(tables.ANSWER_GRADES, month)


def test_every_answer_is_graded_and_scored(corpus, tmp_path, llm):
    place = staged(corpus, tmp_path, llm)
    outcomes = run_all(place)
    named = [(row["question_id"], row["system"], row["judge"]) for row in grades(place)]
    assert named == sorted(
        (q, s, "scripted") for q in ("beam", "fusion", "authors") for s in SYSTEMS
    )
    outcome = outcomes["answer_grades"]
    assert outcome.notes == {
        "outcomes": {f"{system}@scripted answered": 3 for system in SYSTEMS},
        "evidence_ranked_by": "vectors and words",
    }
    assert sum(row["calls"] for row in grades(place)) == outcome.measured["llm_calls"]
    scores = place.root.rows(tables.ANSWER_SCORES, MARCH)
    about = ("question_id", "system", "model", "judge", "kind", "date")
    assert [tuple(row.values()) for row in scores if row["judge"]] == [
        (*(row[name] for name in about), metric, value)
        for row in grades(place)
        for metric, value in answer_measures(row).items()
    ]
    shown = [row for row in scores if row["judge"] is None]
    assert {(row["system"], row["metric"]) for row in shown} == {("passages", "gold_shown")}
    # The front matter of a paper that the question names is shown too.
    found = dict.fromkeys(("beam", "fusion", "authors"), 1.0)
    assert {row["question_id"]: row["value"] for row in shown} == found
    assert {row["date"] for row in scores if row["question_id"] == "beam"} == {"2024-03-07"}


def test_claims_are_judged_by_passages_of_the_questions_papers_alone(corpus, tmp_path, llm):
    place = staged(corpus, tmp_path, llm, support_passages=3)
    run_all(place)
    run_all(place, MAY)
    paper_of = {
        row["passage_id"]: row["arxiv_id"]
        for month in (MARCH, MAY)
        for row in place.root.rows(tables.PASSAGES, month)
    }
    papers = {entry["id"]: set(entry["papers"]) for entry in ENTRIES}
    shown = [
        (row["question_id"], [paper_of[each["passage_id"]] for each in claim["passages"]])
        for month in (MARCH, MAY)
        for row in grades(place, month)
        for claim in row["claims"]
    ]
    assert all({*found} <= papers[question_id] for question_id, found in shown)
    assert max(len(found) for _, found in shown) == 3
    assert any({*found} == {QUILLNET, FERNS} for question, found in shown if question == "shade")


def test_answers_made_elsewhere_are_graded_beside_those_whose_hops_showed_something(
    corpus, tmp_path, llm
):
    file, told = tmp_path / "answers.csv", "Beam search keeps the best partial hypotheses."
    file.write_text(f"question_id,system,answer\nbeam,chat-site,{told}\n")
    place = staged(corpus, tmp_path, llm, BEAM, imported_answers=file)
    run_all(place)
    by_system = {row["system"]: row for row in grades(place)}
    elsewhere, fused = by_system["chat-site"], by_system["arxivbot_fused"]
    assert [each["verdict"] for each in elsewhere["gold"]] == ["held", "not"]
    assert [each["verdict"] for each in elsewhere["claims"]] == ["correct"]
    assert [each["has_passage"] for each in fused["gold"]] == [True, False]
    assert len(fused["hops_shown"]) == 1
    scores = place.root.rows(tables.ANSWER_SCORES, MARCH)
    with_passages = {row["system"] for row in scores if row["metric"] == "gold_shown"}
    assert "arxivbot_fused" in with_passages
    # They searched for nothing: none, and not 0.
    assert by_system["direct"]["hops_shown"] is elsewhere["hops_shown"] is None
    assert not {"direct", "chat-site"} & with_passages


def test_an_answer_to_a_question_that_is_gone_is_told_and_words_alone_rank_without_vectors(
    corpus, tmp_path, llm
):
    run_all(staged(corpus, tmp_path, llm, BEAM, FUSION))
    shorter = staged(corpus, tmp_path, llm, BEAM)
    shorter.root.file(tables.EMBEDDINGS, MARCH).unlink()
    stages = (QUESTIONS, ANSWER_GRADES, ANSWER_SCORES)
    *_, outcome, _ = (run_stage(stage, shorter, MARCH) for stage in stages)
    assert outcome.notes["evidence_ranked_by"] == "words alone"
    assert {row["question_id"] for row in grades(shorter)} == {"beam"}
    assert all(each["passages"] for row in grades(shorter) for each in row["claims"])
    assert ledger(shorter, ANSWER_GRADES) == [("fusion", "question_gone")] * len(SYSTEMS)
