"""Lines of a byline to groups of names and the affiliations below them.

The names are those of arXiv's metadata. People whom it does not name are taken where a page prints
names alone: in a row with known ones, or on the first line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import NamedTuple

from pipeline.corpus.parse.affiliations import split_marked, without_full_stop
from pipeline.corpus.parse.byline_rules import is_affiliation, kinds_of
from pipeline.corpus.parse.byline_text import (
    EDGES,
    Byline,
    has_letters,
    normalize,
    plain_line,
    split_marks,
    take_emails,
    without_addresses,
    without_signs,
)
from pipeline.corpus.parse.policies import AUTHOR, CELL, INNER, LINE, MARK, PLACE, fold
from pipeline.identity.people import KnownNames, NamePlace, blank_titles, is_name, is_suffix
from pipeline.identity.titles import title_words

# LaTeX's column sign left over from \And, as in "&Ann Lee", or the macro itself.
_NEXT_AUTHOR = re.compile(rf"(?:(?<=[\s{LINE}{MARK}{AUTHOR}])|^)&(?=[^\s&])|\\(?:And|AND|and)\b")
_BETWEEN_NAMES = re.compile(rf"{MARK}[^{MARK}]*{MARK}?|[,;:·•|()\[\]{CELL}{INNER}]|\band\b|&")
_GAP = re.compile(r"(?<!\s)(?=\s*[\u2001\u2003\u3000])\s++|[ \xa0]{2,}")
_SOURCE_BREAK = re.compile(r"(?<![ \t])[ \t]*+\n[ \t\n]*+")
# Marks behind a name: superscripts, but for the mark of the affiliation that follows them; or
# numbers that were meant as such, as in "Ann Lee1,2".
_SUPERSCRIPT = rf"[\s,]*{MARK}[^{MARK}]*{MARK}"
_MARKS_BEHIND = re.compile(
    rf"(?:{_SUPERSCRIPT}(?!\s*(?!and\b)[^\W\d_]))+|{_SUPERSCRIPT}"
    r"|\s?\d{1,2}(?:,\s?\d{1,2})*(?=\s*(?:[,;]|$|and\b))"
)
# A number or letter that was meant as a mark before an affiliation: "1 University of X".
_LEADING_MARK = re.compile(r"\s*[(\[]?(\d{1,2}|[a-z])[)\].]?\s*(?=[^\W\d_a-z])")
_BEFORE_AFFILIATION = re.compile(r"^(?:[\s,;:·•|)\]]|and\b)+")
_BEHIND_AFFILIATION = re.compile(r"(?<![\s,;:·•|(\[])(?:[\s,;:·•|(\[]|\band){1,200}+$")
_ENDS_OPEN = re.compile(r"(?:,|;|&|·|\band)$")
_LONGEST_AFFILIATION = 600
_NO_LETTER = re.compile(r"[^a-z]+")


@dataclass(slots=True, eq=False)
class PrintedName:
    """A name as printed, with its marks; its affiliations and e-mails once they are linked."""

    text: str
    marks: set[str] = field(default_factory=set)
    column: list[str] = field(default_factory=list)
    """Lines of the affiliation below the name, where each name of a line has its own."""
    affiliations: list[str] = field(default_factory=list)
    emails: list[str] = field(default_factory=list)
    local_parts: list[str] = field(init=False)
    """Local parts of addresses made of the name: combinations, then single words."""

    def __post_init__(self) -> None:
        words = [word for word in title_words(self.text) if not is_suffix(word)]
        first, last = (words[0], words[-1]) if words else ("", "")
        initials = "".join(word[0] for word in words)
        self.local_parts = [
            initials,
            first[:1] + last,
            last + first[:1],
            first + last[:1],
            last + first,
            *words,
        ]

    def fits(self, email: str) -> bool:
        """Whether an address is made of the name."""
        local = _NO_LETTER.sub("", email.partition("@")[0].lower())
        return bool(local) and (
            local in self.local_parts
            or any(len(word) > 2 and word in local for word in self.local_parts[4:])
        )


@dataclass(slots=True)
class AuthorGroup:
    """Names that share what is below them. `affiliation_lines` are (marks, text)."""

    names: list[PrintedName] = field(default_factory=list)
    affiliation_lines: list[tuple[frozenset[str], str]] = field(default_factory=list)
    emails: list[str] = field(default_factory=list)

    @property
    def is_complete(self) -> bool:
        """Whether something is below the names, so that another name opens another group."""
        has_columns = any(name.column for name in self.names)
        return bool(self.names and (self.affiliation_lines or self.emails or has_columns))


def names_of(groups: Sequence[AuthorGroup]) -> list[PrintedName]:
    """The names of some groups, in order, each once."""
    return list(dict.fromkeys(name for group in groups for name in group.names))


class Person(NamedTuple):
    """A name in a line, by offsets; `text` is the name as printed."""

    start: int
    end: int
    text: str


class NameFinder:
    """Finds the names in the lines of one page's bylines.

    On a page that prints none of the known names, the first lines name a team or its people: these
    names are taken as printed.
    """

    def __init__(self, known: KnownNames, bylines: Sequence[Byline]) -> None:
        self.find_known = cache(known.find)
        printed = {
            place.name
            for byline in bylines
            for line in byline.lines
            for start, end in _parts(line)
            for place in self.find_known(line[start:end])
        }
        self.missing_words = {
            word
            for name in known.names
            if name not in printed
            for word in title_words(name)
            if len(word) > 2
        }
        """Words of known names that the page does not print so."""
        self.prints_all = bool(known.names) and len(printed) == len(known.names)
        self.prints_none = not printed

    def find(self, line: str, *, is_list: bool = False) -> list[Person]:
        """The names in a line.

        is_list: whether names are expected, as on the first line of an author's own byline.
        """
        people: list[Person] = []
        others: list[tuple[int, int]] = []
        for start, end in _parts(line):
            part = line[start:end]
            places = self.find_known(part)
            whole = fold(part)
            if len(places) == 1 and is_name(whole) and _is_most_of(places[0], part):
                people.append(Person(start, end, whole))
            elif places and not is_affiliation(part[: places[0].start]):
                people += [
                    Person(start + first, start + last, fold(part[first:last]))
                    for first, last, _ in places
                ]
            elif people and is_suffix(part):
                name = people.pop()
                people.append(Person(name.start, end, f"{name.text}, {fold(part)}"))
            else:
                others.append((start, end))
        unknown = [
            place
            for place in others
            if self._is_unknown_person(line, *place, people, is_list=is_list)
        ]
        people += [
            Person(start, end, without_full_stop(fold(line[start:end])).lstrip(". "))
            for start, end in unknown
        ]
        return sorted(people)

    def _is_unknown_person(
        self, line: str, start: int, end: int, people: Sequence[Person], *, is_list: bool
    ) -> bool:
        """Whether a part of a line names somebody whom metadata does not name so."""
        text = fold(line[start:end])
        if kinds_of(text):
            return False
        if self.prints_none:
            return is_list
        if not is_name(text) or line.lstrip().startswith(MARK):
            return False
        if line.count("(", 0, start) > line.count(")", 0, start):
            return False  # "Ann Lee (Acme Systems, Oslo)"
        if people and people[0].start < start < people[-1].start:
            return True
        if len(people) > 1 and not is_affiliation(plain_line(line[start:])):
            return True
        has_missing_word = not self.missing_words.isdisjoint(title_words(text))
        return is_list or has_missing_word

    def is_unknown_row(self, line: str) -> bool:
        """Whether a line below names is a row of names too, on a page that prints no known one."""
        texts = [fold(line[start:end]) for start, end in _parts(line)]
        return (
            self.prints_none
            and len(texts) > 1
            and all(is_name(text) and not kinds_of(text) for text in texts)
        )


def _is_most_of(place: NamePlace, part: str) -> bool:
    """Whether a known name is at least half of a part: the page may print more of the name."""
    return 2 * (place.end - place.start) >= len(part.strip())


def _parts(line: str) -> Iterator[tuple[int, int]]:
    """The parts of a line that may be a name each, by offsets; what is in a row is one part."""
    start = 0
    ends = [(match.start(), match.end()) for match in _BETWEEN_NAMES.finditer(line)]
    for end, following in [*ends, (len(line), len(line))]:
        yield from _whole_names(line, start, end)
        start = following


def _whole_names(line: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """A part of a line, or the names in it that wide gaps separate; without digits behind them."""
    edges = [start]
    for gap in _GAP.finditer(line[start:end]):
        edges += [start + gap.start(), start + gap.end()]
    edges.append(end)
    pieces = [
        (first, last)
        for first, last in zip(edges[::2], edges[1::2], strict=True)
        if has_letters(line[first:last])
    ]
    if len(pieces) > 1 and not all(is_name(fold(line[first:last])) for first, last in pieces):
        pieces = [(pieces[0][0], pieces[-1][1])]
    for first, last in pieces:
        yield first, first + len(line[first:last].rstrip("0123456789 "))


class LineReader:
    """Reads the bylines of one page, one by one."""

    def __init__(self, finder: NameFinder) -> None:
        self.finder = finder
        self.names: dict[str, PrintedName] = {}
        self.groups: list[AuthorGroup] = []
        self.remarks: list[str] = []

    def read(self, byline: Byline) -> tuple[list[AuthorGroup], list[str]]:
        """(groups, remarks) of the lines of one byline; at least one group."""
        self.groups, self.remarks = [], []
        names = normalize(byline.names).replace(PLACE, LINE)
        text = LINE.join(self._lay_out(line) for line in names.split(LINE))
        text = _NEXT_AUTHOR.sub(AUTHOR, text)
        blocks = [block for block in text.split(AUTHOR) if has_letters(block)]
        for block in blocks:
            self.groups.append(AuthorGroup())
            is_of_one = len(blocks) > 1 or bool(byline.contacts)
            self._read_block(block, is_list=is_of_one or not self.finder.prints_all)
        return self.groups or [AuthorGroup()], self.remarks

    def _lay_out(self, line: str) -> str:
        """A line of grids beside each other: an author each where they begin with names."""
        if INNER not in line:
            return line
        pieces = line.split(CELL)
        cells = [cell for cell in pieces[1::2] if has_letters(cell)]
        if not all(self.finder.find(cell.partition(INNER)[0], is_list=True) for cell in cells):
            return line
        authors = AUTHOR + AUTHOR.join(cells).replace(INNER, LINE)
        return LINE.join([authors, *filter(has_letters, pieces[::2])])

    def _read_block(self, block: str, *, is_list: bool) -> None:
        """Read the lines of one author, or of all; `is_list` is that of the first."""
        count = 0
        for line in block.split(LINE):
            text, emails = take_emails(line)
            text = without_addresses(text)
            if has_letters(text):
                is_list = is_list or (count > 1 and self.finder.is_unknown_row(text))
                count = self._read_line(text, is_list=is_list)
                ends_open = _ENDS_OPEN.search(plain_line(line)) is not None
                is_list = count > 0 and ends_open and not self.finder.prints_all
            self.groups[-1].emails += emails

    def _read_line(self, line: str, *, is_list: bool) -> int:
        """Add the names and affiliations of a line, and return how many names it has."""
        kinds = kinds_of(plain_line(line))
        if "nothing" in kinds:
            return 0
        if "remark" in kinds:
            self.remarks += [text for _, text in split_marked(line)]
            return 0
        # "MD" is a title behind a name, and Maryland behind a town: affiliations keep it.
        bare = blank_titles(line)
        people = self.finder.find(bare, is_list=is_list)
        if not people:
            self._add_affiliation(line)
            return 0
        before = _BEHIND_AFFILIATION.sub("", line[: people[0].start])
        if self.groups[-1].names and is_affiliation(plain_line(before)):
            self._add_affiliation(before)  # "University of X & Bob Roe"
        ends = [*(person.start for person in people[1:]), len(line)]
        for person, end in zip(people, ends, strict=True):
            self._add_name(without_signs(person.text))
            self._read_behind_name(line[person.end : end], bare[person.end : end])
        return len(people)

    def _add_name(self, text: str) -> None:
        """Add a name to the group that is open, or open another."""
        name = self.names.setdefault(text, PrintedName(text))
        if self.groups[-1].is_complete or name in self.groups[-1].names:
            self.groups.append(AuthorGroup())
        self.groups[-1].names.append(name)

    def _read_behind_name(self, text: str, bare: str) -> None:
        """Read the marks behind the last name, and its affiliation.

        bare: the text with spaces in place of titles.
        """
        start = 0
        marks = _MARKS_BEHIND.match(bare)
        if marks:
            self.groups[-1].names[-1].marks |= split_marks(marks[0])
            start = marks.end()
        rest = _BEHIND_AFFILIATION.sub("", bare[start:])
        end = start + len(rest)
        rest = _BEFORE_AFFILIATION.sub("", rest)
        if has_letters(rest):
            affiliation = text[end - len(rest) : end]
            if affiliation[0] == "(" and affiliation[-1] == ")":
                affiliation = affiliation[1:-1]
            self._add_affiliation(affiliation)

    def _add_affiliation(self, line: str) -> None:
        """Add a line of affiliations to the group that is open."""
        group = self.groups[-1]
        cells = line.split(CELL)[1::2] if CELL in line else _GAP.split(_SOURCE_BREAK.sub(" ", line))
        cells = [cell.strip(f"{EDGES}\n\xa0") for cell in cells]
        if len(cells) == len(group.names) > 1 and not any(MARK in cell for cell in cells):
            for name, cell in zip(group.names, cells, strict=True):
                name.column += [
                    without_signs(text) for text in cell.split(INNER) if has_letters(text)
                ]
            return
        lines = split_marked(line.replace(CELL, " ").replace(INNER, ", "))
        lead = _LEADING_MARK.match(line)
        if lead and not lines[0][0] and any(lead[1] in name.marks for name in self.names.values()):
            lines = [(frozenset({lead[1]}), fold(line[lead.end() :]).strip(EDGES))]
        if group.affiliation_lines and lines and not lines[0][0]:
            # A line without a mark goes on with the affiliation above, if that has one.
            marks, above = group.affiliation_lines[-1]
            if marks and len(above) < _LONGEST_AFFILIATION:
                group.affiliation_lines.pop()
                lines[0] = (marks, f"{above}, {lines[0][1]}")
        group.affiliation_lines += lines


@dataclass(slots=True)
class _Joined:
    """Bylines put together. ends_in_name: whether no affiliation is behind its last name."""

    byline: Byline
    is_one_name: bool
    ends_in_name: bool


def join_split_bylines(bylines: Sequence[Byline], finder: NameFinder) -> list[Byline]:
    """The bylines, each put together with those behind it that do not begin with a name.

    A class that LaTeXML does not know has its authors split at every comma: "Ann Lee, University of
    X, Oslo, Norway" is four bylines. Names alone on a line before the affiliation share it, so they
    are one byline with it.
    """
    joined: list[_Joined] = []
    for byline in bylines:
        lines = byline.lines
        is_list = bool(byline.contacts) or not finder.prints_all
        ends_in_name = bool(lines) and bool(
            finder.find(lines[-1], is_list=is_list and len(lines) == 1)
        )
        if not joined or not lines or finder.find(lines[0], is_list=is_list):
            copy = Byline(byline.names, [*byline.contacts], [*byline.notes], [*byline.remarks])
            names_only = ends_in_name and not byline.contacts
            joined.append(_Joined(copy, names_only and len(lines) == 1, names_only))
            continue
        while len(joined) > 1 and joined[-1].is_one_name and joined[-2].ends_in_name:
            name = joined.pop()
            joined[-1].byline.append(name.byline, ", ")
        last = joined[-1]
        last.byline.append(byline, LINE if last.ends_in_name else ", ")
        last.is_one_name = False
        last.ends_in_name = ends_in_name and not last.byline.contacts
    return [entry.byline for entry in joined]
