"""Check a bibliography by arXiv's metadata: does each work exist, and is it as stated?"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from drafts.author_lists import AuthorComparison, compare_authors
from drafts.draft import Draft, Entry
from drafts.entry_rules import broken_rules
from drafts.retractions import find_retractions
from drafts.title_likeness import (
    SAME_TITLE,
    lookup_titles,
    may_be_title,
    title_likeness,
    whole_likeness,
)
from drafts.venues import (
    Publication,
    find_venues,
    is_preprint,
    is_spelt_out,
    may_be_name_of,
    publication_of,
    venue_of_doi,
)
from pipeline.identity.identifiers import normalize_arxiv_id, split_dois
from pipeline.identity.titles import title_words
from pipeline.index.known_papers import KnownPapers

if TYPE_CHECKING:
    from pipeline.arxiv.record import Record
    from pipeline.corpus.references.title_index import TitleCandidate
    from pipeline.engine.stage import Workspace

Status = Literal["verified", "differs", "not_found", "suspicious", "withdrawn", "retracted"]

# A title that is found without an identifier must be this like: many titles share most of their
# words.
SAME_TITLE_ALONE = 86.0
# One that is found by its title alone, with the authors of another work.
_SAME_TITLE_OTHER_AUTHORS = 97.0
# A preprint is printed up to this many years after arXiv's first version, and posted up to one year
# after printing.
_YEARS_AFTER, _YEARS_BEFORE = 3, 1
# A field is corrected where so many others agree.
_FEWEST_AGREEING = 2
_MOST_NAMES_SHOWN = 5
_VERSION = re.compile(r"(?<=\d)v(\d+)$")
_ARXIV_REGISTRANT = "10.48550/"
_KINDS_IN_BOOKS = frozenset(("inproceedings", "conference", "incollection", "paper-conference"))
NEVER_CITED = "never cited"
"""Note on an entry that no sentence of the draft cites."""


@dataclass(frozen=True, slots=True)
class Difference:
    """A field of an entry that differs from arXiv's metadata."""

    field: str
    draft: str
    metadata: str


@dataclass(frozen=True, slots=True)
class ReferenceCheck:
    """An entry compared with the metadata.

    status: `verified` (as stated), `differs` (the same work with another title, author, year, venue
    or identifier), `not_found` (not in arXiv's metadata, which is no proof that it does not exist),
    `suspicious` (parts that belong to different works, or that cannot be), `withdrawn` (by its
    authors, from arXiv) or `retracted` (by the list of retractions). arxiv_id: of the paper that
    the entry means; None if it is not known. notes: further remarks, a sentence each. rules: names
    of the rules that the entry breaks by itself. corrections: field of BibTeX → value of the
    record, where two other fields agree with it.
    """

    key: str
    status: Status
    arxiv_id: str | None = None
    differences: tuple[Difference, ...] = ()
    notes: tuple[str, ...] = ()
    record: Record | None = None
    corrections: Mapping[str, str] = field(default_factory=dict)
    rules: tuple[str, ...] = ()


def check_references(draft: Draft, papers: KnownPapers) -> list[ReferenceCheck]:
    """A check of every entry of a draft, in order."""
    entries = list(draft.entries.values())
    candidates = _candidates(entries, papers)
    ids = {candidate.arxiv_id for of_entry in candidates for candidate in of_entry}
    stated_ids = set(filter(None, map(_identifier, entries)))
    records = papers.records(ids | stated_ids)
    impossible_ids = papers.impossible_ids(stated_ids - records.keys())
    checks = [
        _check(entry, of_entry, records, impossible_ids)
        for entry, of_entry in zip(entries, candidates, strict=True)
    ]
    if papers.retractions is not None:
        checks = _mark_retracted(checks, entries, papers.retractions)
    return _with_notes_of_draft(checks, draft)


def _candidates(entries: Sequence[Entry], papers: KnownPapers) -> list[list[TitleCandidate]]:
    """For each entry the papers with its DOI, or a title like its own but for subtitles."""
    works = [(lookup_titles(entry.title or ""), split_dois(entry.doi)) for entry in entries]
    return [
        [
            paper
            for paper in candidates
            if not set(dois).isdisjoint(paper.dois.split())
            or may_be_title(entry.title or "", paper.title)
        ]
        for entry, (_, dois), candidates in zip(
            entries, works, papers.candidates(works), strict=True
        )
    ]


