"""Completions as services and models give them: a text, or a failure of a named kind; a structured answer
with formulas through JSON's escapes, and what is none.
"""

import json

import pytest
from pydantic import BaseModel

from pipeline.llm.completion import read_reply
from pipeline.llm.structured import copyable, parse_answer
from tests.cases import cases_beside


def ended(reason, **message):
    return {"finish_reason": reason, "message": {"content": None, **message}}


def read(choice, limit=50):
    return read_reply(json.dumps({"choices": [choice]}).encode(), 1, limit)


@cases_beside("name", "content", "text", "beside")
def test_a_text_is_without_thoughts_and_marks(name, content, text, beside):
    (completion,) = read(ended("stop", content=content, **beside or {})).completions
    assert (completion.text, completion.failure) == (text or "Fusion.", None), name


@pytest.mark.parametrize(("limit", "failure"), [(50, None), (None, "cut")])
def test_a_text_of_its_whole_length_is_whole_if_the_caller_set_the_limit(limit, failure):
    (completion,) = read(ended("length", content="word " * 60), limit).completions
    assert (completion.text, completion.failure) == ("word " * 60, failure)


@cases_beside("kind", "reason", "message", "more")
def test_what_is_no_answer_has_a_kind(kind, reason, message, more):
    (completion,) = read(ended(reason, **message) | (more or {})).completions
    assert completion.failure == kind


def test_a_model_that_is_cut_before_its_text_thinks():
    assert read(ended("length")).thinks
    assert not read(ended("stop")).thinks


@pytest.mark.parametrize(
    "aside",
    [
        {"content": "<think>\n" + "Hm " * 500 + "</think>\nYes."},
        {"content": "Yes.", "reasoning_content": "Hm " * 500},
        {"content": None, "tool_calls": [{"function": {"arguments": "Hm " * 500}}]},
    ],
    ids=["thoughts in the text", "thoughts beside it", "arguments of a tool"],
)
def test_what_is_not_kept_counts_as_written(aside):
    assert read({"message": aside}).written >= 500


def test_an_endpoint_s_reason_and_words_are_bounded():
    (completion,) = read(ended("x" * 5000, refusal="y" * 5000)).completions
    assert max(len(completion.finish_reason), len(completion.detail)) <= 200


class Verdict(BaseModel):
    why: str


@cases_beside("written", "read")
def test_a_formula_keeps_its_macros_and_half_a_character_is_replaced(written, read):
    assert parse_answer(f'{{"why": "{written}"}}', Verdict).why == read


@cases_beside("text")
def test_a_copy_of_a_copyable_text_is_read_as_the_text(text):
    assert parse_answer(f'{{"why": "{copyable(text)}"}}', Verdict).why == text


@pytest.mark.parametrize(
    "answer",
    [
        "",
        "} then {",
        '{"why": ["' + "'" * 20_000 + "}",
        '{"grade": 3}',
        '{"why": ' + "[" * 5000 + "}",
        '{"why": ' * 5000 + "}",
    ],
)
def test_what_holds_no_answer_is_an_error(answer):
    with pytest.raises(ValueError, match=r"JSON|why|nested too deeply"):
        parse_answer(answer, Verdict)


def test_a_broken_object_of_many_brackets_is_too_long_to_be_mended():
    with pytest.raises(ValueError, match="too long to be mended"):
        parse_answer('{"why": "' + "{a:" * 2_000 + "}", Verdict)


class Claims(BaseModel):
    claims: list[Verdict]


@cases_beside("answer")
def test_broken_json_is_read_without_another_call(answer):
    assert parse_answer(answer, Claims) == Claims(claims=[Verdict(why="it floats")])
