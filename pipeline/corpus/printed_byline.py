"""Bylines as the page prints them, and those that LaTeXML split at the commas of an affiliation put together again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest

from pipeline.arxiv.person_names import KnownNames, is_name
from pipeline.corpus.byline_text import is_affiliation, kinds_of, normalize, plain_line, split_marks
from pipeline.corpus.policies import LINE, MARK, fold

AFFILIATION_ROLES = frozenset({"affiliation", "address", "institution", "institute", "organization"})


@dataclass(slots=True)
class Byline:
    """One `ltx_creator`. `names` has the marks LINE, CELL, INNER, AUTHOR, PLACE, ERRED, and MARK around marks."""

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
        return frozenset(mark for marks in normalize(self.names).split(MARK)[1::2] for mark in split_marks(marks))

    @property
    def has_affiliations(self) -> bool:
        """Whether affiliations stand in its contacts."""
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


def join_split_bylines(bylines: Sequence[Byline], known: KnownNames) -> list[Byline]:
    """The bylines, those that go on with the affiliation before them put together with it.

    A class that LaTeXML does not know has its authors split at every comma: "Ann Lee, University of X, Oslo, Norway" is
    four bylines. Names alone on a line before the affiliation share it, so they are one byline with it.
    """
    joined: list[Byline] = []
    for byline, following in zip_longest(bylines, bylines[1:]):
        if not joined or not _continues(byline, joined[-1], following, known):
            joined.append(Byline(byline.names, [*byline.contacts], [*byline.notes], [*byline.remarks]))
            continue
        while len(joined) > 1 and _is_bare(joined[-1]) and _ends_in_name(joined[-2]):
            name = joined.pop()
            joined[-1].append(name)
        joined[-1].append(byline)
    return joined


def _continues(byline: Byline, before: Byline, following: Byline | None, known: KnownNames) -> bool:
    """Whether a byline goes on with the affiliation at the end of the one before it."""
    first, *rest = byline.lines or [""]
    if not first or known.match(first) is not None:
        return False
    if is_affiliation(first):
        return True
    if before.has_affiliations:
        return first[0].islower() or first.isupper()
    if rest or not _ends_in_affiliation(before):
        return False
    return not is_name(first) or (following is not None and kinds_of("".join(following.lines[:1])) == {"location"})


def _ends_in_affiliation(byline: Byline) -> bool:
    *above, last = byline.lines or [""]
    return is_affiliation(last) or (bool(above) and not is_name(last))


def _ends_in_name(byline: Byline) -> bool:
    return not byline.contacts and not _ends_in_affiliation(byline)


def _is_bare(byline: Byline) -> bool:
    return len(byline.lines) == 1 and not byline.contacts
