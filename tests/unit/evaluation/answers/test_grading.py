"""Answers graded at a scripted endpoint: what is asked, how often, and what is recorded."""

import json

import pytest

from pipeline.answering.answer import ABSTAINED
from pipeline.errors import SettingError
from pipeline.evaluation.answers.measures import answer_measures
from pipeline.evaluation.answers.sample import (
    MOST_CLAIMS,
    PART_SENTENCES,
    SPLIT_TOKENS,
    parts_of,
)
from tests.cases import cases
from tests.scripted_llm import Asked
from tests.unit.evaluation.answers.graded import (
    case,
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

FLOATS, NINE = "All boats float.", "There are nine boats."
GOLD_FLOATS, GOLD_TWELVE = "Every boat of the study floats.", "The study has twelve boats."
JUDGE = verdicts(
    {FLOATS: ("correct", "every boat float"), NINE: ("wrong", "has twelve boats")},
    {GOLD_FLOATS: ("held", "All boats float."), GOLD_TWELVE: ("partly", "twelve")},
)


def prompts(llm, form):
    return [asked for body in llm.requests if form_of(asked := Asked(body, 0)) == form]


def claim_of(folder, verdict, quote, of=None):
    """(One claim as it was graded by this verdict and quote, the endpoint)."""
    rule = verdicts({FLOATS: (verdict, quote)}, {})
    [found], llm = graded(folder, [case(FLOATS, of=of)], sentences_as_claims, rule)
    return found["claims"][0], llm


def test_an_answer_is_split_and_its_claims_and_the_gold_claims_are_each_judged_by_one_call(
    tmp_path,
):
    [found], llm = graded(tmp_path, [case()], sentences_as_claims, JUDGE)
    assert forms(llm) == ["AnswerClaims"] + ["ClaimFinding"] * 2 + ["GoldFinding"] * 2
    columns = ("claim", "verdict", "quoted", "passage_id")
    assert [tuple(claim[name] for name in columns) for claim in found["claims"]] == [
        (FLOATS, "correct", "passage", "p1"),
        (NINE, "wrong", "passage", "p2"),
    ]
    first = found["claims"][0]["passages"][0]
    text = "Boats > Results\nWe saw every boat float on the river."
    assert (first["anchor"], first["text"]) == ("S1.p1", text)
    gold = [(each["verdict"], each["quoted"]) for each in found["gold"]]
    assert gold == [("held", True), ("partly", False)]
    read = [
        sum(len(message["content"]) for message in body["messages"]) // 4 for body in llm.requests
    ]
    assert (found["outcome"], found["judge"]) == ("answered", llm.model)
    assert (found["calls"], found["prompt_tokens"]) == (5, sum(read))
    assert found["completion_tokens"] > 0
    assert answer_measures(found)["factual"] == 0.5
    assert answer_measures(found)["coverage"] == 0.75


def test_what_systems_say_alike_or_again_is_asked_once_and_judged_alike_by_no_claim_of_their_own(
    tmp_path,
):
    answer = grounded(case().answer.text, [1], [2])
    cases = [case(system=name, answer=answer) for name in ("one", "two", "three")]
    found, llm = graded(tmp_path, cases, sentences_as_claims, JUDGE)
    assert llm.generations == 5
    assert "Its own claim" not in json.dumps(llm.requests)
    alike = [{**found[0], "system": name} for name in ("one", "two", "three")]
    assert found == alike
    again, llm = graded(tmp_path, cases)
    assert (again, llm.requests) == (found, [])


def test_grades_depend_neither_on_the_order_of_answers_nor_on_how_many_are_asked_at_once(
    tmp_path,
):
    cases = [
        case(f"Boat {n} can float. There are {n} boats.", f"s{n % 3}", question(n // 3))
        for n in range(9)
    ]
    one, _ = graded(tmp_path / "one", cases, sentences_as_claims, llm_concurrency=1)
    other, _ = graded(tmp_path / "other", cases[::-1], sentences_as_claims, llm_concurrency=16)
    assert one == other[::-1]


def test_an_order_that_judges_see_follows_from_the_question_alone(tmp_path):
    several = [f"Boat {name} floats." for name in "ABCDEF"]
    cases = [case(of=question(n, *several)) for n in (1, 2, 3)]
    _, llm = graded(tmp_path, cases, sentences_as_claims, JUDGE)
    seen = {
        (fence(asked, "question"), fence(asked, "facts")) for asked in prompts(llm, "ClaimFinding")
    }
    orders = {facts for _, facts in seen}
    assert len(seen) == len(orders) == 3
    assert all(sorted(facts.split("\n")) == several for facts in orders)


def test_an_abstention_costs_no_call_and_an_answer_that_claims_nothing_costs_one(tmp_path):
    abstained = case("")
    assert abstained.answer.text == ABSTAINED
    [nothing], llm = graded(tmp_path / "abstained", [abstained])
    assert (nothing["outcome"], nothing["claims"], llm.requests) == ("abstained", [], [])
    [unsure], llm = graded(tmp_path / "unsure", [case("I do not know.")], sentences_as_claims)
    assert (unsure["outcome"], forms(llm)) == ("claims_nothing", ["AnswerClaims"])
    zero = dict.fromkeys(("coverage", "coverage_full", "coverage_quoted"), 0.0)
    assert answer_measures(nothing) == answer_measures(unsure) == zero


def test_an_answer_that_cannot_be_split_is_unreadable_and_still_searched_for_gold_claims(
    tmp_path,
):
    unreadable = lambda asked: "?" if form_of(asked) == "AnswerClaims" else None  # noqa: E731
    [found], llm = graded(tmp_path, [case()], unreadable, JUDGE)
    assert (found["outcome"], found["claims"]) == ("unreadable", [])
    assert forms(llm) == ["AnswerClaims"] * 2 + ["GoldFinding"] * 2
    assert "coverage" in answer_measures(found)
    assert "factual" not in answer_measures(found)
    assert len(found["split_failures"]) == 1


@cases("unit/evaluation/cases.toml", "a_verdict_in_other_letters_is_the_same", ["given", "read"])
def test_a_verdict_in_other_letters_is_the_same(tmp_path, given, read):
    claim, llm = claim_of(tmp_path, given, "")
    assert (claim["verdict"], llm.generations) == (read, 4)


def test_a_heading_is_shown_and_is_no_evidence_and_without_passages_gold_claims_are(tmp_path):
    claim, llm = claim_of(tmp_path / "heading", "correct", "Boats > Results")
    passages = fence(prompts(llm, "ClaimFinding")[0], "passages")
    assert "Boats > Results\nWe saw every boat float" in passages
    assert (claim["verdict"], claim["quoted"], claim["passage_id"]) == ("correct", None, None)
    elsewhere = question(1, papers=("2401.00009",))
    claim, llm = claim_of(tmp_path / "gold", "correct", "Every boat of the study floats", elsewhere)
    assert (claim["quoted"], claim["passage_id"], claim["passages"]) == ("gold", None, [])
    assert "<passages>" not in prompts(llm, "ClaimFinding")[0].prompt


def test_a_long_answer_is_split_in_parts_each_with_what_comes_before_it(tmp_path):
    sentences = [f"Boat {number} can float." for number in range(2 * PART_SENTENCES + 1)]
    text = " ".join(sentences)
    [found], llm = graded(tmp_path / "long", [case(text)], sentences_as_claims)
    asked = {
        (fence(each, "before"), fence(each, "answer")) for each in prompts(llm, "AnswerClaims")
    }
    parts = parts_of(text)
    assert len(parts) == found["parts"] == 3
    assert asked == {("", parts[0]), (parts[0], parts[1]), (parts[1], parts[2])}
    assert [claim["claim"] for claim in found["claims"]] == sentences
    assert (found["parts_full"], llm.requests[0]["max_tokens"]) == (0, SPLIT_TOKENS)
    many = json.dumps({"claims": [f"Boat {number} floats." for number in range(MOST_CLAIMS + 1)]})
    rule = lambda asked: many if form_of(asked) == "AnswerClaims" else None  # noqa: E731
    [found], _ = graded(tmp_path / "many", [case()], rule)
    counts = found["parts_full"], len(found["claims"])
    assert counts == (1, MOST_CLAIMS + 1), "as many claims as may be are told of"


def test_what_has_no_room_in_the_context_is_cut_and_told_of_and_too_small_a_context_is_named(
    tmp_path,
):
    long = "The boats float " + "well and " * 1500 + "truly."
    [found], llm = graded(tmp_path / "long", [case(long)], sentences_as_claims, llm_context=2048)
    assert found["parts_cut"] == 1
    assert all(each["cut"] for each in found["gold"])
    assert all(body["max_tokens"] < 2048 for body in llm.requests)
    gold = [
        f"Boat {number} floats on the river in every month of the year." for number in range(60)
    ]
    many = case(FLOATS, of=question(1, *gold))
    [found], llm = graded(tmp_path / "many", [many], sentences_as_claims, llm_context=2048)
    assert found["claims"][0]["cut"]
    assert 0 < fence(prompts(llm, "ClaimFinding")[0], "facts").count("\n") < 59
    assert not any(each["cut"] for each in found["gold"])
    with pytest.raises(SettingError, match="CITELOOM_LLM_CONTEXT"):
        graded(tmp_path / "small", [case()], sentences_as_claims, llm_context=1024)
