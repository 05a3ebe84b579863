"""A bibliography item to its parts: title, authors, year, venue, DOI, arXiv id, as far as its style lets them be told.

Not here: finding items in HTML, and which paper of the corpus an item is.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import lru_cache

from pipeline.corpus.identifiers import find_arxiv_id
from pipeline.corpus.paper import BibliographyItem

_DOI = re.compile(r"\b10\.\d{4,9}/[^\s\"<>]+")
_URL = re.compile(r"https?:\S+")
_YEAR = re.compile(r"(?<![\d.:/–-])((?:19|20)\d\d)[a-z]?(?![\d/–-]|\.\d)")
_BRACKETED_YEAR = re.compile(r"\(((?:19|20)\d\d)[a-z]?\)")
_QUOTED = re.compile(r"[“\"](.+?)[,.]?[”\"]")
_ARXIV_WORDS = re.compile(r"(?:corr|arxiv(?: preprint)?|preprint)?[,:\s]*(?:abs/|arxiv:)\S*", re.IGNORECASE)
_COLON_STYLE = re.compile(r"^(.{3,}?(?:\.|et al\.?)):\s+(.+?[.?!])(?:\s|$)(.*)$")
_INITIALS = re.compile(r"(?:[^\W\d_]\.[\s~-]*)+")
_ET_AL = re.compile(r",?\s*\bet\.?\s+al\b\.?", re.IGNORECASE)
_TRAILING_YEAR = re.compile(r"[\s,.(]*((?:19|20)\d\d)[a-z]?[).,\s]*$")
_ARXIV_NOTE = re.compile(r"[\s,.]+arxiv (?:preprint|\d{4}).*$", re.IGNORECASE)
_IN = re.compile(r"^\s*In:?\s+")
_EDITORS = re.compile(r"^.*?(?:\(eds?\.\)|,\s*(?:editors?|eds?\.)),?\s*")
_AFTER_VENUE = re.compile(r"\bdoi:.*$|\bURL\b.*$|\bISSN\b.*$", re.IGNORECASE)
_LOCATOR = re.compile(
    r",\s*(?:pp?\b|pages?\b|vol\b|volume\b|no\b|number\b|article\b)|[,.]?\s+pp\.|[,:]?\s+\d+\s*[(:,]|,\s*\d+\b"
)
_SENTENCE_END = re.compile(r"(?<=[^\W\d_]{4})\.\s+(?=[A-Z])|(?<=\))\.\s+")
_EDITORS_MARK = re.compile(r"\(eds?\.?\)|\beds?\.")
_BETWEEN_NAMES = re.compile(r";|,?\s+(?:and|&)\s+|,\s*")
_SUFFIXES = frozenset({"Jr", "Sr", "II", "III", "IV"})
# A date ends an item; looking for it in the last characters alone keeps these patterns linear.
_DATE_LENGTH = 24
_MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
_DATE = re.compile(
    rf"[\s,.(]*(?:(?:{'|'.join(_MONTHS)})[a-z]*\.?)?[\s,.(]*(?:(?:19|20)\d\d[a-z]?)?[).,\s]*$", re.IGNORECASE
)


@dataclass(slots=True)
class ItemParts:
    """An item as the page lays it out: its blocks, words in italics, links, and fields that LaTeXML named."""

    key: str
    raw: str = ""
    blocks: list[str] = field(default_factory=list)
    emphases: list[str] = field(default_factory=list)
    links: list[str] = field(default_factory=list)
    fields: list[tuple[str, str]] = field(default_factory=list)


def read_item(parts: ItemParts) -> BibliographyItem:
    """The item with whatever its layout tells; a part that cannot be told is None."""
    everything = " ".join([parts.raw, *parts.links])
    authors, title, venue = _from_fields(parts) or _from_blocks(parts) or _from_text(parts)
    return BibliographyItem(
        key=parts.key,
        raw=parts.raw,
        title=_tidy_title(title),
        authors=split_authors(authors),
        year=_find_year(parts),
        venue=_tidy_venue(venue),
        doi=_find_doi(everything),
        arxiv_id=find_arxiv_id(everything),
    )


Told = tuple[str, str, str]


def _from_fields(parts: ItemParts) -> Told | None:
    """LaTeXML's own fields, where it made the bibliography from BibTeX itself."""
    told: dict[str, str] = {}
    for name, text in parts.fields:
        told.setdefault(name, text)
    if "title" not in told:
        return None
    venue = told.get("journal") or told.get("crossref") or told.get("booktitle") or told.get("publisher") or ""
    return told.get("author", ""), told["title"], venue


def _from_blocks(parts: ItemParts) -> Told | None:
    """BibTeX styles break an item into blocks: authors, title, the rest."""
    blocks = [block for block in parts.blocks if block]
    if len(blocks) < 2:
        return None
    if not looks_like_authors(blocks[0]):
        return "", blocks[0], " ".join(blocks[1:])
    rest = " ".join(blocks[2:])
    venue = next((text for text in parts.emphases if text in rest and not _ARXIV_WORDS.search(text)), "")
    return blocks[0], blocks[1], venue or rest


