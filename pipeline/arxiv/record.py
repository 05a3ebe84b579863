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
    r"|draft|publication|study|(?<=this\s)version|(?<=current\s)version)"
)
_AUXILIARY = (
    r"(?:(?:ha[sd]|have|been|being|be|is|are|was|were|as|now|hereby|therefore"
    r"|need|needs|must|should|will|to|considered|since|\w+ly)\s+)"
)
_VERB = re.compile(
    r"\b(?:withdr[ae]w[ns]?|withdrawing|withdrawal|retract(?:ed|ing|s|ion)?"
    r"|removed(?=\sby\s|\sfrom\sarxiv))\b",
    re.IGNORECASE,
)
# A notice has the work as subject or object of the verb, or none but the number of its pages.
# Between the two, words may be inserted: "this paper (and its appendix) has been withdrawn".
_INSERTED = (
    r".{0,80}?(?:(?:[,)\"”’]|\b(?:and|it))\s(?:therefore\s)?(?:ha[sd]|is|was|needs?|must|should)"
    r"|\bit\s(?:\w+\s){1,2}and)\s"
)
_THE_WORK_BEFORE = re.compile(
    rf"(?:^\W*|(?<!\bof\s)\b(?:this|the|our|my)\s(?:\w+\s)?){_WORK}s?\W"
    rf"(?:\W*|{_INSERTED}){_AUXILIARY}*$",
    re.IGNORECASE,
)
_THE_WORK_BEHIND = re.compile(
    rf"\s(?:of\s)?(?:this|our|the|my)\s(?:\w+\s)?{_WORK}\b", re.IGNORECASE
)
_NOTHING_BEFORE = re.compile(
    rf"\W*(?:\d+\s(?:pages?|figures?|tables?)\W+)*(?:it\s)?{_AUXILIARY}*", re.IGNORECASE
)
# "Withdrawn drugs are dangerous" is no notice.
_NO_NOUN_BEHIND = re.compile(
    r"\W*$|\s?(?:[.,;:()\[\]–—]|-(?!\w))|\s(?:by|due|because|as|since|at|until|pending|in|on|and|owing|after"
    r"|temporarily|to|for|from|see|th(?:is|e))\b",
    re.IGNORECASE,
)
# Talk of another paper or version, or of a conference.
_OTHER_BEFORE = re.compile(r"\b(?:earlier|previous|old|former|initial|original)", re.IGNORECASE)
_OTHER_BEHIND = re.compile(
    r"\s(?:\w+\s){0,3}from\s(?!(?:the\s)?arxiv|consideration|publication)", re.IGNORECASE
)
_WITH_AN_OBJECT = ("withdraws", "retracts")
# Each verb is a search of the whole clause.
_MOST_VERBS = 20
_SENTENCE_END = re.compile(r"[;!?\n]|(?<!\b[A-Za-z])\.(?=\s|$)")
_CLAUSES = re.compile(
    rf"{_SENTENCE_END.pattern}|,\s(?=(?:this|the|our)\s{_WORK}\b)|\badmin\snote:\s", re.IGNORECASE
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
    abstract only by its first sentence: abstracts speak of withdrawn drugs and withdrawn bids. A
    notice of an earlier version or another paper is none, nor is one of leaving a conference.
    """
    opening = _SENTENCE_END.split(abstract or "", maxsplit=1)[0]
    return _has_notice(opening) or _has_notice(comment or "")


def _has_notice(text: str) -> bool:
    """Whether a clause of a text says that this work is withdrawn."""
    # 99 of 100 texts lack the words and need not go through the patterns.
    small = text.lower()
    if not any(word in small for word in ("withdr", "retract", "removed")):
        return False
    return any(map(_is_notice, _CLAUSES.split(text)))


def _is_notice(clause: str) -> bool:
    for verb in islice(_VERB.finditer(clause), _MOST_VERBS):
        before, behind = clause[: verb.start()], clause[verb.end() :]
        if _OTHER_BEFORE.search(before) or _OTHER_BEHIND.match(behind):
            continue
        if _THE_WORK_BEHIND.match(behind):
            return True
        # "This paper retracts a claim": its object is another.
        if verb[0].lower() in _WITH_AN_OBJECT:
            continue
        if _THE_WORK_BEFORE.search(before):
            return True
        if _NOTHING_BEFORE.fullmatch(before) and _NO_NOUN_BEHIND.match(behind):
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
