"""Affiliations: what tells them from remarks, their lines, and what thanks say of them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache

from pipeline.corpus.parse.byline_text import EDGES, has_letters
from pipeline.corpus.parse.policies import CELL, INNER
from pipeline.identity.people import KnownNames, surname
from pipeline.identity.titles import title_words

# Of a whole organisation; of a part of one, or of either.
_ORGANISATION = re.compile(
    r"univers|\buniv\b|\bcollege\b(?! park| station)|academ|polytec|politec|hochschule|école\b"
    r"|institut|\binc\b|\bcorp(?:\b|orat)|\bltd\b|\bllc\b|gmbh|foundation|hospital|clinic|ministry|observator|\bresearch\b"
    r"|\btechnologies\b|(?-i:\b\w*AI\b)|\w\.(?:ai|com|io|org|net)\b|^(?:independent|unaffiliated)\b"
    r"|大学|大學|学院|學院|研究|公司|实验室|대학|연구",
    re.IGNORECASE,
)
_UNIT = re.compile(
    r"school|\bdep(?:t|artm|\b)|dipart|\blabs?\b|laborat|\bcent(?:er|re|ro)\b|facult|division|\bgroup\b|\bteam\b|\bunit\b"
    r"|\bprogramme?\b|campus|\bchair of|scien|engineering\b|mathemati|informati|computing\b"
    r"|technolog|linguisti|physics|statisti|economics|psycholog|biolog|chemistry|philosophy"
    r"|robotics|\bstudies\b|^(?:cs|ece|eecs|cse)\b",
    re.IGNORECASE,
)
# What a remark begins with that has few words in small letters, and what a role ends in.
_REMARK = re.compile(
    r"\W{0,9}(?:(?:these|this|all|both|two|the|our|first|last|lead|main|primary|core|student|technical"
    r"|senior|joint(?:ly)?|shared?|co-?|authors?|have|has|are|is|denotes?|indicates?)\W{1,9}){0,9}"
    r"(?:equal|correspond|contribut|co-?first|author|advis|supervis|leads?\b|leader|alphabetic"
    r"|(?:project|team) (?:lead|page|web)|listing|order|now at|curren|formerly|deceased|on leave"
    r"|while|during|work(?:ed)? (?:was|done|during|while|perform|conduct|at)"
    r"|intern(?:ed|ship|s)?\b|previously|present address|manuscript|thanks|e-?mail|contact\b"
    r"|preprint|accept|copyright|©|to appear|under review|support|fund(?:s|ed)|anonymous"
    r"|(?:affiliation|address)s?$|home ?page|key ?words|(?:website|code|url)\W*$|et al|others$"
    r"|(?:\d\d?(?:st|nd|rd|th)? )?[a-z]+\.? (?:\d\d?, )?(?:19|20)\d\d$)"
    r"|.{0,60}\b(?:students?|professors?|fellow|candidate|lecturer|member|scientist|engineer"
    r"|post-?doc\w*|(?<!independent )researcher)(?:,? (?:IEEE|ACM|AAAI))?\W*$",
    re.IGNORECASE,
)
# The end of an address: a town and a country.
_ADDRESS = re.compile(r", [^\W\d_a-z][^,]{1,40}$")
_LONG_WORD = re.compile(r"(?<![\w-])[^\W\d_]{4,}")
# No place is longer; what a hostile page has there is not searched whole.
_LONGEST = 600
GAP = re.compile(rf"(?<!\s)(?=\s*[\u2001\u2003\u3000])\s++|[ \xa0]{{2,}}|{CELL}")
_BETWEEN_PLACES = re.compile(r"; | & |,? and (?:the )?")
# One that ends no abbreviation.
_FULL_STOP = re.compile(r"(?<=\w{5})\.$")
_WITH = re.compile(
    r"\b(?:is|are) (?:(?:also|both|currently|now|jointly) )*with (?:the )?(?=[^\W\d_a-z])"
)
_ALSO = re.compile(r",? and (?:is |are )?(?:also )?with (?:the )?")
BEFORE_PLACE = re.compile(r"\b(?:[Aa]lso (?:at|with) (?:the )?(?=[^\W\d_a-z])|[Aa]ddress: )")
# A full stop ends a place unless a capital, or one of the words that places are cut short to, is
# before it.
_END = re.compile(
    r"[(;]|\S{1,80}@|\b[Ee]-?mails?\b|(?<!\b[A-Z])(?<!\bUniv)(?<!\bDept)(?<!\bInst)(?<!\bSt)(?<!\bLab)"
    r"(?<!\bInc)(?<!\bCo)(?<!\bLtd)\.(?=\s|$)"
)
_EDGES = " .,:;"


@lru_cache(maxsize=4096)
def is_organisation(text: str) -> bool:
    """Whether the words of a text name a whole organisation."""
    return _ORGANISATION.search(text[:_LONGEST]) is not None


def is_unit(text: str) -> bool:
    """Whether the words of a text name a part of an organisation."""
    return _UNIT.search(text[:_LONGEST]) is not None


@lru_cache(maxsize=4096)
def is_remark(text: str) -> bool:
    """Whether a text says anything of authors but their place, by its beginning, by a role at its
    end, or by its many words in small letters.
    """
    words = _LONG_WORD.findall(text[:_LONGEST])
    small = 2 * sum(map(str.islower, words))
    is_short = len(words) <= 3 and not (is_organisation(text) or is_unit(text))
    is_prose = len(words) > 1 and (small >= len(words) if is_short else small > len(words) > 3)
    return is_prose or _REMARK.match(text[:_LONGEST]) is not None


def is_place(text: str) -> bool:
    """Whether the words of a text say that it is where somebody works."""
    has_word = is_organisation(text) or is_unit(text) or _is_address(text)
    return has_word and not is_remark(text)


def is_place_alone(text: str) -> bool:
    """Whether a text is a place and no sentence: no long word of it is in small letters."""
    return is_place(text) and not any(map(str.islower, _LONG_WORD.findall(text)))


def split_places(text: str) -> list[str]:
    """The places of a text, split at semicolons, or at "and" between organisations."""
    places = list[str]()
    for part in text.replace("()", "").split(";"):
        parts = _BETWEEN_PLACES.split(part)
        places += parts if all(map(is_organisation, parts)) else [part]
    return [place.strip(_EDGES) for place in places if has_letters(place) and not is_remark(place)]


def join_lines(runs: Sequence[Sequence[str]]) -> list[str]:
    """Runs of lines of an address as places; in a run a second organisation begins another, after
    its unit, and what follows a town and a country. A run that is a unit alone goes on in the next.
    """
    places: list[list[str]] = []
    has_organisation = is_ended = False
    for run in runs:
        is_begun = bool(places) and not has_organisation and is_unit(places[-1][0])
        is_begun = is_begun and "," not in places[-1][0]
        for number, line in enumerate(run):
            is_second = is_organisation(line) or (
                is_unit(line) and any(map(is_organisation, run[number + 1 :]))
            )
            is_town = " " not in line or (line.count(",") == 1 and _is_address(line))
            is_second = (is_second and has_organisation) or (is_ended and not is_town)
            if is_second or (number == 0 and not is_begun):
                places.append([])
                has_organisation = False
            places[-1].append(_FULL_STOP.sub("", line.strip(EDGES)))
            # What no word tells is an organisation, unless it is an acronym of a unit: LTI, umiacs.
            is_named = line[:1].isupper() and not (line.isupper() or is_unit(line))
            is_whole = is_organisation(line) and "nstitut" not in line
            has_organisation |= is_whole or (is_named and len(places[-1]) == 1)
            is_ended = has_organisation and _is_address(line)
    return [", ".join(place) for place in places]


def _is_address(text: str) -> bool:
    """Whether a text ends in a town and a country."""
    end = _ADDRESS.search(text)
    return end is not None and not (is_organisation(end[0]) or is_unit(end[0]))


def share(count: int, runs: Sequence[Sequence[str]]) -> list[list[str]]:
    """The places of each of some people who have some runs of lines in common: the only place is
    everybody's, as many as people are one each. Empty where the lines do not tell.
    """
    columns = [list(filter(has_letters, GAP.split(line))) for run in runs for line in run]
    if count > 1 and columns and all(len(cells) == count for cells in columns):
        return [
            join_lines([INNER.join(cells).split(INNER)]) for cells in zip(*columns, strict=True)
        ]
    if count == 1:
        return [join_lines(runs)]
    places = [place for run in runs for place in join_lines([run])]
    if len(places) == 1:
        parts = _BETWEEN_PLACES.split(places[0])
        if len(parts) == count and all(
            is_organisation(part) or _is_address(part) for part in parts
        ):
            places = parts
        parts = places[0].split(", ")
        if len(parts) == count and all(map(is_organisation, parts)):
            places = parts
    if len(places) == count:
        return [[place] for place in places]
    return [places] * count if len(places) == 1 else []


def workplaces(text: str, owner: str | None, known: KnownNames) -> Iterator[tuple[str, str]]:
    """(name, place) of everybody whose place a thanks note states.

    Thanks name the place alone, or in a sentence as IEEE's style asks for: "A. Lee and B. Roe are
    with the University of X". owner: the one author that it belongs to, None where there are
    several.
    """
    owners = [] if owner is None else [owner]
    subject, *sentences = _WITH.split(text)
    if not sentences:
        place = _until_end(BEFORE_PLACE.split(text)[-1])
        # "Acme Analytics. E-mail: …"
        is_title = "@" in text and place.istitle() and not is_remark(place)
        if is_title or is_place_alone(place):
            yield from ((name, part) for part in split_places(place) for name in owners)
    for rest in sentences:
        words = title_words(subject)
        people: list[str] = []
        end = len(subject)
        for printed in reversed(known.find(subject)):
            if end - printed.end > len(", and "):
                break
            people.append(printed.name)
            end = printed.start
        by_surname = [name for name in known.names if surname(name) in words]
        if "authors" in words:
            people = [*known.names]
        elif not people:
            people = by_surname if len(by_surname) == 1 else owners[len(by_surname) :]
        following = known.find(rest)
        place = _until_end(rest[: following[0].start] if following else rest)
        place = place.removesuffix(" and").strip(_EDGES)
        parts = [part.strip(_EDGES) for part in _ALSO.split(place) if part[:1].isupper()]
        yield from ((name, part) for part in parts for name in people)
        subject = rest


def _until_end(text: str) -> str:
    end = _END.search(text, 0, _LONGEST)
    return text[: end.start() if end else _LONGEST].strip(_EDGES)
