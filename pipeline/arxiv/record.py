"""One paper as arXiv describes it, from any source, and what all sources share in reading it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from datetime import date
from email.utils import parsedate_to_datetime
from functools import lru_cache
from itertools import islice
from typing import Any, Literal

from pipeline.text import one_line

Status = Literal["present", "withdrawn", "absent"]

_WORK = (
    r"(?:paper|article|submission|manuscript|work|preprint|e-?print|note|letter|report|thesis"
    r"|draft)"
)
_VERB = re.compile(
    r"\b(?:withdr[ae]w[ns]?|withdrawing|withdrawal\sof|retract(?:ed|ing|s)?|retraction\sof)\b",
    re.IGNORECASE,
)
# Who or what a notice speaks of, at the beginning of it or before or behind the verb: the work, or
# its authors.
_THE_WORK_BEFORE = re.compile(
    r"(?:^\W*(?:(?:has|been|is|was|now|temporarily|permanently)\s+)*|"
    rf"\b{_WORK}\b(?:\W+[\w’'-]+){{0,8}}\W+|\b(?:we|i|authors?)\s(?:\w+\s){{0,3}})$",
    re.IGNORECASE,
)
_THE_WORK_BEHIND = re.compile(
    rf"\s+(?:(?:by|at\s+the\s+request\s+of)\s+(?:the\s|an?\s|its\s)?(?:\w+\s)?"
    rf"(?:authors?|submitters?|arxiv)|(?:this|our|the)\s+{_WORK})\b",
    re.IGNORECASE,
)
# Talk of another version, of a part, or of another paper; of a conference; a denial.
_OTHER_BEFORE = re.compile(
    r"\bv\d+\b|\bversions?\b(?!\s+of\s+record)|\b(?:draft|part|appendix|section|claim|theorem)\s+of\b|"
    r"\b(?:supersed|replac|correct|updat|extend)\w*\b|\b(?:earlier|previous|old|former)\b|"
    r"\bsubmission\s(?:to|at)\s(?!arxiv|the\sarxiv)|\b(?:not|never|nor)\b|n[’']t\b",
    re.IGNORECASE,
)
_OTHER_BEHIND = re.compile(
    r"\s+(?:(?:the|our|an?|its|this)\s+(?:\w+\s)?(?:claim|conjecture|theorem|lemma|corollar|result|proof"
    r"|statement|section|data|code)"
    rf"|{_WORK}s?\b|arXiv:|\d{{4}}\.\d|(?:\w+\s+){{0,3}}from\s+(?!arxiv|the\s+arxiv))",
    re.IGNORECASE,
)
# Each verb is a search of the whole clause.
_MOST_VERBS = 20
_CLAUSES = re.compile(r"[;!?\n]|(?<!\b[A-Za-z])\.(?=\s|$)")
_ABSTRACT_NOTICE = re.compile(
    r"\W*(?:(?:due\sto|because\sof|owing\sto|as|since)\s[^.]{3,160}?,\s)?"
    rf"(?:(?:this|the|our)\s{_WORK}\s(?:(?:has|have)\sbeen|is|was)\s(?:\w+\s)?|"
    rf"(?:the\s)?authors?\s(?:have\s|has\s)?(?=withdr\w+\sth(?:is|e)\s{_WORK})|"
    rf"we\s(?:have\s)?(?=withdr\w+\sth(?:is|e)\s{_WORK})|{_WORK}\s)?"
    r"(?:withdr[ae]wn?|retracted)\b"
    # "Withdrawn drugs are dangerous" is no notice.
    r"(?=\W*$|\s?[.,;:!)\]–—-]|\s(?:by|due|because|as|since|at|until|pending|in|on|and|owing|after|temporarily"
    rf"|for|from\s(?:the\s)?arxiv|th(?:is|e)\s{_WORK})\b)",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Record:
    """A row of the table `metadata`, as `pipeline.tables` describes it; None for unknown."""

    arxiv_id: str
    version: int | None = None
    title: str | None = None
    authors: tuple[str, ...] = ()
    abstract: str | None = None
    categories: tuple[str, ...] = ()
    primary_category: str | None = None
    published: str | None = None
    updated: str | None = None
    doi: str | None = None
    journal_ref: str | None = None
    comment: str | None = None
    source: str | None = None
    fetched_at: str | None = None
    status: Status = "present"

    def as_row(self) -> dict[str, Any]:
        """The record as a row of the table, or as JSON."""
        row = {name: getattr(self, name) for name in _COLUMNS}
        return row | {"authors": list(self.authors), "categories": list(self.categories)}

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> Record:
        """The record that `as_row` gave. Raises TypeError for a row of other columns."""
        lists = {name: tuple(row[name]) for name in ("authors", "categories")}
        return cls(**{**row, **lists})


# dataclasses.asdict copies deeply: 14 of the 36 microseconds that a line of the snapshot took from
# bytes to row.
_COLUMNS = tuple(field.name for field in fields(Record))


def absent(arxiv_id: str, source: str | None = None, fetched_at: str | None = None) -> Record:
    """The record of an identifier that no source knows."""
    return Record(arxiv_id, source=source, fetched_at=fetched_at, status="absent")


def with_status(record: Record) -> Record:
    """The record, marked withdrawn where its comment or abstract says so."""
    status: Status = "withdrawn" if is_withdrawn(record.comment, record.abstract) else "present"
    return record if record.status == status else replace(record, status=status)


def is_withdrawn(comment: str | None, abstract: str | None) -> bool:
    """Whether the newest version of a paper is a withdrawal.

    arXiv has no field for it: authors say so in the comment, or put the notice in the place of the
    abstract. So a comment counts that says in a clause that the work is withdrawn or retracted, an
    abstract only where a notice opens it: abstracts speak of withdrawn drugs and withdrawn bids. A
    notice of an earlier version or another paper is none, nor is one of leaving a conference.
    """
    if abstract and _ABSTRACT_NOTICE.match(abstract):
        return True
    # 99 of 100 comments lack the words and need not go through the patterns.
    small = (comment or "").lower()
    if not comment or ("withdr" not in small and "retract" not in small):
        return False
    return any(map(_is_notice, _CLAUSES.split(comment)))


def _is_notice(clause: str) -> bool:
    """Whether a clause says that this work is withdrawn."""
    for verb in islice(_VERB.finditer(clause), _MOST_VERBS):
        before, behind = clause[: verb.start()], clause[verb.end() :]
        is_of_work = _THE_WORK_BEFORE.search(before) or _THE_WORK_BEHIND.match(behind)
        if is_of_work and not _OTHER_BEFORE.search(before) and not _OTHER_BEHIND.match(behind):
            return True
    return False


def fold(text: str | None) -> str | None:
    """The text with runs of white space as one blank; None where nothing is left."""
    return one_line(text or "") or None


def is_day(text: str) -> bool:
    """Whether the text is a day as `YYYY-MM-DD`."""
    try:
        return date.fromisoformat(text).isoformat() == text
    except ValueError:
        return False


@lru_cache(maxsize=4096)
def parse_day(text: str) -> str:
    """The day of `Mon, 2 Apr 2007 19:18:42 GMT` as `2007-04-02`. Raises ValueError for no date."""
    return parsedate_to_datetime(text).date().isoformat()
