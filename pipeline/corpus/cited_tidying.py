"""The title and the venue of a bibliography item without what a style hangs on to them."""

from __future__ import annotations

import re

_LETTER = r"[^\W\d_]"
_DIGIT = re.compile(r"\d")
_MONTHS = "jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec"
# An item ends in a date; looking for it in the last characters alone keeps these patterns linear.
_DATE_LENGTH = 24

_OPENING, _CLOSING = ("“", '"', "'", "‘"), ("”", '"', "'", "’")
_TITLE_YEAR = re.compile(rf"\s*[,.(]\s*(?:(?:{_MONTHS})[a-z]*\.?,?\s+)?(?:19|20)\d\d[a-z]?[).,\s]*$", re.IGNORECASE)
# Not "arXiv: a data set", which is a title.
_ARXIV_NOTE = re.compile(r"[\s,.]+arxiv(?::\s*\d|:[a-z-]+/\d| preprint| \d{4}).*$", re.IGNORECASE)
_TITLE_EDITION = re.compile(r",\s*\w+\s+ed(?:\.|ition)?$", re.IGNORECASE)
_LOST_JOURNAL = re.compile(r"\s\d{1,4},\s\w?\d{3,}$")

_BEFORE_VENUE = re.compile(r"\s*(?:[Ii]n:?\s+)?(?:(?:vol(?:\.|ume)|no\.)\s*\d+(?:\s+of\s|,\s*))?")
_VOLUME_FIRST = re.compile(r"(?!.{0,30}[Pp]reprint)(?i:(?!arxiv|abs/)[^\d]){4,60}\d+[,:(]")
_EDITORS = re.compile(r"^.*?(?:\(eds?\.\),?|,\s*(?:editors?|eds?\.),)\s*")
_UNTIDY = re.compile(r"[\d.,:;()/]")
_LOCATOR = re.compile(
    r",\s*(?:pp?\b|[Pp]ages?\b|[Vv]ol\b|[Vv]olume\b|[Nn]o\b|number\b|article\b|series\b|eds?\.|in press|to appear|\d)"
    r"| (?:pp\.|[A-Z]?\d+\s*[(:,]|\((?:19|20)\d\d)"
)
_SENTENCE_END = re.compile(rf"(?<={_LETTER}{{4}})\.\s+(?=[A-Z][\w’-]+(?![\w’.-]))|(?<=\))\.\s+")
_EDITION = re.compile(r"(?:\w+ ed(?:\.|ition)),?\s*", re.IGNORECASE)
_NO_VENUE = frozenset({"n/a", "preprint", "thesis", "submitted", "unpublished", "to appear", "in press", "manuscript"})
_PUBLISHER = re.compile(
    r"Springer|Press\b|Publi|Verlag|Wiley|Elsevier|Birkh|McGraw|Hindustan|American Mathematical Soc"
)
_DATE = re.compile(
    rf"[\s,.(]*(?<!\w)(?:(?:{_MONTHS})[a-z]*\.?)?[\s,.(]*(?:(?<!\w)(?:19|20)\d\d[a-z]?)?[).,\s]*$", re.IGNORECASE
)


def tidy_title(text: str) -> str | None:
    """The title without quotation marks around it, an address, an arXiv number or a year after it."""
    if "http" in text:
        text = text[: text.index("http")]
    title = text.strip(" ,.;:")
    if title[:1] in _OPENING and title[-1:] in _CLOSING:
        title = title[1:-1].strip(" ,.;:")
    if "rxiv" in title.lower():
        title = _ARXIV_NOTE.sub("", title)
    if _DIGIT.search(title[-6:]):
        title = _LOST_JOURNAL.sub("", title[:-_DATE_LENGTH] + _TITLE_YEAR.sub("", title[-_DATE_LENGTH:]))
    if " ed" in title[-10:].lower():
        title = _TITLE_EDITION.sub("", title)
    return title.strip(" ,.;:") or None


def tidy_venue(text: str) -> str | None:
    """The journal or proceedings, without editors, volume, pages, publisher and date."""
    venue = _cut(text, "http", "doi:", "URL", "ISSN", "ISBN")
    if is_arxiv(venue) and not _VOLUME_FIRST.match(venue):
        return "CoRR" if venue.lower().startswith("corr") else "arXiv"
    if not _UNTIDY.search(venue) and not venue.startswith("In "):
        return venue.strip() or None
    venue = venue[_BEFORE_VENUE.match(venue).end() :]  # type: ignore[union-attr]
    if "ed" in venue:
        venue = _EDITION.sub("", _EDITORS.sub("", venue))
    venue = _LOCATOR.split(venue, maxsplit=1)[0].strip(" ,.;:")
    if ". " in venue and "." not in venue.split(" ", 1)[0]:
        venue = _SENTENCE_END.split(venue, maxsplit=1)[0]
    if _DIGIT.search(venue[-_DATE_LENGTH:]):
        venue = venue[:-_DATE_LENGTH] + _DATE.sub("", venue[-_DATE_LENGTH:])
    return _whole(_without_publisher(venue.strip(" ,.;:")), text)


def is_arxiv(text: str) -> bool:
    lowered = text.lower()
    return "arxiv" in lowered or "abs/" in lowered or "quant-ph archive" in lowered


def arxiv_note(title: str) -> str:
    found = _ARXIV_NOTE.search(title) if "rxiv" in title.lower() else None
    return found[0] if found else ""


def _cut(text: str, *marks: str) -> str:
    for mark in marks:
        at = text.find(mark)
        if at >= 0:
            text = text[:at]
    return text


def _without_publisher(venue: str) -> str:
    """Of "Six lectures, Springer, New York" the lectures, of "Springer, New York" the publisher alone."""
    if ", " not in venue or not _PUBLISHER.search(venue):
        return venue
    pieces = venue.split(", ")
    house = next((number for number, piece in enumerate(pieces) if _PUBLISHER.search(piece)), len(pieces))
    return ", ".join(pieces[: house or 1])


def _whole(venue: str, text: str) -> str | None:
    """The venue with its bracket closed or gone and its last abbreviation's stop; None where no word is left."""
    if venue.count("(") > venue.count(")"):
        venue = f"{venue})" if f"{venue})" in text else venue[: venue.rindex("(")].strip(" ,.;:")
    if "." in venue and f"{venue}." in text:
        venue = f"{venue}."
    return venue if any(letter.isalpha() for letter in venue) and venue.lower() not in _NO_VENUE else None
