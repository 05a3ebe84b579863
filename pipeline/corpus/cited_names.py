"""The names in a bibliography item: where a list of them ends, and what each is."""

from __future__ import annotations

import re

Names = tuple[str, ...]

_LETTER = r"[^\W\d_]"
_PARTICLES = frozenset({
    "de", "der", "den", "van", "von", "la", "le", "di", "da", "del", "dos", "du", "el", "al", "bin", "ibn", "ter",
    "ten", "zu", "i", "y", "e", "v", "d", "st", "tau",
    "and", "et",
})  # fmt: skip
_SUFFIXES = frozenset({"Jr", "Sr", "II", "III", "IV"})

_ET_AL = re.compile(r",?\s*\bet\.?\s+al\b\.?", re.IGNORECASE)
_GROUP = re.compile(r"\s*\([^()]*\)")
_EDITORS_MARK = re.compile(r"\beds?\.")
_INITIALS = re.compile(rf"(?:{_LETTER}\.[\s~-]*)+")
_YEAR_AFTER_NAMES = re.compile(r"[\s,.(]+((?:19|20)\d\d)[a-z]?[).,:\s]*$")
_SMALL_WORD = re.compile(r" ([a-z][^\W\d_]*)")
_DIGIT = re.compile(r"\d")
_SURNAME_FIRST = re.compile(rf",\s*(?:{_LETTER}(?:\.|,|$)|(?:Jr|Sr|II|III|IV)\b)")
_AFTER_INITIAL = ("", ".")
_WORDS_OF_A_NAME = 5
# A year ends a list; looking for it in the last characters alone keeps the pattern linear.
_YEAR_LENGTH = 24

# A list of names with initials, at the front of a text. Its groups are atomic: a name is taken whole or not at all, so
# a list of a thousand names is read once. "J. Fluid Mech. 508" is a journal: a volume follows where a year would not.
_LAST = rf"(?:(?:d[aeu]|del|der|den|van|von|l[ae]) +){{0,3}}{_LETTER}[\w’'`$\\{{}}^-]+"
_FIRST = rf"(?:{_LETTER}\.[\s~-]*){{1,6}}"
_NAME = rf"(?>{_FIRST}{_LAST}(?: (?!and\b|et\b){_LAST})?(?:, Jr\.?)?|{_LAST}(?: {_LAST})?, {_FIRST})"
_NAME += r"(?!\.?\s+(?!(?:19|20)\d\d\b)\d)"
NAMES_WITH_INITIALS = re.compile(
    rf"{_NAME}(?>(?:\s*[,;]\s*|\s+(?=\S))(?!and\b|&|et al){_NAME})*"
    rf"(?>\s*[,;]?\s*(?:and\b|&)\s*(?:{_NAME}|{_LAST}))?(?:\s*[,;]?\s*et\.? al\b\.?)?"
)


def looks_like_authors(text: str) -> bool:
    """Whether a text reads as a list of names: short capitalised pieces between commas and "and"."""
    return bool(names_and_year(text)[0])


def names_and_year(text: str) -> tuple[Names, int | None]:
    """The names of a list and the year that ends it; no names where the text is no such list."""
    if text.rstrip().endswith("?"):
        return (), None
    bare, year = _without_year(text)
    names = _split(bare)
    # Particles and "and" aside, a name has no small words: one to three names may be misread, a sentence has more.
    small = [word for word in _SMALL_WORD.findall(bare) if word not in _PARTICLES]
    likely = (
        len(small) * 3 <= len(names) and bare.count(" ") < _WORDS_OF_A_NAME * len(names) and not _DIGIT.search(bare)
    )
    return (names, year) if likely else ((), None)


def _without_year(text: str) -> tuple[str, int | None]:
    """A list of names without the year at its end, and that year."""
    found = _YEAR_AFTER_NAMES.search(text, max(0, len(text) - _YEAR_LENGTH)) if _DIGIT.search(text[-8:]) else None
    return (text[: found.start()], int(found[1])) if found else (text, None)


def split_authors(text: str) -> Names:
    """The names of a list of authors, given names first: "Ba, J. L., and Hinton, G." is J. L. Ba, G. Hinton."""
    return _split(_without_year(" ".join(text.split()))[0])


def _split(text: str) -> Names:
    bare = _without_marks(text)
    joined = bare.replace(", and ", ", ").replace(" and ", ", ")
    if "&" in joined or ";" in joined:
        joined = joined.replace("&", ",").replace(";", ",")
    parts = [part for piece in joined.split(",") if (part := piece.strip())]
    if _SURNAME_FIRST.search(joined):
        return _joined(parts)
    return (_turned_round(bare, parts) if " and " in bare else None) or tuple(parts)


def _joined(parts: list[str]) -> Names:
    """Names of which the initials, or a suffix, stand after a comma of their own."""
    names: list[str] = []
    for part in parts:
        if part[1:2] in _AFTER_INITIAL and names and _INITIALS.fullmatch(part if part[-1] == "." else f"{part}."):
            names[-1] = f"{part} {names[-1]}" if part[-1] == "." else f"{part}. {names[-1]}"
        elif names and part.strip(".") in _SUFFIXES:
            names[-1] = f"{names[-1]}, {part}"
        else:
            names.append(part)
    return tuple(names)


def _without_marks(text: str) -> str:
    """A list of names without "et al.", groups and "eds" in brackets, and the stop at its end, if it ends in a word."""
    if " et" in text:
        text = _ET_AL.sub("", text)
    if "(" in text:
        text = _GROUP.sub("", text)
    if "ed" in text:
        text = _EDITORS_MARK.sub("", text)
    text = text.strip(" ,;:")
    return text[:-1] if text.endswith(".") and text[-3:-2].isalnum() else text


def _turned_round(text: str, parts: list[str]) -> Names | None:
    """Names of the form "Cho, Kyunghyun and Bengio, Yoshua": the last holds one comma."""
    if text.rpartition(" and ")[2].count(",") != 1 or len(parts) % 2:
        return None
    return tuple(f"{given} {surname}" for surname, given in zip(parts[::2], parts[1::2], strict=True))
