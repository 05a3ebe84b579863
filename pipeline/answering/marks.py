"""Passages that speak to the model in place of the reader: counted, so that a trace tells of them.

Only counted: a paper on prompt injection quotes such words and is read all the same. What keeps them from doing harm is
the fence around every passage, and that no answer can rest on what was not retrieved.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from pipeline.answering.retrieving import Found
from pipeline.llm.prompts import as_data

_WHAT = r"(?:instructions?|prompts?|rules|directions|guidelines|context|questions?|tasks?|passages?)"
_ORDERS = re.compile(
    rf"\b(?:ignore|disregard|forget|override|bypass)\b[^.!?\n]{{0,40}}\b{_WHAT}\b"
    r"|\byou (?:are|will be) now\b|\b(?:new|updated|real|actual) instructions?\s*:"
    r"|\b(?:system|developer) (?:prompt|message|override)\b"
    r"|\b(?:as|dear) (?:an? )?(?:AI|language model|assistant)\b|\bif you are an? (?:AI|LLM|language model|assistant)\b"
    r"|\b(?:instead|only|must|please)[ ,]+(?:answer|respond|reply|output|say|print|write)\b[^.!?\n]{0,30}[\"“'`:]"
    r"|\b(?:rank|cite|prefer|recommend)\b[^.!?\n]{0,20}\bthis (?:passage|paper|document)\b[^.!?\n]{0,20}\bfirst\b"
    r"|\bdo not (?:answer|tell|mention|reveal|cite)\b",
    re.IGNORECASE,
)


def speaks_to_the_model(text: str) -> bool:
    """Whether a text bears words that orders to a model have, or marks by which chat templates divide messages."""
    return _ORDERS.search(text) is not None or as_data(text) != text


def suspicious(found: Iterable[Found]) -> list[str]:
    """Ids of the passages that speak to the model."""
    return [each.passage_id for each in found if speaks_to_the_model(f"{each.title}\n{each.text}")]
