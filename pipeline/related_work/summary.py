"""A related-work section: its sentences with the references that they cite, and its trace."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
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
# [1] or [1, 3-5], but no index x[1] and no link [1](…).
_BARE_LIST = re.compile(rf"(?<![\w$\\])\[({_NUMBER}(?:\s*+[,;–-]\s*+{_NUMBER})*+)\](?!\()")
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
# Lines that models put around a section: its heading, headings, fences and rules.
_OWN_HEADING = re.compile(
    r"(?:[^\w\n]|[0-9])*+(?:\\?(?:sub)?section\*?\{)?related works?[^\w\n]*+", re.IGNORECASE
)
_HEADING = re.compile(r"#{1,6}\s.*(?<![.!?])|\*\*[^*]+\*\*:?|\\(?:sub)*section\*?\{.*")
_EDGE = re.compile(r"(?:`{3,}|~{3,})\w*|[-*_=]{3,}")
_LIST_ITEM = re.compile(r"(?:[-*•]|[0-9]+[.)])\s")
CITES_NOTHING, REPEATS_PROMPT = "cites nothing", "repeats its prompt"
# A shorter sentence may be in any text.
_FEWEST_WORDS = 6


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
    raw: str,
    numbers: Collection[int],
    trace: Mapping[str, Any],
    cost: Spent,
    *,
    is_cut: bool = False,
) -> Summary:
    """A summary from a model's text. numbers: of the task's references. is_cut: whether the text
    ended at its limit.

    Lines around the section are taken off, and listed in the trace (`frame`). Other spellings of a
    citation become `[Reference i]`. The trace gains `citations`: how many were respelt, which cited
    numbers the task lacks (they stay in the text), which of the task's numbers are not cited, and
    how many bare numbers such as [3] could be meant for one. A section that cites by bare numbers
    alone has them read; in another they may be meant for an interval, so they are counted and stay.
    """
    framed, frame = without_frame(PROMPTS.unwrapped(raw))
    text, respelt = normalize(framed)
    if not cited_numbers(text):
        text, respelt = _respell(text, _BARE_LIST, numbers)
    trace = dict(trace) | ({"frame": frame} if frame else {}) | ({"cut": True} if is_cut else {})
    sentences = tuple(
        SummarySentence(sentence, tuple(n for n in cited_numbers(sentence) if n in numbers))
        for sentence in split_sentences(text)
    )
    return Summary(
        text, sentences, trace | {"citations": citation_counts(text, numbers, respelt)}, cost
    )


def without_frame(text: str) -> tuple[str, list[str]]:
    """A section without the lines that a model put around it, and these lines: its heading, fences,
    rules, and what it says to the user before and behind. A line that cites belongs to the section.
    """
    lines = text.split("\n")
    first, end = 0, len(lines)
    while first + 1 < end and _is_before_section(lines[first:]):
        first += 1
    for place in range(first + 1, end):
        if _EDGE.fullmatch(lines[place].strip()) and not any(map(_cites, lines[place:])):
            end = place
            break
    section = "\n".join(lines[first:end]).strip()
    frame = [line.strip() for line in (*lines[:first], *lines[end:]) if line.strip()]
    return (section, frame) if section and frame else (text, [])


def _is_before_section(lines: Sequence[str]) -> bool:
    """Whether the first line is none of the section's own."""
    line, *others = (line.strip() for line in lines)
    if not line or _EDGE.fullmatch(line) or _OWN_HEADING.fullmatch(line):
        return True
    following = [other for other in others if other]
    if not following or _cites(line):
        return False
    if _HEADING.fullmatch(line):
        return not any(map(_HEADING.fullmatch, following))
    if line.endswith(":"):
        return _LIST_ITEM.match(following[0]) is None
    return bool(_EDGE.fullmatch(following[0]) or _OWN_HEADING.fullmatch(following[0]))


def _cites(line: str) -> bool:
    return bool(_VARIANT.search(line) or _BARE_LIST.search(line))


def quoted_summary(
    text: str, sentences: Iterable[SummarySentence], numbers: Collection[int]
) -> Summary:
    """A summary of quotations, which no model wrote. numbers: of the task's references."""
    trace = {"citations": citation_counts(text, numbers, 0)}
    return Summary(text, tuple(sentences), trace, Spent())


def named_faults(summary: Summary, shown: Iterable[str]) -> list[str]:
    """What a section is named for: it cites no reference, or half of its words are in sentences of
    its prompt. shown: the texts that the prompt was made of.
    """
    faults = []
    if not any(sentence.references for sentence in summary.sentences):
        faults.append(CITES_NOTHING)
    prompt = one_line("\n".join(shown)).lower()
    words = repeated = 0
    for sentence in summary.sentences:
        plain = one_line(_EXACT.sub("", sentence.text)).lower().rstrip(" .")
        count = len(plain.split())
        words += count
        repeated += count * (count >= _FEWEST_WORDS and plain in prompt)
    if words and 2 * repeated > words:
        faults.append(REPEATS_PROMPT)
    return faults


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
    return _respell(text, _VARIANT)


def _respell(
    text: str, form: re.Pattern[str], numbers: Collection[int] | None = None
) -> tuple[str, int]:
    """The text with citations of a form as `[Reference i]`, and how many were spelt otherwise.

    numbers: those that may be cited, other lists of numbers stay; None for any.
    """
    respelt = 0

    def respell(match: re.Match[str]) -> str:
        nonlocal respelt
        cited = _numbers_in(match[1])
        if numbers is not None and not set(cited) <= set(numbers):
            return match[0]
        exact = " ".join(f"[Reference {number}]" for number in cited)
        respelt += exact != match[0]
        return exact

    return form.sub(respell, text), respelt


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
    for paragraph in map(one_line, re.split(r"\n\s*\n", text)):
        start = 0
        for match in _BREAK.finditer(paragraph):
            if not _ABBREVIATION.search(paragraph[start : match.start()]):
                sentences.append(paragraph[start : match.end()].strip())
                start = match.end()
        sentences.append(paragraph[start:].strip())
    return list(filter(None, sentences))
