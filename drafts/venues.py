"""Recognize the venue that a bibliography, a DOI or arXiv's metadata names, and
where a paper was published by what its record says.

The venues are those of `venues.tsv`. Its columns: acronym and further ones; kind; first year; the
years in which it is held (`odd 1999-`, or all of them; empty for every year); the prefixes of its
DOIs (`none` where it gives none, `?` where this is not known); full names.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from drafts.lists import table_rows, word_list
from pipeline.identity.titles import title_words

if TYPE_CHECKING:
    from pipeline.arxiv.record import Record

_PARITY = re.compile(r"(odd|even)(?: (\d{4})?-(\d{4})?)?")

_YEAR = re.compile(r"(?:19|20)\d\d")
# Parts of a work's place that are printed before or behind the name of the venue.
_PARTS = re.compile(r"[,;:()\[\]/|]|\s[-–—]+\s|\.\s|\s(?:and|&)\s(?:the\s|\d)|\strack\b")
_ACRONYM = re.compile(r"[A-Za-z][A-Za-z&*]*[A-Za-z*]")
_ORDINAL = re.compile(r"\d+(?:st|nd|rd|th)?$|[ivxl]+$|'?\d\d$")
_SHORT_WORDS = {"intl": "international", "conf": "conference", "symp": "symposium", "j": "journal"}
# Part of a venue, or beside it: its papers are others.
_SECONDARY = re.compile(
    r"\b(?:workshops?|wksh\w*|findings|companion|extended abstracts?|tutorials?|demonstrations?"
    r"|demos?|shared tasks?|student|doctoral|adjunct|posters?|tiny papers?|blog\w*|spring symposium"
    r"|fall symposium|special issue|challenge|competition)\b|@",
    re.IGNORECASE,
)
_PREPRINT = re.compile(
    r"\b(?:arxiv|corr|preprints?|e-?prints?|bio-?rxiv|med-?rxiv|chem-?rxiv|psyarxiv|techrxiv|ssrn"
    r"|openreview|hal|zenodo|research square|under review|submitted|unpublished|manuscript)\b",
    re.IGNORECASE,
)
_KIND_OF_VENUE = re.compile(
    r"\b(?:conference|symposium|journal|transactions|congress|letters|magazine|meeting)\b",
    re.IGNORECASE,
)

_FIRST_YEAR_OF_VOLUME = {"AAAI": 1986, "ICWSM": 2006}
_ANTHOLOGY = {
    "P": "ACL", "D": "EMNLP", "N": "NAACL", "E": "EACL", "C": "COLING", "K": "CoNLL", "Q": "TACL",
    "J": "CL",
}  # fmt: skip
_OF_ANTHOLOGY = re.compile(r"10\.(?:18653/v1|3115/v1)/([pdneckqj])(\d\d)-\d")
_CLAUSES = re.compile(r"[;!?\n]|\.(?=\s|$)")


@dataclass(frozen=True, slots=True, eq=False)
class Venue:
    """A conference or a journal: a row of `venues.tsv`.

    registrants: None if they are not known. is_society: whether the acronym is also that of the
    society behind it, which holds other conferences.
    """

    acronym: str
    further_acronyms: tuple[str, ...]
    is_journal: bool
    is_society: bool
    since: int
    held: str
    registrants: tuple[str, ...] | None
    names: tuple[str, ...]

    @property
    def acronyms(self) -> set[str]:
        """All acronyms, in lower case."""
        return {acronym.lower() for acronym in (self.acronym, *self.further_acronyms)}

    def is_held_in(self, year: int) -> bool:
        """Whether it may have works of a year."""
        if year < self.since:
            return False
        parity = _PARITY.fullmatch(self.held)
        if parity:
            first, last = int(parity[2] or 0), int(parity[3] or 9999)
            return not first <= year <= last or (year % 2 == 1) == (parity[1] == "odd")
        years = set(map(int, self.held.split()))
        return not years or year in years or year > max(years)

    def __str__(self) -> str:
        return self.acronym


class VenueOfDoi(NamedTuple):
    """The venue whose numbering a DOI follows, and the year in it; None if it names none."""

    venue: Venue
    year: int | None


def find_venues(text: str | None) -> frozenset[Venue]:
    """The venues that a text names, by full or shortened name, or by acronym.

    None of those beside which it names a workshop, findings or another part.
    """
    return _find_venues(text) if text else frozenset()


@cache
def _find_venues(text: str) -> frozenset[Venue]:
    if _SECONDARY.search(text):
        return frozenset()
    parts = list(filter(None, map(_words, _PARTS.split(text))))
    whole = [word for part in parts for word in part]
    by_name = frozenset(
        venue
        for venue, name in _names()
        if (
            _is_name(_without_acronyms(whole, venue), name)
            # Names of journals are also those of fields: "Pattern Recognition, ICPR 2020".
            if venue.is_journal
            else any(_is_name(words, name) for words in (*parts, whole))
        )
    )
    return by_name or frozenset(_by_acronym(text))


def is_preprint(venue: str | None) -> bool:
    """Whether an entry's venue is none, a preprint server, or the remark of a manuscript."""
    return venue is None or _PREPRINT.search(venue) is not None


