"""Fit text into a model's context: estimate tokens, cut at a section's end, share room."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

from pipeline.llm.messages import Message

# A run of letters is cut into pieces of up to seven; digits and signs are pieces of their own.
_LETTERS = re.compile(r"[A-Za-z]{1,7}")
_WIDE_SPACE = re.compile(r"[^\S\x00-\x7f]")
_NO_SIGNS = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ \t\n\r\x0b\x0c\x1c\x1d\x1e\x1f"
_ASCII = bytes(range(128))
_SECTION = re.compile(r"\n\n(?=#{1,6} )")
_SENTENCE_END = re.compile(r"(?<=[.!?]) ")
# Compared with SmolLM2's tokenizer on 105 texts (parts of 5 real papers, the sample's LaTeX):
# pieces of 7 letters, single digits and single signs are 0.91 to 1.27 of the true count (characters
# / 3.5 are 0.75 to 1.76, lowest on LaTeX). With this factor no count of these texts was too low.
_SAFETY = 1.1
# Chat templates put 5 to 8 tokens around a message, and SmolLM2's adds a system prompt of 23 if
# there is none.
_PER_MESSAGE = 16


def count_tokens(text: str) -> int:
    """Tokens of a text, estimated from above, without the model's tokenizer."""
    return _tokens(*_weigh(text))


def _weigh(text: str) -> tuple[int, int]:
    """Pieces of a text in ASCII, and bytes of the rest; both add up over joined texts.

    Counted by regular expression and byte table: a loop over pieces took four fifths of an
    estimate's time, and most of the time of a call.
    """
    if not text.isascii():
        text = _WIDE_SPACE.sub(" ", text)
    rest = text.encode(errors="replace").translate(None, _NO_SIGNS)
    wide = len(rest.translate(None, _ASCII))
    return len(_LETTERS.findall(text)) + len(rest) - wide, wide


def _tokens(pieces: int, wide: int) -> int:
    return math.ceil(_SAFETY * (pieces + 0.7 * wide))


def count_message_tokens(messages: Sequence[Message]) -> int:
    """Tokens of a conversation with the marks around its messages, estimated from above."""
    return sum(count_tokens(message.content) + _PER_MESSAGE for message in messages)


@dataclass(frozen=True, slots=True)
class Cut:
    """A text that fits, and whether anything was cut off."""

    text: str
    cut: bool


def fit(text: str, tokens: int) -> Cut:
    """The text if it has at most so many tokens; else its beginning, cut at a section's end.

    If that would use less than half of the tokens, it ends with a paragraph, else with a sentence,
    else with a word.
    """
    if count_tokens(text) <= tokens:
        return Cut(text, False)
    for parts, joint in (
        (_SECTION.split(text), "\n\n"),
        (text.split("\n\n"), "\n\n"),
        (_SENTENCE_END.split(text), " "),
    ):
        beginning = _longest_beginning(parts, joint, tokens)
        if count_tokens(beginning) * 2 >= tokens:
            return Cut(beginning, True)
    return Cut(_longest_beginning(text.split(" "), " ", tokens), True)


def _longest_beginning(parts: Sequence[str], joint: str, tokens: int) -> str:
    """As many of the parts from the first on as fit; `joint` is white space."""
    pieces = wide = count = 0
    for part in parts:
        part_pieces, part_wide = _weigh(part)
        pieces += part_pieces
        wide += part_wide
        if _tokens(pieces, wide) > tokens:
            break
        count += 1
    return joint.join(parts[:count])


def shares(lengths: Sequence[int], tokens: int) -> list[int]:
    """The tokens of each text: all of it, or an equal part of what shorter texts leave."""
    parts, remaining = [0] * len(lengths), tokens
    by_length = sorted(range(len(lengths)), key=lambda place: lengths[place])
    for waiting, place in zip(range(len(lengths), 0, -1), by_length, strict=True):
        parts[place] = min(lengths[place], max(remaining, 0) // waiting)
        remaining -= parts[place]
    return parts


def cut_to_share(texts: Sequence[str], tokens: int) -> tuple[list[str], bool]:
    """The texts cut to fit so many tokens together, longest first; and whether any was cut."""
    limits = shares([count_tokens(text) for text in texts], tokens)
    cuts = [fit(text, limit) for text, limit in zip(texts, limits, strict=True)]
    return [cut.text for cut in cuts], any(cut.cut for cut in cuts)


def first_that_fit(lines: Sequence[str], tokens: int) -> list[str]:
    """As many lines as fit, from the first on; at least the first, cut if necessary."""
    fitting: list[str] = []
    for line in lines:
        tokens -= count_tokens(line) + 1
        if tokens < 0:
            break
        fitting.append(line)
    if fitting or not lines:
        return fitting
    return [fit(lines[0], max(tokens + count_tokens(lines[0]), 1)).text]