def _with_notes_of_draft(checks: Sequence[ReferenceCheck], draft: Draft) -> list[ReferenceCheck]:
    """The checks with the reader's notes, and those on repeated works and uncited entries."""
    cited = set(draft.cited_keys) | draft.listed
    first: dict[str, str] = {}
    noted = []
    for entry, check in zip(draft.entries.values(), checks, strict=True):
        notes = [*check.notes, *entry.notes]
        work = check.arxiv_id or " ".join(title_words(entry.title or ""))
        if work and first.setdefault(work, entry.key) != entry.key:
            notes.append(f"the same work as {first[work]}")
        if not (entry.title or entry.doi or entry.arxiv_id):
            notes.append("it has no title to look it up by")
        if entry.key not in cited and "*" not in cited:
            notes.append(NEVER_CITED)
        noted.append(replace(check, notes=tuple(notes)))
    return noted


def _mark_retracted(
    checks: Sequence[ReferenceCheck], entries: Sequence[Entry], file: Path
) -> list[ReferenceCheck]:
    works = []
    for entry, check in zip(entries, checks, strict=True):
        of_record = check.record.doi if check.record else None
        works.append(({*split_dois(entry.doi), *split_dois(of_record)}, entry.title, entry.authors))
    marked = []
    for check, retraction in zip(checks, find_retractions(file, works), strict=True):
        if retraction is not None:
            status = "retracted" if retraction.is_retraction else check.status
            check = replace(check, status=status, notes=(retraction.sentence, *check.notes))
        marked.append(check)
    return marked


def keys_by_paper(workspace: Workspace, draft: Draft) -> dict[str, str]:
    """arXiv id → the key of the first entry of a draft's bibliography that means this work."""
    keys: dict[str, str] = {}
    for check in check_references(draft, KnownPapers(workspace)):
        if check.arxiv_id:
            keys.setdefault(check.arxiv_id, check.key)
    return keys


def _identifier(entry: Entry) -> str | None:
    """The arXiv id of an entry, without version."""
    return normalize_arxiv_id(entry.arxiv_id) if entry.arxiv_id else None


def _check(
    entry: Entry,
    candidates: Sequence[TitleCandidate],
    records: Mapping[str, Record],
    impossible_ids: Collection[str],
) -> ReferenceCheck:
    identifier = _identifier(entry)
    by_id = records.get(identifier) if identifier else None
    by_doi = _by_doi(entry, candidates, records)
    by_title = _by_title(entry, candidates, records)
    identified = filter(None, (by_id, by_doi))
    stated = [other for other in identified if _is_same_work(entry, other, by_title)]
    record = stated[0] if stated else by_title
    broken = dict(broken_rules(entry, is_known=record is not None))
    suspicions, notes = list(broken.values()), list[str]()
    if identifier in impossible_ids:
        suspicions.append(f"arXiv has no paper {identifier}")
    elif identifier and by_id is None:
        notes.append(f"{identifier} is not in the metadata at hand")
    for other, what in ((by_id, f"arXiv id {identifier}"), (by_doi, f"DOI {entry.doi}")):
        if other is not None and other not in stated and entry.title:
            suspicions.append(f"{what} belongs to another work: {other.title} ({other.arxiv_id})")
    if record is None:
        status: Status = "suspicious" if suspicions else "not_found"
        return ReferenceCheck(entry.key, status, notes=(*suspicions, *notes), rules=tuple(broken))
    authors = _compare_authors(entry, record)
    if authors.are_others:
        suspicions.append(f"{record.arxiv_id} has this title, and other authors")
    differences = tuple(_differences(entry, record, authors))
    if suspicions:
        status = "suspicious"
    elif record.status == "withdrawn":
        status = "withdrawn"
    else:
        status = "differs" if differences else "verified"
    corrections = {}
    if status == "differs":
        is_stated = record in stated
        corrections = dict(_corrections(entry, record, authors, differences, is_stated=is_stated))
    return ReferenceCheck(
        key=entry.key,
        status=status,
        arxiv_id=record.arxiv_id,
        differences=differences,
        notes=(*suspicions, *notes, *_notes(entry, record, authors)),
        record=record,
        corrections=corrections,
        rules=tuple(broken),
    )


