"""Venue of a bibliography item: the journal, proceedings, archive or publisher."""

from __future__ import annotations

import re

from pipeline.corpus.parse import bibliography_rules as rules
from pipeline.corpus.parse.bibliography_rules import (
    ACCESS,
    EDGES,
    OPENING,
    PUBLISHER,
    QUOTED_TITLE,
    QUOTES,
    SENTENCE_END,
    YEAR,
    Italics,
    alternation,
)
from pipeline.identity.people import LETTER, is_name, split_names

_PUBLISHER = re.compile(PUBLISHER)
_BEFORE_VENUE = alternation(rules.BEFORE_VENUE)
_AFTER_VENUE = alternation(rules.AFTER_VENUE, rules.VENUE_MARK)
_LONGEST_VENUE = 600
_NO_VENUE = re.compile(
    rf"(?:\(?{YEAR}[a-z]?\)?[.,;]+\s*)?(?:<?https?:|www\.|{ACCESS}|[Vv]ersion"
    r" \d|URL|doi|DOI|10\.\d{4}|"
    r"[Mm]anuscript|[Pp]rivate comm|[Pp]ersonal comm|[Uu]npublished|[Ii]n"
    rf" prep|\[?Online|{YEAR}\W*$|pp?\.|ISBN|ISSN|"
    rf"\d[\d\s–-]*+(?:pages|pp)?\W*$|$|(?i:n/a|preprint|thesis|submitted|to appear|in"
    rf" press)[\W\d]*$)"
)
_ARCHIVE_IN_TITLE = re.compile(r"[\s,.(\[]ar[Xx]iv(?::\s*\d|:[a-z-]+/\d|\s[Pp]reprint)")
_ARCHIVE_MARKS = ("rXiv", "rxiv", "CoRR", "Corr", "abs/", "quant-ph archive")
# The archive is the venue where nothing that may be one is before it.
_ARCHIVE = re.compile(
    r"(?:.{0,12}?|(?:(?:\S+"
    r" )?(?:[Pp]re|[Ee]-?)print|[Aa]vailable|[Uu]npub|[Ss]ubmitted|[Mm]anus|[Tt]ech).{0,60}?)"
    r"\b([Aa]r[Xx]iv|Co[Rr][Rr]\b|abs/|quant-ph archive)",
    re.DOTALL,
)
_SERIES_BEFORE = re.compile(
    rf"{LETTER}{{3}}.{{0,600}}(?:[Vv]ol(?:\.|ume)|[Nn]o\.|[Nn]umber) ?\w{{1,20}} (?:of|in) $"
)
_VENUE_SENTENCE = re.compile(rf"{SENTENCE_END}(?=[A-Z][\w’-]+(?![\w’.-]))")
_VOLUME_AT_END = re.compile(rf"[\s,](?!{YEAR})\d+$")


def archive_in_title(text: str) -> str | None:
    """The venue "arXiv" where a title ends in that name; else None."""
    return "arXiv" if "rXiv" in text and _ARCHIVE_IN_TITLE.search(text) else None


def tidy_venue(text: str, italics: Italics) -> str | None:
    """The journal, proceedings or publisher, without editors, volume, pages, place and date."""
    text = text.lstrip(EDGES + "()")[:_LONGEST_VENUE]
    if _NO_VENUE.match(text):
        return None
    archive = _ARCHIVE.match(text) if any(mark in text for mark in _ARCHIVE_MARKS) else None
    if archive:
        return "CoRR" if archive[1][0] == "C" else "arXiv"
    words = next(
        (words for words in italics if words in text and _may_begin(text[: text.find(words)])), ""
    )
    venue = words or text
    before = _BEFORE_VENUE.match(venue)
    while before and (before.lastgroup != "editors" or is_name(split_names(before[0])[0])):
        venue = venue[before.end() :]
        if _NO_VENUE.match(venue):
            return None
        before = _BEFORE_VENUE.match(venue)
    after = _AFTER_VENUE.search(venue, 2)
    if after:
        venue = venue[: after.start()]
    if not words and ". " in venue and "." not in venue.split(" ", 1)[0]:
        venue = _VENUE_SENTENCE.split(venue, maxsplit=1)[0]
    quoted = QUOTED_TITLE.match(venue) if venue[:1] in OPENING else None
    if quoted:
        venue = quoted[0].strip(QUOTES + EDGES)
    if venue[-1:].isdigit() and text[:2] not in ("In", "in"):
        venue = _VOLUME_AT_END.sub("", venue)
    return _close(_without_publisher(venue.strip(EDGES)), text)


def _may_begin(before: str) -> bool:
    """Whether a venue may begin behind a text: not within a name or a book's series."""
    if before and before.rstrip()[-1:] not in ",.:;)(" and not before.endswith(("n ", "of ")):
        return False
    return not _SERIES_BEFORE.search(before)


def _without_publisher(venue: str) -> str:
    """The work in "Six lectures, Springer, New York", or the publisher where it is first."""
    if ", " not in venue or not _PUBLISHER.search(venue):
        return venue
    pieces = venue.split(", ")
    publishers = (number for number, piece in enumerate(pieces) if _PUBLISHER.search(piece))
    first = next(publishers, len(pieces))
    return ", ".join(pieces[: first or 1])


def _close(venue: str, text: str) -> str | None:
    """The venue, its bracket closed or removed; None where no word is left."""
    if venue.count("(") > venue.count(")"):
        venue = f"{venue})" if f"{venue})" in text else venue[: venue.rindex("(")].strip(EDGES)
    if "." in venue and f"{venue}." in text:
        venue = f"{venue}."
    return venue if any(letter.isalpha() for letter in venue) else None
