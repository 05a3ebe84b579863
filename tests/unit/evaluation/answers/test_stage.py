"""The stages `answer_grades` and `answer_scores` on a small corpus: who is graded, by whom, on
what, and what is kept.
"""

import json
import re
from collections import Counter

import pytest

from pipeline import tables
from pipeline.answering.stages import ANSWERS, QUESTIONS
from pipeline.answering.systems import SYSTEMS as ALL_SYSTEMS
from pipeline.engine.progress import StageAdvanced, listening
from pipeline.engine.run import run_stage
from pipeline.errors import SettingError
from pipeline.evaluation.answers.measures import answer_measures
from pipeline.evaluation.stages import ANSWER_GRADES, ANSWER_SCORES
from pipeline.settings import Settings
from tests.scripted_llm import ScriptedLlm
from tests.unit.answering.corpus import FERNS, MARCH, MAY, QUILLNET
from tests.unit.answering.scripted_answers import form_answer
from tests.unit.answering.stage_runs import BEAM, ENTRIES, FUSION, ledger, reading, run_all, staged
from tests.unit.evaluation.answers.graded import fence, form_of

pytestmark = pytest.mark.slow

DEFAULT_SYSTEMS = Settings.model_fields["answer_systems"].default
# `passages` answers nothing that could be graded.
SYSTEMS = [name for name in DEFAULT_SYSTEMS if ALL_SYSTEMS[name].calls_model]


def judging(asked):
    """A judge by the letter: every sentence is a claim; it is correct where a gold claim or a
    passage has its words, and a gold claim is held where the answer has its words.
    """
    form = form_of(asked)
    if form == "AnswerClaims":
        return json.dumps({"claims": re.split(r"(?<=\.)\s+", fence(asked, "answer"))})
    if form == "ClaimFinding":
        claim, there = fence(asked, "claim"), asked.prompt.count(fence(asked, "claim").rstrip("."))
        return json.dumps({"quote": claim, "verdict": "correct" if there > 1 else "wrong"})
    if form == "GoldFinding":
        fact = fence(asked, "fact")
        return json.dumps(
            {"quote": fact, "verdict": "held" if fact in fence(asked, "answer") else "not"}
        )
    return None


def grades(place, month=MARCH):
    return place.root.rows(tables.ANSWER_GRADES, month)


def test_every_answer_is_graded_and_scored(corpus, tmp_path):
    with ScriptedLlm(judging, reading) as llm:
        place = staged(corpus, tmp_path, llm)
        outcomes = run_all(place)
    named = [(row["question_id"], row["system"], row["judge"]) for row in grades(place)]
    assert named == sorted(
        (q, s, "scripted") for q in ("beam", "fusion", "authors") for s in SYSTEMS
    )
    assert outcomes["answer_grades"].notes["outcomes"] == {
        f"{system}@scripted answered": 3 for system in SYSTEMS
    }
    assert outcomes["answer_grades"].notes["evidence_ranked_by"] == "vectors and words"
    scores = place.root.rows(tables.ANSWER_SCORES, MARCH)
    wanted = [
        (
            *(row[name] for name in ("question_id", "system", "model", "judge", "kind", "date")),
            metric,
            value,
        )
        for row in grades(place)
        for metric, value in answer_measures(row).items()
    ]
    assert [tuple(row.values()) for row in scores if row["judge"]] == wanted
    metrics = Counter(row["metric"] for row in scores)
    assert outcomes["answer_scores"].notes["metrics"] == dict(sorted(metrics.items()))
    shown = [row for row in scores if row["judge"] is None]
    assert {(row["system"], row["metric"]) for row in shown} == {("passages", "gold_shown")}
    # Authors are answered from the table.
    found = {"beam": 1.0, "fusion": 1.0, "authors": 0.0}
    assert {row["question_id"]: row["value"] for row in shown} == found
    assert {row["date"] for row in scores if row["question_id"] == "beam"} == {"2024-03-07"}