def _from_text(parts: ItemParts) -> Told:
    """One run of text: a title in quotation marks, or after the authors' colon (LNCS), or in italics (AMS)."""
    text = parts.raw
    quoted = _QUOTED.search(text)
    if quoted:
        return text[: quoted.start()], quoted[1], _first(parts.emphases, text[quoted.end() :])
    colon = _COLON_STYLE.match(text)
    if colon and looks_like_authors(colon[1]):
        return colon[1], colon[2], colon[3]
    for emphasis in parts.emphases:
        before, found, after = text.partition(emphasis)
        if found and len(emphasis.split()) > 1 and looks_like_authors(before):
            return before, emphasis, after
    pieces = re.split(r"(?<=[^\W\d_]{2})\.\s+", text, maxsplit=2)
    if len(pieces) > 2 and looks_like_authors(pieces[0]):
        return pieces[0], pieces[1], pieces[2]
    return "", "", ""


def _first(emphases: list[str], rest: str) -> str:
    return next((text for text in emphases if text in rest), rest)


@lru_cache(maxsize=64)
def looks_like_authors(text: str) -> bool:
    """Whether a text reads as a list of names: short capitalised pieces between commas and "and"."""
    names = split_authors(text)
    if not names or text.rstrip().endswith("?"):
        return False
    likely = [name for name in names if _is_name(name)]
    return len(likely) * 3 >= len(names) * 2


def _is_name(text: str) -> bool:
    words = text.split()
    small = [word for word in words if word[0].islower() and word not in _PARTICLES]
    return len(words) <= 5 and not small and not any(letter.isdigit() for letter in text)


_PARTICLES = frozenset({
    "de", "der", "den", "van", "von", "la", "le", "di", "da", "del", "dos", "du", "el", "al", "bin", "ibn", "ter",
    "ten", "zu", "i", "y", "e",
})  # fmt: skip


@lru_cache(maxsize=64)
def split_authors(text: str) -> tuple[str, ...]:
    """The names of a list of authors, given names first: "Ba, J. L., and Hinton, G." is J. L. Ba, G. Hinton."""
    bare = _without_year(_ET_AL.sub("", " ".join(text.split())))
    bare = _EDITORS_MARK.sub("", bare).strip(" ,;:.")
    parts = [part for piece in _BETWEEN_NAMES.split(bare) if (part := piece.strip(" ,"))]
    names: list[str] = []
    for part in parts:
        if names and _INITIALS.fullmatch(part + "" if part.endswith(".") else part + "."):
            names[-1] = f"{part if part.endswith('.') else part + '.'} {names[-1]}"
        elif names and part.strip(".") in _SUFFIXES:
            names[-1] = f"{names[-1]}, {part}"
        else:
            names.append(part)
    return tuple(names)


def _without_year(text: str) -> str:
    return text[:-_DATE_LENGTH] + _TRAILING_YEAR.sub("", text[-_DATE_LENGTH:])


def _without_date(text: str) -> str:
    return text[:-_DATE_LENGTH] + _DATE.sub("", text[-_DATE_LENGTH:])


def _find_year(parts: ItemParts) -> int | None:
    for name, text in parts.fields:
        if name in ("year", "date") and _YEAR.search(text):
            return int(_YEAR.search(text)[1])  # type: ignore[index]
    text = _URL.sub(" ", _DOI.sub(" ", parts.raw))
    bracketed = _BRACKETED_YEAR.findall(text)
    if bracketed:
        return int(bracketed[-1])
    if parts.blocks and looks_like_authors(parts.blocks[0]):
        after_names = _TRAILING_YEAR.search(parts.blocks[0][-_DATE_LENGTH:])
        if after_names:
            return int(after_names[1])
    years = _YEAR.findall(_ARXIV_WORDS.sub(" ", text))
    return int(years[-1]) if years else None


def _find_doi(text: str) -> str | None:
    match = _DOI.search(text)
    if match is None:
        return None
    doi = match[0].rstrip(".,;:")
    while doi.endswith(")") and doi.count("(") < doi.count(")"):
        doi = doi[:-1].rstrip(".,;:")
    return doi.lower()


def _tidy_title(text: str) -> str | None:
    title = _URL.sub("", text).strip(" ,.;:“”\"'")
    title = _ARXIV_NOTE.sub("", title)
    return _without_year(title).strip(" ,.;:") or None


def _tidy_venue(text: str) -> str | None:
    """The journal or proceedings, without editors, volume, pages, publisher and date."""
    venue = _AFTER_VENUE.sub("", _URL.sub("", text))
    venue = _EDITORS.sub("", _IN.sub("", venue))
    if _ARXIV_WORDS.search(venue):
        return "CoRR" if venue.lower().startswith("corr") else "arXiv"
    venue = _LOCATOR.split(venue, maxsplit=1)[0]
    venue = _SENTENCE_END.split(venue, maxsplit=1)[0]
    venue = _without_date(venue).strip(" ,.;:")
    if venue.count("(") > venue.count(")"):
        venue = f"{venue})" if f"{venue})" in text else venue[: venue.rindex("(")].strip(" ,.;:")
    return venue if any(letter.isalpha() for letter in venue) else None
