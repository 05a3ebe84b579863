"""Where and when a paper of arXiv was published, by what its record says."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from pipeline.arxiv.record import Record
from pipeline.arxiv.titles import title_words
from pipeline.draft_check.venues import Venue, find_venues, venue_of_doi, years_in

_CLAUSES = re.compile(r"[;!?\n]|\.(?=\s|$)")
# Words of a comment beside the name of the venue where its paper was accepted. A comment with other
# words may name a workshop there, a plan, or another version.
_BESIDE_VENUE = frozenset((
    "accepted", "published", "appears", "appeared", "appear", "presented", "presentation", "to",
    "at", "in", "by", "for", "as", "a", "an", "the", "of", "and", "conference", "paper", "oral",
    "poster", "spotlight", "main", "track", "long", "short", "full", "camera", "ready", "version",
    "proceedings", "proc", "international", "ieee", "cvf", "acm", "pages", "page", "figures",
    "tables", "publication", "will", "be",
))  # fmt: skip


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
        allowed = venue.acronyms | _BESIDE_VENUE
        if all(word in allowed or word.isdecimal() for word in title_words(clause)):
            yield Publication(venues, frozenset(years_in(clause)), clause.strip())
