"""Completions as services and models give them: a text, or a failure of a named kind."""

import json

import pytest

from pipeline.llm.completion import read_reply
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
