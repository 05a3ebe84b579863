"""Affiliations: what tells them from remarks, their lines, and what thanks say of them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache

from pipeline.corpus.parse.byline_text import EDGES, has_letters
from pipeline.corpus.parse.policies import CELL, INNER
from pipeline.identity.people import PARTICLES, KnownNames

# Of a whole organisation; of a part of one, or of either.
_ORGANISATION = re.compile(
    r"univers|\bcollege\b(?! park)|academ|institut|polyt|\binc\b|\bcorp|foundation|hospital"
    r"|\bresearch\b|(?-i:\b\w*AI\b)|^independent\b|大学|大學|研究",
    re.IGNORECASE,
)
_UNIT = re.compile(
    r"school|\bdep(?:t|artm)|\blabs?\b|laborat|\bcent(?:er|re)\b|facult|division|\bgroup\b"
    r"|\bteam\b|scien|engineering\b|mathemati|linguisti|physics",
    re.IGNORECASE,
)
# Remarks and roles that are no prose.
_REMARK = re.compile(
    r"equal|correspond|contribut|\bauthors?\b|\bleads?\b|deceased|\bwork(?:ed)?\b|received"
    r"|\b(?:now|present|current|former)(?:ly)? (?:at|address)\b|\b(?:also|intern|visiting|behalf)\b"
    r"|\b(?:supported|funded)\b|\bmembers?\b|e-?mail|\bet al\b|manuscript|:(?=\s)"
    r"|\b(?:professor|student|fellow|engineer|scientist)s?\W*$"
    r"|^\W*affiliations?\W*$|^\W*(?:\d+ )?[a-z]+\.? (?:\d+, )?(?:19|20)\d\d$",
    re.IGNORECASE,
)
# The end of an address: a town and a country.
_ADDRESS = re.compile(r", [^\W\d_a-z][^,]{1,40}$")
_LONG_WORD = re.compile(r"(?<![\w-])[^\W\d_]{4,}")
# No place is longer; what a hostile page has there is not searched whole.
_LONGEST = 600
GAP = re.compile(rf"(?<!\s)(?=\s*[\u2001\u2003\u3000])\s++|[ \xa0]{{2,}}|{CELL}")
_BETWEEN_PLACES = re.compile(r"; | & |,? and (?:the )?")
_WITH = re.compile(
    r"\b(?:is|are) (?:(?:also|both|currently|now|jointly) )*with (?:the )?(?=[^\W\d_a-z])"
)
_BRACKETS = re.compile(r"\([^()]{0,400}\)")
_ALSO = re.compile(r",? and (?:is |are )?(?:also )?with (?:the )?")
_END = re.compile(r"[({;]|\S{1,80}@|\b[Ee]-?mails?\b|(?<=\w{5})\.(?=\s|$)")
_EDGES = " .,:;\n\xa0"


@lru_cache(maxsize=4096)
def is_organisation(text: str) -> bool:
    """Whether the words of a text name a whole organisation."""
    return _ORGANISATION.search(text[:_LONGEST]) is not None


def names_place(text: str) -> bool:
    """Whether the words of a text name an organisation or a part of one."""
    return is_organisation(text) or _UNIT.search(text[:_LONGEST]) is not None


@lru_cache(maxsize=4096)
def is_remark(text: str) -> bool:
    """Whether a text says anything of authors but their place: by one of a few words, or by its
    many words in small letters.
    """
    words = _LONG_WORD.findall(text[:_LONGEST])
    has_word = names_place(text)
    is_long = len(words) > (3 if has_word else 1)
    is_prose = is_long and 2 * sum(map(str.islower, words)) + (not has_word) > len(words)
    return is_prose or _REMARK.search(text[:_LONGEST]) is not None


def is_place(text: str) -> bool:
    """Whether the words of a text say that it is where somebody works."""
    return bool(names_place(text) or _ADDRESS.search(text)) and not is_remark(text)


def places_of_note(note: str) -> list[str]:
    """The places that a note names; none of a part with a long word in small letters, as a sentence
    has. What stands before an e-mail is a place by its form alone.
    """
    places: list[str] = []
    for part in note.split(";"):
        text = _until_end(part)
        small = {word for word in _LONG_WORD.findall(text) if word.islower()}
        if ("@" in note or is_place(text)) and not (is_remark(text) or small - PARTICLES):
            parts = _BETWEEN_PLACES.split(text)
            places += parts if all(map(is_organisation, parts)) else [text]
    return list(filter(has_letters, places))


def _until_end(text: str) -> str:
    return _END.split(text[:_LONGEST], maxsplit=1)[0].strip(_EDGES)


def stated_places(text: str, known: KnownNames) -> Iterator[tuple[str, str]]:
    """(name, place) of everybody of whom thanks state it as IEEE's style asks for: "A. Lee and
    B. Roe are with the University of X".
    """
    subject, *sentences = _WITH.split(_BRACKETS.sub(" ", text))
    people = known.find(subject) if sentences else []
    for rest in sentences:
        following = known.find(rest)
        place = _until_end(rest[: following[0].start] if following else rest)
        parts = [part.strip(_EDGES) for part in _ALSO.split(place) if part[:1].isupper()]
        yield from ((person.name, part) for part in parts for person in people)
        people = following


def join_lines(lines: Sequence[str]) -> list[str]:
    """The lines of one address or several as places: a second organisation begins another."""
    places: list[list[str]] = [[]]
    for line in filter(has_letters, GAP.split(CELL.join(lines))):
        if is_organisation(line) and any(map(is_organisation, places[-1])):
            places.append([])
        places[-1].append(line.strip(EDGES))
    return [", ".join(place) for place in places]


def share(count: int, runs: Sequence[Sequence[str]]) -> list[list[str]]:
    """The places of each of some people who have some runs of lines in common: the only place is
    everybody's, as many as people are one each. Empty where the lines do not tell.
    """
    columns = [list(filter(has_letters, GAP.split(line))) for run in runs for line in run]
    if count > 1 and columns and all(len(cells) == count for cells in columns):
        return [join_lines(INNER.join(cells).split(INNER)) for cells in zip(*columns, strict=True)]
    places = [place for run in runs for place in join_lines(run)]
    kinds = {"nivers" in place for place in places}
    if count == 2 and (len(runs) > 1 or len(kinds) > 1):
        return []  # maybe an institute above its university, or two addresses of both
    if len(places) == 1:
        parts = re.split(r", | & | and ", places[0])
        if len(parts) == count and all(map(is_organisation, parts)):
            places = parts
    if len(places) == count:
        return [[place] for place in places]
    return [places] * count if count == 1 or len(places) == 1 else []
