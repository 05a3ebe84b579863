"""WikiChat on our index: all its stages, what it lets through, and its calls."""

import pytest

from pipeline.answering.answer import ABSTAINED
from pipeline.answering.user_question import Turn
from pipeline.answering.user_question import UserQuestion as Question
from pipeline.settings import Settings
from tests.cases import cases
from tests.planned_calls import answering_calls
from tests.scripted_llm import Asked, ScriptedLlm
from tests.unit.answering.scripted_answers import (
    MARKS,
    QUESTION,
    FakeRetriever,
    answer,
    answer_at,
    faithful,
    form_answer,
    form_of,
    forms,
    shown_ids,
    stages,
    steps,
)

pytestmark = pytest.mark.slow

READ = ["query", "search", "rank", "bullets", "bullets", "bullets"]
CHECKED = ["generate", "split", *["search", "rank", "verify"] * 2]


def test_all_stages_run_and_the_draft_is_of_bullets_and_supported_claims(tmp_path):
    retriever = FakeRetriever()
    with ScriptedLlm(faithful, latency=0.02) as llm:
        answered = answer_at(llm, tmp_path, "wikichat", QUESTION, retriever)
    assert llm.at_once > 1  # both branches run side by side
    assert stages(answered) == [*READ, *CHECKED, "draft", "refine"]
    assert [(claim.text, claim.passage_id, claim.source) for claim in answered.claims] == [
        ("Bullet 20.", "p20", "passage"),
        ("Bullet 19.", "p19", "passage"),
        ("Bullet 18.", "p18", "passage"),
        ("QuillNet is fair.", "p19", "model"),
        ("QuillNet is fast.", "p19", "model"),
    ]
    assert answered.text == "Refined 1. Refined 2. Refined 3. Refined 4. Refined 5."
    assert shown_ids(answered) == [["p20", "p19", "p18"]]
    # Claims are checked on passages that were retrieved and ranked as the answer's.
    assert sorted(retriever.searches) == [
        (("QuillNet fairness method",), 20),
        (("QuillNet is fair.",), 20),
        (("QuillNet is fast.",), 20),
    ]
    checked = {step["passage_id"] for step in steps(answered, "verify")[0]["evidence"]}
    assert checked == {"p20", "p19", "p18"}
    assert (answered.hops, len(llm.requests)) == (1, answered.spent.calls)


@cases(
    "unit/answering/cases.toml", "a_claim_without_a_supporting_verdict_is_not", ["told", "verdict"]
)
def test_a_claim_without_a_supporting_verdict_is_not_said(tmp_path, told, verdict):
    check = {"reasoning": "No.", "verdict": told, "passage": 1}
    answered, llm = answer(tmp_path, "wikichat", form_answer("Check", check), faithful)
    assert {claim.source for claim in answered.claims} == {"passage"}
    checks = steps(answered, "verify")
    assert [step["verdict"] for step in checks] == [verdict] * 2
    asked = [
        body["messages"][1]["content"]
        for body in llm.requests
        if form_of(Asked(body, 0)) == "GroundedAnswer"
    ]
    assert "QuillNet is fast." not in asked[0]


def test_a_supported_claim_whose_passage_is_not_named_rests_on_the_first_and_that_is_told(
    tmp_path,
):
    rule = form_answer("Check", {"reasoning": "Yes.", "verdict": "supported", "passage": 9})
    answered, _ = answer(tmp_path, "wikichat", rule, faithful)
    checks = [(step["verdict"], step["named"]) for step in steps(answered, "verify")]
    assert checks == [("SUPPORTS", False)] * 2
    assert [claim.passage_id for claim in answered.claims if claim.source == "model"] == ["p20"] * 2


def test_where_no_search_is_wanted_only_the_models_claims_are_checked(tmp_path):
    rule = form_answer("Search", {"search": "no", "question": "", "query": "ignored"})
    answered, _ = answer(tmp_path, "wikichat", rule, faithful)
    assert stages(answered) == ["query", *CHECKED, "draft", "refine"]
    assert (answered.queries, shown_ids(answered)) == ((), [["p20", "p19", "p18"]])


def test_without_a_bullet_or_a_supported_claim_it_abstains(tmp_path):
    nothing = form_answer("Bullets", {"bullets": ["None.", " "]})
    unknown = form_answer("Check", {"reasoning": "", "verdict": "NOT ENOUGH INFO", "passage": 0})
    answered, llm = answer(tmp_path, "wikichat", nothing, unknown, faithful)
    assert (answered.abstained, answered.text) == (True, ABSTAINED)
    assert "GroundedAnswer" not in forms(llm)
    # A draft that abstains is not refined.
    withheld = form_answer("GroundedAnswer", {"answered": "no", "sentences": []})
    answered, llm = answer(tmp_path, "wikichat", withheld, faithful)
    assert answered.abstained
    assert "RefinedAnswer" not in forms(llm)


@pytest.mark.parametrize(
    ("told", "kept"),
    [
        (dict.fromkeys(MARKS, 100) | {"sentences": []}, "full marks"),
        (
            dict.fromkeys(MARKS, 10) | {"sentences": [{"text": "New.", "claims": [88]}]},
            "nothing left",
        ),
    ],
)
def test_a_draft_stays_where_it_needs_no_refinement_or_gets_none(tmp_path, told, kept):
    answered, _ = answer(tmp_path, "wikichat", form_answer("RefinedAnswer", told), faithful)
    assert answered.sentences[0].text == "Sentence 1."
    assert steps(answered, "refine")[0]["kept"] == kept


@cases(
    "unit/answering/cases.toml",
    "calls_are_those_that_are_planned_and_at",
    ["candidates", "windows", "made"],
)
def test_calls_are_those_that_are_planned_and_at_most_eight_claims_are_checked(
    tmp_path, candidates, windows, made
):
    claims = form_answer(
        "SplitClaims", {"claims": [f"Claim {number} is so." for number in range(made)]}
    )
    checked = min(made, 8)
    answered, llm = answer(tmp_path, "wikichat", claims, faithful, answer_candidates=candidates)
    settings = Settings(llm_url=llm.url, answer_candidates=candidates, _env_file=None)  # type: ignore[call-arg]
    assert len(steps(answered, "verify")) == checked
    assert steps(answered, "split")[0]["over"] == made - checked
    formula = 1 + windows + min(candidates, 3) + 2 + checked * (windows + 1) + 2
    planned = answering_calls("wikichat", settings, checked=checked)
    assert (answered.spent.calls, llm.generations, planned) == (formula, formula, formula)


def test_direct_asks_the_model_alone_and_retrieves_nothing(tmp_path):
    retriever = FakeRetriever()
    rule = form_answer("Text", "QuillNet reads margins. It is small, e.g. 3 MB.")
    answered, _ = answer(tmp_path, "direct", rule, retriever=retriever)
    assert (retriever.searches, answered.claims) == ([], ())
    assert (answered.spent.calls, answered.hops) == (1, 0)
    sentences = [sentence.text for sentence in answered.sentences]
    assert sentences == ["QuillNet reads margins.", "It is small, e.g. 3 MB."]


@cases("unit/answering/cases.toml", "the_model_reads_the_conversation", ["system", "forms_read"])
def test_the_model_reads_the_conversation(tmp_path, system, forms_read):
    question = Question("And how large is it?", (Turn("What is QuillNet?", "A reader."),))
    _, llm = answer(tmp_path, system, faithful, question=question)
    turns = "User: What is QuillNet?\nAssistant: A reader."
    asked = [Asked(body, 0) for body in llm.requests]
    assert sorted(form_of(each) for each in asked if turns in each.prompt) == forms_read
