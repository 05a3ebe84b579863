"""Fitting text into a model's context: an estimate of tokens, and cutting at section ends.

Not here: which text matters more than another.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

from pipeline.llm.messages import Message

_PIECE = re.compile(r"[A-Za-z]+|[0-9]|[^\sA-Za-z0-9]")
_SECTION = re.compile(r"\n\n(?=#{1,6} )")
# Seen against SmolLM2's tokenizer on 105 texts (5 real papers' parts, the sample's LaTeX): pieces of up to 7 letters,
# single digits and single signs are 0.91 to 1.27 of the true count (characters / 3.5 are 0.75 to 1.76, lowest on
# LaTeX). With this factor on top no text of these was counted too low.
_SAFETY = 1.1
# What chat templates put around a message: 5 to 8 tokens, and SmolLM2's adds a system prompt of 23 where none is.
_PER_MESSAGE = 16


def count_tokens(text: str) -> int:
    """Tokens of a text, estimated from above, without the model's tokenizer."""
    return math.ceil(_SAFETY * sum(_weight(piece) for piece in _PIECE.findall(text)))


def _weight(piece: str) -> float:
    if len(piece) > 1:
        return -(-len(piece) // 7)
    return 1 if piece.isascii() else 0.7 * len(piece.encode())


def count_message_tokens(messages: Sequence[Message]) -> int:
    """Tokens of a conversation, estimated from above, with the marks around its messages."""
    return sum(count_tokens(message.content) + _PER_MESSAGE for message in messages)


@dataclass(frozen=True, slots=True)
class Cut:
    """A text that fits, and whether anything was cut off."""

    text: str
    cut: bool


def fit(text: str, tokens: int) -> Cut:
    """The text if it has at most so many tokens; else its longest beginning that ends with a section.

    Where that would leave over half of the room empty, it ends with a paragraph, else with a sentence, else a word.
    """
    if count_tokens(text) <= tokens:
        return Cut(text, False)
    for parts, joint in ((_SECTION.split(text), "\n\n"), (text.split("\n\n"), "\n\n"), (_sentences(text), " ")):
        kept = _longest_beginning(parts, joint, tokens)
        if count_tokens(kept) * 2 >= tokens:
            return Cut(kept, True)
    return Cut(_longest_beginning(text.split(" "), " ", tokens), True)


def _sentences(text: str) -> list[str]:
    return re.split(r"(?<=[.!?]) ", text)


def _longest_beginning(parts: Sequence[str], joint: str, tokens: int) -> str:
    """As many of the parts from the first on as fit; found by halving, as counts only grow."""
    low, high = 0, len(parts)
    while low < high:
        middle = (low + high + 1) // 2
        if count_tokens(joint.join(parts[:middle])) <= tokens:
            low = middle
        else:
            high = middle - 1
    return joint.join(parts[:low])
