"""Names of people: their parts, their form, lists of them, and whether two are one person's."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from operator import eq
from typing import NamedTuple

from pipeline.identity.titles import decode_tex, title_words
from pipeline.text import MAYBE_SPACES, SPACES, one_line

# They belong to the name before them.
SUFFIXES = frozenset({"jr", "sr", "ii", "iii", "iv"})

# Small words within a family name. "and" and "et" are between names.
PARTICLES = frozenset({
    "al", "af", "auf", "av", "bin", "binti", "d", "da", "das", "de", "del", "della", "den", "der",
    "des", "di", "do", "dos", "du", "e", "el", "ibn", "la", "las", "le", "los", "st", "tau", "te",
    "ten", "ter", "v", "van", "vom", "von", "y", "i", "zu", "zum", "zur",
})  # fmt: skip

# Titles, degrees and the like beside a name: (pattern, example). \x02 is around marks in bylines.
TITLES = (
    (
        r"\b(?:Graduate |Student |Senior |Life |Associate ){0,4}"
        r"(?:Member|Fellow),?\s+(?:IEEE|ACM|AAAI|OSA|SPIE|SIAM)\b",
        "Ann Lee, Senior Member, IEEE",
    ),
    (
        r"(?:^|(?<=[\s,]))(?:Dr|Prof|Professor|Mr|Mrs|Ms)(?:\.\s*|\s+)(?=[^\W\d_])",
        "Prof. Dr. Ann Lee",
    ),
    (
        r"(?:,|(?<!\s))\s++(?:Ph\.?\s?D|M\.?\s?D|D\.?\s?Sc|M\.?\s?Sc|B\.?\s?Sc|M\.S|M\.A|MBA|MPH|D\.?Phil)\.?(?=[,;\s\x02]|$)",
        "Ann Lee, Ph.D.",
    ),
    (
        r"(?<![\s,])[\s,]++(?:\(?eds?\.\)|\(Eds?\.?\)|\beds?\.(?=\s|$))",
        "Ann Lee and Bob Roe (eds.)",
    ),
    (r"et\.?\s+al\b\.?|and others\b|\bu\.\s?a\.", "Ann Lee et al."),
)

# "et al." alone is so frequent that it has a pattern of its own. Most other lists hold no title at
# all, and to look for some letters of each is quick.
_TITLE = re.compile("|".join(pattern for pattern, _ in TITLES[:-1]))
_TITLE_LETTERS = re.compile(
    r"Member|Fellow|Dr[. ]|Prof|M[rs]s?[. ]|Ph\.?\s?D|Phil"
    r"|Sc(?:[.,;]|$)|M[DSB]|MPH|M\.(?:[SA]|\s?D|\s?Sc)|Eds?[.)]|eds?[.)]"
)
_AND_OTHERS = re.compile(TITLES[-1][0])
LETTER = r"[^\W\d_]"
_CAPITAL = r"[^\W\d_a-z]"
_INITIALS = re.compile(
    rf"(?:{_CAPITAL}\.(?:[‐‑-]?[a-z]\.)?[\s~‐‑-]*)+{_CAPITAL}?|{_CAPITAL}{{1,3}}(?:[-\s]{_CAPITAL})?"
)
# A small prefix may be before the capital.
_LOWER_PREFIX = re.compile(rf"(?:[dl]['’]|[ae]l-){_CAPITAL}")
_WORD = re.compile(
    rf"(?:[dl]['’]|[ae]l-|Mc|Mac|O['’])?{LETTER}(?:{LETTER}|[\u0300-\u036f'’`´.‐‑-])*",
    re.IGNORECASE,
)
_NICKNAME = re.compile(rf"{MAYBE_SPACES}[“\"‘(][^“”\"‘’()]{{1,30}}[”\"’)]")
# Scripts without capitals, in which a name may be one word: Chinese, Japanese, Korean.
_EAST_ASIAN = re.compile(
    r"[\u3005\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]{1,60}(?:[ ·・][\u3040-\u9fff\uac00-\ud7af]+)?"
)
_LEADING_PARTICLES = re.compile(r"^(?:[a-z]+ )+")
_COMMA = re.compile(rf"{MAYBE_SPACES},\s*+")
MOST_WORDS, _LONGEST_SUFFIX, _LONGEST_INITIALS = 7, 6, 14

_BRACKETED = re.compile(r"\([^()]*\)")
# Set off by a comma, they belong to the name before: "John Smith, Jr., B. Two" are two authors.
_SUFFIX_AFTER_COMMA = re.compile(r",\s*(?=(?:[JS]r\.?|I{2,3}|IV)\s*(?:[,;]|and\b|$))")
_BETWEEN_NAMES = re.compile(rf",\s*(?:and\s+)?|;\s*|{SPACES}and\s+")
_STUCK_INITIAL = re.compile(r"\.(?=[^\s.,])")
_OTHERS = re.compile(r"(?:et\.? )?al\.?|others", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class PersonName:
    """A name in parts: "Benjamin Van Durme, Jr." is Benjamin, Van Durme, Jr."""

    given: str
    family: str
    suffix: str = ""

    def __str__(self) -> str:
        return " ".join(filter(None, (self.given, self.family, self.suffix)))


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
    particles = [place for place in range(1, len(words)) if words[place].lower() in PARTICLES]
    start = particles[0] if particles else max(0, len(words) - 1)
    return PersonName(" ".join(words[:start]), " ".join(words[start:]), suffix)


def is_suffix(text: str) -> bool:
    """Whether a word belongs to the name before it, also after a comma: Jr., III."""
    return len(text) < _LONGEST_SUFFIX and text.strip(" .").lower() in SUFFIXES


def surname(name: str) -> str | None:
    """The last word of a name that is no suffix, folded; None for a single letter or nothing."""
    words = [word for word in title_words(name) if word not in SUFFIXES]
    return words[-1] if words and len(words[-1]) > 1 else None


def is_initials(text: str) -> bool:
    """Whether a text is nothing but initials: "J. L.", "G", "A.-B."."""
    return ("." in text or text.isupper()) and _INITIALS.fullmatch(text.strip()) is not None


def without_titles(text: str) -> str:
    """The text without academic titles, memberships, "et al." and the like."""
    if "et" in text or "others" in text or "u." in text:
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
        return len(text) <= MOST_WORDS
    before, _, suffix = text.rpartition(",")
    if before and is_suffix(suffix):
        text = text.replace(",", " ")
    words = text.split()
    proper = [word for word in words if word.strip(".") not in PARTICLES]
    if len(proper) < 2 or len(words) > MOST_WORDS:
        return False
    if not all(_WORD.fullmatch(word) for word in words):
        return False
    if any(word[0].islower() and not _LOWER_PREFIX.match(word) for word in proper):
        return False
    if all(len(word.strip(".")) < 2 for word in proper):
        return False
    return text.isupper() or not any(map(_is_acronym, proper))


def _is_acronym(word: str) -> bool:
    return word.isupper() and len(word) > 2 and "." not in word and not is_suffix(word)


def split_names(text: str) -> tuple[str, ...]:
    """The names of a list, given names first: "Ba, J. L., and Hinton, G." is J. L. Ba, G. Hinton.

    Reads "A, B and C", "A; B", "Family, Given and Family, Given", "Family, Given, B and C", and
    families with initials behind a comma.
    """
    bare = without_titles(one_line(text.replace("&", " and ").replace(" und ", " and ")))
    bare = bare.strip(" ,;:")
    if ";" in bare:
        names = []
        for piece in bare.split(";"):
            for name in piece.removeprefix(" and ").split(" and "):
                if name.strip():
                    names.append(str(parse_name(name)) if "," in name else name.strip())
        return tuple(names)
    pieces = [piece for piece in bare.removeprefix("and ").split(" and ") if piece]
    parts = [part for piece in pieces for part in map(str.strip, piece.split(",")) if part]
    if _is_inverted(pieces, parts):
        pairs = zip(parts[::2], parts[1::2], strict=True)
        return tuple(f"{given} {family}" for family, given in pairs)
    if _begins_inverted(pieces, parts):
        parts[:2] = [f"{parts[1]} {parts[0]}"]
    return _join_initials(parts)


def _is_inverted(pieces: list[str], parts: list[str]) -> bool:
    """Whether a list is "Family, Given and Family, Given".

    pieces: between "and"; parts: between "and" and commas. The last piece holds a comma, and not
    all parts are names.
    """
    if len(parts) % 2 or len(pieces) < 2 or pieces[-1].count(",") != 1:
        return False
    if any(map(is_suffix, parts)):
        return False
    return not all(" " in part for part in parts)


def _begins_inverted(pieces: list[str], parts: list[str]) -> bool:
    """Whether only the first name is inverted: "Lee, Ann, Bob Roe, and Cid Moe", or "Lee, Ann"."""
    if len(parts) < 2 or is_suffix(parts[1]):
        return False
    family, given, *others = parts
    if "." in family or " " in _LEADING_PARTICLES.sub("", family):
        return False
    if not others:
        return len(pieces) == 1
    return given.count(" ") < 2 and all(" " in part for part in others)


def _join_initials(parts: list[str]) -> tuple[str, ...]:
    """The names of a list; initials and suffixes behind a comma belong to the part before them."""
    names: list[str] = []
    for part in parts:
        if names and is_suffix(part):
            names[-1] = f"{names[-1]}, {part}"
        elif names and _follows_family(names[-1], part):
            initials = part if part.endswith(".") else f"{part}."
            names[-1] = f"{initials} {names[-1]}"
        else:
            names.append(part)
    return tuple(names)


def _follows_family(family: str, part: str) -> bool:
    if len(part) > _LONGEST_INITIALS or not is_initials(part):
        return False
    # In "CHEN, X., WU, Q." a stop tells initials from short names in capitals.
    if ("." in family) != ("." in part):
        return "." in part
    return not is_initials(family)


def split_author_line(text: str) -> tuple[str, ...]:
    """Names from arXiv's author line: `A. One, B.C. Two (Lab, City) and C. Three` has three.

    Accents in TeX become letters, and initials are separated, as in names that arXiv itself splits.
    """
    line = decode_tex(text)
    for _ in range(2):  # brackets within brackets
        line = _BRACKETED.sub(" ", line)
    names = []
    for part in _BETWEEN_NAMES.split(_SUFFIX_AFTER_COMMA.sub(" ", line)):
        name = _STUCK_INITIAL.sub(". ", part.strip())
        if name and not _OTHERS.fullmatch(name):
            names.append(one_line(name))
    return tuple(names)


# The same person.

# A word as a name has it, without the digits of a mark behind it; its accent may be apart from it.
_TOKEN = re.compile(rf"(?:{LETTER}|[\u0300-\u036f])+")
# Where a page lost the space behind a name: "Ann LeeUniversity of X".
_STUCK = re.compile(r"(?<=[a-z])(?=[A-Z])")

Words = tuple[str, ...]
"""The words of a name, folded: see `_words`."""


class NamePlace(NamedTuple):
    """Where a text prints a name, by offsets: `name` is that of metadata."""

    start: int
    end: int
    name: str


class KnownNames:
    """The names of some people, looked up in other prints of them."""

    def __init__(self, names: Iterable[str]) -> None:
        self.names = tuple(dict.fromkeys(names))
        self._by_word: defaultdict[str, list[str]] = defaultdict(list)
        for name in self.names:
            words = _words(name)
            for word in {*words[:1], *words[-1:], "".join(words)}:
                self._by_word[word].append(name)

    def find(self, text: str) -> list[NamePlace]:
        """The names in a text, which may be in a row with nothing between: "Ann Lee Bob Roe"."""
        tokens = list(self._tokens(text))
        places: list[NamePlace] = []
        start = 0
        while start < len(tokens):
            words = tuple(word for _, _, word in tokens[start : start + MOST_WORDS])
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
            start, end = token.span()
            word = "".join(title_words(token[0]))
            stuck = None if word in self._by_word else _STUCK.search(text, start, end)
            if stuck is None:
                yield start, end, word
                continue
            middle = stuck.start()
            yield start, middle, "".join(title_words(text[start:middle]))
            yield middle, end, "".join(title_words(text[middle:end]))

    def _name_at_start(self, words: Words) -> tuple[str | None, int]:
        """The name that some words begin with, and of how many of them; (None, 1) without one.

        The longest that is a name word by word; else the shortest that can be one and ends, or else
        begins, with a word of it.
        """
        if not any(word in self._by_word for word in words):
            return None, 1
        lengths = range(1, len(words) + 1)
        for length in reversed(lengths):
            name = self._first(words[:length], eq)
            if name is not None:
                return name, length
        for is_whole in (_ends_alike, _begins_alike):
            for length in lengths:
                name = self._first(words[:length], is_whole, _same_person)
                if name is not None:
                    return name, length
        return None, 1

    def _first(self, printed: Words, *conditions: Callable[[Words, Words], bool]) -> str | None:
        """The first name that shares a word with a print and fulfils the conditions with it."""
        for word in (*printed, "".join(printed)):
            for name in self._by_word.get(word, ()):
                if all(holds(_words(name), printed) for holds in conditions):
                    return name
        return None


@lru_cache(maxsize=4096)
def _words(name: str) -> Words:
    """The words of a name without accents, marks and suffixes; "J.L." is two."""
    words = title_words(without_titles(name).replace(".", ". "))
    return tuple(word for word in words if word not in SUFFIXES)


def _ends_alike(name: Words, printed: Words) -> bool:
    return name[-1:] == printed[-1:]


def _begins_alike(name: Words, printed: Words) -> bool:
    return printed[0] in name


def _same_person(first: Words, second: Words) -> bool:
    """Whether two prints can be one person's name.

    Accents, hyphens, initials, middle names and order may differ, and one of two family names may
    stand alone: Teresa Quispe Mamani is Teresa Quispe.
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
    if first[0] == second[-1] and _agree(first[1], second[0]):
        return True
    return second[0] == first[-1] and _agree(second[1], first[0])


def _shares_family(first: Words, second: Words) -> bool:
    if first[0] != second[0] or len(first[0]) < 2:
        return False
    families = {word for word in second[1:] if len(word) > 1}
    return not families.isdisjoint(first[1:])


def _agree(given: str, other: str) -> bool:
    """Whether two given names can be one: an initial, or the beginning of the longer."""
    return given.startswith(other) or other.startswith(given)


def author_keys(name: str) -> tuple[str, str]:
    """The whole name and the family name by which papers are restricted, in lower case and without
    accents.
    """
    return " ".join(title_words(name)), " ".join(title_words(parse_name(name).family))


def has_name_words(author: str, names: Sequence[str]) -> bool:
    """Whether an author's name has these words, or a word that begins with each initial."""
    words = title_words(author)
    return all(
        name in words or (len(name) == 1 and any(word.startswith(name) for word in words))
        for name in names
    )
