"""Rules that an entry of a bibliography breaks by itself, without a look at the metadata."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import NamedTuple

from drafts.draft import Entry
from drafts.lists import word_list
from drafts.venues import (
    find_venues,
    gives_doi,
    is_preprint,
    is_spelt_out,
    may_be_name_of,
    venue_of_doi,
)
from pipeline.identity.identifiers import normalize_arxiv_id

_DOI = re.compile(r"10\.\d{4,9}/\S+")
_YEAR_AND_MONTH = re.compile(r"(?:^|/)(\d\d)(\d\d)")
# Agencies get blocks of registrants' numbers in order; the highest in public use in 2026 is 82,902.
_FIRST_UNASSIGNED_REGISTRANT = 85_000
# An article in press has a DOI with its year up to so many years before its issue.
_LONGEST_IN_PRESS = 3


class Rule(NamedTuple):
    """A rule. reason: a sentence on how an entry breaks it, or None.

    of_unknown_work: whether it says nothing more where the work is known, as its year is compared.
    """

    name: str
    reason: Callable[[Entry], str | None]
    of_unknown_work: bool = False


def broken_rules(entry: Entry, *, is_known: bool) -> Iterator[tuple[str, str]]:
    """(name, reason) of each rule that an entry breaks. is_known: whether its work is."""
    for rule in RULES:
        reason = None if rule.of_unknown_work and is_known else rule.reason(entry)
        if reason:
            yield rule.name, reason


def _malformed_arxiv_id(entry: Entry) -> str | None:
    if entry.arxiv_id and normalize_arxiv_id(entry.arxiv_id) is None:
        return f"{entry.arxiv_id} is no arXiv id"
    return None


def _malformed_doi(entry: Entry) -> str | None:
    if entry.doi and not _DOI.fullmatch(entry.doi.strip()):
        return (
            f"{entry.doi} is no DOI: one begins with 10., a number of four to nine digits and a"
            " slash"
        )
    return None


def _unassigned_registrant(entry: Entry) -> str | None:
    if not entry.doi or not _DOI.fullmatch(entry.doi.strip()):
        return None
    registrant = entry.doi.strip()[3:].partition("/")[0]
    if _FIRST_UNASSIGNED_REGISTRANT <= int(registrant) < 100_000:
        return f"no publisher's DOIs begin with 10.{registrant}"
    return None


def _future_year(entry: Entry) -> str | None:
    if entry.year and entry.year > datetime.now(UTC).year + 1:
        return f"the year {entry.year} is still to come"
    return None


def _year_before_arxiv_id(entry: Entry) -> str | None:
    digits = _YEAR_AND_MONTH.search(normalize_arxiv_id(entry.arxiv_id or "") or "")
    if digits is None or entry.year is None or not is_preprint(entry.venue):
        return None
    year = ("19" if digits[1] >= "91" else "20") + digits[1]
    # What is submitted on the last days of a year has an id of January.
    earliest = int(year) - (digits[2] == "01")
    if entry.year < earliest:
        return f"a preprint of {entry.year} has no arXiv id of {year}-{digits[2]}"
    return None


def _year_without_venue(entry: Entry) -> str | None:
    venues = find_venues(entry.venue)
    if not entry.year or len(venues) != 1:
        return None
    (venue,) = venues
    if entry.year < venue.since:
        return f"{venue} began in {venue.since}, after {entry.year}"
    if not venue.is_held_in(entry.year):
        return f"{venue} was not held in {entry.year}"
    return None


def _doi_of_another_venue(entry: Entry) -> str | None:
    of_doi = venue_of_doi(entry.doi)
    if of_doi is None or not entry.venue or is_preprint(entry.venue):
        return None
    venues = find_venues(entry.venue)
    is_other = of_doi.venue not in venues
    if not venues:
        is_other = is_spelt_out(entry.venue) and not may_be_name_of(entry.venue, of_doi.venue)
    return f"the DOI {entry.doi} is one of {of_doi.venue}" if is_other else None


def _doi_of_another_publisher(entry: Entry) -> str | None:
    venues = find_venues(entry.venue)
    if not entry.doi or not venues or any(gives_doi(venue, entry.doi) for venue in venues):
        return None
    names = ", ".join(map(str, venues))
    return f"{entry.doi} is no DOI of {names}"


def _doi_of_another_year(entry: Entry) -> str | None:
    of_doi = venue_of_doi(entry.doi)
    if of_doi is None or of_doi.year is None or entry.year is None:
        return None
    years = {of_doi.year}
    if of_doi.venue.is_journal:
        years = set(range(of_doi.year, of_doi.year + _LONGEST_IN_PRESS + 1))
    elif of_doi.venue.acronym not in word_list("exact_years"):
        years |= {of_doi.year - 1, of_doi.year + 1}
    if entry.year in years:
        return None
    return f"the DOI {entry.doi} is one of {of_doi.venue} {of_doi.year}"


RULES = (
    Rule("malformed_arxiv_id", _malformed_arxiv_id),
    Rule("malformed_doi", _malformed_doi),
    Rule("unassigned_registrant", _unassigned_registrant),
    Rule("future_year", _future_year, of_unknown_work=True),
    Rule("year_before_arxiv_id", _year_before_arxiv_id, of_unknown_work=True),
    Rule("year_without_venue", _year_without_venue),
    Rule("doi_of_another_venue", _doi_of_another_venue),
    Rule("doi_of_another_publisher", _doi_of_another_publisher),
    Rule("doi_of_another_year", _doi_of_another_year),
)
