"""Check a bibliography by arXiv's metadata: does each work exist, and is it as stated?"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from rapidfuzz import fuzz

from pipeline.arxiv.dois import split_dois
from pipeline.arxiv.identifiers import normalize_arxiv_id, split_version
from pipeline.arxiv.record import Record
from pipeline.arxiv.titles import SUFFIXES, title_words
from pipeline.corpus.references.title_index import TitleCandidate
from pipeline.draft_check.draft import Draft, Entry
from pipeline.draft_check.known_papers import KnownPapers
from pipeline.engine.stage import Workspace

Status = Literal["verified", "differs", "not_found", "suspicious"]

# Likeness of two titles in percent (rapidfuzz.fuzz.ratio of their words without blanks). From
# SAME_TITLE on they are one title with a word changed, left out or misspelt; below, they are two
# works.
SAME_TITLE = 75.0
# A title that is found without an identifier must be this like: many titles share most of their
# words.
SAME_TITLE_ALONE = 86.0
# A preprint is printed up to this many years after arXiv's first version, and posted up to one year
# after printing.
_YEARS_AFTER, _YEARS_BEFORE = 3, 1
# A field is corrected where so many others agree.
_FEWEST_AGREEING = 2
_UMLAUTS = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue", "ø": "oe", "å": "aa"})
_DOI = re.compile(r"10\.\d{4,9}/\S+")
_YEAR = re.compile(r"\b(?:19|20)\d\d\b")
_PREPRINT = re.compile(r"arxiv|corr\b|preprint", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Difference:
    """A field of an entry that differs from arXiv's metadata."""

    field: str
    draft: str
    metadata: str


@dataclass(frozen=True, slots=True)
class ReferenceCheck:
    """An entry compared with the metadata.

    status: `verified` (as stated), `differs` (the same work with another title, author or year),
    `not_found` (not in arXiv's metadata, which is no proof that it does not exist), or `suspicious`
    (parts that belong to different works, or an identifier that cannot be). arxiv_id: of the paper
    that the entry means; None if it is not known. notes: further remarks, a sentence each.
    corrections: field of BibTeX → value of the record, where two other fields agree with it.
    """

    key: str
    status: Status
    arxiv_id: str | None = None
    differences: tuple[Difference, ...] = ()
    notes: tuple[str, ...] = ()
    record: Record | None = None
    corrections: Mapping[str, str] = field(default_factory=dict)


def check_references(draft: Draft, papers: KnownPapers) -> list[ReferenceCheck]:
    """A check of every entry of a draft, in order."""
    entries = list(draft.entries.values())
    candidates = papers.candidates([(entry.title, split_dois(entry.doi)) for entry in entries])
    ids = {candidate.arxiv_id for of_entry in candidates for candidate in of_entry}
    ids |= {identifier for entry in entries if (identifier := _identifier(entry))}
    records = papers.records(ids)
    cited = set(draft.cited_keys) | draft.listed
    first: dict[str, str] = {}
    checks = []
    for entry, of_entry in zip(entries, candidates, strict=True):
        check = _check(entry, of_entry, records)
        notes = [*check.notes, *entry.notes]
        work = check.arxiv_id or " ".join(title_words(entry.title or ""))
        if work and first.setdefault(work, entry.key) != entry.key:
            notes.append(f"the same work as {first[work]}")
        if entry.key not in cited and "*" not in cited:
            notes.append("never cited")
        checks.append(replace(check, notes=tuple(notes)))
    return checks


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
    entry: Entry, candidates: Sequence[TitleCandidate], records: Mapping[str, Record]
) -> ReferenceCheck:
    suspicions = _impossible(entry)
    identifier = _identifier(entry)
    by_id = records.get(identifier) if identifier else None
    by_doi = _by_doi(entry, candidates, records)
    by_title = _by_title(entry, candidates, records)
    if identifier and by_id is None and not suspicions:
        suspicions.append(f"arXiv's metadata knows no paper {identifier}")
    for record, what in ((by_id, f"arXiv id {identifier}"), (by_doi, f"DOI {entry.doi}")):
        if record is not None and entry.title and _likeness(entry, record) < SAME_TITLE:
            suspicions.append(f"{what} belongs to another work: {record.title} ({record.arxiv_id})")
    stated = [
        record for record in (by_id, by_doi) if record and _likeness(entry, record) >= SAME_TITLE
    ]
    record = stated[0] if stated else by_title
    if record is None:
        status: Status = "suspicious" if suspicions else "not_found"
        return ReferenceCheck(entry.key, status, notes=tuple(suspicions))
    if _authors_of_another(entry, record):
        suspicions.append(f"{record.arxiv_id} has this title, and other authors")
    differences = tuple(_differences(entry, record))
    status = "suspicious" if suspicions else "differs" if differences else "verified"
    notes = (*suspicions, *_notes(entry, record))
    corrections = {}
    if status == "differs":
        is_stated = record in stated
        corrections = dict(_corrections(entry, record, differences, is_stated=is_stated))
    return ReferenceCheck(
        entry.key, status, record.arxiv_id, differences, notes, record, corrections
    )


def _impossible(entry: Entry) -> list[str]:
    """Identifiers that cannot be."""
    reasons = []
    if entry.arxiv_id and normalize_arxiv_id(entry.arxiv_id) is None:
        reasons.append(f"{entry.arxiv_id} is no arXiv id")
    if entry.doi and not _DOI.fullmatch(entry.doi.strip()):
        reasons.append(
            f"{entry.doi} is no DOI: one begins with 10., a number of four to nine digits and a"
            " slash"
        )
    return reasons


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
    """The paper with the title most like the entry's, of equals the one that shares an author."""
    ranked = []
    for paper in candidates:
        record = records.get(paper.arxiv_id)
        if record is not None:
            likeness, shares = _likeness(entry, record), not _authors_of_another(entry, record)
            if likeness >= (SAME_TITLE_ALONE if shares else 97):
                ranked.append((likeness, shares, paper.arxiv_id))
    if not ranked:
        return None
    _, _, best = max(ranked)
    return records[best]


