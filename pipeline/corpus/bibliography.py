"""A bibliography item to its parts: title, authors, year, venue, DOI, arXiv id, as far as its style lets them be told.

A page holds some 45 items and is parsed in three milliseconds, so an item may cost a dozen microseconds: a pattern is
tried only where a plain search has found a letter of it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from urllib.parse import unquote

from pipeline.arxiv.identifiers import find_arxiv_id, normalize_arxiv_id
from pipeline.corpus.cited_names import NAMES_WITH_INITIALS, Names, names_and_year, split_authors
from pipeline.corpus.cited_tidying import arxiv_note, is_arxiv, tidy_title, tidy_venue
from pipeline.corpus.paper import BibliographyItem

_LEADING_YEAR = re.compile(r"[\s,.:;]*\(?((?:19|20)\d\d)[a-z]?\)?(?=[\s,.:;)])")

# Titles.
_QUOTED = re.compile(r"(?:^|(?<=[\s(]))[“\"]((?:“[^”]{0,200}”|[^“]){1,600}?)[,.]?[”\"]")
_COLON = re.compile(r"(?:\.|et al):\s+")
_TITLE_END = re.compile(r"[.?!](?=\s|$)")
_SENTENCE = re.compile(r"(?<=[^\W\d_]{2})\.\s+")
_TITLE_STOP = re.compile(r"[.?!]\s+(?=[^\W\d_a-z])")
_COMMA_STOP = re.compile(
    r",\s+(?=[A-Z“(\d]|preprint|to appear|submitted|volume|vol\.|no\.|pp?\.|in [A-Z]|arxiv|ph\.?d)"
)
_NO_TITLE = re.compile(r"\(?(?:private comm|unpublished|untitled|to appear|in prep|in press|submitted|preprint)", re.I)
_JOURNAL = re.compile(r"((?:(?! [a-z]{4})[^,()\d]){2,60}?),?\s+[A-Z]?\d[\d.–-]*\s*[,(:]")

# Years and identifiers.
_YEAR = re.compile(r"(?:19|20)\d\d")
_YEAR_AT_END = re.compile(r"(?<![\w.:/–-])((?:19|20)\d\d)[a-z]?\.?$")
_AFTERWORDS = (" preliminary version", " english translation", " translation in")
_DOI = re.compile(r"(?<![\d.])10\.\d{4,9}/[^\s\"<>]{1,200}")
_PLAIN_ID = re.compile(r"(?:arXiv:|abs/)(\d{4}\.\d{4,5})(?!\d)")
_OLD_NUMBER = re.compile(r"/\d{7}")
_ARCHIVE_LENGTH = 20  # "math-ph/0309136 arXiv": an old id may stand before the word
_OLD_ARCHIVE = re.compile(r"\b((?:quant|hep|cond|gr|astro|nucl|math)-(?:ph|th|lat|ex|mat|qc)) archive (\d{7})\b")


@dataclass(slots=True)
class ItemParts:
    """An item as the page lays it out: its blocks, words in italics, links, and fields that LaTeXML named."""

    key: str
    raw: str = ""
    blocks: list[str] = field(default_factory=list)
    emphases: list[str] = field(default_factory=list)
    links: list[str] = field(default_factory=list)
    fields: list[tuple[str, str]] = field(default_factory=list)


@dataclass(slots=True)
class _Told:
    """What the layout of an item tells apart; `year` only where it stands in a place of its own."""

    names: Names = ()
    title: str = ""
    venue: str = ""
    year: int | None = None


def read_item(parts: ItemParts) -> BibliographyItem:
    """The item with whatever its layout tells; a part that cannot be told is None."""
    told = _from_fields(parts) or _from_blocks(parts) or _from_text(parts)
    return BibliographyItem(
        key=parts.key,
        raw=parts.raw,
        title=tidy_title(told.title),
        authors=told.names,
        year=told.year or _find_year(parts.raw),
        venue=tidy_venue(told.venue) if told.venue else None,
        doi=_find_doi(parts),
        arxiv_id=_find_id(parts),
    )


def _from_fields(parts: ItemParts) -> _Told | None:
    """LaTeXML's own fields, where it made the bibliography from BibTeX itself."""
    if not parts.fields:
        return None
    told: dict[str, str] = {}
    for name, text in parts.fields:
        told.setdefault(name, text)
    if "title" not in told:
        return None
    venue = told.get("journal") or told.get("crossref") or told.get("booktitle") or told.get("publisher") or ""
    year = _YEAR.search(told.get("year") or told.get("date") or "")
    return _Told(split_authors(told.get("author", "")), told["title"], venue, int(year[0]) if year else None)


def _from_blocks(parts: ItemParts) -> _Told | None:
    """BibTeX styles break an item into blocks: authors, title, the rest."""
    blocks = parts.blocks if "" not in parts.blocks else [block for block in parts.blocks if block]
    if len(blocks) < 2:
        return None
    names, year = names_and_year(blocks[0])
    if not names:
        return _Told((), blocks[0], " ".join(blocks[1:]))
    rest = blocks[2] if len(blocks) == 3 else " ".join(blocks[2:])
    venue = next((text for text in parts.emphases if text in rest and not is_arxiv(text)), rest)
    return _Told(names, blocks[1], venue or arxiv_note(blocks[1]), year)


def _from_text(parts: ItemParts) -> _Told:
    """One run of text: a title in quotation marks, after a colon (LNCS), in italics (AMS), or after the names."""
    text = parts.raw
    return (
        _by_quotes(text, parts.emphases)
        or _by_colon(text)
        or _by_initials(text, parts.emphases)
        or _by_italics(text, parts.emphases)
        or _by_sentences(text)
        or _Told()
    )


