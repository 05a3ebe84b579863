"""A related-work section: its sentences with the references that they cite, and its trace."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pipeline.llm.messages import Spent
from pipeline.related_work.prompt_files import PROMPTS
from pipeline.text import one_line

# Numbers of up to four digits, as no task has 10,000 references, and int() refuses what a model may
# write: Python reads no number of more than 4,300 digits.
_NUMBER = "[0-9]{1,4}"
_EXACT = re.compile(rf"\[Reference ({_NUMBER})\]")
# Forms that models write in place of [Reference 3]: (reference 3), [Ref. 3], [References 1, 2 and
# 3], [References 1-3].
_BARE = re.compile(rf"\[({_NUMBER})\]")
_WORD = r"(?:references?|refs?\.?)"
_HASH = r"\s*+(?:#\s*+)?"
_TO = r"\s*+(?:-|–|—|to)\s*+"
_VARIANT = re.compile(
    rf"[\[(]\s*+{_WORD}{_HASH}({_NUMBER}(?:(?:\s*+(?:,|;|&|and)\s*+|{_TO})(?:{_WORD}{_HASH})?{_NUMBER})*)"
    r"\s*+[\])]",
    re.IGNORECASE,
)
_RANGE = re.compile(rf"({_NUMBER})(?:{_TO}(?:{_WORD}{_HASH})?({_NUMBER}))?", re.IGNORECASE)
# A range of more works than a sentence could speak of is rather two years.
_LONGEST_RANGE = 50
# A full stop after these, or after a single capital, ends no sentence.
_ABBREVIATION = re.compile(
    r"(?:\b(?:al|e\.g|i\.e|cf|vs|etc|Fig|Figs|Eq|Sec|Tab|No|resp|approx)|\b[A-Z])\.$"
)
_BREAK = re.compile(
    rf"(?<=[.!?])[\"')\]]*(?:\s*\[Reference {_NUMBER}\])*\s+(?=[\"'(\[]?[A-Z0-9\[])"
)


@dataclass(frozen=True, slots=True)
class SummarySentence:
    """One sentence and the numbers of the task's references that it cites, in order, each once."""

    text: str
    references: tuple[int, ...]
    passages: tuple[str, ...] = ()
    """Ids of the passages that it rests on, where its system ties sentences to passages."""
    support: None = None
    """Kept for the column: no system judges its own sentences any more."""


@dataclass(frozen=True, slots=True)
class Summary:
    """One system's section for one task."""

    text: str
    sentences: tuple[SummarySentence, ...]
    trace: Mapping[str, Any]
    spent: Spent

    def trace_json(self) -> str:
        return json.dumps(self.trace, ensure_ascii=False, sort_keys=True)


def make_summary(
    raw: str, numbers: Collection[int], trace: Mapping[str, Any], cost: Spent
) -> Summary:
    """A summary from a model's text. numbers: of the task's references.

    Other spellings of a citation become `[Reference i]`. The trace gains `citations`: how many were
    respelt, which cited numbers the task lacks (they stay in the text), which of the task's numbers
    are not cited, and how many bare numbers such as [3] could be meant for one (they may also be
    meant for an interval, so they are counted and stay).
    """
    text, respelt = normalize(PROMPTS.unwrapped(raw))
    sentences = tuple(
        SummarySentence(sentence, tuple(n for n in cited_numbers(sentence) if n in numbers))
        for sentence in split_sentences(text)
    )
    return Summary(
        text, sentences, dict(trace) | {"citations": citation_counts(text, numbers, respelt)}, cost
    )


def truncated_counts(**texts: int) -> dict[str, dict[str, int]]:
    """Counts of the texts of each kind that ended at their longest, for the trace."""
    return {"truncated": {kind: count for kind, count in texts.items() if count}}


def citation_counts(text: str, numbers: Collection[int], respelt: int) -> dict[str, Any]:
    """Citations of a text for the trace: how many were respelt, missing and superfluous numbers."""
    cited = set(cited_numbers(text))
    return {
        "respelt": respelt,
        "bare": sum(int(number) in numbers for number in _BARE.findall(text)),
        "out_of_range": sorted(cited - set(numbers)),
        "uncited": sorted(set(numbers) - cited),
    }


def normalize(text: str) -> tuple[str, int]:
    """The text with every citation as `[Reference i]`, and how many were spelt otherwise."""
    respelt = 0

    def respell(match: re.Match[str]) -> str:
        nonlocal respelt
        exact = " ".join(f"[Reference {number}]" for number in _numbers_in(match.group(1)))
        respelt += exact != match.group(0)
        return exact

    return _VARIANT.sub(respell, text), respelt


def _numbers_in(text: str) -> list[int]:
    """The numbers of a list such as "1, 3-5 and 7"."""
    numbers: list[int] = []
    for first, last in _RANGE.findall(text):
        low, high = int(first), int(last or first)
        numbers += range(low, high + 1) if 0 <= high - low < _LONGEST_RANGE else (low, high)
    return numbers


def cited_numbers(text: str) -> list[int]:
    """Numbers in `[Reference i]`, in order of first mention."""
    return list(dict.fromkeys(int(number) for number in _EXACT.findall(text)))


def split_sentences(text: str) -> list[str]:
    """Sentences in order, white space folded; a citation after the stop stays with its sentence."""
    sentences: list[str] = []
    for paragraph in re.split(r"\n\s*\n", text):
        sentences.extend(_split_paragraph(one_line(paragraph)))
    return sentences


def _split_paragraph(paragraph: str) -> Sequence[str]:
    sentences: list[str] = []
    start = 0
    for match in _BREAK.finditer(paragraph):
        if _ABBREVIATION.search(paragraph[start : match.start()]):
            continue
        sentences.append(paragraph[start : match.end()].strip())
        start = match.end()
    return [sentence for sentence in (*sentences, paragraph[start:].strip()) if sentence]