def _is_same_work(entry: Entry, record: Record, by_title: Record | None) -> bool:
    """Whether the paper that an identifier of an entry names has the entry's title; if no paper has
    it, whether it has the entry's authors: the title may be that of another version.
    """
    if _likeness(entry, record) >= SAME_TITLE:
        return True
    if by_title is not None or not entry.authors or not record.authors:
        return False
    authors = _compare_authors(entry, record)
    return not authors.has_other and not authors.missing


def _by_doi(
    entry: Entry, candidates: Sequence[TitleCandidate], records: Mapping[str, Record]
) -> Record | None:
    dois = set(split_dois(entry.doi))
    for paper in candidates:
        if paper.arxiv_id in records and not dois.isdisjoint(paper.dois.split()):
            return records[paper.arxiv_id]
    return None


def _by_title(
    entry: Entry, candidates: Sequence[TitleCandidate], records: Mapping[str, Record]
) -> Record | None:
    """The paper with the title most like the entry's; of equal ones, one that shares an author."""
    ranked = []
    for paper in candidates:
        record = records.get(paper.arxiv_id)
        if record is None:
            continue
        shares_author = not _compare_authors(entry, record).are_others
        if shares_author:
            likeness, least = _likeness(entry, record), SAME_TITLE_ALONE
        else:
            # A title without subtitle may be that of another work.
            likeness = whole_likeness(entry.title or "", record.title or "")
            least = _SAME_TITLE_OTHER_AUTHORS
        if likeness >= least:
            ranked.append((likeness, shares_author, paper.arxiv_id))
    if not ranked:
        return None
    _, _, best = max(ranked)
    return records[best]


def _likeness(entry: Entry, record: Record) -> float:
    """Likeness of the titles, 0 to 100; either may leave out the subtitle."""
    return title_likeness(entry.title or "", record.title or "")


def _compare_authors(entry: Entry, record: Record) -> AuthorComparison:
    return compare_authors(entry.authors, record.authors, is_whole=entry.names_all_authors)


def _differences(entry: Entry, record: Record, authors: AuthorComparison) -> Iterator[Difference]:
    publication = publication_of(record)
    if entry.title and _likeness(entry, record) < 100:
        yield Difference("title", entry.title, record.title or "")
    if authors.has_other:
        yield Difference("authors", ", ".join(entry.authors), ", ".join(record.authors))
    elif authors.missing:
        others = f"also {', '.join(authors.missing[:_MOST_NAMES_SHOWN])}"
        if len(authors.missing) > _MOST_NAMES_SHOWN:
            others += f" and {len(authors.missing) - _MOST_NAMES_SHOWN} more"
        yield Difference("authors", ", ".join(entry.authors), others)
    possible = _possible_years(entry, record, publication)
    if entry.year is not None and possible and entry.year not in possible:
        printed = f"; {publication.text}" if publication.text else ""
        yield Difference("year", str(entry.year), f"first on arXiv {record.published}{printed}")
    if entry.venue and _is_other_venue(entry, publication):
        yield Difference("venue", entry.venue, publication.text)
    if entry.doi and record.doi and _is_other_doi(entry, record, publication):
        yield Difference("doi", entry.doi, record.doi)
    identifier = _identifier(entry)
    if identifier and identifier != record.arxiv_id:
        yield Difference("arXiv id", identifier, record.arxiv_id)


def _is_other_venue(entry: Entry, publication: Publication) -> bool:
    """Whether an entry names another venue than the one in which the work appeared.

    A work may appear at a conference and, a year or more later, in a journal; never at two
    conferences. A name that is not known counts only if it is spelt out, and in the same year.
    """
    if not publication.venues or is_preprint(entry.venue):
        return False
    venues = find_venues(entry.venue)
    if not venues:
        name = entry.venue or ""
        is_name = is_spelt_out(name) and entry.year in publication.years
        return is_name and not any(may_be_name_of(name, venue) for venue in publication.venues)
    if not venues.isdisjoint(publication.venues):
        return False
    with_journal = any(venue.is_journal for venue in (*venues, *publication.venues))
    return not with_journal or entry.year in publication.years


