"""Which section is a paper's related work, by its title."""

from __future__ import annotations

import re

from pipeline.text import one_line

_NUMBER = re.compile(r"^(?:[a-z]|[ivxl]+|\d+)(?:\.\d+)*[.):]*\s+")
_BETWEEN = re.compile(r"[,;:/&|+()–—]|\band\b")
_BEFORE = (
    r"(?:(?:an?|the|other|further|additional|extended|more|brief|short|detailed|current|recent"
    r"|review|survey|overview|discussion|relation(?:s|ship)?|connections?|of|on|to|with) )*"
)
_WORKS = r"(?:works?|research|stud(?:y|ies)|literature|art|approaches|methods|papers)"
# What may follow: "… in Summarization", "… on Continual Learning"; not "… Results".
_NAME = re.compile(
    rf"{_BEFORE}(?:(?:related|prior|previous|past|earlier|existing) {_WORKS}"
    r"|literature (?:review|survey|overview)|(?:review|survey) of (?:the )?literature"
    r"|works? related|state of the art)(?: (?:review|survey|overview))?"
    r"(?: (?:in|on|of|for|to|about|with|at|from|using)\b.*)?"
)


def is_related_work(title: str) -> bool:
    """Whether a section of this title reviews the work of others.

    Yes: "2.1 Background and Related Work", "Prior Art", "Literature Survey", "State of the Art in
    Parsing". No, since these speak of something else: "Related" alone, "Our Previous Work",
    "Comparison with Previous Work", "State-of-the-Art Results".
    """
    words = one_line(re.sub(r"(?<=\w)[-‐](?=\w)", " ", title)).strip(" .:").lower()
    parts = _BETWEEN.split(words)
    # The whole, or a part at its "and", commas and colons, with or without a number.
    texts = (words, _NUMBER.sub("", words, count=1), *parts, _NUMBER.sub("", parts[0], count=1))
    return any(_NAME.fullmatch(text.strip()) for text in texts)