def test_claims_are_judged_by_passages_of_the_questions_papers_alone(corpus, tmp_path):
    with ScriptedLlm(judging, reading) as llm:
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
        (
            row["question_id"],
            {paper_of[each["passage_id"]] for each in claim["passages"]},
            len(claim["passages"]),
        )
        for month in (MARCH, MAY)
        for row in grades(place, month)
        for claim in row["claims"]
    ]
    assert all(found <= papers[question_id] for question_id, found, _ in shown)
    assert max(count for _, _, count in shown) == 3
    assert any(
        found == {QUILLNET, FERNS} for question_id, found, _ in shown if question_id == "shade"
    )


def test_progress_counts_every_answer_and_verdict_and_no_call_stands_in_two_rows(corpus, tmp_path):
    events = []
    nothing = form_answer("Claims", {"relevant": [], "claims": []})
    with ScriptedLlm(judging, nothing, reading) as llm:
        place = staged(corpus, tmp_path, llm, BEAM, FUSION)
        with listening(events.append):
            outcome = run_all(place)["answer_grades"]
    steps = [
        event
        for event in events
        if isinstance(event, StageAdvanced) and event.stage == "answer_grades"
    ]
    splits, verdicts = dict.fromkeys(step.total for step in steps)
    counted = [*range(1, splits + 1), *range(1, verdicts + 1)]
    assert [step.done for step in steps] == counted
    systems = Counter(row["system"].split("@")[0] for row in grades(place))
    assert {name: systems[name] for name in SYSTEMS} == dict.fromkeys(SYSTEMS, 2)
    assert sum(row["calls"] for row in grades(place)) == outcome.measured["llm_calls"]


def test_answers_made_elsewhere_are_graded_beside_those_whose_hops_showed_something(
    corpus, tmp_path
):
    file = tmp_path / "answers.csv"
    file.write_text(
        "question_id,system,answer\nbeam,chat-site,Beam search keeps the best partial hypotheses.\n"
    )
    with ScriptedLlm(judging, reading) as llm:
        place = staged(corpus, tmp_path, llm, BEAM, imported_answers=file)
        run_all(place)
    by_system = {row["system"]: row for row in grades(place)}
    elsewhere = by_system["chat-site"]
    assert [each["verdict"] for each in elsewhere["gold"]] == ["held", "not"]
    assert [each["verdict"] for each in elsewhere["claims"]] == ["correct"]
    assert [each["has_passage"] for each in by_system["arxivbot_fused"]["gold"]] == [True, False]
    assert len(by_system["arxivbot_fused"]["hops_shown"]) == 1
    metrics = {
        (row["system"], row["metric"]) for row in place.root.rows(tables.ANSWER_SCORES, MARCH)
    }
    assert ("arxivbot_fused", "gold_shown") in metrics
    for system in ("direct", "chat-site"):
        assert by_system[system]["hops_shown"] is None
        assert (system, "gold_shown") not in metrics  # it searched for nothing: none, and not 0
    file.write_text("question_id,system,answer\nbeam,wikichat,All of it.\n")
    with pytest.raises(SettingError, match="wikichat is a system of citeloom"):
        run_stage(ANSWERS, place, MARCH)


def test_an_answer_to_a_question_that_is_gone_is_told_and_not_graded(corpus, tmp_path):
    with ScriptedLlm(judging, reading) as llm:
        place = staged(corpus, tmp_path, llm, BEAM, FUSION)
        run_all(place)
        shorter = staged(corpus, tmp_path, llm, BEAM)
        run_stage(QUESTIONS, shorter, MARCH)
        run_stage(ANSWER_GRADES, shorter, MARCH)
        run_stage(ANSWER_SCORES, shorter, MARCH)
    assert {row["question_id"] for row in grades(shorter)} == {"beam"}
    assert ledger(shorter, ANSWER_GRADES) == [("fusion", "question_gone")] * len(SYSTEMS)


def test_without_vectors_words_alone_rank_the_evidence_and_it_is_told(corpus, tmp_path):
    with ScriptedLlm(judging, reading) as llm:
        place = staged(corpus, tmp_path, llm, BEAM, answer_systems="direct")
        place.root.file(tables.EMBEDDINGS, MARCH).unlink()
        outcome = run_all(place)["answer_grades"]
    assert outcome.notes["evidence_ranked_by"] == "words alone"
    assert all(each["passages"] for row in grades(place) for each in row["claims"])