def _likeness(entry: Entry, record: Record) -> float:
    """Likeness of the titles, 0 to 100; an entry may leave out the subtitle."""
    ours, theirs = ("".join(title_words(title or "")) for title in (entry.title, record.title))
    if not ours or not theirs:
        return 0.0
    main = "".join(title_words((record.title or "").split(":")[0]))
    if ours == main and len(main) > 12:
        return 100.0
    return fuzz.ratio(ours, theirs)


def _spellings(word: str) -> set[str]:
    """A word of a name, folded, and as it is spelt without umlauts: Köhler, Kohler, Koehler."""
    return {*title_words(word), *title_words(word.lower().translate(_UMLAUTS))}


def _surnames(names: Sequence[str]) -> list[set[str]]:
    """The spellings of each surname: the last word that is no initial and no suffix."""
    surnames = []
    for name in names:
        words = [
            word
            for word in re.split(r"[\s.]+", name)
            if any(len(part) > 1 and part not in SUFFIXES for part in title_words(word))
        ]
        if words:
            # Of "Smith-Jones" the last is compared.
            last = re.split(r"[-‐–'’]", words[-1])[-1]
            surnames.append(_spellings(last) or _spellings(words[-1]))
    return surnames


def _authors_of_another(entry: Entry, record: Record) -> bool:
    """Whether the entry's first author and three quarters of all are none of the paper's."""
    ours, theirs = _surnames(entry.authors), _all_words(record.authors)
    if not ours or not theirs or ours[0] & _all_words(record.authors[:1]):
        return False
    return 4 * sum(bool(name & theirs) for name in ours) <= len(ours)


def _all_words(names: Sequence[str]) -> set[str]:
    return {spelling for name in names for spelling in _spellings(name)}


def _corrections(
    entry: Entry, record: Record, differences: Sequence[Difference], *, is_stated: bool
) -> Iterator[tuple[str, str]]:
    """(field, value) that an entry surely means: two others must agree with the record.

    A year is corrected in a preprint, or where it is before arXiv's and nothing says that the paper
    was printed earlier: the year of a later print is right.
    """
    differing = {difference.field for difference in differences}
    possible = _possible_years(entry, record)
    agreeing = {
        "identifier": is_stated,
        "title": bool(entry.title) and "title" not in differing,
        "authors": bool(entry.authors) and "authors" not in differing,
        "year": entry.year in possible,
    }
    if sum(agreeing.values()) < _FEWEST_AGREEING:
        return
    if "title" in differing and agreeing["authors"] and record.title:
        yield "title", f"{{{record.title}}}"
    if "authors" in differing and agreeing["title"]:
        yield "author", " and ".join(record.authors)
    if "year" in differing and agreeing["title"] and entry.year and possible and record.published:
        is_preprint = entry.venue is not None and _PREPRINT.search(entry.venue) is not None
        is_unprinted = record.journal_ref is None and record.doi is None
        if is_preprint or (is_unprinted and entry.year < min(possible)):
            yield "year", record.published[:4]


def _differences(entry: Entry, record: Record) -> list[Difference]:
    differences = []
    if entry.title and _likeness(entry, record) < 100:
        differences.append(Difference("title", entry.title, record.title or ""))
    if _authors_differ(entry, record):
        differences.append(
            Difference("authors", ", ".join(entry.authors), ", ".join(record.authors))
        )
    possible = _possible_years(entry, record)
    if entry.year is not None and possible and entry.year not in possible:
        journal = f"; {record.journal_ref}" if record.journal_ref else ""
        years = f"first on arXiv {record.published}{journal}"
        differences.append(Difference("year", str(entry.year), years))
    return differences


def _authors_differ(entry: Entry, record: Record) -> bool:
    """Whether an author of the entry is none of the paper's, or the first ones differ.

    The entry's list may be cut short.
    """
    ours = _surnames(entry.authors)
    if not ours or not record.authors:
        return False
    theirs = _all_words(record.authors)
    if not all(name & theirs for name in ours):
        return True
    return not ours[0] & _all_words(record.authors[:1])


def _possible_years(entry: Entry, record: Record) -> set[int]:
    """The years in which a work may be dated. A preprint has the years of its versions."""
    posted = int(record.published[:4]) if record.published else None
    if posted is None:
        return set()
    updated = int(record.updated[:4]) if record.updated else posted
    printed = set(map(int, _YEAR.findall(record.journal_ref or "")))
    if entry.venue is None or _PREPRINT.search(entry.venue):
        return printed | set(range(posted, updated + 1))
    return printed | set(range(posted - _YEARS_BEFORE, max(posted + _YEARS_AFTER, updated) + 1))


def _notes(entry: Entry, record: Record) -> list[str]:
    notes = []
    if record.status == "withdrawn":
        notes.append(f"{record.arxiv_id} was withdrawn")
    cited = split_version(entry.arxiv_id)[1] if entry.arxiv_id else None
    if cited and record.version and int(cited) < record.version:
        notes.append(f"version {cited} is cited, and version {record.version} is there")
    preprint = entry.venue is None or _PREPRINT.search(entry.venue) is not None
    if preprint and (record.journal_ref or (record.doi and not entry.doi)):
        notes.append(f"published since: {record.journal_ref or f'DOI {record.doi}'}")
    return notes