def _by_quotes(text: str, emphases: list[str]) -> _Told | None:
    quoted = _QUOTED.search(text) if "“" in text or '"' in text else None
    if quoted is None:
        return None
    rest = text[quoted.end() :]
    return _Told(split_authors(text[: quoted.start()]), quoted[1], _first(emphases, rest))


def _by_colon(text: str) -> _Told | None:
    colon = _COLON.search(text) if ": " in text else None
    names = names_and_year(text[: colon.start() + 1])[0] if colon else ()
    if not colon or not names:
        return None
    rest = text[colon.end() :]
    end = _TITLE_END.search(rest)
    return _Told(names, rest[: end.end()], rest[end.end() :]) if end else None


def _by_initials(text: str, emphases: list[str]) -> _Told | None:
    """Names with initials tell where they end; what follows is a journal with its volume, or a title."""
    found = NAMES_WITH_INITIALS.match(text)
    end = found.end() if found else 0
    if not found and not text.startswith(","):  # a dash for the authors of the item before
        return None
    names, rest = split_authors(text[:end]), text[end:]
    dated = _LEADING_YEAR.match(rest)
    year, commas = None, rest.lstrip().startswith(",")
    if dated:
        year, rest = int(dated[1]), rest[dated.end() :]
    title, venue = _title_and_venue(rest.lstrip(" ,.:;"), emphases, commas=commas)
    return _Told(names, title, venue, year)


def _title_and_venue(rest: str, emphases: list[str], *, commas: bool) -> tuple[str, str]:
    """What follows the names. `commas`: a comma does, so that another ends the title, else a full stop."""
    if _NO_TITLE.match(rest):
        return "", ""
    if rest.startswith("in "):
        return "", rest
    emphasis = next((text for text in emphases if rest.startswith(text)), "")
    journal = _JOURNAL.match(rest)
    if emphasis and not (journal and len(journal[1]) <= len(emphasis)):
        return emphasis, rest[len(emphasis) :].lstrip(" ,.;")
    if journal:
        return "", journal[1]
    stops = (_COMMA_STOP, _TITLE_STOP) if commas else (_TITLE_STOP, _COMMA_STOP)
    stop = next(filter(None, (pattern.search(rest) for pattern in stops)), None)
    return (rest[: stop.end()], rest[stop.end() :]) if stop else (rest, "")


def _by_italics(text: str, emphases: list[str]) -> _Told | None:
    for emphasis in emphases:
        before, found, after = text.partition(emphasis)
        names = names_and_year(before)[0] if found and " " in emphasis else ()
        if names:
            return _Told(names, emphasis, after)
    return None


def _by_sentences(text: str) -> _Told | None:
    pieces = _SENTENCE.split(text, maxsplit=2)
    names, year = names_and_year(pieces[0]) if len(pieces) > 2 else ((), None)
    return _Told(names, pieces[1], pieces[2], year) if names else None


def _first(emphases: list[str], rest: str) -> str:
    return next((text for text in emphases if text in rest), rest)


def _find_year(text: str) -> int | None:
    """The last year in brackets, else the last at all, before what is said of other prints of the work."""
    ends = _YEAR_AT_END.search(text, max(0, len(text) - 8))
    if ends and "(19" not in text and "(20" not in text and " version" not in text:
        return int(ends[1])
    end = _end_of_first_print(text)
    last = bracketed = None
    for found in _YEAR.finditer(text, 0, end):
        start = found.start()
        if _stands_alone(text, start, found.end()):
            last = found[0]
            bracketed = last if text[start - 1 : start] == "(" else bracketed
    year = bracketed or last
    return int(year) if year else None


def _end_of_first_print(text: str) -> int:
    if " version" not in text and " translat" not in text:
        return len(text)
    lowered = text.lower()
    return min((at for words in _AFTERWORDS if (at := lowered.find(words)) >= 0), default=len(text))


def _stands_alone(text: str, start: int, end: int) -> bool:
    """Whether four digits are a year: no part of a longer number, a range of pages, an address or an identifier."""
    before, after = text[start - 1 : start], text[end : end + 2]
    if before and (before in ".:/–-" or before.isalnum()):
        return False
    if after and (after[0] in "/–-" or after[0].isdigit() or (after[0] == "." and after[1:].isdigit())):
        return False
    token = text[text.rfind(" ", 0, start) + 1 : start]
    return "/" not in token and "10." not in token


def _find_doi(parts: ItemParts) -> str | None:
    if "10." in parts.raw:
        match = _DOI.search(parts.raw)
        if match:
            return _end_of_doi(match[0])
    for link in parts.links:
        match = _DOI.search(unquote(link) if "%" in link else link) if "10." in link else None
        if match:
            return _end_of_doi(match[0])
    return None


def _end_of_doi(text: str) -> str:
    doi = text.rstrip(".,;:")
    while doi.endswith(")") and doi.count("(") < doi.count(")"):
        doi = doi[:-1].rstrip(".,;:")
    return doi.lower()


def _find_id(parts: ItemParts) -> str | None:
    at = parts.raw.lower().find("arxiv")
    if at >= 0 or "abs/" in parts.raw or _OLD_NUMBER.search(parts.raw):
        found = _id_in(parts.raw, max(0, at - _ARCHIVE_LENGTH))
        if found:
            return found
    for link in parts.links:
        found = _id_in(link, 0) if "rxiv" in link.lower() else None
        if found:
            return found
    archive = _OLD_ARCHIVE.search(parts.raw) if " archive " in parts.raw else None
    return normalize_arxiv_id(f"{archive[1]}/{archive[2]}") if archive else None


def _id_in(text: str, start: int) -> str | None:
    plain = _PLAIN_ID.search(text, start)
    return (normalize_arxiv_id(plain[1]) if plain else None) or find_arxiv_id(text[start:])
