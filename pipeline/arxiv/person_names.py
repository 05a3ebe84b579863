"""Names of people: lists of them, their parts, and whether two prints name the same person.

One parser for arXiv's author lines, bylines and bibliographies.
"""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

from pipeline.arxiv.titles import SUFFIXES, title_words
from pipeline.text import one_line

# Small words within a family name. "and" and "et" are between names.
PARTICLES = frozenset({
    "al", "af", "auf", "av", "bin", "binti", "d", "da", "das", "de", "del", "della", "den", "der",
    "des", "di", "do", "dos", "du", "e", "el", "ibn", "la", "las", "le", "los", "st", "tau", "te",
    "ten", "ter", "v", "van", "vom", "von", "y", "i", "zu", "zum", "zur",
})  # fmt: skip

# What is beside a name and is no part of it: (pattern, example).
TITLES = (
    (
        (
            r"\b(?:Graduate |Student |Senior |Life |Associate"
            r" )*(?:Member|Fellow),?\s+(?:IEEE|ACM|AAAI|OSA|SPIE|SIAM)\b"
        ),
        "Ann Lee, Senior Member, IEEE",
    ),
    (
        r"(?:^|(?<=[\s,]))(?:Dr|Prof|Professor|Mr|Mrs|Ms)(?:\.\s*|\s+)(?=[^\W\d_])",
        "Prof. Dr. Ann Lee",
    ),
    (
        r",?\s+(?:Ph\.?\s?D|M\.?\s?D|D\.?\s?Sc|M\.?\s?Sc|B\.?\s?Sc|M\.S|M\.A|MBA|MPH|D\.?Phil)\.?(?=[,;\s]|$)",
        "Ann Lee, Ph.D.",
    ),
    (r"[\s,][\s,]*(?:\(?eds?\.\)|\(Eds?\.?\)|\beds?\.(?=\s|$))", "Ann Lee and Bob Roe (eds.)"),
    (r"et\.?\s+al\b\.?|and others\b", "Ann Lee et al."),
)

# "et al." alone is so frequent that it has a pattern of its own. Most other lists hold no title at
# all, and to look for some letters of each is quick.
_TITLE = re.compile("|".join(pattern for pattern, _ in TITLES[:-1]))
_TITLE_LETTERS = re.compile(
    r"Member|Fellow|Dr[. ]|Prof|M[rs]s?[."
    r" ]|Ph\.?\s?D|Phil|Sc(?:[.,;]|$)|M[DSB]|MPH|M\.\s?[DSA]|[Ee]ds?[.)]"
)
_AND_OTHERS = re.compile(TITLES[-1][0])
_LETTER = r"[^\W\d_]"
_CAPITAL = r"[^\W\d_a-z]"
_INITIALS = re.compile(
    rf"(?:{_CAPITAL}\.(?:[‐‑-]?[a-z]\.)?[\s~‐‑-]*)+{_CAPITAL}?|{_CAPITAL}{{1,3}}(?:[-\s]{_CAPITAL})?"
)
_WORD = re.compile(
    rf"(?:[dl]['’]|[ae]l-|Mc|Mac|O['’])?{_LETTER}(?:{_LETTER}|[\u0300-\u036f'’`´.‐‑-])*",
    re.IGNORECASE,
)
_NICKNAME = re.compile(r"\s*(?:[“\"‘(][^“”\"‘’()]{1,30}[”\"’)])")
# Scripts without capitals, in which a name may be one word: Chinese, Japanese, Korean.
_EAST_ASIAN = re.compile(
    r"[\u3005\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]+(?:[ ·・][\u3040-\u9fff\uac00-\ud7af]+)?"
)
# A word as a name has it, without the digits of a mark behind it; its accent may be apart from it.
_TOKEN = re.compile(rf"(?:{_LETTER}|[\u0300-\u036f])+")
# Where a page lost the space behind a name: "Ann LeeUniversity of X".
_STUCK = re.compile(r"(?<=[a-z])(?=[A-Z])")
_LEADING_PARTICLES = re.compile(r"^(?:[a-z]+ )+")
_COMMA = re.compile(r"\s*,\s*")
_MOST_WORDS, _LONGEST_SUFFIX, _LONGEST_INITIALS = 7, 6, 14


@dataclass(frozen=True, slots=True)
class PersonName:
    """A name in parts: "Benjamin Van Durme, Jr." is Benjamin, Van Durme, Jr."""

    given: str
    family: str
    suffix: str = ""

    def __str__(self) -> str:
        return " ".join(filter(None, (self.given, self.family, self.suffix)))


class NamePlace(NamedTuple):
    """Where a text prints a name, by offsets: `name` is that of metadata."""

    start: int
    end: int
    name: str


