"""How alike two titles are, and the forms under which a title may be listed."""

from __future__ import annotations

import re

from rapidfuzz import fuzz

from drafts.text import SPACES
from pipeline.identity.titles import title_words

# Likeness of two titles in percent (rapidfuzz.fuzz.ratio of their words without blanks). From
# here on they are one title with a word changed, left out or misspelt; below, they are two works.
SAME_TITLE = 75.0
_SUBTITLE = re.compile(r":\s|\s[-–—]+\s|[?!.]\s")
_REMARK = re.compile(
    rf"(?:{SPACES})?"
    r"\((?:extended|full|long|short|technical|supplement|student|\d+(?:st|nd|rd|th)\sed)"
    r"[^()]*\)\s*+$",
    re.IGNORECASE,
)
# A shorter first part is the name of a system, which several papers may bear.
_SHORTEST_MAIN_TITLE = 12
_GREEK = str.maketrans({
    "α": " alpha ", "β": " beta ", "γ": " gamma ", "δ": " delta ", "ε": " epsilon ", "θ": " theta ",
    "λ": " lambda ", "μ": " mu ", "π": " pi ", "σ": " sigma ", "τ": " tau ", "φ": " phi ",
    "χ": " chi ", "ω": " omega ", "ℓ": " l ", "ϵ": " epsilon ", "ψ": " psi ", "η": " eta ",
})  # fmt: skip
_SPELLINGS = (
    (re.compile(r"is(?=(?:ation|ations|e|ed|es|er|ers|ing)$)"), "iz"),
    (re.compile(r"(?<=\w\w\w)our(?=(?:s|ed|al|ing|able)?$)"), "or"),
    (re.compile(r"(?<=\w\w)ll(?=(?:ed|ing|er)$)"), "l"),
    (re.compile(r"tre(?=s?$)"), "ter"),
    (re.compile(r"^ell$"), "l"),
)
_WORDS_LEFT_OUT = frozenset({"and", "varepsilon"})
_ARTICLES = frozenset({"a", "an", "the"})


def title_likeness(title: str, other: str) -> float:
    """Likeness in percent of the letters; 100 where one leaves out the other's subtitle, or the
    name of a system before it.
    """
    ours, theirs = _letters(title), _letters(other)
    for whole, letters in ((other, ours), (title, theirs)):
        first, *rest = _SUBTITLE.split(whole, maxsplit=1)
        parts = [_SUBTITLE.split(first)[0], *(rest if " " not in first else ())]
        if len(letters) > _SHORTEST_MAIN_TITLE and letters in map(_letters, parts):
            return 100.0
    return whole_likeness(title, other)


def whole_likeness(title: str, other: str) -> float:
    """Likeness in percent of the letters, subtitles included; 0 where a title is empty."""
    ours, theirs = _letters(title), _letters(other)
    return fuzz.ratio(ours, theirs) if ours and theirs else 0.0


def may_be_title(title: str, folded: str) -> bool:
    """Whether a paper, of whose title the folded words are given, may bear this title.

    A candidate shares some words; most others would be read from the metadata for nothing.
    """
    ours, theirs = _letters(title), _letters(folded)
    if ours.startswith(theirs) or theirs.startswith(ours):
        return True
    return fuzz.ratio(ours, theirs, score_cutoff=SAME_TITLE) > 0


def lookup_titles(title: str) -> set[str]:
    """A title as it may be listed: without remarks, and without its subtitle."""
    without_remark = _REMARK.sub("", title)
    return {without_remark, _SUBTITLE.split(without_remark)[0]}


def _letters(title: str) -> str:
    """The letters of a title without a first article, in one spelling of English and Greek."""
    words = title_words(_REMARK.sub("", title).translate(_GREEK))
    if len(words) > 1 and words[0] in _ARTICLES:
        words = words[1:]
    return "".join(_spelling(word) for word in words if word not in _WORDS_LEFT_OUT)


def _spelling(word: str) -> str:
    for pattern, replacement in _SPELLINGS:
        word = pattern.sub(replacement, word)
    return word