def venue_of_doi(doi: str | None) -> VenueOfDoi | None:
    """The venue that a DOI belongs to, where its numbering says so."""
    small = (doi or "").lower()
    of_anthology = _OF_ANTHOLOGY.match(small)
    if of_anthology:
        number = int(of_anthology[2])
        year = (1900 if number > 60 else 2000) + number
        return VenueOfDoi(_by_key()[_ANTHOLOGY[of_anthology[1].upper()].lower()], year)
    for row in table_rows("venue_dois"):
        match, acronym = re.match(row["pattern"], small), row["acronym"]
        if match is None:
            continue
        groups = match.groupdict()
        venue = _by_key().get((acronym or groups["acronym"]).lower())
        if venue is None or not gives_doi(venue, small):  # 10.1109/MM is not ACM's conference
            return None
        if groups.get("volume"):
            return VenueOfDoi(venue, _FIRST_YEAR_OF_VOLUME[acronym] + int(groups["volume"]))
        return VenueOfDoi(venue, int(groups["year"]) if groups.get("year") else None)
    return None


def gives_doi(venue: Venue, doi: str) -> bool:
    """Whether works of a venue have DOIs of this registrant; True where it is not known."""
    registrant = doi.partition("/")[0]
    return (
        venue.registrants is None
        or registrant in venue.registrants
        or registrant in word_list("neutral_registrants")
    )


def is_spelt_out(venue: str) -> bool:
    """Whether a text is the whole name of a conference or journal, without shortened words."""
    is_part = _SECONDARY.search(venue) or _PREPRINT.search(venue)
    return bool(_KIND_OF_VENUE.search(venue)) and not is_part and "." not in venue.strip(" .")


def may_be_name_of(text: str, venue: Venue) -> bool:
    """Whether a text that is no known name may mean a venue: by most of its words, or its letters.

    True for "Conf. on Representations and their Learning" and ICLR.
    """
    words = _words(text)
    if venue.acronym.lower() in words:
        return True
    for name in map(_words, venue.names):
        content = [word for word in name if word not in word_list("general_words_of_venues")]
        shared = sum(any(word[:5] == other[:5] for other in words) for word in content)
        if content and 2 * shared > len(content):
            return True
    letters = iter("".join(word[0] for word in title_words(text)))
    return all(letter in letters for letter in venue.acronym.lower() if letter.isalpha())


def years_in(text: str | None) -> set[int]:
    """The numbers of a text that may be years."""
    return set(map(int, _YEAR.findall(text or "")))