def parse_name(text: str) -> PersonName:
    """The parts of a name, printed as "Given Family", "Family, Given" or "Family, Suffix, Given".

    A family name begins at its first particle, and is one word where it has none.
    """
    parts = [part for part in _COMMA.split(one_line(text)) if part]
    suffix = next((part for part in parts[1:] if is_suffix(part)), "")
    if suffix:
        parts.remove(suffix)
    if len(parts) > 1:
        return PersonName(" ".join(parts[1:]), parts[0], suffix)
    words = parts[0].split() if parts else []
    if not suffix and len(words) > 1 and is_suffix(words[-1]):
        suffix = words.pop()
    start = next(
        (place for place in range(1, len(words)) if words[place].lower() in PARTICLES),
        max(0, len(words) - 1),
    )
    return PersonName(" ".join(words[:start]), " ".join(words[start:]), suffix)


def is_suffix(text: str) -> bool:
    """Whether a word belongs to the name before it, also after a comma: Jr., III."""
    return len(text) < _LONGEST_SUFFIX and text.strip(" .").lower() in SUFFIXES


def is_initials(text: str) -> bool:
    """Whether a text is nothing but initials: "J. L.", "G", "A.-B."."""
    return ("." in text or text.isupper()) and _INITIALS.fullmatch(text.strip()) is not None


def without_titles(text: str) -> str:
    """The text without academic titles, memberships, "et al." and the like."""
    if "et" in text or "others" in text:
        text = _AND_OTHERS.sub("", text)
    return _TITLE.sub("", text) if _TITLE_LETTERS.search(text) else text


def blank_titles(text: str) -> str:
    """The text with spaces in place of what `without_titles` leaves out: offsets stay."""
    text = _AND_OTHERS.sub(lambda title: " " * len(title[0]), text)
    return _TITLE.sub(lambda title: " " * len(title[0]), text)


def is_name(text: str) -> bool:
    """Whether a text can be the name of one person, by its form alone: "New York" can.

    At least two words that begin with a capital, or are initials or particles, and no acronym among
    them; in scripts without capitals one word.
    """
    text = _NICKNAME.sub("", text).strip()
    if _EAST_ASIAN.fullmatch(text):
        return len(text) <= _MOST_WORDS
    words = (
        text.replace(",", " ").split()
        if "," in text and is_suffix(text.rpartition(",")[2])
        else text.split()
    )
    proper = [word for word in words if word.strip(".") not in PARTICLES]
    if not 1 < len(words) <= _MOST_WORDS or len(proper) < 2:
        return False
    if not all(_WORD.fullmatch(word) for word in words) or not all(map(_is_proper, proper)):
        return False
    return any(len(word.strip(".")) > 1 for word in proper) and (
        text.isupper() or not any(map(_is_acronym, proper))
    )


def _is_proper(word: str) -> bool:
    """Whether a word begins as a name does; a lower prefix may be before the capital: d'Ambrumenil,
    al-Rfou.
    """
    return not word[0].islower() or re.match(r"(?:[dl]['’]|[ae]l-)[^\W\d_a-z]", word) is not None


def _is_acronym(word: str) -> bool:
    bare = word.replace("-", "").replace(".", "") if "." in word else word
    return len(bare) > 2 and bare.isupper() and "." not in word and not is_suffix(word)


def split_names(text: str) -> tuple[str, ...]:
    """The names of a list, given names first: "Ba, J. L., and Hinton, G." is J. L. Ba, G. Hinton.

    Reads "A, B and C", "A; B", "Family, Given and Family, Given", "Family, Given, B and C", and
    families with initials behind a comma.
    """
    bare = without_titles(one_line(text.replace("&", " and ").replace(" und ", " and "))).strip(
        " ,;:"
    )
    if ";" in bare:
        pieces = [
            part for piece in bare.split(";") for part in piece.removeprefix(" and ").split(" and ")
        ]
        return tuple(_given_first(piece) for piece in pieces if piece.strip())
    pieces = [piece for piece in bare.removeprefix("and ").split(" and ") if piece]
    parts = [part.strip() for piece in pieces for part in piece.split(",") if part.strip()]
    if _is_inverted(pieces, parts):
        return tuple(
            f"{given} {family}" for family, given in zip(parts[::2], parts[1::2], strict=True)
        )
    if _begins_inverted(pieces, parts):
        parts[:2] = [f"{parts[1]} {parts[0]}"]
    return _joined(parts)


def _given_first(text: str) -> str:
    return str(parse_name(text)) if "," in text else text.strip()


def _is_inverted(pieces: list[str], parts: list[str]) -> bool:
    """Whether a list is "Family, Given and Family, Given": its last name holds a comma, and not all
    parts are names.
    """
    if (
        len(parts) % 2
        or len(pieces) < 2
        or pieces[-1].count(",") != 1
        or any(map(is_suffix, parts))
    ):
        return False
    return not all(" " in part for part in parts)


