"""Quotation marks around the words that a section takes from the cited papers."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from operator import itemgetter

from pipeline.related_work.summary import Summary
from pipeline.related_work.task import Task

NOTE = (
    "No model wrote this section: the words in quotation marks are those of the cited papers, and"
    " words in brackets stand for theirs."
)
# Fewer words in a row are no quotation.
_FEWEST_WORDS = 3
# So many words between two stretches, in place of as many of the source, are put in brackets.
_MOST_REPLACED = 2
_TOKEN = re.compile(r"\[Reference \d{1,4}\][.,;]?|\S+")
_WORD = re.compile(r"[^\W_]+")


def quoted_section(summary: Summary, task: Task) -> str:
    """The text of a section, with quotation marks around the words of the work that each sentence
    cites first.
    """
    sources = {
        reference.number: SourceWords(
            "\n".join([reference.text, *(passage.text for passage in reference.passages)])
        )
        for reference in task.references
    }
    parts, place = [], 0
    for sentence in summary.sentences:
        start = summary.text.index(sentence.text, place)
        marked = sentence.text
        if sentence.references:
            marked = sources[sentence.references[0]].with_quotation_marks(sentence.text)
        parts += [summary.text[place:start], marked]
        place = start + len(sentence.text)
    return "".join([*parts, summary.text[place:]])


class SourceWords:
    """The words of a source in order, in which stretches of other texts are found."""

    def __init__(self, text: str) -> None:
        self._words = [_folded(token) for token in text.split()]
        places = defaultdict(list)
        for place in range(len(self._words) - _FEWEST_WORDS + 1):
            places[tuple(self._words[place : place + _FEWEST_WORDS])].append(place)
        self._places: Mapping[tuple[str, ...], Sequence[int]] = places

    def with_quotation_marks(self, text: str) -> str:
        """The text with quotation marks around each stretch of words that the source has in this
        order; a text that has such marks is unchanged.
        """
        if "“" in text:
            return text
        tokens = _TOKEN.findall(text)
        parts: list[str] = []
        end_before, source_end_before = 0, -1
        for start, end, source in self._stretches(tokens):
            between, stretch = tokens[end_before:start], " ".join(tokens[start:end])
            replaces_source_words = (
                bool(parts)
                and 0 < len(between) <= _MOST_REPLACED
                and source - source_end_before == len(between)
                and not any("[" in token for token in between)
            )
            if replaces_source_words:
                quotation = parts.pop().removesuffix("”")
                parts.append(f"{quotation} [{' '.join(between)}] {stretch}”")
            else:
                parts += [*between, f"“{stretch}”"]
            end_before, source_end_before = end, source + (end - start)
        return " ".join([*parts, *tokens[end_before:]])

    def _stretches(self, tokens: Sequence[str]) -> list[tuple[int, int, int]]:
        """(start, end, start in the source) of each stretch, in order.

        A stretch is left out if a longer one begins at the next word.
        """
        words = [_folded(token) for token in tokens]
        stretches, start = [], 0
        while start < len(words):
            length, source = self._longest(words, start)
            # "Gao et al." may be in the source, but is no quotation.
            is_name = length > 0 and tokens[start + length - 1] == "al."
            if length and not is_name and self._longest(words, start + 1)[0] < length:
                stretches.append((start, start + length, source))
                start += length
            else:
                start += 1
        return stretches

    def _longest(self, words: Sequence[str], start: int) -> tuple[int, int]:
        """The length of the longest stretch from a word on, and its start in the source."""
        places = self._places.get(tuple(words[start : start + _FEWEST_WORDS]), ())
        lengths = [(self._length(words, start, place), place) for place in places]
        return max(lengths, key=itemgetter(0), default=(0, 0))

    def _length(self, words: Sequence[str], start: int, place: int) -> int:
        """The number of words in a row that a text from `start` on and the source share."""
        length = 0
        for word, source_word in zip(words[start:], self._words[place:], strict=False):
            if word != source_word:
                break
            length += 1
        return length


def _folded(token: str) -> str:
    """A token's letters and digits in lower case; the token itself where it has none."""
    return "".join(_WORD.findall(token)).lower() or token
