"""Views of a client: samples of a system and of a repeat, cached like any other."""

from pipeline.llm.client import REPEAT_SAMPLES
from pipeline.llm.loop import side_by_side
from pipeline.llm.messages import Message
from tests.scripted_llm import ScriptedLlm
from tests.unit.llm.test_client import ask, workspace

PROMPT = [Message("user", "Say something.")]


async def texts(client, count=3):
    return [
        sample.text for sample in await client.samples(PROMPT, count, temperature=1.0, max_tokens=9)
    ]


def test_repeat_0_makes_no_new_call_and_the_others_do(tmp_path):
    async def calls(client):
        found = [await texts(client)]
        for repeat in (0, 1, 2, 1):
            found.append(await texts(client.view(repeat=repeat)))
        await client.view(repeat=3).complete(PROMPT, temperature=1.0)
        return found

    with ScriptedLlm() as llm:
        own, *repeats = ask(workspace(llm, tmp_path), calls)
    assert repeats[0] == own
    assert repeats[1] == repeats[3]
    assert len({*own, *repeats[1], *repeats[2]}) == 9
    seeds = [body["seed"] for body in llm.requests]
    assert seeds == [repeat * REPEAT_SAMPLES for repeat in range(4)]
    assert llm.requests[-1]["max_tokens"] > 0


def test_equal_prompts_of_two_systems_are_two_draws_and_each_is_paid_once(tmp_path):
    async def calls(client):
        systems = ("zero_shot", "few_shot", "zero_shot")
        return await side_by_side(texts(client.view(system)) for system in systems)

    with ScriptedLlm() as llm:
        zero, few, again = ask(workspace(llm, tmp_path), calls)
        assert ask(workspace(llm, tmp_path), calls) == [zero, few, again]
    assert zero == again
    assert not set(zero) & set(few)
    assert len(llm.requests) == 2
    assert all(0 <= body["seed"] < 2**31 for body in llm.requests)
