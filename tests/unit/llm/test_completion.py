"""Completions as services and models give them: a text, or a failure of a named kind."""

import json

import pytest

from pipeline.llm.completion import read_reply

TEXT = "Fusion adds reciprocal ranks."
QUOTED = 'The template closes its thoughts with "</think>".'
SPOKEN = "Models write their thoughts between <think> and </think> tags.\nThen they answer."
BEGUN = "<think> is the token by which the model begins."


def message(content, **more):
    return {"finish_reason": "stop", "message": {"content": content, **more}}


def ended(reason, content, **more):
    return message(content, **more) | {"finish_reason": reason}


TEXTS = {
    "plain": (message(TEXT), TEXT),
    "thoughts before it": (message(f"<think>\nHm.\n</think>\n\n{TEXT}"), TEXT),
    "no thoughts": (message(f"<think>\n\n</think>\n\n{TEXT}"), TEXT),
    "thoughts that the template opened": (message(f"Hm.\n</think>\n\n{TEXT}"), TEXT),
    "code that closes thoughts": (
        message('<think>Hm.</think>\nIt is cut by `answer.split("</think>")[-1]`.'),
        'It is cut by `answer.split("</think>")[-1]`.',
    ),
    "a mark in quotes": (message(QUOTED), QUOTED),
    "marks in a sentence": (message(SPOKEN), SPOKEN),
    "a mark at its beginning": (message(BEGUN), BEGUN),
    "Magistral": (message(f"[THINK]Hm.[/THINK]{TEXT}"), TEXT),
    "Kimi": (message(f"◁think▷Hm.◁/think▷{TEXT}"), TEXT),
    "gpt-oss": (
        message(
            f"<|channel|>analysis<|message|>Hm.<|end|><|channel|>final<|message|>{TEXT}<|return|>"
        ),
        TEXT,
    ),
    "a mark at its end": (message(f"{TEXT}<|im_end|>\n"), TEXT),
    "parts": (
        message(
            [{"type": "thinking", "thinking": [{"text": "Hm."}]}, {"type": "text", "text": TEXT}]
        ),
        TEXT,
    ),
    "thoughts beside it": (message(TEXT, reasoning_content="Hm."), TEXT),
    "its whole length": (ended("length", "word " * 60), "word " * 60),
}
FAILURES = {
    "nothing": (message(None), "empty"),
    "white space": (message(" \n"), "empty"),
    "calls of tools": (ended("tool_calls", None, tool_calls=[{"id": "1"}]), "empty"),
    "thoughts beside nothing": (message(None, reasoning="Hm."), "only_reasoning"),
    "thoughts and nothing": (message("<think>Hm.</think>\n"), "only_reasoning"),
    "cut in the text": (ended("length", "Fusion adds rec"), "cut"),
    "cut in the thoughts": (ended("length", "<think>\nHm"), "cut"),
    "cut in thoughts beside it": (ended("length", None, reasoning_content="Hm"), "cut"),
    "cut by Gemini": (ended("MAX_TOKENS", "Fusion"), "cut"),
    "a refusal": (message(None, refusal="I cannot."), "refused"),
    "a refusal in parts": (message([{"type": "refusal", "refusal": "I cannot."}]), "refused"),
    "an end by refusal": (ended("refusal", ""), "refused"),
    "a filter": (ended("content_filter", "Fusion"), "filtered"),
    "an error": (ended("error", "Fusion"), "error"),
    "an error beside it": (message("Fusion") | {"error": {"code": 504}}, "error"),
}


def read(choice, limit=50, **more):
    body = {"choices": [choice], **more}
    return read_reply(json.dumps(body).encode(), 1, limit)


@pytest.mark.parametrize(("choice", "text"), TEXTS.values(), ids=TEXTS)
def test_a_text_is_without_thoughts_and_marks(choice, text):
    (completion,) = read(choice).completions
    assert (completion.text, completion.failure) == (text, None)


@pytest.mark.parametrize(("choice", "kind"), FAILURES.values(), ids=FAILURES)
def test_what_is_no_answer_has_a_kind(choice, kind):
    (completion,) = read(choice).completions
    assert completion.failure == kind


def test_a_text_without_a_limit_of_its_caller_is_cut_wherever_it_ends():
    (completion,) = read(ended("length", "word " * 60), limit=None).completions
    assert completion.failure == "cut"


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
    (completion,) = read(ended("x" * 5000, None, refusal="y" * 5000)).completions
    assert max(len(completion.finish_reason), len(completion.detail)) <= 200
