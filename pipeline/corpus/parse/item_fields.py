"""Year, DOI, arXiv identifier and venue of a bibliography item."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import chain
from urllib.parse import unquote

from pipeline.corpus.parse import bibliography_rules as rules
from pipeline.corpus.parse.bibliography_rules import (
    ADDRESS,
    ARCHIVE,
    EDGES,
    OPENING,
    PUBLISHER,
    QUOTED_TITLE,
    QUOTES,
    SENTENCE_END,
    STATE,
    YEAR,
    Italics,
    alternation,
)
from pipeline.identity.identifiers import find_arxiv_id, normalize_arxiv_id
from pipeline.identity.people import is_name, split_names

# No part of a longer number, a range of pages, an address or an identifier.
_LONE_YEAR = re.compile(r"(?:19|20)\d\d(?<![\w.:/–-]\d{4})(?![\d/–-]|\.\d)")
_DOI = re.compile(r"(?<![\d.])10\.\d{4,9}/[^\s\"“<>]{1,200}")
_WITHIN_PAGE = re.compile(r"/html/[^#]{0,1000}+#")


def find_year(text: str) -> int | None:
    """The last year that an item prints; one in brackets has precedence."""
    years = list(_LONE_YEAR.finditer(text))
    bracketed = [year for year in years if text[year.start() - 1 : year.start()] == "("]
    candidates = bracketed or years
    return int(candidates[-1][0]) if candidates else None


def find_doi(raw: str, links: Sequence[str]) -> str | None:
    """The first DOI in an item's text, else in its links, in lower case."""
    match = next(filter(None, map(_DOI.search, (raw, *map(unquote, links)))), None)
    if match is None:
        return None
    doi = match[0].rstrip(".,;:")
    if doi.count("(") < doi.count(")"):
        doi = doi.removesuffix(")").rstrip(".,;:")
    return doi.lower().replace("˙", "_")  # LaTeXML's underscore in an old font


def find_item_id(raw: str, links: Sequence[str], fields: Sequence[tuple[str, str]]) -> str | None:
    """The first arXiv identifier in an item's text, else its links, else LaTeXML's fields."""
    # arXiv writes links within a page as whole addresses: those name the paper itself.
    others = (link for link in links if not _WITHIN_PAGE.search(link))
    named = (normalize_arxiv_id(text) for name, text in fields if name in ("external", "eprint"))
    return next(filter(None, chain(map(find_arxiv_id, (raw, *others)), named)), None)


# The venue: the journal, proceedings, archive or publisher.

_PUBLISHER = re.compile(PUBLISHER)
_BEFORE_VENUE = alternation(rules.BEFORE_VENUE)
_AFTER_VENUE = alternation(rules.AFTER_VENUE, rules.VENUE_MARK)
_LONGEST_VENUE = 600
_NO_VENUE = re.compile(
    rf"(?:\(?{YEAR}[a-z]?\)?[.,;]+\s*)?(?:{ADDRESS}|[Mm]anuscript|[Vv]ersion \d|"
    rf"{YEAR}\W*$|pp?\.|\d[\d\s–-]*+(?:pages|pp)?\W*$|$"
    rf"|(?:(?:{STATE} ?){{1,2}}|(?i:n/a|thesis))[\W\d]*$)"
)
_ARCHIVE_IN_TITLE = re.compile(rf"[\s,.(\[]{ARCHIVE}")
# The archive is the venue where nothing that may be one is before it.
_ARCHIVE = re.compile(
    rf"(?:.{{0,12}}?|(?:\S+ )?{STATE}.{{0,60}}?)\b([Aa]r[Xx]iv|Co[Rr][Rr]\b|abs/|quant-ph archive)",
    re.DOTALL,
)
_VENUE_SENTENCE = re.compile(rf"{SENTENCE_END}(?=[A-Z][\w’-]+(?![\w’.-]))")
_VOLUME_AT_END = re.compile(rf"[\s,](?!{YEAR})\d+$")


def archive_in_title(text: str) -> str | None:
    """The venue "arXiv" where a title ends in that name; else None."""
    return "arXiv" if _ARCHIVE_IN_TITLE.search(text) else None


def tidy_venue(text: str, italics: Italics) -> str | None:
    """The journal, proceedings or publisher, without editors, volume, pages, place and date."""
    text = text.lstrip(EDGES + "()")[:_LONGEST_VENUE]
    if _NO_VENUE.match(text):
        return None
    archive = _ARCHIVE.match(text)
    if archive:
        return "CoRR" if archive[1][0] == "C" else "arXiv"
    words = next((words for words in italics if words in text), "")
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


def _without_publisher(venue: str) -> str:
    """The work in "Six lectures, Springer, New York", or the publisher where it is first."""
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
