"""The one place that turns the body of a chat completion into texts or named failures."""

from __future__ import annotations

import json
import re
from collections.abc import Collection
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import BaseModel, Field

from pipeline.engine.redaction import redact
from pipeline.llm.context import count_tokens
from pipeline.llm.messages import Completion, FailureKind, Spent
from pipeline.storage.json_reader import parse_json
from pipeline.text import one_line, visible, without_lone_surrogates

# Tokens that a model may think before each answer, where its table gives no other number.
THINKING_TOKENS = 4096
# Reasons for an end, as services name them, folded.
_CUT = frozenset({"length", "max_tokens", "model_length"})
_FILTERED = frozenset(
    {"content_filter", "safety", "recitation", "prohibited_content", "blocklist", "sensitive"}
)
_ERRORS = frozenset({"error", "abort", "network_error", "insufficient_system_resource"})
# Marks around thoughts: of Qwen and DeepSeek, of Claude's format, EXAONE, Seed-OSS, Magistral,
# Kimi, Command A, OpenThinker, gpt-oss.
_THOUGHTS = {
    "<think>": "</think>",
    "<thinking>": "</thinking>",
    "<thought>": "</thought>",
    "<reasoning>": "</reasoning>",
    "<seed:think>": "</seed:think>",
    "[THINK]": "[/THINK]",
    "◁think▷": "◁/think▷",
    "<|START_THINKING|>": "<|END_THINKING|>",
    "<|begin_of_thought|>": "<|end_of_thought|>",
    "<|channel|>analysis<|message|>": "<|channel|>final<|message|>",
}
# A template may have written the opening mark into the prompt: then the first closing mark that
# ends its line divides, but none that a sentence quotes.
_CLOSING_ALONE = re.compile(
    rf"(?<![\w\"'`“‘])(?:{'|'.join(map(re.escape, _THOUGHTS.values()))})(?=[ \t]*\n)"
)
_OPENING_MARK = re.compile(r"\s*<\|(?:START_RESPONSE|begin_of_solution)\|>\s*")
_END_MARK = re.compile(r"(?:<[|｜][\w▁]{1,40}[|｜]>|<end_of_turn>|</s>)\Z")
_LONGEST_MARK, _MOST_MARKS = 50, 1_000
_SHOWN_CHARS = 200
_Tokens = Annotated[int, Field(ge=0, le=10**12)]


@dataclass(frozen=True, slots=True)
class EndpointReply:
    """The answer to one request: its completions in the order of their numbers.

    seconds: of the attempt that was answered. retries: further attempts. waited: seconds of the
    earlier attempts and between them. written: tokens of all that the model wrote, thoughts and
    other fields included, by our own count. thinks: whether the model thinks before it answers.
    """

    completions: list[Completion]
    seconds: float = 0.0
    retries: int = 0
    waited: float = 0.0
    written: int = 0
    thinks: bool = False

    @property
    def spent(self) -> Spent:
        """The cost of the request: its prompt is read once for all its completions."""
        read = max((completion.prompt_tokens for completion in self.completions), default=0)
        return Spent(
            len(self.completions),
            read,
            sum(completion.completion_tokens for completion in self.completions),
        )


class _Part(BaseModel):
    type: str = "text"
    text: str = ""
    refusal: str | None = None
    thinking: Any = None


class _Message(BaseModel):
    content: str | list[_Part] | None = None
    refusal: str | None = None
    reasoning_content: Any = None
    reasoning: Any = None
    tool_calls: Any = None


class _Choice(BaseModel):
    message: _Message
    index: int | None = None
    finish_reason: str | None = None
    error: Any = None


class _Details(BaseModel):
    reasoning_tokens: _Tokens | None = None


class _Usage(BaseModel):
    """Null on servers that do not count."""

    prompt_tokens: _Tokens | None = None
    completion_tokens: _Tokens | None = None
    completion_tokens_details: _Details | None = None


class _ChatAnswer(BaseModel):
    choices: Annotated[list[_Choice], Field(min_length=1)]
    usage: _Usage | None = None
    timings: Any = None
    """Only llama.cpp's server sends them."""


@dataclass(frozen=True, slots=True)
class _Texts:
    """What a choice holds: the text of the answer, thoughts, a refusal, and all of it as sent."""

    text: str
    thoughts: str
    refusal: str
    everything: str


