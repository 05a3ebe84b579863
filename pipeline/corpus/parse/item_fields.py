"""Year, DOI, arXiv identifier and venue of a bibliography item."""

from __future__ import annotations

import re
from collections.abc import Sequence
from urllib.parse import unquote

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
from pipeline.identity.identifiers import find_arxiv_id, normalize_arxiv_id
from pipeline.identity.people import LETTER, is_name, split_names

# No part of a longer number, a range of pages, an address or an identifier.
_LONE_YEAR = re.compile(r"(?:19|20)\d\d(?<![\w.:/–-]\d{4})(?![\d/–-]|\.\d)")
_AFTERWORDS = (" preliminary version", " english translation", " translation in")
_DOI = re.compile(r"(?<![\d.])10\.\d{4,9}/[^\s\"“<>]{1,200}")
_PLAIN_ID = re.compile(r"(?:arXiv[:,\s(]{1,4}|abs/)(\d{4}\.\d{4,5})(?!\d)")
_OLD_NUMBER = re.compile(r"/\d{7}")
_WITHIN_PAGE = re.compile(r"/html/[^#]{0,1000}+#")
_ARCHIVE_LENGTH = 20  # "math-ph/0309136 arXiv": an old id may be before the word
_OLD_ARCHIVE = re.compile(
    r"\b((?:quant|hep|cond|gr|astro|nucl|math)-(?:ph|th|lat|ex|mat|qc)) archive (\d{7})\b"
)


def find_year(text: str) -> int | None:
    """The last year of the work's first print; one in brackets has precedence."""
    years = [
        year
        for year in _LONE_YEAR.finditer(text, 0, _end_of_first_print(text))
        if not _in_address(text, year)
    ]
    bracketed = [year for year in years if text[year.start() - 1 : year.start()] == "("]
    candidates = bracketed or years
    return int(candidates[-1][0]) if candidates else None


def _in_address(text: str, year: re.Match[str]) -> bool:
    """Whether a year is in an address or an identifier."""
    token = text[text.rfind(" ", 0, year.start()) + 1 : year.start()]
    return "/" in token or "10." in token


def _end_of_first_print(text: str) -> int:
    if " version" not in text and " translat" not in text:
        return len(text)
    places = map(text.lower().find, _AFTERWORDS)
    return min((place for place in places if place >= 0), default=len(text))


def find_doi(raw: str, links: Sequence[str], title: str | None) -> str | None:
    """The first DOI in an item's text, else in its links, in lower case."""
    if "10." in raw:
        match = _DOI.search(raw)
        if match:
            # The title may follow the DOI without a space.
            start = raw.find(title, match.start(), match.end() + len(title)) if title else -1
            is_glued = match.start() < start < match.end()
            return _end_of_doi(raw[match.start() : start] if is_glued else match[0])
    for link in links:
        if "10." in link:
            match = _DOI.search(unquote(link) if "%" in link else link)
            if match:
                return _end_of_doi(match[0])
    return None


def _end_of_doi(text: str) -> str:
    doi = text.rstrip(".,;:")
    while doi.endswith(")") and doi.count("(") < doi.count(")"):
        doi = doi[:-1].rstrip(".,;:")
    return doi.lower().replace("˙", "_")  # LaTeXML's underscore in an old font


def find_item_id(raw: str, links: Sequence[str], fields: Sequence[tuple[str, str]]) -> str | None:
    """The first arXiv identifier in an item's text, else its links, else LaTeXML's fields."""
    at = raw.lower().find("arxiv")
    if at >= 0 or "abs/" in raw or "[" in raw or _OLD_NUMBER.search(raw):
        arxiv_id = _id_in(raw, max(0, at - _ARCHIVE_LENGTH))
        if arxiv_id:
            return arxiv_id
    for link in links:
        # arXiv writes links within a page as whole addresses: those name the paper itself.
        names_paper = "rxiv" in link.lower() and not _WITHIN_PAGE.search(link)
        arxiv_id = _id_in(link, 0) if names_paper else None
        if arxiv_id:
            return arxiv_id
    for name, text in fields:
        arxiv_id = normalize_arxiv_id(text) if name in ("external", "eprint") else None
        if arxiv_id:
            return arxiv_id
    archive = _OLD_ARCHIVE.search(raw) if " archive " in raw else None
    return normalize_arxiv_id(f"{archive[1]}/{archive[2]}") if archive else None


def _id_in(text: str, start: int) -> str | None:
    plain = _PLAIN_ID.search(text, start)
    arxiv_id = normalize_arxiv_id(plain[1]) if plain else None
    return arxiv_id or find_arxiv_id(text[start:])


# The venue: the journal, proceedings, archive or publisher.

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
    if archive := _ARCHIVE.match(text):
        return "CoRR" if archive[1][0] == "C" else "arXiv"
    words = next(
        (words for words in italics if words in text and _may_begin(text[: text.find(words)])), ""
    )
    venue = words or text
    while (before := _BEFORE_VENUE.match(venue)) and (
        before.lastgroup != "editors" or is_name(split_names(before[0])[0])
    ):
        venue = venue[before.end() :]
        if _NO_VENUE.match(venue):
            return None
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
    if before.rstrip()[-1:] not in ",.:;)(" and not before.endswith(("n ", "of ")):
        return False
    return not (before.endswith(("of ", "in ")) and _SERIES_BEFORE.search(before))


def _without_publisher(venue: str) -> str:
    """The work in "Six lectures, Springer, New York", or the publisher where it is first."""
    if ", " not in venue or not _PUBLISHER.search(venue):
        return venue
    pieces = venue.split(", ")
    first = next(number for number, piece in enumerate(pieces) if _PUBLISHER.search(piece))
    return ", ".join(pieces[: first or 1])


def _close(venue: str, text: str) -> str | None:
    """The venue, its bracket closed or removed; None where no word is left."""
    if venue.count("(") > venue.count(")"):
        venue = f"{venue})" if f"{venue})" in text else venue[: venue.rindex("(")].strip(EDGES)
    if "." in venue and f"{venue}." in text:
        venue = f"{venue}."
    return venue if any(map(str.isalpha, venue)) else None
