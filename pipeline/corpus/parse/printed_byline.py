"""Bylines as the page prints them, and those that LaTeXML split at the commas of an affiliation put
together again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from pipeline.arxiv.person_names import KnownNames, is_name
from pipeline.corpus.parse.byline_rules import (
    is_affiliation,
    kinds_of,
    normalize,
    plain_line,
    split_marks,
)
from pipeline.corpus.parse.policies import LINE, MARK, fold

AFFILIATION_ROLES = frozenset(
    {"affiliation", "address", "institution", "institute", "organization"}
)


@dataclass(slots=True)
class Byline:
    """One `ltx_creator`. `names` has the marks LINE, CELL, INNER, AUTHOR, PLACE, ERRED, and MARK
    around marks.
    """

    names: str = ""
    contacts: list[tuple[str, str]] = field(default_factory=list)
    """(role, text) of affiliations, e-mails and the like, with LINE between lines."""
    notes: list[tuple[str, str]] = field(default_factory=list)
    """(mark, text) of footnotes on the names."""
    remarks: list[str] = field(default_factory=list)

    def add_note(self, mark: str, text: str) -> None:
        """Keep a footnote on a name where it says anything."""
        if fold(text):
            self.notes.append((mark, text))

    def texts(self) -> Iterator[str]:
        """Everything that it says."""
        yield self.names
        yield from self.remarks
        yield from (text for _, text in (*self.contacts, *self.notes))

    @property
    def lines(self) -> list[str]:
        """The words of its names, line by line."""
        return [text for line in normalize(self.names).split(LINE) if (text := plain_line(line))]

    @property
    def marks(self) -> frozenset[str]:
        """The marks on its names."""
        return frozenset(
            mark for marks in normalize(self.names).split(MARK)[1::2] for mark in split_marks(marks)
        )

    @property
    def has_affiliations(self) -> bool:
        """Whether affiliations are in its contacts."""
        return any(role in AFFILIATION_ROLES for role, _ in self.contacts)

    def append(self, other: Byline) -> None:
        """Append the rest of a byline, which a comma separated from it."""
        if self.has_affiliations:
            self.contacts.append(("affiliation", other.names))
        else:
            self.names = f"{self.names.rstrip()}, {other.names.strip()}"
        self.contacts += other.contacts
        self.notes += other.notes
        self.remarks += other.remarks


@dataclass(slots=True)
class _Joined:
    """A byline put together so far. in_affiliation: whether its text ends within an affiliation."""

    byline: Byline
    has_one_line: bool
    in_affiliation: bool

    @property
    def ends_in_name(self) -> bool:
        return not self.in_affiliation and not self.byline.contacts


def join_split_bylines(bylines: Sequence[Byline], known: KnownNames) -> list[Byline]:
    """The bylines, those that go on with the affiliation before them put together with it.

    A class that LaTeXML does not know has its authors split at every comma: "Ann Lee, University of
    X, Oslo, Norway" is four bylines. Names alone on a line before the affiliation share it, so they
    are one byline with it.
    """
    joined: list[_Joined] = []
    lines_of = [byline.lines for byline in bylines]
    for byline, lines, following in zip(
        bylines, lines_of, [*lines_of[1:], list[str]()], strict=False
    ):
        last = lines[-1] if lines else ""
        if not joined or not _continues(lines, following, joined[-1], known):
            copy = Byline(byline.names, [*byline.contacts], [*byline.notes], [*byline.remarks])
            in_affiliation = is_affiliation(last) or (len(lines) > 1 and not is_name(last))
            joined.append(_Joined(copy, len(lines) == 1, in_affiliation))
            continue
        while (
            len(joined) > 1
            and joined[-1].has_one_line
            and joined[-1].ends_in_name
            and joined[-2].ends_in_name
        ):
            name = joined.pop()
            joined[-1].byline.append(name.byline)
        joined[-1].byline.append(byline)
        joined[-1].has_one_line = False
        joined[-1].in_affiliation = len(lines) == 1 or not is_name(last)
    return [entry.byline for entry in joined]


def _continues(
    lines: Sequence[str], following: Sequence[str], before: _Joined, known: KnownNames
) -> bool:
    """Whether the lines of a byline go on with the affiliation at the end of the one before it."""
    if not lines or known.match(lines[0]) is not None:
        return False
    first = lines[0]
    if is_affiliation(first):
        return True
    if before.byline.has_affiliations:
        return first[0].islower() or first.isupper()
    if len(lines) > 1 or not before.in_affiliation:
        return False
    return not is_name(first) or kinds_of("".join(following[:1])) == {"location"}
