"""Answers graded at a scripted endpoint: what is asked, how often, and what is recorded."""

import json

import pytest

from pipeline.errors import SettingError
from pipeline.evaluation.answers.measures import answer_measures
from pipeline.evaluation.answers.sample import (
    MOST_CLAIMS,
    PART_SENTENCES,
    SPLIT_TOKENS,
    parts_of,
)
from tests.scripted_llm import Asked
from tests.unit.evaluation.answers.graded import (
    PAPER,
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


def values(rows, *columns):
    return [tuple(row[name] for name in columns) for row in rows]


def test_an_answer_is_split_and_its_claims_and_the_gold_claims_are_each_judged_by_one_call(
    tmp_path,
):
    [found], llm = graded(tmp_path, [case()], sentences_as_claims, JUDGE)
    assert forms(llm) == ["AnswerClaims"] + ["ClaimFinding"] * 2 + ["GoldFinding"] * 2
    assert values(found["claims"], "claim", "verdict", "quoted", "passage_id") == [
        (FLOATS, "correct", "passage", "p1"),
        (NINE, "wrong", "passage", "p2"),
    ]
    first = found["claims"][0]["passages"][0]
    text = "Boats > Results\nWe saw every boat float on the river."
    assert (first["anchor"], first["text"]) == ("S1.p1", text)
    assert values(found["gold"], "verdict", "quoted") == [("held", True), ("partly", False)]
    read = sum(
        sum(len(message["content"]) for message in body["messages"]) // 4 for body in llm.requests
    )
    columns = ("outcome", "judge", "calls", "prompt_tokens")
    assert values([found], *columns) == [("answered", llm.model, 5, read)]
    assert found["completion_tokens"] > 0


def test_what_systems_say_alike_or_again_is_asked_once_and_judged_alike_by_no_claim_of_their_own(
    tmp_path,
):
    answer = grounded(case().answer.text, [1], [2])
    cases = [case(system=name, answer=answer) for name in ("one", "two", "three")]
    found, llm = graded(tmp_path, cases, sentences_as_claims, JUDGE)
    assert llm.generations == 5
    assert "Its own claim" not in json.dumps(llm.requests)
    assert found == [{**found[0], "system": name} for name in ("one", "two", "three")]
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


def is_unreadable(asked):
    return "?" if form_of(asked) == "AnswerClaims" else None


ZERO = dict.fromkeys(("coverage", "coverage_full", "coverage_quoted"), 0.0)


@pytest.mark.parametrize(
    ("text", "splitter", "outcome", "asked", "measures"),
    [
        ("", sentences_as_claims, "abstained", [], ZERO),
        ("I do not know.", sentences_as_claims, "claims_nothing", ["AnswerClaims"], ZERO),
        # Still searched for gold claims.
        (
            FLOATS,
            is_unreadable,
            "unreadable",
            ["AnswerClaims", "AnswerClaims", "GoldFinding", "GoldFinding"],
            {"coverage": 0.75, "coverage_full": 0.5, "coverage_quoted": 0.5},
        ),
    ],
)
def test_an_answer_without_claims_costs_no_verdict_on_them(
    tmp_path, text, splitter, outcome, asked, measures
):
    [found], llm = graded(tmp_path, [case(text)], splitter, JUDGE)
    assert (found["outcome"], found["claims"], forms(llm)) == (outcome, [], asked)
    assert answer_measures(found) == measures
    assert len(found["split_failures"]) == (outcome == "unreadable")


def test_a_verdict_in_other_letters_is_the_same(tmp_path):
    spelt = {
        "One floats.": "Partly correct.",
        "Two float.": "INCORRECT",
        "3 float.": "not-checkable",
    }
    rule = verdicts({claim: (verdict, "") for claim, verdict in spelt.items()}, {})
    [found], llm = graded(tmp_path, [case(" ".join(spelt))], sentences_as_claims, rule)
    read = ["partly", "wrong", "not_checkable"]
    assert [claim["verdict"] for claim in found["claims"]] == read
    assert llm.generations == 1 + 3 + 2


@pytest.mark.parametrize(
    ("paper", "quote", "quoted", "shown"),
    [
        (PAPER, "Boats > Results", None, "Boats > Results\nWe saw every boat float"),
        ("2401.00009", "Every boat of the study floats", "gold", ""),
    ],
    ids=["a heading is no evidence", "without passages gold claims are"],
)
def test_a_quote_of_no_passage_names_none(tmp_path, paper, quote, quoted, shown):
    rule = verdicts({FLOATS: ("correct", quote)}, {})
    cases = [case(FLOATS, of=question(1, papers=(paper,)))]
    [found], llm = graded(tmp_path, cases, sentences_as_claims, rule)
    judged = values(found["claims"], "verdict", "quoted", "passage_id")
    assert judged == [("correct", quoted, None)]
    (asked,) = prompts(llm, "ClaimFinding")
    assert shown in fence(asked, "passages")
    assert bool(shown) is ("<passages>" in asked.prompt) is bool(found["claims"][0]["passages"])


def test_a_long_answer_is_split_in_parts_each_with_what_comes_before_it(tmp_path):
    sentences = [f"Boat {number} can float." for number in range(2 * PART_SENTENCES + 1)]
    text = " ".join(sentences)
    [found], llm = graded(tmp_path, [case(text)], sentences_as_claims)
    asked = {
        (fence(each, "before"), fence(each, "answer")) for each in prompts(llm, "AnswerClaims")
    }
    first, second, third = parts_of(text)
    assert asked == {("", first), (first, second), (second, third)}
    assert [claim["claim"] for claim in found["claims"]] == sentences
    assert values([found], "parts", "parts_full") == [(3, 0)]
    assert llm.requests[0]["max_tokens"] == SPLIT_TOKENS


def test_a_part_with_as_many_claims_as_may_be_is_told_of(tmp_path):
    many = json.dumps({"claims": [f"Boat {number} floats." for number in range(MOST_CLAIMS + 1)]})
    rule = lambda asked: many if form_of(asked) == "AnswerClaims" else None  # noqa: E731
    [found], _ = graded(tmp_path, [case()], rule)
    assert (found["parts_full"], len(found["claims"])) == (1, MOST_CLAIMS + 1)


def test_what_has_no_room_in_the_context_is_cut_and_told_of_and_too_small_a_context_is_named(
    tmp_path,
):
    long = "The boats float " + "well and " * 1500 + "truly."
    [found], llm = graded(tmp_path / "long", [case(long)], sentences_as_claims, llm_context=2048)
    assert (found["parts_cut"], {each["cut"] for each in found["gold"]}) == (1, {True})
    assert all(body["max_tokens"] < 2048 for body in llm.requests)
    gold = [f"Boat {number} floats on the river every month of the year." for number in range(60)]
    many = case(FLOATS, of=question(1, *gold))
    [found], llm = graded(tmp_path / "many", [many], sentences_as_claims, llm_context=2048)
    assert found["claims"][0]["cut"]
    assert 0 < fence(prompts(llm, "ClaimFinding")[0], "facts").count("\n") < 59
    assert {each["cut"] for each in found["gold"]} == {False}
    with pytest.raises(SettingError, match="CITELOOM_LLM_CONTEXT"):
        graded(tmp_path / "small", [case()], sentences_as_claims, llm_context=1024)
