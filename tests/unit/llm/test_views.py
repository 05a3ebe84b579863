"""Views of a client: samples of a system and of a repeat, cached like any other."""

from __future__ import annotations

from pathlib import Path

from pydantic import BaseModel

from pipeline.llm.client import REPEAT_SAMPLES, LlmClient
from pipeline.llm.loop import side_by_side
from pipeline.llm.messages import Message
from tests.scripted_llm import ScriptedLlm
from tests.unit.llm.test_client import ask, workspace

PROMPT = [Message("user", "Say something.")]


class Word(BaseModel):
    """A structured answer."""

    word: str


async def texts(client: LlmClient, count: int = 3) -> list[str]:
    return [
        sample.text for sample in await client.samples(PROMPT, count, temperature=1.0, max_tokens=9)
    ]


def test_repeat_0_makes_no_new_call_and_the_others_do(tmp_path: Path) -> None:
    async def calls(client: LlmClient) -> list[list[str]]:
        return [
            await texts(client),
            *[await texts(client.view(repeat=repeat)) for repeat in (0, 1, 2, 1)],
        ]

    with ScriptedLlm() as llm:
        own, *repeats = ask(workspace(llm, tmp_path), calls)
    assert repeats[0] == own
    assert repeats[1] == repeats[3]
    assert len({*own, *repeats[1], *repeats[2]}) == 9
    assert [body["seed"] for body in llm.requests] == [0, REPEAT_SAMPLES, 2 * REPEAT_SAMPLES]


def test_a_single_completion_and_a_structured_answer_are_of_the_repeat(tmp_path: Path) -> None:
    async def calls(client: LlmClient) -> tuple[int, int]:
        repeated = client.view(repeat=3)
        await repeated.complete(PROMPT, temperature=1.0, max_tokens=9, sample=2)
        await repeated.answer(PROMPT, Word, max_tokens=9, temperature=1.0, sample=1)
        return client.usage.calls, repeated.usage.calls

    with ScriptedLlm() as llm:
        assert ask(workspace(llm, tmp_path), calls) == (2, 2)
    assert [body["seed"] for body in llm.requests] == [
        3 * REPEAT_SAMPLES + 2,
        3 * REPEAT_SAMPLES + 1,
    ]


def test_equal_prompts_of_two_systems_are_two_draws_and_each_is_paid_once(tmp_path: Path) -> None:
    async def calls(client: LlmClient) -> list[list[str]]:
        systems = ("zero_shot", "few_shot", "zero_shot")
        return await side_by_side(texts(client.view(system)) for system in systems)

    with ScriptedLlm() as llm:
        zero, few, again = ask(workspace(llm, tmp_path), calls)
        assert ask(workspace(llm, tmp_path), calls) == [zero, few, again]
    assert zero == again
    assert not set(zero) & set(few)
    assert len(llm.requests) == 2
    assert all(0 <= body["seed"] < 2**31 for body in llm.requests)


def test_without_a_limit_no_max_tokens_is_sent(tmp_path: Path) -> None:
    async def calls(client: LlmClient) -> None:
        await client.complete(PROMPT, temperature=1.0)

    with ScriptedLlm() as llm:
        ask(workspace(llm, tmp_path), calls)
    assert "max_tokens" not in llm.requests[0]
