"""Every answering system against what a model may say: its steps, its answer, and what it asks."""

import json
import random

import pytest
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st

from pipeline.answering.model_calls import PROMPTS, Tools
from pipeline.answering.ranking import PASSAGE_CHARS
from pipeline.answering.rendering import StepRenderer
from pipeline.answering.systems import SYSTEMS
from pipeline.answering.user_question import Turn, UserQuestion
from pipeline.errors import SettingError
from pipeline.llm.client import ClientWorkspace, open_client
from pipeline.llm.loop import run
from pipeline.llm.messages import LlmAnswerError
from pipeline.llm.rehearsal import Rehearsal
from pipeline.settings import load_settings
from tests.cases import cases
from tests.scripted_llm import Asked, ScriptedLlm
from tests.unit.answering.scripted_answers import (
    QUESTION,
    FakeRetriever,
    answer_at,
    faithful,
    form_of,
    more_searches,
    passage,
    say,
)

pytestmark = pytest.mark.slow


def shown_ids(answered):
    return [[found.passage_id for found in hop] for hop in answered.shown]


def steps(answered, stage):
    return [step for step in answered.trace["steps"] if step["stage"] == stage]


def outcome(answered, llm, retriever, asked):
    """What a scenario may expect of an answer."""
    return {
        "text": answered.text,
        "abstained": answered.abstained,
        "note": answered.note,
        "hops": answered.hops,
        "queries": list(answered.queries),
        "shown": shown_ids(answered),
        "claims": [[claim.text, claim.passage_id] for claim in answered.claims],
        "places": [[claim.arxiv_id, claim.anchor] for claim in answered.claims],
        "sources": [claim.source for claim in answered.claims],
        "hops_of_claims": [claim.hop for claim in answered.claims],
        "sentences": [list(sentence.claims) for sentence in answered.sentences],
        "stages": [step["stage"] for step in answered.trace["steps"]],
        "forms": [form for form, _ in asked],
        "searches": sorted([query, count] for (query,), count in retriever.searches),
        "calls": llm.generations,
    }


def listed(case, name):
    """Passages of a scenario; None where it lists none."""
    return [passage(**fields) for fields in case[name]] if name in case else None


def play(folder, case, *rules):
    """The answer of a scenario, the lines that show its steps, the endpoint and the retriever."""
    records = listed(case, "records") or ()
    retriever = FakeRetriever(listed(case, "passages"), records, fits=case.get("fits", True))
    known = {found.passage_id: found for found in retriever.passages}
    lines, render = [], StepRenderer()
    history = tuple(Turn(*turn) for turn in case.get("history", []))
    said = [say(*item) for item in case.get("says", {}).items()]
    with ScriptedLlm(*rules, *said, more_searches(*case.get("more", [])), faithful) as llm:
        answered = answer_at(
            llm,
            folder,
            case.get("system", "arxivbot"),
            UserQuestion(case.get("question", QUESTION.question), history),
            retriever,
            on_step=lambda step: lines.extend(render(step, known)),
            **case.get("settings", {}),
        )
    return answered, lines, llm, retriever


@cases("unit/answering/scenarios.toml")
def test_a_system_makes_an_answer_of_what_a_model_says(tmp_path, case):
    answered, lines, llm, retriever = play(tmp_path, case)
    requests = [Asked(body, 0) for body in llm.requests]
    asked = [(form_of(request), request.prompt) for request in requests]
    found = outcome(answered, llm, retriever, asked)
    expected = case.get("expected", {})
    assert {name: found[name] for name in expected} == expected
    assert answered.spent.calls == llm.generations
    assert {body["temperature"] for body in llm.requests} <= {0.0}
    for stage, wanted in case.get("steps", {}).items():
        made = [
            {name: step[name] for name in fields}
            for step, fields in zip(steps(answered, stage), wanted, strict=True)
        ]
        assert made == wanted
    for are_read, texts in ((True, case.get("reads", {})), (False, case.get("lacks", {}))):
        for form, wanted in texts.items():
            prompts = "\n".join(prompt for name, prompt in asked if name == form)
            assert [text in prompts for text in wanted] == [are_read] * len(wanted)
    assert set(case.get("lines", [])) <= set(lines), lines
    assert not [line for line in lines if "{" in line]


@pytest.mark.parametrize("form", ["Query", "Claims", "Thought", "GroundedAnswer"])
def test_a_question_fails_with_a_step_that_cannot_be_read(tmp_path, form):
    with pytest.raises(LlmAnswerError) as caught:
        play(tmp_path, {"says": {form: "Sorry, no."}})
    assert caught.value.kind == "unreadable"


def test_of_a_long_conversation_the_last_turns_are_shown(tmp_path):
    history = [[f"Question {n}?", "word " * 400] for n in range(20)]
    _, _, llm, _ = play(tmp_path, {"history": history, "settings": {"llm_context": 2048}})
    shown = llm.requests[0]["messages"][1]["content"]
    assert "Question 19?" in shown
    assert "Question 13?" not in shown
    assert len(shown) < 6 * 1024


@pytest.mark.parametrize("text", ["", " \n", "\x07", "caf\udce9"])
def test_a_question_that_is_none_is_refused(text):
    with pytest.raises(SettingError, match="the question q7 is"):
        UserQuestion(text, question_id="q7")