def _begins_inverted(pieces: list[str], parts: list[str]) -> bool:
    """Whether only the first name of a list is inverted: "Lee, Ann, Bob Roe, and Cid Moe", or
    alone: "Lee, Ann".
    """
    if (
        len(parts) < 2
        or is_suffix(parts[1])
        or " " in _LEADING_PARTICLES.sub("", parts[0])
        or "." in parts[0]
    ):
        return False
    if len(parts) == 2:
        return len(pieces) == 1
    return parts[1].count(" ") < 2 and all(" " in part for part in parts[2:])


def _joined(parts: list[str]) -> tuple[str, ...]:
    """The names of a list's parts: initials and suffixes behind a comma belong to the part before
    them.
    """
    names: list[str] = []
    for part in parts:
        if not names or len(part) > _LONGEST_INITIALS:
            names.append(part)
        elif is_suffix(part):
            names[-1] = f"{names[-1]}, {part}"
        elif is_initials(part) and not is_initials(names[-1]):
            names[-1] = f"{part if part[-1] == '.' else part + '.'} {names[-1]}"
        else:
            names.append(part)
    return tuple(names)


@lru_cache(maxsize=4096)
def _words(name: str) -> tuple[str, ...]:
    """The words of a name without accents, marks and suffixes; "J.L." is two."""
    return tuple(
        word
        for word in title_words(without_titles(name).replace(".", ". "))
        if word not in SUFFIXES
    )


def _same_person(first: tuple[str, ...], second: tuple[str, ...]) -> bool:
    """Whether the words of two prints can be one person's name: accents, hyphens, initials, middle
    names and order may differ.
    """
    if not first or not second:
        return False
    if "".join(first) == "".join(second) or sorted(first) == sorted(second):
        return True
    if len(first) < 2 or len(second) < 2:
        return False
    if first[-1] == second[-1] or _shares_family(first, second):
        return _agree(first[0], second[0])
    # Family name first on one side, as Chinese and Hungarian names are printed.
    return (first[0] == second[-1] and _agree(first[1], second[0])) or (
        second[0] == first[-1] and _agree(second[1], first[0])
    )


def _shares_family(first: tuple[str, ...], second: tuple[str, ...]) -> bool:
    """Whether one of two family names stands alone on one side: Teresa Quispe Mamani is Teresa
    Quispe.
    """
    if first[0] != second[0] or len(first[0]) < 2:
        return False
    families = {word for word in second[1:] if len(word) > 1}
    return not families.isdisjoint(first[1:])


def _agree(given: str, other: str) -> bool:
    """Whether two given names can be one: an initial, or the beginning of the longer."""
    return given.startswith(other) or other.startswith(given)


def _ends_alike(name: tuple[str, ...], printed: tuple[str, ...]) -> bool:
    return name[-1] == printed[-1]


def _begins_alike(name: tuple[str, ...], printed: tuple[str, ...]) -> bool:
    return printed[0] in name


class KnownNames:
    """The authors of a paper as arXiv's metadata names them, to be found in what its page
    prints.
    """

    def __init__(self, names: Iterable[str]) -> None:
        self.names = tuple(dict.fromkeys(names))
        self._by_word: defaultdict[str, list[str]] = defaultdict(list)
        for name in self.names:
            words = _words(name)
            for word in {*words[:1], *words[-1:], "".join(words)}:
                self._by_word[word].append(name)

    def match(self, printed: str) -> str | None:
        """The name that a print stands for, or None."""
        return self._match(_words(printed))

    def find(self, text: str) -> list[NamePlace]:
        """The names in a text, which may be in a row with nothing between: "Ann Lee Bob Roe"."""
        tokens = list(self._tokens(text))
        places: list[NamePlace] = []
        start = 0
        while start < len(tokens):
            words = tuple(word for _, _, word in tokens[start : start + _MOST_WORDS])
            name, length = self._name_at_start(words)
            if name is not None:
                while length < len(words) and words[length] in SUFFIXES:
                    length += 1
                places.append(NamePlace(tokens[start][0], tokens[start + length - 1][1], name))
            start += length
        return places

    def _tokens(self, text: str) -> Iterator[tuple[int, int, str]]:
        """The words of a text as (start, end, folded); what is stuck to a name is apart from it."""
        for token in _TOKEN.finditer(text):
            word = "".join(title_words(token[0]))
            stuck = None if word in self._by_word else _STUCK.search(text, *token.span())
            edges = [token.start(), *([stuck.start()] if stuck else []), token.end()]
            for start, end in pairwise(edges):
                yield start, end, "".join(title_words(text[start:end]))

    def _name_at_start(self, words: tuple[str, ...]) -> tuple[str | None, int]:
        """The name that some words begin with, and of how many of them; (None, 1) without one.

        The longest that is a name word by word; else the shortest that can be one and ends, or else
        begins, with a word of it.
        """
        if not any(word in self._by_word for word in words):
            return None, 1
        lengths = range(1, len(words) + 1)
        for length in reversed(lengths):
            name = self._exact(words[:length])
            if name is not None:
                return name, length
        for is_whole in (_ends_alike, _begins_alike):
            for length in lengths:
                printed = words[:length]
                for name in self._candidates(printed):
                    if is_whole(_words(name), printed) and _same_person(_words(name), printed):
                        return name, length
        return None, 1

    def _candidates(self, words: tuple[str, ...]) -> list[str]:
        return [name for word in {*words, "".join(words)} for name in self._by_word.get(word, ())]

    def _exact(self, words: tuple[str, ...]) -> str | None:
        return next((name for name in self._candidates(words) if _words(name) == words), None)

    def _match(self, words: tuple[str, ...]) -> str | None:
        exact = self._exact(words)
        if exact is not None:
            return exact
        candidates = self._candidates(words)
        return next((name for name in candidates if _same_person(_words(name), words)), None)


