"""Repeats: samples of their own, kept like any other, from the client that they ask through."""

from __future__ import annotations

from pathlib import Path

from pydantic import BaseModel

from pipeline.engine.stage import Workspace
from pipeline.llm.client import LlmClient, open_client
from pipeline.llm.loop import run
from pipeline.llm.messages import Message
from pipeline.llm.repeats import APART, Repeated
from pipeline.settings import load_settings
from tests.scripted_llm import ScriptedLlm

ASKED = [Message("user", "Say something.")]


class Said(BaseModel):
    """An answer in a form."""

    word: str


async def texts(client: LlmClient, count: int = 3) -> list[str]:
    return [each.text for each in await client.samples(ASKED, count, temperature=1.0, max_tokens=9)]


def place(llm: ScriptedLlm, folder: Path) -> Workspace:
    return Workspace(load_settings(llm_url=llm.url, llm_model=llm.model, data=folder, _env_file=None))


def test_repeat_0_asks_nothing_that_is_kept_and_the_others_ask_anew(tmp_path: Path) -> None:
    async def ask() -> list[list[str]]:
        async with open_client(place(llm, tmp_path)) as client:
            return [await texts(client), *[await texts(Repeated(client, repeat)) for repeat in (0, 1, 2, 1)]]

    with ScriptedLlm() as llm:
        own, *repeats = run(ask())
    assert repeats[0] == own
    assert repeats[1] == repeats[3]
    assert len({*own, *repeats[1], *repeats[2]}) == 9
    assert [body["seed"] for body in llm.requests] == [0, APART, 2 * APART]


def test_a_single_completion_and_a_structured_answer_are_of_the_repeat(tmp_path: Path) -> None:
    async def ask() -> tuple[int, int]:
        async with open_client(place(llm, tmp_path)) as client:
            repeated = Repeated(client, 3)
            await repeated.complete(ASKED, temperature=1.0, max_tokens=9, sample=2)
            await repeated.answer(ASKED, Said, max_tokens=9, temperature=1.0, sample=1)
            return client.usage.calls, repeated.usage.calls

    with ScriptedLlm() as llm:
        assert run(ask()) == (2, 2)
    assert [body["seed"] for body in llm.requests] == [3 * APART + 2, 3 * APART + 1]
