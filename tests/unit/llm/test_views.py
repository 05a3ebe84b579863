"""Views of a client: samples of a system and of a repeat, cached like any other."""

from pipeline.llm.client import REPEAT_SAMPLES
from pipeline.llm.loop import side_by_side
from pipeline.llm.messages import Message
from tests.scripted_llm import ScriptedLlm
from tests.unit.llm.test_client import ask, workspace

PROMPT = [Message("user", "Say something.")]


async def texts(client):
    found = await client.samples(PROMPT, 3, temperature=1.0, max_tokens=9)
    return [sample.text for sample in found]


def test_repeat_0_makes_no_new_call_and_the_others_do(tmp_path):
    async def calls(client):
        views = [client.view(repeat=repeat) for repeat in (0, 1, 2, 1)]
        return [await texts(view) for view in (client, *views)]

    with ScriptedLlm() as llm:
        own, *repeats = ask(workspace(llm, tmp_path), calls)
    assert (repeats[0], repeats[3]) == (own, repeats[1])
    assert len({*own, *repeats[1], *repeats[2]}) == 9
    seeds = [body["seed"] for body in llm.requests]
    assert seeds == [repeat * REPEAT_SAMPLES for repeat in range(3)]


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
