"""Answers graded at a scripted endpoint: what is asked, how often, and what is recorded."""

import json

import pytest

from pipeline.errors import SettingError
from pipeline.evaluation.answers.measures import answer_measures
from pipeline.evaluation.answers.sample import MOST_CLAIMS, PART_SENTENCES, SPLIT_TOKENS, parts_of
from tests.cases import cases, values_at
from tests.scripted_llm import Asked
from tests.unit.evaluation.answers.graded import (
    PAPER,
    answer_to_grade,
    fence,
    form_of,
    forms,
    graded,
    grounded,
    question,
    sentences_as_claims,
    verdicts,
)

pytestmark = pytest.mark.slow

FLOATS = "All boats float."
GOLD = {
    "Every boat of the study floats.": ("held", FLOATS),
    "The study has twelve boats.": ("partly", "twelve"),
}
JUDGE = verdicts({FLOATS: ("correct", "every boat float")}, GOLD)


def prompts(llm, form):
    return [asked for body in llm.requests if form_of(asked := Asked(body, 0)) == form]


@cases("unit/evaluation/answers/gradings.toml")
def test_an_answer_is_graded_claim_by_claim(tmp_path, case):
    def is_unreadable(asked):
        unreadable = form_of(asked) == "AnswerClaims" and "unreadable" in fence(asked, "answer")
        return "?" if unreadable else None

    rule = verdicts(case.get("claims", {}), GOLD)
    of = question(papers=case.get("papers", (PAPER,)))
    answer = answer_to_grade(case["text"], of=of)
    [found], llm = graded(tmp_path, [answer], is_unreadable, sentences_as_claims, rule)
    assert values_at(found, case["grade"]) == case["grade"]
    assert forms(llm) == case.get("asked", forms(llm))
    assert answer_measures(found) == case.get("measures", answer_measures(found))
    read = [sum(len(each["content"]) for each in body["messages"]) // 4 for body in llm.requests]
    assert (found["calls"], found["prompt_tokens"]) == (len(read), sum(read))
    assert len(found["split_failures"]) == (found["outcome"] == "unreadable")
    for asked in prompts(llm, "ClaimFinding"):
        shown = found["claims"][0]["passages"]
        assert [each["text"] in fence(asked, "passages") for each in shown] == [True] * len(shown)
        assert ("<passages>" in asked.prompt) is bool(shown)


def test_what_systems_say_alike_or_again_is_asked_once_and_judged_alike_by_no_claim_of_their_own(
    tmp_path,
):
    answer = grounded(answer_to_grade().answer.text, [1], [2])
    cases = [answer_to_grade(system=name, answer=answer) for name in ("one", "two", "three")]
    found, llm = graded(tmp_path, cases, sentences_as_claims, JUDGE)
    assert llm.generations == 5
    assert "Its own claim" not in json.dumps(llm.requests)
    assert found == [{**found[0], "system": name} for name in ("one", "two", "three")]
    again, llm = graded(tmp_path, cases)
    assert (again, llm.requests) == (found, [])


def test_an_order_that_judges_see_follows_from_the_question_alone(tmp_path):
    several = [f"Boat {name} floats." for name in "ABCDEF"]
    cases = [answer_to_grade(of=question(n, *several)) for n in (1, 2, 3)]
    _, llm = graded(tmp_path, cases, sentences_as_claims, JUDGE)
    seen = {
        (fence(asked, "question"), fence(asked, "facts")) for asked in prompts(llm, "ClaimFinding")
    }
    orders = {facts for _, facts in seen}
    assert len(seen) == len(orders) == 3
    assert all(sorted(facts.split("\n")) == several for facts in orders)


def test_a_long_answer_is_split_in_parts_each_with_what_comes_before_it(tmp_path):
    sentences = [f"Boat {number} can float." for number in range(2 * PART_SENTENCES + 1)]
    text = " ".join(sentences)
    [found], llm = graded(tmp_path, [answer_to_grade(text)], sentences_as_claims)
    asked = {
        (fence(each, "before"), fence(each, "answer")) for each in prompts(llm, "AnswerClaims")
    }
    first, second, third = parts_of(text)
    assert asked == {("", first), (first, second), (second, third)}
    assert [claim["claim"] for claim in found["claims"]] == sentences
    assert (found["parts"], found["parts_full"]) == (3, 0)
    assert llm.requests[0]["max_tokens"] == SPLIT_TOKENS


def test_a_part_with_as_many_claims_as_may_be_is_told_of(tmp_path):
    many = json.dumps({"claims": [f"Boat {number} floats." for number in range(MOST_CLAIMS + 1)]})
    rule = lambda asked: many if form_of(asked) == "AnswerClaims" else None  # noqa: E731
    [found], _ = graded(tmp_path, [answer_to_grade()], rule)
    assert (found["parts_full"], len(found["claims"])) == (1, MOST_CLAIMS + 1)


def test_what_has_no_room_in_the_context_is_cut_and_told_of_and_too_small_a_context_is_named(
    tmp_path,
):
    long = "The boats float " + "well and " * 1500 + "truly."
    [found], llm = graded(
        tmp_path / "long", [answer_to_grade(long)], sentences_as_claims, llm_context=2048
    )
    assert (found["parts_cut"], {each["cut"] for each in found["gold"]}) == (1, {True})
    assert all(body["max_tokens"] < 2048 for body in llm.requests)
    gold = [f"Boat {number} floats on the river every month of the year." for number in range(60)]
    many = answer_to_grade(FLOATS, of=question(1, *gold))
    [found], llm = graded(tmp_path / "many", [many], sentences_as_claims, llm_context=2048)
    assert found["claims"][0]["cut"]
    assert 0 < fence(prompts(llm, "ClaimFinding")[0], "facts").count("\n") < 59
    assert {each["cut"] for each in found["gold"]} == {False}
    with pytest.raises(SettingError, match="CITELOOM_LLM_CONTEXT"):
        graded(tmp_path / "small", [answer_to_grade()], sentences_as_claims, llm_context=1024)
