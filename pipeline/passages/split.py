"""Splitting text that is too long for one passage. Not here: what is packed together."""

from __future__ import annotations

import re
from collections.abc import Iterator

from pipeline.passages.text import count_words

# Display math first: `$$…$$` would else be read as two empty formulas.
_PROTECTED = re.compile(r"\$\$.+?\$\$|\$[^$]+\$|\[@[^\[\]]+\]", re.DOTALL)
_ABBREVIATION = re.compile(
    r"(?:\b(?:e\.g|i\.e|et al|cf|vs|resp|Fig|Figs|Eq|Eqs|Sec|Tab|Ref|Refs|Thm|Prop|Def|No|Dr|Prof|St)|\b[A-Z])\.$"
)
_SENTENCE_END = re.compile(r"[.!?][\"”’)]*\s+(?=[\"“‘(\[$]*[A-Z0-9\[$])|\n+")


def sentences(text: str) -> list[str]:
    """The sentences of a text, cut only where no formula, citation or abbreviation stands."""
    masked = _mask(text)
    pieces, start = [], 0
    for end in _SENTENCE_END.finditer(masked):
        if _ABBREVIATION.search(masked[start : end.start() + 1]):
            continue
        pieces.append(text[start : end.end()].strip())
        start = end.end()
    pieces.append(text[start:].strip())
    return [piece for piece in pieces if piece]


def _mask(text: str) -> str:
    """The text at equal length with formulas and citations as capitals: no sentence ends in them, one may start."""
    return _PROTECTED.sub(lambda match: "X" * len(match.group()), text)


def split_text(text: str, most_words: int) -> list[str]:
    """Parts of a text, each of at most `most_words` words, cut at sentence ends where they are near enough.

    One formula or citation longer than that stays whole: half a formula is worse than a long passage.
    """
    if count_words(text) <= most_words:
        return [text]
    pieces = [part for sentence in sentences(text) for part in _split_sentence(sentence, most_words)]
    return list(_fill(pieces, most_words, " "))


def split_lines(text: str, most_words: int) -> list[str]:
    """Parts of a text whose lines matter (a list, an algorithm), cut between lines where they are near enough."""
    if count_words(text) <= most_words:
        return [text]
    pieces = [part for line in text.splitlines() for part in split_text(line, most_words)]
    return list(_fill(pieces, most_words, "\n"))


def split_table(markdown: str, most_words: int) -> list[str]:
    """Parts of a Markdown table with its caption, the caption and the head repeated over each part."""
    if count_words(markdown) <= most_words:
        return [markdown]
    lines = markdown.splitlines()
    rule = next((number for number, line in enumerate(lines) if re.fullmatch(r"[|\s:-]*-[|\s:-]*", line)), None)
    if rule is None:
        return split_text(markdown, most_words)
    head = lines[: rule + 1]
    room = most_words - count_words("\n".join(head))
    if room < most_words // 4:
        return split_text(markdown, most_words)
    rows = [part for row in lines[rule + 1 :] for part in split_text(row, room)]
    return ["\n".join([*head, part]) for part in _fill(rows, room, "\n")]


def _split_sentence(sentence: str, most_words: int) -> list[str]:
    if count_words(sentence) <= most_words:
        return [sentence]
    masked, words, start = _mask(sentence), [], 0
    for gap in re.finditer(r"\s+", masked):
        words.append(sentence[start : gap.start()])
        start = gap.end()
    words.append(sentence[start:])
    return list(_fill(words, most_words, " "))


def _fill(pieces: list[str], most_words: int, joint: str) -> Iterator[str]:
    """Join neighbours as long as they stay within `most_words`."""
    held: list[str] = []
    words = 0
    for piece in pieces:
        more = count_words(piece)
        if held and words + more > most_words:
            yield joint.join(held)
            held, words = [], 0
        held.append(piece)
        words += more
    if held:
        yield joint.join(held)