def _is_other_doi(entry: Entry, record: Record, publication: Publication) -> bool:
    """Whether an entry has another DOI than the work has at the same venue.

    A preprint, a conference paper and an article have a DOI each.
    """
    ours, theirs = split_dois(entry.doi), split_dois(record.doi)
    if not ours or not theirs or not set(ours).isdisjoint(theirs):
        return False
    if _is_of_arxiv(ours[0]):
        return False
    of_ours, of_theirs = venue_of_doi(ours[0]), venue_of_doi(theirs[0])
    if of_ours and of_theirs:
        return of_ours.venue is of_theirs.venue
    is_registrant = ours[0].partition("/")[0] == theirs[0].partition("/")[0]
    return is_registrant and not find_venues(entry.venue).isdisjoint(publication.venues)


def _is_of_arxiv(doi: str) -> bool:
    return doi.lower().startswith(_ARXIV_REGISTRANT)


def _possible_years(entry: Entry, record: Record, publication: Publication) -> set[int]:
    """The years in which a work may be dated. A preprint has the years of its versions.

    At the venue in which it appeared, a conference paper has that year; an article may also have
    the year before or after.
    """
    posted = int(record.published[:4]) if record.published else None
    if posted is None:
        return set()
    updated = int(record.updated[:4]) if record.updated else posted
    printed = set(publication.years)
    has_doi = bool(entry.doi) and not _is_of_arxiv(entry.doi or "")
    is_published = entry.venue is None and (has_doi or entry.kind in _KINDS_IN_BOOKS)
    if is_preprint(entry.venue) and not is_published:
        return printed | set(range(posted, updated + 1))
    venues = find_venues(entry.venue) & publication.venues
    if venues and printed:
        if not any(venue.is_journal for venue in venues):
            return printed
        return printed | {year - 1 for year in printed} | {year + 1 for year in printed}
    last = max(posted + _YEARS_AFTER, updated)
    return printed | set(range(posted - _YEARS_BEFORE, last + 1))


def _corrections(
    entry: Entry,
    record: Record,
    authors: AuthorComparison,
    differences: Sequence[Difference],
    *,
    is_stated: bool,
) -> Iterator[tuple[str, str]]:
    """(field, value) that an entry surely means: two others must agree with the record.

    A year is corrected in a preprint, or where it is before arXiv's and nothing says that the paper
    was printed earlier: the year of a later print is right. A list of authors is corrected where it
    names a stranger; one that is shorter, or in another order, may be that of the printed version.
    """
    differing = {difference.field for difference in differences}
    possible = _possible_years(entry, record, publication_of(record))
    agreeing = {
        "identifier": is_stated,
        "title": bool(entry.title) and "title" not in differing,
        "authors": bool(entry.authors) and "authors" not in differing,
        "year": entry.year in possible,
    }
    if sum(agreeing.values()) < _FEWEST_AGREEING:
        return
    is_same_title = _likeness(entry, record) >= SAME_TITLE
    if "title" in differing and is_same_title and agreeing["authors"] and record.title:
        yield "title", f"{{{record.title}}}"
    if authors.has_unknown and agreeing["title"]:
        yield "author", " and ".join(record.authors)
    if "year" in differing and agreeing["title"] and entry.year and possible and record.published:
        is_unprinted = record.journal_ref is None and record.doi is None
        names_preprint = entry.venue is not None and is_preprint(entry.venue)
        if names_preprint or (is_unprinted and entry.year < min(possible)):
            yield "year", record.published[:4]


def _notes(entry: Entry, record: Record, authors: AuthorComparison) -> list[str]:
    notes = []
    if record.status == "withdrawn":
        notes.append(f"{record.arxiv_id} was withdrawn")
    if authors.is_reordered:
        notes.append("arXiv has these authors in another order")
    cited = _VERSION.search(entry.arxiv_id) if entry.arxiv_id else None
    if cited and record.version and int(cited[1]) < record.version:
        notes.append(f"version {int(cited[1])} is cited, and version {record.version} is there")
    if is_preprint(entry.venue) and (record.journal_ref or (record.doi and not entry.doi)):
        notes.append(f"published since: {record.journal_ref or f'DOI {record.doi}'}")
    return notes
