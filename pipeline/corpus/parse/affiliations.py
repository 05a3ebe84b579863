"""Affiliations: lines of addresses to one text each, and what thanks say of where authors work.

Thanks name the place alone, `\\thanks{University of X}`, or in a sentence as IEEE's style asks for.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import zip_longest

from pipeline.corpus.parse.byline_rules import is_affiliation, kinds_of
from pipeline.corpus.parse.byline_text import (
    EDGES,
    has_letters,
    marks_of,
    without_signs,
)
from pipeline.corpus.parse.policies import EMAIL, MARK
from pipeline.identity.people import surname
from pipeline.identity.titles import title_words

LEADING_LABEL = re.compile(r"\s*[(\[]?(\d{1,2}|[a-z])[)\].]?\s*(?=[^\W\d_a-z])")
"""A number or letter that was meant as a mark before a place: "1 University of X", "2]CWI"."""
_LEADING_AND = re.compile(r"^(?:and|&)\s+")
_TRAILING_AND = re.compile(r"(?:,?(?<!\s)\s++and|(?<!\s)\s++&)$")
_FULL_STOP = re.compile(r"(?<=\w{5})\.$")
_WITH = re.compile(
    r"\b(?:is|are) (?:(?:also|both|currently|now|jointly) )*with (?:the )?(?=[^\W\d_a-z])"
)
_ALSO = re.compile(r",? and (?:is |are )?(?:also )?with (?:the )?")
_ALSO_AT = re.compile(
    r"^(?:[Aa]lso|[Aa]dditionally) (?:at|with|affiliated (?:with|to)) (?:the )?(?=[^\W\d_a-z])"
)
_BETWEEN_PLACES = re.compile(r";|,\s++and\s++(?:the\s++)?")
# A full stop ends a place unless a capital, or one of the words that places are cut short to, is
# before it.
_END = re.compile(
    rf"[(;{EMAIL}]|\b[Ee]-?mails?\b|(?<!\b[A-Z])(?<!\bUniv)(?<!\bDept)(?<!\bInst)(?<!\bSt)(?<!\bLab)"
    r"(?<!\bInc)(?<!\bCo)(?<!\bLtd)\.(?=\s|$)"
)
# Words that a sentence has and a place has not.
_SENTENCE = re.compile(
    r"\b(?:we|our|us|is|are|was|were|has|have|had|by|this|these|that|who|thanks?|grants?|support(?:ed|s)?|provided|"
    r"acknowledges?|work(?:ed|s)?|preprint|paper)\b",
    re.IGNORECASE,
)
_ADDRESS = re.compile(r"\b[Aa]ddress: ")
# Where a place ended that ran on into the next sentence, as "U.S.A." ends nothing by itself.
_NEXT = re.compile(r"\.\s(?=[^\W\d_a-z])")
# No list of authors and no place is longer; what a hostile page has there is not searched whole
# each time.
_LONGEST = 400
_EVERYBODY = re.compile(r"\bauthors\b", re.IGNORECASE)
_EDGES = " .,:;"


def without_full_stop(text: str) -> str:
    """The text without a full stop that ends no abbreviation."""
    return _FULL_STOP.sub("", text)


def split_marked(line: str) -> list[tuple[frozenset[str], str]]:
    """(marks, text) of the affiliations in a line; marks are before them, or all behind."""
    pieces = line.split(MARK)
    texts = [_ALSO_AT.sub("", without_signs(piece).strip(EDGES)) for piece in pieces[::2]]
    texts[:-1] = [_TRAILING_AND.sub("", text) for text in texts[:-1]]
    marks = [frozenset(marks_of(piece)) for piece in pieces[1::2]]
    if marks and not texts[-1] and all(texts[:-1]):
        return list(zip(marks, texts, strict=False))
    places: list[tuple[frozenset[str], str]] = [(frozenset(), texts[0])] if texts[0] else []
    pending = frozenset[str]()
    for mark, text in zip(marks, texts[1:], strict=False):
        pending |= mark
        if has_letters(text):
            places.append((pending, text))
            pending = frozenset()
    return places


def split_places(text: str) -> list[str]:
    """The affiliations of a text, split at semicolons or "and" between organisations."""
    parts = [part.strip() for part in _BETWEEN_PLACES.split(text)]
    whole = all(
        not kinds_of(part).isdisjoint({"organisation", "institute", "location"}) for part in parts
    )
    return parts if whole else [text]


def join_lines(lines: Sequence[str]) -> list[str]:
    """Lines of an address as affiliations; a second organisation begins another."""
    kinds = [kinds_of(line) for line in lines]
    affiliations: list[list[str]] = []
    seen: set[str] = set()
    ended = True
    for place, (line, of_line) in enumerate(zip(lines, kinds, strict=True)):
        bare = line.strip(EDGES)
        text = _LEADING_AND.sub("", bare)
        second = "organisation" in seen and not of_line.isdisjoint({"organisation", "institute"})
        after_location = "location" in seen and ("location" not in of_line or "," in text)
        of_next = (
            "unit" in of_line
            and "organisation" in seen
            and any("organisation" in below for below in kinds[place + 1 :])
        )
        if ended or second or after_location or of_next or text != bare:
            affiliations.append([])
            seen = set()
            # What no rule knows is an organisation, unless it is an acronym of a unit: LTI, umiacs.
            if not of_line and text[:1].isupper() and not text.isupper():
                seen.add("organisation")
        ended = _TRAILING_AND.search(text) is not None
        affiliations[-1].append(without_full_stop(_TRAILING_AND.sub("", text)))
        seen |= of_line
    return [", ".join(filter(None, parts)) for parts in affiliations]


def workplaces(text: str, owner: str | None, names: Sequence[str]) -> Iterator[tuple[str, str]]:
    """(name, place) of everybody whose place a thanks note states.

    text: with EMAIL in place of e-mails. owner: the one author that it belongs to, None where there
    are several.
    """
    sentences = list(_WITH.finditer(text))
    if not sentences:
        also = _ALSO_AT.match(text)
        place = _until_end(text[also.end() :] if also else _ADDRESS.split(text)[-1])
        # "Acme Analytics. E-mail: …"
        is_title = EMAIL in text and place.istitle() and not kinds_of(place)
        is_place = also or is_title or is_affiliation(place)
        if owner is not None and is_place and not _SENTENCE.search(place):
            yield from ((owner, part) for part in split_places(place))
    start = 0
    for sentence, after in zip_longest(sentences, sentences[1:]):
        subject = text[max(start, sentence.start() - _LONGEST) : sentence.start()]
        place = _until_end(text[sentence.end() : sentence.end() + _LONGEST])
        if after is not None and sentence.end() + len(place) >= after.start():
            place = _NEXT.split(place, maxsplit=1)[0]
        start = sentence.end() + len(place)
        people = _names_in(subject, names)
        if not people and owner is not None and is_affiliation(place):
            people = [owner]
        for part in _ALSO.split(place):
            if part[:1].isupper():
                yield from ((name, part.strip(_EDGES)) for name in people)


def has_sentence(text: str) -> bool:
    """Whether a text has words of a sentence, which no affiliation has."""
    return _SENTENCE.search(text) is not None


def _until_end(text: str) -> str:
    end = _END.search(text)
    return (text[: end.start()] if end else text).strip(_EDGES)


def _names_in(subject: str, names: Sequence[str]) -> list[str]:
    """The names that a sentence is about, by surname; by initial too where two share that."""
    if _EVERYBODY.search(subject):
        return list(names)
    words = title_words(subject)
    named = [name for name in names if surname(name) in words]
    return [
        name
        for name in named
        if sum(surname(name) == surname(other) for other in named) == 1
        or not {name[0].lower(), *title_words(name)[:1]}.isdisjoint(words)
    ]
