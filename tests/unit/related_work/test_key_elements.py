"""The seven questions in one call."""

import json

import pytest

from pipeline.llm.client import open_client
from pipeline.llm.loop import run
from pipeline.related_work.key_elements import ELEMENT_NAMES, KeyElements, extract
from pipeline.related_work.prompt_files import PROMPTS
from tests.scripted_llm import ScriptedLlm
from tests.unit.related_work.building import workspace

QUESTIONS = [
    "What research questions does the paper attempt to address?",
    "What method does the paper employ to address this issue?",
    "What were the obtained experimental results in the paper",
    "What conclusions were drawn from the experiments?",
    "What contributions does this paper make?",
    "What are the innovations introduced in the paper?",
    "What limitations are identified in the paper?",
]


def extract_from(folder, *rules, content="# T\n\nText.", context=8192, element_tokens=40):
    with ScriptedLlm(*rules) as llm:
        place = workspace(llm, folder, llm_context=context, element_tokens=element_tokens)

        async def ask():
            async with open_client(place) as client:
                return await extract(client, content, place.settings)

        return run(ask())


def answers(**given):
    return json.dumps(dict.fromkeys(ELEMENT_NAMES, "x") | given)


def test_the_prompt_asks_what_the_paper_prints_or_describes_every_field():
    shared = {"content": "C", "fields": ELEMENT_NAMES, "characters": 100}
    asked, described = (
        PROMPTS.messages("elements", described=way, **shared)[1].content for way in (False, True)
    )
    assert asked.startswith("Please extract the following key elements from the content:")
    assert all(question in asked for question in QUESTIONS)
    assert "Content : <content>\nC" in asked
    assert not any(question in described for question in QUESTIONS)
    assert all(f"{name}: " in described for name in ELEMENT_NAMES)


@pytest.mark.parametrize("limit", [40, 0])
def test_lists_nulls_and_long_answers_become_text_bounded_where_there_is_a_limit(tmp_path, limit):
    long = ("word " * 384).strip()
    given = answers(results=["a", "b"], limitations=None, methodology=long)
    found = extract_from(tmp_path, lambda asked: given, element_tokens=limit)
    assert (found.elements.results, found.elements.limitations) == ("a b", "")
    method = found.elements.methodology
    assert long.startswith(method)
    assert method.endswith("word")
    assert (len(method) <= 140, found.shortened) == (
        (True, ("methodology",)) if limit else (False, ())
    )


@pytest.mark.parametrize(
    ("times", "elements"), [(1, KeyElements(*["It floats."] * 7)), (2, KeyElements())]
)
def test_a_model_that_gives_the_questions_back_is_asked_in_other_words_once(
    tmp_path, times, elements
):
    repeated = [f"{question.upper()} {question}" for question in QUESTIONS]
    given = iter([repeated] * times + [["It floats."] * 7])
    found = extract_from(
        tmp_path, lambda _: json.dumps(dict(zip(ELEMENT_NAMES, next(given), strict=True)))
    )
    assert (found.elements, found.spent.calls) == (elements, 2)


@pytest.mark.parametrize(("context", "cut"), [(8192, False), (2000, True)])
def test_a_paper_over_the_context_is_cut_and_says_so(tmp_path, context, cut):
    content = "# T\n\n" + "\n\n".join(f"## S{i}\n\n" + "Plain words again. " * 60 for i in range(6))
    assert extract_from(tmp_path, content=content, context=context).content_cut is cut
