"""Year, DOI and arXiv identifier of a bibliography item."""

from __future__ import annotations

import re
from collections.abc import Sequence
from urllib.parse import unquote

from pipeline.identity.identifiers import find_arxiv_id, normalize_arxiv_id

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