def count_differences(printed: Iterable[str], known: Iterable[str]) -> int:
    """How many names are in one list alone; 0 where one of them is empty."""
    names, on_page = KnownNames(known), tuple(printed)
    if not names.names or not on_page:
        return 0
    matched = [names.match(name) for name in on_page]
    return matched.count(None) + len(set(names.names).difference(filter(None, matched)))


# Author lines of arXiv, typed by authors with TeX's accents.

_ACCENTS = {
    "'": "\u0301",
    "`": "\u0300",
    "^": "\u0302",
    '"': "\u0308",
    "~": "\u0303",
    "=": "\u0304",
    ".": "\u0307",
    "u": "\u0306",
    "v": "\u030c",
    "H": "\u030b",
    "c": "\u0327",
    "k": "\u0328",
    "r": "\u030a",
    "d": "\u0323",
}
_LETTERS = {
    "o": "ø",
    "O": "Ø",
    "l": "ł",
    "L": "Ł",
    "ss": "ß",
    "ae": "æ",
    "AE": "Æ",
    "oe": "œ",
    "OE": "Œ",
    "aa": "å",
    "AA": "Å",
    "i": "i",
    "j": "j",
}
# An accent that is a letter needs a brace or a blank after it; else it is the beginning of a longer
# command.
_ACCENTED = re.compile(
    r"""\\(?:(['`^"~=.])\s*|([uvHckrd])(?:\s+|(?=\{)))(?:\{\s*\\?([A-Za-z])\s*\}|\\?([A-Za-z]))"""
)
_TEX_LETTER = re.compile(r"\\(ss|ae|AE|oe|OE|aa|AA|[oOlLij])(?![A-Za-z])\s?")
_WITHOUT_BRACES = str.maketrans("", "", "{}")
_BRACKETED = re.compile(r"\([^()]*\)")
# Set off by a comma, they belong to the name before: "John Smith, Jr., B. Two" are two authors.
_SUFFIX_AFTER_COMMA = re.compile(r",\s*(?=(?:[JS]r\.?|I{2,3}|IV)\s*(?:[,;]|and\b|$))")
_REST = re.compile(r"et\.? al\.?|others", re.IGNORECASE)


def split_author_line(text: str) -> tuple[str, ...]:
    """Names from arXiv's author line: `A. One, B.C. Two (Lab, City) and C. Three` has three.

    Accents in TeX become letters, and initials are separated, as in names that arXiv itself has
    taken apart.
    """
    bare = _BRACKETED.sub(" ", _BRACKETED.sub(" ", one_line(plain_letters(text))))
    names = re.split(r",\s*(?:and\s+)?|;\s*|\s+and\s+", _SUFFIX_AFTER_COMMA.sub(" ", bare))
    parts = (re.sub(r"\.(?=[^\s.,])", ". ", part.strip()) for part in names)
    return tuple(one_line(part) for part in parts if part and not _REST.fullmatch(part))


def plain_letters(text: str) -> str:
    r"""The text with accents in TeX as letters: `Bal\'azs`, `{\O}bro` and `\v{S}r\'amek`; braces
    go.
    """
    if "\\" not in text:
        return text
    text = _ACCENTED.sub(_accented, text)
    text = _TEX_LETTER.sub(lambda match: _LETTERS[match[1]], text)
    return text.translate(_WITHOUT_BRACES)


def _accented(match: re.Match[str]) -> str:
    letter = match[3] or match[4]
    return unicodedata.normalize("NFC", letter + _ACCENTS[match[1] or match[2]])