def read_reply(
    content: bytes, most: int, limit: int | None, secrets: Collection[str] = ()
) -> EndpointReply:
    """The completions in the body of a response, of at most `most` choices; each has a text or a
    failure.

    limit: tokens that the caller allows a text; None for no limit. A text that ends at its limit is
    a whole one for its caller; one that ends before, for want of tokens, is a failure. secrets:
    replaced by ***, before anything is cut. Raises ValueError for a body that is no chat
    completion.
    """
    # Not pydantic's JSON parser, which refuses half of a surrogate pair. Its ValidationError is a
    # ValueError.
    value = parse_json(content)
    listed = isinstance(value, dict) and value.get("choices")
    if isinstance(listed, list) and len(listed) > most:
        raise ValueError(f"it has more choices than the {most} asked for")
    answer = _ChatAnswer.model_validate(value)
    choices = sorted(answer.choices, key=lambda choice: choice.index or 0)
    texts = [_read_choice(choice) for choice in choices]
    usage = answer.usage or _Usage()
    # llama.cpp's server reports the tokens of the first choice only.
    lengths = [max(len(read.everything), 1) for read in texts]
    basis = lengths[0] if answer.timings else sum(lengths)
    shares = [round((usage.completion_tokens or 0) * length / basis) for length in lengths]
    details = usage.completion_tokens_details
    thinks = bool(details and details.reasoning_tokens) or any(read.thoughts for read in texts)
    completions = []
    for choice, read, tokens in zip(choices, texts, shares, strict=True):
        text_tokens = max(count_tokens(read.text), 0 if thinks else tokens)
        reaches_limit = limit is not None and text_tokens >= limit
        kind = _failure(choice, read, reaches_limit=reaches_limit)
        detail = json.dumps(choice.error) if choice.error else read.refusal
        completions.append(
            Completion(
                redact(read.text, secrets),
                usage.prompt_tokens or 0,
                tokens,
                cached=False,
                finish_reason=redact(choice.finish_reason or "", secrets)[:_SHOWN_CHARS],
                failure=kind,
                detail=redact(visible(one_line(detail)), secrets)[:_SHOWN_CHARS],
            )
        )
    # Some services count thoughts and show none of them.
    thinks = thinks or any(item.failure == "cut" and not item.text for item in completions)
    written = sum(count_tokens(read.everything) for read in texts)
    return EndpointReply(completions, written=written, thinks=thinks)


def filtered_reply(count: int, complaint: str) -> EndpointReply:
    """The reply of a service whose filter refuses a request for so many texts."""
    detail = visible(one_line(complaint))[:_SHOWN_CHARS]
    withheld = Completion("", 0, 0, False, "content_filter", "filtered", detail)
    return EndpointReply([withheld] * count)


def _failure(choice: _Choice, read: _Texts, *, reaches_limit: bool) -> FailureKind | None:
    reason = (choice.finish_reason or "").casefold()
    if choice.error or reason in _ERRORS:
        return "error"
    if reason in _FILTERED:
        return "filtered"
    if read.refusal or reason == "refusal":
        return "refused"
    # A form that is whole may be followed by white space up to the limit.
    is_form = read.text.strip()[:1] == "{" and read.text.count("{") == read.text.count("}")
    if reason in _CUT and not (is_form or (read.text and reaches_limit)):
        return "cut"
    if read.text.strip():
        return None
    return "only_reasoning" if read.thoughts else "empty"


def _read_choice(choice: _Choice) -> _Texts:
    message = choice.message
    parts = [_Part(text=message.content)] if isinstance(message.content, str) else message.content
    parts = parts or []
    content = "".join(part.text for part in parts if part.type in ("text", "output_text"))
    aside = [message.reasoning_content, message.reasoning, *(part.thinking for part in parts)]
    aside += [part.text for part in parts if part.type in ("thinking", "reasoning")]
    thoughts = "\n".join(
        item if isinstance(item, str) else json.dumps(item) for item in aside if item
    )
    refusal = message.refusal or next((part.refusal for part in parts if part.refusal), "")
    # An answer that was cut within a character would be paid for in each run and never stored.
    content = without_lone_surrogates(content)
    was_cut = (choice.finish_reason or "").casefold() in _CUT
    text, in_text = split_thoughts(content, was_cut=was_cut)
    calls = json.dumps(message.tool_calls) if message.tool_calls else ""
    everything = "\n".join(filter(None, (content, thoughts, refusal, calls)))
    return _Texts(text, (thoughts + in_text).strip(), refusal, everything)


def split_thoughts(text: str, *, was_cut: bool) -> tuple[str, str]:
    """The text of an answer, and the thoughts before it; also without marks of chat templates.

    Thoughts are a block that opens the answer, up to its first closing mark. Without one they are
    thoughts only if the answer was cut; else the text speaks of the mark.
    """
    body = text.lstrip()
    thoughts = ""
    opening = next(filter(body.startswith, _THOUGHTS), None)
    if opening is not None:
        thoughts, closed, rest = body.removeprefix(opening).partition(_THOUGHTS[opening])
        if closed or was_cut:
            text = rest.lstrip()
        else:
            thoughts = ""
    elif closing := _CLOSING_ALONE.search(body):
        thoughts, text = body[: closing.start()], body[closing.end() :].lstrip()
    return _without_marks(text), thoughts


def _without_marks(text: str) -> str:
    """A text without the marks of chat templates around it, and white space beside these."""
    opening = _OPENING_MARK.match(text)
    text = text[opening.end() :] if opening else text
    for _ in range(_MOST_MARKS):
        bare = text.rstrip()
        mark = _END_MARK.search(bare, max(len(bare) - _LONGEST_MARK, 0))
        if mark is None:
            break
        text = bare[: mark.start()].rstrip()
    return text
