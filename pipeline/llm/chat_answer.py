"""Validation of chat completions of OpenAI-compatible endpoints, and their texts and tokens."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

from pydantic import BaseModel, Field

from pipeline.llm.messages import Completion
from pipeline.storage.json_reader import parse_json

_Tokens = Annotated[int, Field(ge=0, le=10**12)]


class _Message(BaseModel):
    content: str | None = None


class _Choice(BaseModel):
    message: _Message
    index: int | None = None
    finish_reason: str | None = None


class _Usage(BaseModel):
    """Null on servers that do not count."""

    prompt_tokens: _Tokens | None = None
    completion_tokens: _Tokens | None = None


class ChatAnswer(BaseModel):
    """The fields of a chat completion that are used."""

    choices: Annotated[list[_Choice], Field(min_length=1)]
    usage: _Usage | None = None
    timings: Any = None
    """Only llama.cpp's server sends them."""


def parse_chat_answer(content: bytes, most: int) -> ChatAnswer:
    """The chat completion in the body of a response, of at most so many choices. Raises ValueError
    for any other body.
    """
    # Not pydantic's JSON parser, which refuses half of a surrogate pair. Its ValidationError is a
    # ValueError.
    value = parse_json(content)
    choices = isinstance(value, dict) and value.get("choices")
    if isinstance(choices, list) and len(choices) > most:
        raise ValueError(f"it has more choices than the {most} asked for")
    return ChatAnswer.model_validate(value)


def read_completions(answer: ChatAnswer) -> list[Completion]:
    """The texts of an answer with their tokens, in the order of their numbers."""
    choices = sorted(answer.choices, key=lambda choice: choice.index or 0)
    texts = [_without_thoughts(_encodable(choice.message.content or "")) for choice in choices]
    usage = answer.usage or _Usage()
    # llama.cpp's server reports the tokens of the first choice only.
    first_only = bool(answer.timings)
    completion_tokens = _share_tokens(usage.completion_tokens or 0, texts, first_only=first_only)
    return [
        Completion(text, usage.prompt_tokens or 0, tokens, False, choice.finish_reason or "")
        for text, tokens, choice in zip(texts, completion_tokens, choices, strict=True)
    ]


def _encodable(text: str) -> str:
    """The text with U+FFFD for half of a surrogate pair, which JSON can hold and no file can: an
    answer that was cut within a character would be paid for in each run and never stored.
    """
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _without_thoughts(text: str) -> str:
    """The text without a reasoning model's thoughts, which some servers leave in."""
    _, end, after = text.rpartition("</think>")
    if end:
        return after.lstrip()
    return "" if text.lstrip().startswith("<think>") else text


def _share_tokens(reported: int, texts: Sequence[str], *, first_only: bool) -> list[int]:
    """Tokens of each text, in proportion to its length. reported: of all texts, or the first."""
    lengths = [max(len(text), 1) for text in texts]
    basis = lengths[0] if first_only else sum(lengths)
    return [round(reported * length / basis) for length in lengths]