def test_the_last_of_forty_can_come_first(tmp_path):
    """Each window puts its best in front, where the next window begins to end."""

    def last_first(asked):
        if form_of(asked) != "Ranking":
            return None
        shown = asked.prompt.split("\n<passage>\n")[1:]
        places = [place for place, text in enumerate(shown, 1) if "fact 40." in text]
        return f"[{places[0]}]" if places else "[1]"

    forty = [{"number": number} for number in range(1, 41)]
    case = {"passages": forty, "settings": {"answer_candidates": 40}}
    answered, *_ = play(tmp_path, case, last_first)
    assert shown_ids(answered) == [["p40", "p1", "p2"]]
    windows = steps(answered, "rank")[0]["windows"]
    assert [(window["from"], window["to"]) for window in windows] == [(21, 40), (11, 30), (1, 20)]


@pytest.mark.parametrize(
    ("settings", "is_cut"), [({}, False), ({"llm_context": 2048, "answer_tokens": 64}, True)]
)
def test_a_ranking_reads_the_beginning_of_a_passage_and_fits_a_small_context(
    tmp_path, settings, is_cut
):
    long = [{"number": number, "text": "word " * 500} for number in range(1, 21)]
    answered, _, llm, _ = play(tmp_path, {"passages": long, "settings": settings})
    assert steps(answered, "rank")[0]["windows"][0]["cut"] is is_cut
    if not is_cut:
        words = str(llm.requests[1]["messages"]).count("word")
        assert words == pytest.approx(20 * PASSAGE_CHARS / 5, rel=0.02)


def test_a_context_that_a_prompt_fills_is_refused_with_what_to_do():
    with pytest.raises(SettingError, match=r"context of 600 tokens: .*CITELOOM_ANSWER_TOKENS"):
        PROMPTS.room(600, 500, "answer", question="?", claims="", most=1, words=10, characters=10)


def test_a_rehearsal_takes_the_costlier_way_through_every_system(tmp_path):
    """What `citeloom estimate` goes by: it must not find that nothing is searched for, or nothing
    answered.
    """
    calls = {}
    for name in SYSTEMS:
        rehearsal = Rehearsal(lambda prompt, tokens, own: f"{own} says so.")
        settings = load_settings(
            llm_url="http://127.0.0.1:9/v1", llm_model="m", data=tmp_path, _env_file=None
        )
        place = ClientWorkspace(settings, make_client=rehearsal.make_client)
        run(_rehearse(place, name))
        calls[name] = rehearsal.count("calls")
    assert calls == {"arxivbot": 7, "arxivbot_fused": 7, "wikichat": 19, "direct": 1, "passages": 0}


async def _rehearse(place, name):
    async with open_client(place) as client:
        await SYSTEMS[name].answer(QUESTION, Tools(client, FakeRetriever(), place.settings))


NUMBERS = (-1, 0, 1, 2, 3, 4, 5, 99, 10**12)
TEXTS = ("", " ", "[1]", "p99 [7]", "So [1, 2].", "x" * 900, "</claims>\n[9] y", "None", "\0")


def hostile(seed):
    """Answers of the right form with numbers and texts of any kind, or of no form at all."""

    def rule(asked):
        chance = random.Random(f"{seed} {asked.digest}")
        if chance.random() < 0.15:
            return chance.choice(["", "{", "no", "[]", "null"])
        if asked.schema is None:
            return " > ".join(f"[{chance.choice(NUMBERS)}]" for _ in range(8))
        return json.dumps(any_value(asked.schema, asked.schema.get("$defs", {}), chance))

    return rule


def any_value(schema, definitions, chance):
    """A value that fits a JSON schema, or nearly so."""
    if "$ref" in schema:
        return any_value(definitions[schema["$ref"].rpartition("/")[2]], definitions, chance)
    if "enum" in schema:
        return chance.choice([*schema["enum"], *schema["enum"], "Yes.", "maybe", True, 7])
    if schema["type"] == "object":
        parts = schema["properties"].items()
        return {name: any_value(part, definitions, chance) for name, part in parts}
    if schema["type"] == "array":
        count = chance.randrange(6)
        return [any_value(schema["items"], definitions, chance) for _ in range(count)]
    choices = {"integer": NUMBERS, "boolean": (True, False), "string": TEXTS}
    return chance.choice(choices[schema["type"]])


@examples(max_examples=12)
@given(st.integers(0, 10**6))
def test_whatever_a_model_answers_nothing_rests_on_what_was_not_retrieved(tmp_path_factory, seed):
    with ScriptedLlm(hostile(seed)) as llm:
        for system in ("arxivbot", "wikichat"):
            folder = tmp_path_factory.mktemp("hostile")
            try:
                answered = answer_at(llm, folder, system, QUESTION, FakeRetriever())
            except LlmAnswerError:
                continue
            numbers = {claim.number for claim in answered.claims}
            assert all(claim.passage_id in answered.passages for claim in answered.claims)
            assert all(
                sentence.claims and set(sentence.claims) <= numbers
                for sentence in answered.sentences
            )
            assert answered.abstained is (not answered.sentences)
            assert system == "wikichat" or len(answered.claims) <= 6
