"""What holds for every answering system: its room, its calls, and hostile models."""

import json
import random

import pytest
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st

from pipeline.answering.model_calls import PROMPTS, Tools
from pipeline.answering.systems import SYSTEMS
from pipeline.errors import SettingError
from pipeline.llm.client import ClientWorkspace, open_client
from pipeline.llm.loop import run
from pipeline.llm.messages import LlmAnswerError
from pipeline.llm.rehearsal import Rehearsal
from pipeline.settings import load_settings
from tests.scripted_llm import ScriptedLlm
from tests.unit.answering.scripted_answers import (
    QUESTION,
    FakeRetriever,
    answer_at,
)

pytestmark = pytest.mark.slow


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
