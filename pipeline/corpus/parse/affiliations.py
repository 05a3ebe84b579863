"""Affiliations: lines of addresses to one text each, and what thanks say of where authors work.

Thanks name the place alone, `\\thanks{University of X}`, or in a sentence as IEEE's style asks for.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from itertools import zip_longest

from pipeline.corpus.parse.byline_rules import is_affiliation, kinds_of
from pipeline.corpus.parse.byline_text import (
    EDGES,
    has_letters,
    plain_line,
    split_marks,
    without_addresses,
    without_signs,
)
from pipeline.corpus.parse.parsed_page import Author
from pipeline.corpus.parse.policies import EMAIL, LINE, MARK

# "2Oslund Institute", where a contact begins with the mark that a name has; no "3M".
_LEADING_NUMBER = re.compile(r"^\d{1,2}(?=[A-Z][a-z])")
_NUMBERED = re.compile(r"\(\d\)\s*|(?<=\w)[mt]\d(?:,\s?[mt]\d)*(?:,?\sand\s|,\s|$)")
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
    rf"[(;{EMAIL}]|\b[Ee]-?mails?\b|(?<!\b[A-Z])(?<!\bUniv)(?<!\bDept)(?<!\bInst)(?<!\bSt)(?<!\bLab)(?<!\bEng)(?<!\bSci)(?<!\bInc)"
    r"(?<!\bCo)(?<!\bLtd)\.(?=\s|$)"
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
    marks = [split_marks(piece) for piece in pieces[1::2]]
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


def split_numbered(text: str) -> list[str]:
    """The affiliations of a text, each with its number or imsart's mark: "(1) X, (2) Y",
    "Xm1, Ym2".
    """
    places = [part.strip(EDGES) for part in _NUMBERED.split(text)]
    return [place for place in places if place]


def contact_affiliations(contacts: Sequence[str]) -> list[str]:
    """The affiliations of contacts: the lines of one contact may be parts of one affiliation."""
    affiliations: list[str] = []
    for contact in contacts:
        lines = [plain_line(without_addresses(line)).strip(EDGES) for line in contact.split(LINE)]
        lines = [line for line in lines if has_letters(line) and "nothing" not in kinds_of(line)]
        affiliations += join_lines([_LEADING_NUMBER.sub("", line) for line in lines])
    return affiliations


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


def add_workplaces(
    authors: Sequence[Author], thanks: Sequence[tuple[str, str | None]]
) -> list[Author]:
    """The authors with the places that their thanks name; one who has an affiliation already keeps
    that alone.

    thanks: texts with EMAIL in place of e-mails, each with the one author that it belongs to, None
    where there are several.
    """
    of_author: dict[str, list[str]] = {author.name: [] for author in authors}
    also: dict[str, list[str]] = {author.name: [] for author in authors}
    for text, owner in thanks:
        another = _ALSO_AT.match(text)
        if another and owner is not None:
            also[owner].append(_until_end(text[another.end() :]))
            continue
        for subject, place in _places(text):
            names = _names_in(subject, authors)
            if names is None:
                names = []
                if owner is not None and (not subject or is_affiliation(place)):
                    names = [owner]
            for name in names:
                of_author[name].append(place)
    return [
        author._replace(
            affiliations=(
                *(author.affiliations or dict.fromkeys(of_author[author.name])),
                *also[author.name],
            )
        )
        for author in authors
    ]


def has_sentence(text: str) -> bool:
    """Whether a text has words of a sentence, which no affiliation has."""
    return _SENTENCE.search(text) is not None


def _places(text: str) -> list[tuple[str, str]]:
    """(subject, place) for every place in a text; the subject may be empty."""
    sentences = list(_WITH.finditer(text))
    if not sentences:
        place = _until_end(_ADDRESS.split(text)[-1])
        if _SENTENCE.search(place) or not (
            is_affiliation(place) or (EMAIL in text and _can_be_place(place))
        ):
            return []
        return [("", part) for part in split_places(place)]
    places, start = [], 0
    for sentence, after in zip_longest(sentences, sentences[1:]):
        subject = text[max(start, sentence.start() - _LONGEST) : sentence.start()]
        named = _until_end(text[sentence.end() : sentence.end() + _LONGEST])
        if after is not None and sentence.end() + len(named) >= after.start():
            named = _NEXT.split(named, maxsplit=1)[0]
        start = sentence.end() + len(named)
        parts = [part.strip(_EDGES) for part in _ALSO.split(named)]
        places += [(subject, part) for part in parts if part[:1].isupper()]
    return places


def _can_be_place(text: str) -> bool:
    """Whether an unknown text can be a place before an e-mail: "Acme Analytics. E-mail: …"."""
    words = [word for word in text.split() if word not in ("of", "for", "and", "the", "&")]
    return bool(words) and all(word[0].isupper() for word in words) and not kinds_of(text)


def _until_end(text: str) -> str:
    end = _END.search(text)
    return (text[: end.start()] if end else text).strip(_EDGES)


def _names_in(subject: str, authors: Sequence[Author]) -> list[str] | None:
    """The authors whom a sentence names; None for nobody.

    They are found by surname, and by initial too where authors share a surname.
    """
    if _EVERYBODY.search(subject):
        return [author.name for author in authors]
    named = [
        author.name
        for author in authors
        if re.search(rf"\b{re.escape(_surname(author.name))}\b", subject)
    ]
    surnames = Counter(map(_surname, named))
    certain = [
        name
        for name in named
        if surnames[_surname(name)] == 1
        or re.search(rf"\b{re.escape(name[0])}[\w.\- ]*\b{re.escape(_surname(name))}\b", subject)
    ]
    return certain if named else None


def _surname(name: str) -> str:
    return (name.partition(",")[0].split() or [name])[-1]
