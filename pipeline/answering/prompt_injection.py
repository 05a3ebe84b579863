"""Signs of prompt injection in passages, for the trace only.

A paper on prompt injection quotes such words, and is read all the same. The fence around every
passage, and claims on retrieved passages alone, keep injected orders from doing harm.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from pipeline.corpus.nouns import Passage
from pipeline.llm.prompts import as_data

_OBJECTS = (
    r"(?:instructions?|prompts?|rules|directions|guidelines|context|questions?|tasks?|passages?)"
)
_ORDERS = re.compile(
    rf"\b(?:ignore|disregard|forget|override|bypass)\b[^.!?\n]{{0,40}}\b{_OBJECTS}\b"
    r"|\byou (?:are|will be) now\b|\b(?:new|updated|real|actual) instructions?\s*:"
    r"|\b(?:system|developer) (?:prompt|message|override)\b"
    r"|\b(?:as|dear) (?:an? )?(?:AI|language model|assistant)\b"
    r"|\bif you are an? (?:AI|LLM|language model|assistant)\b"
    r"|\b(?:instead|only|must|please)[ ,]+(?:answer|respond|reply|output|say|print|write)\b"
    r"[^.!?\n]{0,30}[\"“'`:]"
    r"|\b(?:rank|cite|prefer|recommend)\b[^.!?\n]{0,20}\bthis (?:passage|paper|document)\b"
    r"[^.!?\n]{0,20}\bfirst\b"
    r"|\bdo not (?:answer|tell|mention|reveal|cite)\b",
    re.IGNORECASE,
)


def looks_like_prompt_injection(text: str) -> bool:
    """Whether a text has words that give orders to a model, or marks of chat templates."""
    return _ORDERS.search(text) is not None or as_data(text) != text


def suspicious_ids(passages: Iterable[Passage]) -> list[str]:
    """Ids of the passages that look like prompt injection."""
    return [
        passage.passage_id
        for passage in passages
        if looks_like_prompt_injection(f"{passage.title}\n{passage.text}")
    ]
