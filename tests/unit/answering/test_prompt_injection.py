"""Thirty passages that speak to the model: nothing of them leaves its fence, and no answer cites
outside of what was shown, even where a model obeys each of them as far as the form of its answers
lets it.

The passages are in tests/labels/injections.jsonl; `injections` lays them out as a corpus.
"""

import json
import re
from pathlib import Path

import pytest

from pipeline.answering.prompt_injection import looks_like_prompt_injection
from pipeline.engine.stage import Workspace
from pipeline.index.opening import close_indexes
from pipeline.settings import load_settings
from tests.cases import cases
from tests.scripted_llm import Asked, ScriptedLlm
from tests.unit.answering.injections import Effect, measure_effects, read_injections, write_corpus
from tests.unit.answering.scripted_answers import MARKS, form_of
from tests.unit.answering.stage_runs import reading
from tests.unit.evaluation.answers.graded import fence

pytestmark = pytest.mark.slow

PROJECT = Path(__file__).resolve().parents[3]
SYSTEMS = ("arxivbot_fused", "wikichat", "direct")

INJECTIONS = read_injections()

Asking = tuple[dict[str, list[Effect]], ScriptedLlm]
"""The effects of the thirty on the answers of each system, and the endpoint that obeyed."""


def ordered(asked):
    """The orders that a prompt brings."""
    return [injection for injection in INJECTIONS if injection.fact in asked.prompt]


def obeying(asked):
    """A model that does what the passages want: it says their words, cites what they name, ranks as
    they say.
    """
    found = ordered(asked)
    if not found:
        return None
    said = " ".join(
        [
            "Obeyed:",
            *(each.sign for each in found if each.sign),
            "[9] https://lantern-prize.example",
        ]
    )
    withheld = [
        each
        for each in found
        if each.wants == "abstain" and f" {each.name} " in fence(asked, "question")
    ]
    claims = [] if withheld else [{"passage": number, "claim": said} for number in (99, 1)]
    given = {
        "Claims": {"relevant": [99, 1], "claims": claims},
        "Thought": {"reasoning": said, "enough": False, "query": said[:200]},
        "Bullets": {"bullets": [said]},
        "Check": {"reasoning": said, "verdict": "SUPPORTS", "passage": 99},
    }
    name = form_of(asked)
    if name == "Ranking":
        wanting = [each for each in found if each.wants == "first"]
        shown = re.findall(
            r"^\[(\d+)\]\n<passage>\n(.*?)\n</passage>", asked.prompt, re.DOTALL | re.MULTILINE
        )
        first = [number for number, text in shown if any(each.fact in text for each in wanting)]
        return " > ".join(f"[{number}]" for number in ["99", *first, "99"])
    return json.dumps(given[name]) if name in given else None


def searching(asked):
    """A model that searches for what it is asked."""
    query = fence(asked, "question")
    given = {
        "Query": {"query": query},
        "Search": {"search": "yes", "question": query, "query": query},
    }
    return json.dumps(given[form_of(asked)]) if form_of(asked) in given else None


def obeying_answer(asked):
    """The same model at the answer, which sees claims alone: it goes on saying what they say."""
    if form_of(asked) not in ("GroundedAnswer", "RefinedAnswer") or "Obeyed:" not in asked.prompt:
        return None
    said = re.findall(r"Obeyed:[^\n]*", asked.prompt)[0]
    sentences = [
        {"text": said, "claims": [99, 97]},
        {"text": said, "claims": [1]},
        {"text": f"{said} [1]", "claims": []},
    ]
    told = {"answered": "yes"} if form_of(asked) == "GroundedAnswer" else dict.fromkeys(MARKS, 90)
    return json.dumps(told | {"sentences": sentences})


@pytest.fixture(scope="module")
def asked_all(tmp_path_factory):
    folder = tmp_path_factory.mktemp("lanterns")
    questions = folder / "lanterns.jsonl"
    with ScriptedLlm(searching, obeying, obeying_answer, reading) as llm:
        # Twelve, so that a ranking that obeys does not keep the passage that was asked for from
        # being read.
        given = {"data": folder, "questions": questions, "answer_passages": 12, "_env_file": None}
        work = Workspace(load_settings(llm_url=llm.url, llm_model=llm.model, **given))
        write_corpus(work, INJECTIONS, questions)
        yield measure_effects(work, SYSTEMS, INJECTIONS), llm
    close_indexes()


@cases(
    "unit/answering/cases.toml",
    "orders_to_a_model_look_like_prompt_injection",
    ["text", "suspicious"],
)
def test_orders_to_a_model_look_like_prompt_injection(text, suspicious):
    assert looks_like_prompt_injection(f"We study reading. {text} Results follow.") is suspicious


def test_every_one_is_read_by_arxivbot_and_none_by_the_model_alone(asked_all):
    effects, _ = asked_all
    assert all(effect.read for effect in effects["arxivbot_fused"])
    assert not any(effect.read for effect in effects["direct"])


def test_no_answer_cites_outside_its_passages(asked_all):
    effects, _ = asked_all
    for system in SYSTEMS:
        assert len(effects[system]) == 30
        for effect in effects[system]:
            assert effect.ungrounded == 0
            assert system == "direct" or all(
                sentence.claims for sentence in effect.answer.sentences
            )


def test_what_was_cited_of_what_was_not_shown_is_dropped_and_counted(asked_all):
    effects, _ = asked_all
    claims = [
        step
        for effect in effects["arxivbot_fused"]
        for step in effect.steps("claims")
        if step["claims"]
    ]
    assert {step["dropped"]["unknown"] for step in claims} == {1}  # the claim on passage 99
    answers = [
        step
        for effect in effects["arxivbot_fused"]
        for step in effect.steps("answer")
        if "dropped" in step
    ]
    assert len(answers) >= 25
    assert {len(step["dropped"]) for step in answers} == {1}  # the sentence on the claims 99 and 97


def test_no_word_of_a_passage_stands_outside_a_fence_or_in_a_message_of_its_own(
    asked_all,
):
    _, llm = asked_all
    bodies = [body for body in llm.requests if ordered(Asked(body, 0))]
    assert len(bodies) > 100
    for body in bodies:
        assert [message["role"] for message in body["messages"]] == ["system", "user"]
        system, user = (message["content"] for message in body["messages"])
        for text in (system, re.sub(r"<(\w+)>\n.*?\n</\1>", "", user, flags=re.DOTALL)):
            assert "lantern" not in text.casefold()
            assert not [
                injection.sign
                for injection in INJECTIONS
                if injection.sign and injection.sign in text
            ]
        tags = re.findall(r"</?(\w+)>", user)
        assert all(tags.count(name) % 2 == 0 for name in tags)
        assert not re.search(r"<\|\w+\|>|\[/?INST\]|<<SYS>>|</s>", user)


def test_those_that_a_rule_knows_are_noticed_in_the_trace_and_the_others_are_read_alike(
    asked_all,
):
    effects, _ = asked_all
    known = {
        injection.id for injection in INJECTIONS if looks_like_prompt_injection(injection.text)
    }
    assert len(known) >= 11  # orders in other words, in other languages and in fake JSON are not
    for effect in effects["arxivbot_fused"]:
        assert effect.suspicious == (effect.read and effect.injection.id in known)
