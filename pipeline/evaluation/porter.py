"""Porter's stemmer as nltk extends it, by which rouge-score stems.

Snowball's `porter` (PyStemmer) gives 916 of 103,797 words of the sample and of real papers another
stem ("using" → "us", "survey" → "survei"), with which ROUGE would differ from what others report.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

_IRREGULAR = {
    "skies": "sky",
    "dying": "die",
    "lying": "lie",
    "tying": "tie",
    "news": "news",
    "innings": "inning",
    "inning": "inning",
    "outings": "outing",
    "outing": "outing",
    "cannings": "canning",
    "canning": "canning",
    "howe": "howe",
    "proceed": "proceed",
    "exceed": "exceed",
    "succeed": "succeed",
}
# Suffix → what replaces it. Of two that a word ends with, the first counts.
_PLURALS = {"sses": "ss", "ies": "i", "ss": "ss", "s": ""}
_DOUBLE_SUFFIXES = {
    "ational": "ate",
    "tional": "tion",
    "enci": "ence",
    "anci": "ance",
    "izer": "ize",
    "bli": "ble",
    "entli": "ent",
    "eli": "e",
    "ousli": "ous",
    "ization": "ize",
    "ation": "ate",
    "ator": "ate",
    "alism": "al",
    "iveness": "ive",
    "fulness": "ful",
    "ousness": "ous",
    "aliti": "al",
    "iviti": "ive",
    "biliti": "ble",
    "fulli": "ful",
}
_ADJECTIVES = {
    "icate": "ic",
    "ative": "",
    "alize": "al",
    "iciti": "ic",
    "ical": "ic",
    "ful": "",
    "ness": "",
}
_LAST_SUFFIXES = dict.fromkeys(
    [
        "al",
        "ance",
        "ence",
        "er",
        "ic",
        "able",
        "ible",
        "ant",
        "ement",
        "ment",
        "ent",
        "ou",
        "ism",
        "ate",
        "iti",
        "ous",
        "ive",
        "ize",
    ],
    "",
)


@lru_cache(maxsize=100_000)
def stem(word: str) -> str:
    """The stem of a word in lower case, of three letters or more, as nltk's PorterStemmer."""
    if word in _IRREGULAR:
        return _IRREGULAR[word]
    word = _without_participle(_without_plural(word))
    if word.endswith("y") and len(word) > 2 and _shape(word[:-1]).endswith("c"):
        word = f"{word[:-1]}i"
    word = _without_double_suffix(word)
    word = _replace(word, _ADJECTIVES, 1)
    if not word.endswith("ion"):
        word = _replace(word, _LAST_SUFFIXES, 2)
    elif word[-4:-3] in ("s", "t") and _measure(word[:-3]) > 1:
        word = word[:-3]
    return _without_last_letter(word)


def _shape(word: str) -> str:
    """`c` for each consonant and `v` for each vowel; y is a vowel after a consonant."""
    shape = ""
    for letter in word:
        is_vowel = letter in "aeiou" or (letter == "y" and shape.endswith("c"))
        shape += "v" if is_vowel else "c"
    return shape


def _measure(word: str) -> int:
    """Porter's m: how often a consonant follows a vowel."""
    return _shape(word).count("vc")


def _is_short(word: str) -> bool:
    """Whether a word ends as `hop` does: consonant, vowel, and a consonant other than w, x, y."""
    shape = _shape(word)
    return shape == "vc" or (shape.endswith("cvc") and word[-1] not in "wxy")


def _replace(word: str, suffixes: Mapping[str, str], least: int) -> str:
    """The word with the first of the suffixes replaced, if what is before it measures `least`."""
    for suffix, replacement in suffixes.items():
        if word.endswith(suffix):
            before = word.removesuffix(suffix)
            return before + replacement if _measure(before) >= least else word
    return word


def _without_plural(word: str) -> str:
    if word.endswith("ies") and len(word) == 4:
        return word[:-1]
    return _replace(word, _PLURALS, 0)


def _without_participle(word: str) -> str:
    if word.endswith("ied"):
        return word[:-1] if len(word) == 4 else word[:-2]
    if word.endswith("eed"):
        return word[:-1] if _measure(word[:-3]) else word
    before = word.removesuffix("ed") if word.endswith("ed") else word.removesuffix("ing")
    shape = _shape(before)
    if before == word or "v" not in shape:
        return word
    if before.endswith(("at", "bl", "iz")):
        return f"{before}e"
    if before[-1] == before[-2:-1] and shape.endswith("c"):
        return before if before[-1] in "lsz" else before[:-1]
    return f"{before}e" if _measure(before) == 1 and _is_short(before) else before


def _without_double_suffix(word: str) -> str:
    if word.endswith("alli"):
        return _without_double_suffix(word[:-2]) if _measure(word[:-4]) else word
    if word.endswith("logi"):
        return word[:-1] if _measure(word[:-3]) else word
    return _replace(word, _DOUBLE_SUFFIXES, 1)


def _without_last_letter(word: str) -> str:
    if word.endswith("e"):
        measure = _measure(word[:-1])
        if measure > 1 or (measure == 1 and not _is_short(word[:-1])):
            word = word[:-1]
    if word.endswith("ll") and _measure(word[:-1]) > 1:
        word = word[:-1]
    return word
