"""The citations of a section: which sentence cites which number, and how a sentence is put to a search
and to a judge.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pipeline.evaluation.retrieval.queries import masked
from pipeline.related_work.summary import cited_numbers

THIS, OTHER = "[this work]", "[another work]"
_MARKER = re.compile(r"\[Reference ([0-9]{1,4})\]")


@dataclass(frozen=True, slots=True)
class Citation:
    """One number that one sentence cites. `sentence`: its place in the section, from 1; `text`: the sentence."""

    sentence: int
    number: int
    text: str

    @property
    def claim(self) -> str:
        """The sentence without its markers, as a search is asked for it."""
        return masked(_MARKER.sub(" ", self.text))

    @property
    def marked(self) -> str:
        """The sentence as a judge reads it: this citation told from the others, and no number that would say which."""
        return _MARKER.sub(lambda found: THIS if int(found.group(1)) == self.number else OTHER, self.text)


def citations_of(sentences: Sequence[Mapping[str, Any]]) -> Iterator[Citation]:
    """The citations of a row's `sentences` in order, each number once a sentence.

    Numbers are those of the text, for `references` has none that the task lacks; what is in `references` alone,
    as a system may say without writing it, counts too.
    """
    for place, sentence in enumerate(sentences, 1):
        for number in dict.fromkeys([*cited_numbers(sentence["text"]), *(sentence["references"] or ())]):
            yield Citation(place, number, sentence["text"])
