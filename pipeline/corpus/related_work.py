"""Which section is a paper's related work, by its title."""

from __future__ import annotations

import re

from pipeline.text import MAYBE_SPACES, one_line

_NUMBER = re.compile(
    r"(?:(?:section|appendix|chapter|part)\s++)?§?\s*+(?:[a-z]|[ivxl]+|\d+)(?:\.\d+)*[.):]*\s+",
    re.IGNORECASE,
)
_BETWEEN = re.compile(rf"{MAYBE_SPACES}(?:[,;:/&|+()–—]|(?<=\s)-\s|\band\b)\s*", re.IGNORECASE)

_FILLING = (
    r"(?:(?:an?|the|some|other|further|additional|extended|more|most|brief|short|detailed|current|recent|closely|"
    r"directly|full|overview|review|survey|summary|discussion|of|on)\s+)*"
)
_RELATED = (
    r"related\s+(?:research\s+)?(?:works?|research|stud(?:y|ies)|literature|approaches|methods"
    r"|efforts|papers|art)"
)
_EARLIER = (
    r"(?:prior|previous|past|earlier|existing|preceding)\s+(?:related\s+)?(?:works?|research|stud(?:y|ies)|literature|"
    r"art|efforts)"
)
_LITERATURE = (
    r"literature\s+(?:review|survey|overview)|(?:review|survey"
    r"|overview)\s+of\s+(?:the\s+)?literature"
)
_OTHERWISE = (
    r"works?\s+related|state\s+of\s+the\s+art|(?:relations?|relationship|connections?)\s+(?:to|with)\s+"
    r"(?:other|prior|previous|past|earlier|existing|related)\s+(?:works?|research|stud(?:y|ies)|literature)"
)
# What may follow: "… in Summarization", "… on Continual Learning", "… Review"; not "… Results" or
# "… Comparison".
_ENDING = (
    r"(?:\s+(?:review|survey|overview|discussion|section))?(?:\s+(?:in|on|of|for|to|about|with|at"
    r"|from|using)\b.*)?"
)
_NAME = re.compile(
    rf"{_FILLING}(?:{_RELATED}|{_EARLIER}|{_LITERATURE}|{_OTHERWISE}){_ENDING}", re.IGNORECASE
)


def is_related_work(title: str) -> bool:
    """Whether a section of this title reviews the work of others.

    Yes: "2.1 Background and Related Work", "Prior Art", "Literature Survey", "State of the Art in
    Parsing". No, since these speak of something else: "Related" alone, "Our Previous Work",
    "Comparison with Previous Work", "State-of-the-Art Results".
    """
    words = one_line(re.sub(r"(?<=\w)[-‐](?=\w)", " ", title)).strip(" .:")
    number = _NUMBER.match(words)
    without_number = words[number.end() :] if number else words
    for text in (words, without_number):
        # The whole, or a part at its "and", commas and colons.
        if any(_NAME.fullmatch(part) for part in (text, *_BETWEEN.split(text))):
            return True
    return False
