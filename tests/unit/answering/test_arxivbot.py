"""arXivBot: its stages in order, hops as asked for, and nothing that rests on what was not
retrieved.
"""

import json

import pytest

from pipeline.answering.user_question import Turn
from pipeline.answering.user_question import UserQuestion as Question
from pipeline.errors import SettingError
from pipeline.llm.messages import LlmAnswerError
from pipeline.settings import Settings
from tests.cases import cases
from tests.planned_calls import answering_calls
from tests.scripted_llm import Asked
from tests.unit.answering.scripted_answers import (
    QUESTION,
    FakeRetriever,
    answer,
    facts_in,
    faithful,
    form_answer,
    form_of,
    forms,
    more_searches,
    passage,
    shown_ids,
    stages,
    steps,
)

pytestmark = pytest.mark.slow

ONE_HOP = ["query", "search", "rank", "claims"]
ONE_HOP_FORMS = ["Query", "Ranking", "Claims"]


def test_the_stages_run_in_order_and_one_hop_is_enough_where_the_model_says_so(
    tmp_path,
):
    answered, llm = answer(tmp_path, "arxivbot", faithful)
    assert stages(answered) == [*ONE_HOP, "reflect", "answer"]
    assert forms(llm) == [*ONE_HOP_FORMS, "Thought", "GroundedAnswer"]
    assert (answered.hops, answered.queries) == (1, ("QuillNet fairness evaluation method",))
    assert shown_ids(answered) == [["p20", "p19", "p18"]]  # the model ranked the 20 backwards
    assert answered.text == "Sentence 1. Sentence 2. Sentence 3."
    assert [(claim.passage_id, claim.arxiv_id, claim.anchor) for claim in answered.claims] == [
        ("p20", "2403.00020", "S20.p1"),
        ("p19", "2403.00019", "S19.p1"),
        ("p18", "2403.00018", "S18.p1"),
    ]
    asked = {form_of(Asked(body, 0)): body["messages"][1]["content"] for body in llm.requests}
    # Passages reach the model with title and sections, without citation markers; the answer is
    # written from claims.
    assert (
        "Passage 1:\n<passage>\nTitle 20 > Method > Part 20\nIt holds fact 20.\n</passage>"
        in asked["Claims"]
    )
    assert "[1] Claim 20." in asked["GroundedAnswer"]
    assert facts_in(asked["GroundedAnswer"]) == []


def test_a_second_hop_runs_only_when_it_is_asked_for_and_shows_other_passages(
    tmp_path,
):
    retriever = FakeRetriever()
    more = more_searches("QuillNet fairness results")
    answered, llm = answer(tmp_path, "arxivbot", more, faithful, retriever=retriever)
    assert stages(answered) == [*ONE_HOP, "reflect", "search", "rank", "claims", "answer"]
    assert forms(llm) == [*ONE_HOP_FORMS, "Thought", "Ranking", "Claims", "GroundedAnswer"]
    assert answered.queries == ("QuillNet fairness evaluation method", "QuillNet fairness results")
    assert shown_ids(answered) == [["p20", "p19", "p18"], ["p23", "p22", "p21"]]
    # The three that were shown are asked for on top.
    assert [count for _, count in retriever.searches] == [20, 23]
    assert [claim.hop for claim in answered.claims] == [1, 1, 1, 2, 2, 2]
    assert [claim.number for claim in answered.claims] == [1, 2, 3, 4, 5, 6]
    first, second = [
        body["messages"][1]["content"] for body in llm.requests if "Passage 1:" in str(body)
    ]
    assert "known already" not in first
    assert "- Claim 20." in second  # so that it is not made again


def claims_form(*claims):
    """The answer of a model that claims these texts of passages by number."""
    told = [{"passage": number, "claim": text} for number, text in claims]
    return {"relevant": [], "claims": told}