def _words(text: str) -> list[str]:
    words = (_SHORT_WORDS.get(word, word) for word in title_words(text.replace("'", " ")))
    left_out = word_list("left_out_of_venues")
    return [word for word in words if word not in left_out and not _ORDINAL.fullmatch(word)]


def _without_acronyms(words: Sequence[str], venue: Venue) -> list[str]:
    acronyms = venue.acronyms
    return [word for word in words if word not in acronyms]


def _is_name(words: Sequence[str], name: Sequence[str]) -> bool:
    """Whether words are a name, each whole or shortened at its end."""
    return len(words) == len(name) and all(
        word == whole or (len(word) > 1 and whole.startswith(word))
        for word, whole in zip(words, name, strict=True)
    )


@cache
def _venues() -> Sequence[Venue]:
    return [
        Venue(
            acronym=row["acronym"],
            further_acronyms=tuple(row["further acronyms"].split()),
            is_journal=row["kind"] == "journal",
            is_society=row["kind"] == "conference of a society",
            since=int(row["since"]),
            held=row["held"],
            registrants=_registrants(row["registrants"]),
            names=tuple(filter(None, row["names"].split(" | "))),
        )
        for row in table_rows("venues")
    ]


def _registrants(text: str) -> tuple[str, ...] | None:
    if text == "?":
        return None
    return () if text == "none" else tuple(text.split())


@cache
def _names() -> Sequence[tuple[Venue, Sequence[str]]]:
    return [(venue, _words(name)) for venue in _venues() for name in venue.names]


@cache
def _by_key() -> dict[str, Venue]:
    """Venues by their acronyms in lower case."""
    return {acronym: venue for venue in _venues() for acronym in venue.acronyms}


def _by_acronym(text: str) -> Iterator[Venue]:
    """Acronyms: in any case where they are the whole text but for a year, else as they are spelt.

    Those of societies that hold several conferences count only where no conference is named.
    """
    whole = " ".join(_words(text))
    if whole in _by_key():
        yield _by_key()[whole]
        return
    names_kind = _KIND_OF_VENUE.search(text) is not None
    for match in _ACRONYM.finditer(text):
        venue = _by_key().get(match[0].lower())
        if venue is None or venue.is_journal or (names_kind and venue.is_society):
            continue
        if sum(letter.isupper() for letter in match[0]) > 1:
            yield venue


class Publication(NamedTuple):
    """A publication. venues: those of the table that are named. years: all that it may have.
    text: the words of the record that name it; may be empty.
    """

    venues: frozenset[Venue]
    years: frozenset[int]
    text: str


def publication_of(record: Record) -> Publication:
    """The publication that `journal_ref`, the DOI, or else the comment of a record names."""
    if record.journal_ref:
        venues = find_venues(record.journal_ref)
        years = frozenset(years_in(record.journal_ref))
        if venues:
            return Publication(venues, years, record.journal_ref)
    of_doi = venue_of_doi(record.doi)
    if of_doi:
        years = frozenset(filter(None, [of_doi.year])) | years_in(record.journal_ref)
        text = record.journal_ref or f"the DOI {record.doi} is one of {of_doi.venue}"
        return Publication(frozenset([of_doi.venue]), years, text)
    if record.journal_ref:
        return Publication(frozenset(), frozenset(years_in(record.journal_ref)), record.journal_ref)
    return next(_in_comment(record.comment or ""), Publication(frozenset(), frozenset(), ""))


def _in_comment(comment: str) -> Iterator[Publication]:
    """The venue that a clause of a comment names, and nothing else: "Accepted at ICML 2022"."""
    for clause in _CLAUSES.split(comment):
        venues = find_venues(clause)
        if len(venues) != 1:
            continue
        (venue,) = venues
        allowed = venue.acronyms | word_list("beside_venue")
        if all(word in allowed or word.isdecimal() for word in title_words(clause)):
            yield Publication(venues, frozenset(years_in(clause)), clause.strip())
