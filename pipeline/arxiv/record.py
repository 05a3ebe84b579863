"""One paper as arXiv describes it, from any source, and what all sources share in reading it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from datetime import date
from email.utils import parsedate_to_datetime
from functools import lru_cache
from typing import Any, Literal

from pipeline.text import one_line

Status = Literal["present", "withdrawn", "absent"]

_WORK = r"(?:paper|article|submission|manuscript|work|preprint|note|publication|version)"
# "This paper (with its appendix) has been withdrawn", "Withdrawn by the authors", "3 pages,
# withdrawn due to an error", and "The author withdraws this paper".
_NOTICE = re.compile(
    rf"(?:\b(?:this|the|our|my)\s|^\W*)(?:\w+\s)?{_WORK}(?:\s\([^)]{{0,80}}\))?,?\s"
    r"(?:(?:ha[sd]|have|is|was|be|been|being|needs?\sto|now|\w+ly)\s)+"
    r"(?:withdrawn|retracted|removed\sby)\b"
    rf"|^\W*(?:\d+\s\w+\W+)*(?:{_WORK}\s|(?:it\s)?(?:has\sbeen|is)\s|temporarily\s)?"
    r"(?:withdrawn|retracted|removed(?=\sby\s))(?=\W*$|\W*\s(?:by|due|because|see)\b)"
    rf"|\bwithdr[ae]w(?:s|n|ing|al)?\s(?:of\s)?(?:this|our|the|my)\s{_WORK}\b",
    re.IGNORECASE,
)
# Talk of another paper or version, or of a conference.
_OTHER = re.compile(
    r"\b(?:earlier|previous|first|is\snot|in\sthis|v\d)\b"
    r"|\bfrom\s(?!(?:the\s)?arxiv|consideration|publication)",
    re.IGNORECASE,
)
_CLAUSE_END = re.compile(r"[;!?\n]|(?<!\b[A-Za-z])\.(?=\s|$)")


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
    abstract only by its first sentence: abstracts speak of withdrawn drugs and withdrawn bids. A
    notice of an earlier version or another paper is none, nor is one of leaving a conference.
    """
    opening = _CLAUSE_END.split(abstract or "", maxsplit=1)[0]
    clauses = [opening, *_CLAUSE_END.split(comment or "")]
    return any(_NOTICE.search(clause) and not _OTHER.search(clause) for clause in clauses)


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