@cases(
    "unit/answering/cases.toml",
    "claims_that_cannot_stand_are_dropped",
    ["name", "relevant", "claims", "kept", "dropped"],
)
def test_claims_that_cannot_stand_are_dropped_and_counted(
    tmp_path, name, relevant, claims, kept, dropped
):
    rule = form_answer("Claims", claims_form(*claims) | {"relevant": relevant})
    answered, _ = answer(tmp_path, "arxivbot", rule, faithful)
    assert [[claim.text, claim.passage_id] for claim in answered.claims] == kept
    (step,) = steps(answered, "claims")
    assert step["dropped"] == dropped, name


def test_a_claim_is_moved_to_the_passage_that_has_its_names_and_figures(tmp_path):
    """In the second hop to one of the first too; one whose figures stand nowhere is told of and
    stays.
    """
    first = passage(1, "It gains 34.3 points, say Halabi and others.")
    second = passage(2, "It costs 2.1 seconds.")
    hops = iter(
        [
            [(2, "The gain is 34.3 points."), (1, "It gains something.")],
            [(1, "The gain, says Halabi, is large."), (1, "It is 9.75 in all.")],
        ]
    )

    def telling(asked):
        return json.dumps(claims_form(*next(hops))) if form_of(asked) == "Claims" else None

    rules = (telling, more_searches("more"), faithful)
    # More than are read are ranked, backwards.
    retriever = FakeRetriever(passage(3), passage(4), second, first)
    answered, _ = answer(tmp_path, "arxivbot", *rules, retriever=retriever, answer_passages=2)
    assert shown_ids(answered) == [["p1", "p2"], ["p3", "p4"]]
    assert [claim.passage_id for claim in answered.claims] == ["p1", "p1", "p1", "p3"]
    told = [(step["moved"], step["loose"]) for step in steps(answered, "claims")]
    assert told == [([{"claim": 1, "named": "p2"}], []), ([{"claim": 3, "named": "p3"}], [4])]


def test_a_title_that_a_passage_holds_may_be_claimed_of_it(tmp_path):
    """As of front matter, whose first line is the title: somebody may have asked for it."""
    front = passage(1, "On Ferns\nBy C. Frond", title="On Ferns", section_path=())
    body = passage(2, "They are green.", title="On Ferns", section_path=())
    rule = form_answer("Claims", claims_form((2, "On Ferns"), (1, "On Ferns")))
    retriever = FakeRetriever(front, body)
    answered, _ = answer(tmp_path, "arxivbot", rule, faithful, retriever=retriever)
    assert [claim.passage_id for claim in answered.claims] == ["p1"]


@cases(
    "unit/answering/cases.toml",
    "a_sentence_that_rests_on_no_claim",
    ["text", "answered", "sentences", "claims", "dropped"],
)
def test_a_sentence_that_rests_on_no_claim_is_dropped_and_told(
    tmp_path, text, answered, sentences, claims, dropped
):
    told = [{"text": written, "claims": numbers} for written, numbers in sentences]
    rule = form_answer("GroundedAnswer", {"answered": answered, "sentences": told})
    answered, _ = answer(tmp_path, "arxivbot", rule, faithful)
    assert (answered.text, answered.abstained) == (text, not claims)
    assert [list(sentence.claims) for sentence in answered.sentences] == claims
    assert len(answered.claims) == 3
    (step,) = steps(answered, "answer")
    assert step["dropped"] == dropped
    assert step["made"] is text.startswith("Claim")


def test_where_the_index_finds_nothing_it_abstains(tmp_path):
    retriever = FakeRetriever()
    retriever.passages.clear()
    answered, llm = answer(
        tmp_path, "arxivbot", more_searches("other words"), faithful, retriever=retriever
    )
    assert (answered.abstained, answered.hops, shown_ids(answered)) == (True, 2, [[], []])
    assert forms(llm) == ["Query", "Thought"]


@pytest.mark.parametrize("form", ["Query", "Claims", "Thought", "GroundedAnswer"])
def test_a_question_fails_with_a_step_that_cannot_be_read(tmp_path, form):
    with pytest.raises(LlmAnswerError) as caught:
        answer(tmp_path, "arxivbot", form_answer(form, "Sorry, no."), faithful)
    assert caught.value.kind == "unreadable"


FOLLOW_UP = Question(
    "And how large is it?", (Turn("What is QuillNet?", "QuillNet is a reader of margins."),)
)


@pytest.mark.parametrize(
    ("question", "form", "told", "query"),
    [
        (QUESTION, "Query", {"query": " \x00 "}, "How does QuillNet judge fairness?"),
        (
            FOLLOW_UP,
            "FollowUp",
            {"question": "", "query": ""},
            "And how large is it? What is QuillNet?",
        ),
    ],
    ids=["a first question", "a follow-up, with the question before it"],
)
def test_where_no_query_is_named_the_question_itself_is_searched_for(
    tmp_path, question, form, told, query
):
    answered, _ = answer(tmp_path, "arxivbot", form_answer(form, told), faithful, question=question)
    assert answered.queries == (query,)
    assert steps(answered, "query")[0]["made"] == "question"


def test_too_little_without_a_query_is_told_and_ends_the_search(tmp_path):
    rule = form_answer("Thought", {"reasoning": "More is missing.", "enough": False, "query": ""})
    answered, _ = answer(tmp_path, "arxivbot", rule, faithful)
    assert answered.hops == 1
    assert steps(answered, "reflect")[0]["silent"] is True


def test_a_follow_up_is_made_to_stand_alone_and_later_stages_read_it_so(tmp_path):
    answered, llm = answer(tmp_path, "arxivbot", faithful, question=FOLLOW_UP)
    assert forms(llm)[0] == "FollowUp"
    asked = [body["messages"][1]["content"] for body in llm.requests]
    assert "User: What is QuillNet?\nAssistant: QuillNet is a reader of margins." in asked[0]
    assert "And how large is it?" in asked[0]
    assert all("How large is QuillNet?" in later for later in asked[2:])
    assert answered.queries == ("QuillNet size",)


def test_of_a_long_conversation_the_last_turns_are_shown(tmp_path):
    history = tuple(Turn(f"Question {n}?", "word " * 400) for n in range(20))
    _, llm = answer(
        tmp_path, "arxivbot", faithful, question=Question("And then?", history), llm_context=2048
    )
    shown = llm.requests[0]["messages"][1]["content"]
    assert "Question 19?" in shown
    assert "Question 13?" not in shown
    assert len(shown) < 6 * 1024


@pytest.mark.parametrize("text", ["", " \n", "\x07", "caf\udce9"])
def test_a_question_that_is_none_is_refused(text):
    with pytest.raises(SettingError, match="the question q7 is"):
        Question(text, question_id="q7")


@cases(
    "unit/answering/cases.toml",
    "hops_end_at_the_most_and_calls_are",
    ["candidates", "windows", "most", "wanted", "hops"],
)
def test_hops_end_at_the_most_and_calls_are_those_that_are_planned(
    tmp_path, candidates, windows, most, wanted, hops
):
    asked = {"answer_hops": most, "answer_candidates": candidates}
    more = more_searches(*(f"more {number}" for number in range(wanted)))
    answered, llm = answer(tmp_path, "arxivbot", more, faithful, **asked)
    assert answered.hops == hops
    settings = Settings(llm_url=llm.url, _env_file=None, **asked)  # type: ignore[call-arg]
    formula = 1 + hops * (windows + 1) + min(hops, most - 1) + 1
    planned = answering_calls("arxivbot", settings, hops=hops)
    assert (answered.spent.calls, llm.generations, planned) == (formula, formula, formula)


def test_records_are_read_before_the_passages_of_the_first_hop_and_searched_no_more(tmp_path):
    records = [passage(number, kind="front_matter") for number in (1, 2)]
    retriever = FakeRetriever(named=records)
    more = more_searches("another query")
    answered, _ = answer(tmp_path, "arxivbot_fused", more, faithful, retriever=retriever)
    assert shown_ids(answered) == [["p1", "p2", "p22", "p21", "p20"], ["p25", "p24", "p23"]]
    assert [claim.passage_id for claim in answered.claims[:3]] == ["p1", "p2", "p22"]
    assert [place["passage_id"] for place in steps(answered, "records")[0]["shown"]] == ["p1", "p2"]
