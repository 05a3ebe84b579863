"""Bylines to authors: what a page prints of the people whom metadata names.

Names are found in the lines of all bylines, in order; what is below or behind a name is its
affiliation. Marks then lead from names to the places that begin with them, wherever those are.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import NamedTuple

from pipeline.corpus.parse.affiliations import (
    LEADING_LABEL,
    has_sentence,
    join_lines,
    split_marked,
    split_places,
    without_full_stop,
    workplaces,
)
from pipeline.corpus.parse.byline_rules import is_affiliation, kinds_of
from pipeline.corpus.parse.byline_text import (
    AFFILIATION_ROLES,
    EDGES,
    Byline,
    find_emails,
    has_letters,
    marks_of,
    normalize,
    plain_line,
    split_doubled_marks,
    take_emails,
    without_addresses,
    without_signs,
)
from pipeline.corpus.parse.front_matter import is_no_prose, lines_of
from pipeline.corpus.parse.parsed_page import Author
from pipeline.corpus.parse.policies import AUTHOR, CELL, INNER, LINE, MARK, NOTE, PLACE, fold
from pipeline.identity.people import KnownNames, blank_titles, is_name, is_suffix
from pipeline.identity.titles import title_words

# LaTeX's column sign left over from \And, as in "&Ann Lee", or the macro itself.
_NEXT_AUTHOR = re.compile(rf"(?:(?<=[\s{LINE}{MARK}{AUTHOR}])|^)&(?=[^\s&])|\\(?:And|AND|and)\b")
_BETWEEN_NAMES = re.compile(rf"{MARK}[^{MARK}]*{MARK}?|[,;:·•|()\[\]{CELL}{INNER}]|\band\b|&")
_GAP = re.compile(rf"(?<!\s)(?=\s*[\u2001\u2003\u3000])\s++|[ \xa0]{{2,}}|{CELL}")
# Marks behind a name: superscripts, but for the mark of the affiliation that follows them; or
# numbers that were meant as such, as in "Ann Lee1,2".
_SUPERSCRIPT = rf"[\s,]*{MARK}[^{MARK}]*{MARK}"
_MARKS_BEHIND = re.compile(
    rf"(?:{_SUPERSCRIPT}(?!\s*(?!and\b)[^\W\d_]))+|{_SUPERSCRIPT}"
    r"|\s?\d{1,2}(?:,\s?\d{1,2})*(?=\s*(?:[,;]|$|and\b))"
)
_AROUND_PLACE = "[\\s,;:·•|()\\[\\]&]|\\band\\b"
_BEFORE_PLACE = re.compile(rf"(?:{_AROUND_PLACE}){{1,200}}+")
_BEHIND_PLACE = re.compile(r"(?<![\s,;:·•|(\[])(?:[\s,;:·•|(\[&]|\band\b){1,200}+$")
_ENDS_OPEN = re.compile(r"(?:,|;|&|·|\band)\s*$")
# LaTeXML runs the \thanks of several authors together: "Work performed at X.Work performed at Y."
_NEXT_REMARK = re.compile(r"(?<=[a-z]{2}\.)(?=[A-Z][a-z])")
# What may be between the places of as many people, and of which kinds these are then.
_SEPARATORS = (
    (", ", "organisation", "institute"),
    (" & ", "organisation", "institute", "location"),
    (" and ", "organisation", "institute", "location"),
)
# "2Oslund Institute" of somebody whose mark is lost; no "3M".
_GLUED_NUMBER = re.compile(r"\d{1,2}(?=[A-Z][a-z])")
# LaTeXML prints the arguments of LIPIcs's \author after the name like this: place, e-mail and ORCID
# without spaces between them.
_PLACE_AND_EMAIL = re.compile(r"([^@]{1,1000})@([\w-]+(?:\.[\w-]+)+)")
_ORCID = re.compile(r"https?://orcid\.org/[\dX-]+")
_NO_LETTER = re.compile(r"[^a-z]+")
_LONGEST_PLACE = 600
# Lists of thousands of authors name a few addresses; each is compared with no more names than
# these.
_MOST_NAMES = 300


@dataclass(slots=True, eq=False)
class _Person:
    """An author, or somebody whom the page alone names."""

    name: str
    marks: list[str] = field(default_factory=list)
    affiliations: list[str] = field(default_factory=list)
    emails: list[str] = field(default_factory=list)

    def is_name_of(self, local: str) -> bool:
        """Whether the local part of an address is the name, its end, or initials and a word."""
        words = [word for word in title_words(self.name) if not is_suffix(word)] or [""]
        first, last = words[0], words[-1]
        ends = ["".join(words[start:]) for start in range(len(words))]
        initials = "".join(word[:1] for word in words)
        combinations = (initials, first[:1] + last, last + first[:1], first + last[:1])
        return local in (*words, *ends, *combinations, first + last, last + first)

    def fits(self, email: str) -> bool:
        """Whether an address is made of the name, or has a word of it."""
        local = _NO_LETTER.sub("", email.partition("@")[0].lower())
        words = (word for word in title_words(self.name) if len(word) > 2)
        return bool(local) and (self.is_name_of(local) or any(word in local for word in words))


@dataclass(slots=True)
class _Group:
    """People who share the lines and e-mails below them."""

    people: list[_Person] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    emails: list[str] = field(default_factory=list)


class BylineText(NamedTuple):
    """What bylines say.

    differ: how many names they alone have, or metadata alone. remarks: notes on authors, and names
    that metadata lacks. unlinked: affiliations of which the page does not say whose they are.
    front: the paragraphs outside of bylines that were read.
    """

    authors: tuple[Author, ...]
    differ: int
    remarks: list[str]
    unlinked: list[str]
    front: list[str]


def read_bylines(
    bylines: Sequence[Byline],
    institutes: Sequence[str],
    known: Sequence[str] = (),
    front: Sequence[str] = (),
) -> BylineText:
    """The authors of a page, and what else its bylines say.

    institutes: affiliations and e-mails given for all authors at once (LNCS's `\\institute`).
    known: the authors as arXiv's metadata names them; without them, those whom the first lines of
    the bylines print. front: paragraphs before the first section, outside of bylines.
    """
    names = known or printed_names(bylines)
    reader = _Reader(names, bylines)
    _remove_repeated_remarks(bylines)
    for byline in bylines:
        reader.read(byline)
    used = reader.read_front(front)
    reader.link(institutes)
    authors = reader.authors() if bylines else ()
    linked = {text for author in authors for text in (author.name, *author.affiliations)}
    others = [person for person in dict.fromkeys(reader.read_people) if person not in reader.people]
    reader.remarks += [(person.name, None) for person in others]
    unnamed = {*reader.people}.difference(reader.read_people)
    differ = len(others) + len(unnamed) if bylines and known else 0
    return BylineText(
        authors,
        differ,
        list(dict.fromkeys(text for text, _ in reader.remarks if has_letters(text))),
        [text for text in dict.fromkeys(map(plain_line, reader.unlinked)) if text not in linked],
        used,
    )


def _remove_repeated_remarks(bylines: Sequence[Byline]) -> None:
    """Remove from each byline's last remark those of the bylines behind it, which LaTeXML repeats
    in classes that it does not know, such as EPTCS's.
    """
    own: list[str] = []
    following = ""
    for byline in reversed(bylines):
        remark = byline.remarks[-1] if byline.remarks else ""
        own.append(remark.removesuffix(following).rstrip())
        if not has_letters(own[-1]) or (following and own[-1] == remark):
            return
        following = own[-1] + following
    for byline, text in zip(reversed(bylines), own, strict=True):
        byline.remarks[-1] = text


def printed_names(bylines: Sequence[Byline]) -> list[str]:
    """The names that the first line of each byline prints, and the lines below that are lists of
    names alone, or a name behind an e-mail.
    """
    names: list[str] = []
    for block in (block for byline in bylines for block in _blocks(byline)):
        lines = [_people_of(line) for line in block.split(LINE)]
        is_list_alone = all(people == parts for people, parts in lines)
        is_list = True
        for line, (people, parts) in zip(block.split(LINE), lines, strict=True):
            if not parts:
                is_list = is_list or "@" in line
                continue
            if (is_list and parts[0] in people) or len(people) == len(parts) > 1:
                for part in people:
                    if names and is_suffix(part):
                        names[-1] = f"{names[-1]}, {part}"
                    else:
                        names.append(part)
            ends_open = MARK in line or _ENDS_OPEN.search(line) is not None
            is_list = is_list_alone or (is_list and people == parts and ends_open)
    return list(dict.fromkeys(names))


def _people_of(line: str) -> tuple[list[str], list[str]]:
    """(parts of a line that may be names of people, all parts)."""
    if INNER in line:
        line = CELL.join(cell.partition(INNER)[0] for cell in line.split(CELL))
    line = blank_titles(without_addresses(line))
    parts = list[str]()
    for start, end in _parts(line):
        pieces = [fold(piece) for piece in _GAP.split(line[start:end]) if fold(piece)]
        parts += pieces if all(map(is_name, pieces)) else [fold(line[start:end])]
    parts = [part.strip(". ") for part in parts]
    return [part for part in parts if is_suffix(part) or _may_be_person(part)], parts


def _may_be_person(text: str) -> bool:
    return is_name(text) and not kinds_of(text)


def _blocks(byline: Byline) -> Iterator[str]:
    """The text of the names of a byline, an author or all of them at a time."""
    text = normalize(byline.names).replace(PLACE, LINE)
    for block in _NEXT_AUTHOR.sub(AUTHOR, text).split(AUTHOR):
        if has_letters(block):
            yield block


def _parts(line: str) -> Iterator[tuple[int, int]]:
    """The parts of a line that may be a name each, by offsets, without digits behind them."""
    start = 0
    ends = [match.span() for match in _BETWEEN_NAMES.finditer(line)]
    for end, following in [*ends, (len(line), len(line))]:
        if has_letters(line[start:end]):
            yield start, start + len(line[start:end].rstrip("0123456789 "))
        start = following


class _Reader:
    """Reads the bylines of one page, and gives each affiliation and e-mail to its people."""

    def __init__(self, names: Sequence[str], bylines: Sequence[Byline]) -> None:
        self.people = [_Person(name) for name in names]
        self.known = KnownNames(names)
        self.find = cache(self.known.find)
        self.unread = defaultdict[str, list[_Person]](list)
        """The authors of each name, the first last, until one is left."""
        for person in reversed(self.people):
            self.unread[person.name].append(person)
        self.groups = [_Group()]
        self.read_people: list[_Person] = []
        """As often as a byline names them."""
        self.places: defaultdict[str, list[str]] = defaultdict(list)
        """Affiliations by their marks."""
        self.unlinked: list[str] = []
        """Places with marks that nobody has, or below nobody."""
        self.remarks: list[tuple[str, _Person | None]] = []
        """Each with the one author whose byline it is in."""
        lines = [
            line for byline in bylines for block in _blocks(byline) for line in block.split(LINE)
        ]
        printed = {
            place.name
            for line in lines
            for start, end in _parts(line)
            for place in self.find(line[start:end])
        }
        self.missing = KnownNames(name for name in self.known.names if name not in printed)

    def read(self, byline: Byline) -> None:
        """Read the names, contacts, footnotes and thanks of a byline."""
        count = len(self.read_people)
        blocks = list(_blocks(byline))
        if byline.contacts and not blocks:
            self._close_group()
        for block in blocks:
            lines = list(self._lay_out(block))
            if block is not blocks[0] and not self._people_in(lines[0]):
                lines[0] = f"{LINE}{lines[0]}"
            for line in lines:
                is_first = line is lines[0] and block is blocks[0]
                self._read_line(line, is_first=is_first, has_contacts=bool(byline.contacts))
        people = self.read_people[count:]
        continues = bool(blocks and not people and self.groups[-1].lines)
        places = self._read_contacts(byline.contacts, continues=continues)
        self._read_notes(byline, people, has_places=bool(places))

    def _read_notes(self, byline: Byline, people: Sequence[_Person], *, has_places: bool) -> None:
        """Read the footnotes and thanks of some people."""
        owner = people[-1] if len(people) == 1 else None
        group = self.groups[-1]
        group.emails += find_emails(*(text for _, text in byline.notes), *byline.remarks)
        for mark, text in byline.notes:
            if _is_place(text):
                place = without_full_stop(without_addresses(fold(text)))
                self.places[NOTE + mark] += split_places(place)
            else:
                self.remarks.append((fold(text), owner))
        thanks = [text for role, text in byline.contacts if role == "thanks"]
        thanks += [part for remark in byline.remarks for part in _NEXT_REMARK.split(remark) if part]
        for note in thanks:
            text, marks = split_doubled_marks(note)
            for person in people:
                person.marks.append(marks)
            if has_places and _is_place(text) and "@" not in text:
                # The second affiliation of acmart and amsart is bare text beside the first.
                group.lines.append(text.strip(EDGES))
            else:
                self.remarks.append((text, owner))
        if owner is not None and any(map(_is_place, thanks)):
            self._close_group()  # the places of others are not those of somebody with their own

    def _read_contacts(self, contacts: Sequence[tuple[str, str]], *, continues: bool) -> list[str]:
        """Read the affiliations and e-mails of a byline; returns its places, the first of which may
        continue the line above.
        """
        places: list[str] = []
        for role, text in contacts:
            self.groups[-1].emails += find_emails(text)
            if role not in AFFILIATION_ROLES:
                continue
            lines = [
                fold(without_addresses(line)).strip(EDGES) for line in normalize(text).split(LINE)
            ]
            if any(map(self._people_in, lines)):
                for line in lines:
                    self._read_line(line)  # a row of names that LaTeXML takes for a place
                continue
            lines = [line for line in lines if "nothing" not in kinds_of(plain_line(line))]
            places += join_lines([line for line in lines if has_letters(line)])
        lines = self.groups[-1].lines
        if continues and places:
            lines[-1] = f"{lines[-1]}, {places.pop(0)}"
        lines += [f"{LINE}{place}" for place in places]
        return places

    def _lay_out(self, block: str) -> Iterator[str]:
        """The lines of a block; of grids beside each other that begin with names, one by one."""
        for line in block.split(LINE):
            cells = [cell for cell in line.split(CELL) if has_letters(cell)]
            if INNER in line and all(self._people_in(cell.partition(INNER)[0]) for cell in cells):
                yield from INNER.join(cells).split(INNER)
            else:
                yield line

    def _read_line(self, line: str, *, is_first: bool = False, has_contacts: bool = False) -> None:
        text, emails = take_emails(line)
        text = without_addresses(text)
        # "MD" is a title behind a name, and Maryland behind a town: affiliations keep it.
        bare = blank_titles(text)
        people = self._people_in(bare)
        may_be_person = (is_first and has_contacts) or line.startswith(LINE)
        if not people and may_be_person and _may_be_person(plain_line(bare)):
            people = [(0, len(bare), _Person(plain_line(bare)))]
        if has_letters(text) and not people:
            group = self.groups[-1]
            if is_first and group.lines and not emails:
                # An unknown class has its authors split at every comma.
                group.lines[-1] = f"{group.lines[-1]}, {text.strip(EDGES)}"
            else:
                self._add_line(text)
        elif people:
            before = _BEHIND_PLACE.sub("", text[: people[0][0]])
            if self.groups[-1].people and is_affiliation(plain_line(before)):
                self._add_line(before)  # "University of X & Bob Roe"
            elif MARK in before and not has_letters(before):
                people[0][2].marks.append(before)  # Springer Nature's "[1,2]Ann Lee"
        ends = [*(start for start, _, _ in people[1:]), len(text)]
        for (_, start, person), end in zip(people, ends, strict=False):
            self._add_person(person)
            self._read_behind_name(person, text[start:end], bare[start:end])
        self.groups[-1].emails += emails

    def _people_in(self, line: str) -> list[tuple[int, int, _Person]]:
        """(start, end, person) of the names in a line, and of those that metadata lacks beside
        others.
        """
        people: list[tuple[int, int, _Person]] = []
        others: list[tuple[int, int]] = []
        for start, end in _parts(line):
            places = self.find(line[start:end])
            if places and not is_affiliation(line[start : start + places[0].start]):
                people += [
                    (start + place.start, start + place.end, self._person(place.name))
                    for place in places
                ]
            else:
                others.append((start, end))
        if line.lstrip().startswith(MARK):
            return people
        for start, end in others:
            text = fold(line[start:end])
            if line.count("(", 0, start) > line.count(")", 0, start):
                continue  # "Ann Lee (Acme Systems, Oslo)"
            is_between = people and people[0][0] < start < people[-1][0]
            if not _may_be_person(text):
                continue
            if is_between or (len(people) > 1 and not is_affiliation(plain_line(line[start:]))):
                people.append((start, end, _Person(text)))
        return sorted(people, key=lambda found: found[:2])

    def _person(self, name: str) -> _Person:
        """The author of a name; of two with one name, the first who is not read yet."""
        return self.unread[name][-1]

    def _add_person(self, person: _Person) -> None:
        """Add a person to the group that is open, or open another."""
        group = self.groups[-1]
        if group.people and (group.lines or group.emails or person in group.people):
            self.groups.append(_Group())
        self.groups[-1].people.append(person)
        self.read_people.append(person)
        if len(self.unread[person.name]) > 1:
            self.unread[person.name].pop()

    def _close_group(self) -> None:
        if self.groups[-1] != _Group():
            self.groups.append(_Group())

    def _read_behind_name(self, person: _Person, text: str, bare: str) -> None:
        """Read the marks behind a name, and its affiliation. bare: the text, titles as spaces."""
        start = 0
        marks = _MARKS_BEHIND.match(bare)
        if marks:
            person.marks.append(marks[0])
            start = marks.end()
        rest = _BEHIND_PLACE.sub("", bare[start:])
        end = start + len(rest)
        before = _BEFORE_PLACE.match(rest)
        start += before.end() if before else 0
        place = text[start:end]
        if has_letters(bare[start:end]) and not is_suffix(place):
            self._add_line(place.rstrip(")") if place.count(")") > place.count("(") else place)

    def _add_line(self, line: str) -> None:
        """Add a line of affiliations to the group that is open."""
        kinds = kinds_of(plain_line(line))
        if "nothing" in kinds:
            return
        if "remark" in kinds or (not kinds and _is_prose(plain_line(line))):
            self.remarks += [(text, None) for _, text in split_marked(line)]
            return
        self.groups[-1].lines.append(line)

    def link(self, institutes: Sequence[str]) -> None:
        """Fill in the affiliations and e-mails of all people."""
        people = list(dict.fromkeys(self.read_people))
        named = [place for place in (fold(without_addresses(text)) for text in institutes) if place]
        self._close_group()
        for number, place in enumerate(named, start=1):
            self.places[str(number)].append(place)
            self._read_line(place)  # Springer's styles print "A. Lee, B. Roe at X"
        has_labels = any(MARK in line for group in self.groups for line in group.lines)
        if has_labels and all(mark.startswith(NOTE) for mark in self._wanted()):
            # \\footnotemark[1] beside names, 1 before affiliations.
            for person in people:
                person.marks += [marks.replace(NOTE, "") for marks in person.marks]
        wanted = self._wanted()
        unmarked = [self._take_labelled(group, wanted) for group in self.groups]
        for person in people:
            person.affiliations += [
                place
                for marks in person.marks
                for mark in marks_of(marks, self.places)
                for place in self.places.get(mark, ())
            ]
        for group, lines in zip(self.groups, unmarked, strict=True):
            marks = {
                mark
                for person in group.people
                for text in person.marks
                for mark in marks_of(text, self.places)
            }
            is_of_some = len(group.people) > 1 and any(
                mark.isdigit() and mark not in self.places for mark in marks
            )
            self.unlinked += lines if is_of_some else _share(group.people, lines)
            _give_emails(group.people, group.emails, people)
        _give_emails(people, find_emails(*institutes), people)
        for person in people if len(named) == 1 else ():
            person.affiliations = person.affiliations or named

    def _take_labelled(self, group: _Group, wanted: set[str]) -> list[str]:
        """Note the places of a group by the marks before them; returns the others.

        Places with marks that nobody has are nobody's, where there are several of both.
        """
        others: list[tuple[frozenset[str], str]] = []
        above: list[str] | None = None
        for line in group.lines:
            above = None if line.startswith(LINE) else above
            places = _labelled_places(line.lstrip(LINE), wanted) or [(frozenset(), line)]
            for marks, text in places:
                if marks & wanted:
                    for mark in sorted(marks):
                        self.places[mark].append(text)
                    above = sorted(marks)
                elif not marks and above and len(self.places[above[0]][-1]) < _LONGEST_PLACE:
                    for mark in above:
                        self.places[mark][-1] += f", {without_signs(text)}"
                else:
                    others.append((marks, text))
        if len({mark for marks, _ in others for mark in marks}) > 1 and len(self.people) > 1:
            self.unlinked += [text for _, text in others]
            return []
        return [text for _, text in others]

    def read_front(self, paragraphs: Sequence[str]) -> list[str]:
        """Read paragraphs outside of bylines that have a name or a place with a mark of a name, or
        are places without marks, one for each number; returns these.
        """
        wanted = self._wanted()
        short = [text for text in paragraphs if all(map(is_no_prose, lines_of(text)))]
        used = []
        for paragraph in short:
            lines = [line for line in map(normalize, lines_of(paragraph)) if fold(line)]
            if self._read_addresses(paragraph):
                used.append(paragraph)
            elif any(self.missing.find(line) or wanted & _labels_of(line) for line in lines):
                self._close_group()
                for line in lines:
                    self._read_line(line)
                used.append(paragraph)
        places = [text for text in short if text not in used and is_affiliation(text)]
        numbers = {mark for mark in wanted if mark.isdigit()}
        if numbers == {str(number) for number in range(1, len(places) + 1)}:
            for number, text in enumerate(places, start=1):
                self.places[str(number)].append(plain_line(text))
            used += places
        return used

    def _read_addresses(self, paragraph: str) -> bool:
        """Read a paragraph with a place and an e-mail for each author, if it is one."""
        pairs = _PLACE_AND_EMAIL.findall(_ORCID.sub(" ", paragraph))
        has_others = any(group.lines or group.emails for group in self.groups)
        if has_others or len(pairs) != len(self.people) or len(pairs) < 2:
            return False
        for person, (text, host) in zip(self.people, pairs, strict=True):
            ends = range(len(text) - len(text.split()[-1]) + 1, len(text))
            start = next(
                (
                    end
                    for end in ends
                    if text[end].islower() and person.is_name_of(_NO_LETTER.sub("", text[end:]))
                ),
                0,
            )
            if start and is_affiliation(text[:start]):
                person.affiliations.append(text[:start].strip())
                person.emails.append(f"{text[start:]}@{host}")
        return True

    def _wanted(self) -> set[str]:
        """The marks of people, and the signs that they are made of."""
        marks = {
            mark for person in self.read_people for text in person.marks for mark in marks_of(text)
        }
        return marks.union(*(mark for mark in marks if NOTE not in mark))

    def authors(self) -> tuple[Author, ...]:
        """The authors with what the page says of them, in the order of their names."""
        places: defaultdict[str, list[str]] = defaultdict(list)
        for text, owner in self.remarks:
            bare = take_emails(text)[0]
            for name, place in workplaces(bare, owner.name if owner else None, self.known.names):
                places[name].append(place)
        return tuple(
            Author(
                person.name,
                tuple(
                    filter(
                        None,
                        dict.fromkeys(map(plain_line, person.affiliations or places[person.name])),
                    )
                ),
                tuple(dict.fromkeys(person.emails)),
            )
            for person in self.people
        )


def _is_prose(text: str) -> bool:
    """Whether most long words of a text are in small letters, which those of a place are not."""
    words = [word for word in text.split() if len(word) > 3]
    return 2 * sum(word[0].islower() for word in words) > len(words) > 3


def _labelled_places(line: str, wanted: set[str]) -> list[tuple[frozenset[str], str]]:
    """(marks, text) of the places in a line with marks."""
    label = LEADING_LABEL.match(line)
    if label and label[1] in wanted:
        return [(frozenset({label[1]}), fold(line[label.end() :]).strip(EDGES))]
    if MARK in line:
        return split_marked(line)
    number = _GLUED_NUMBER.match(line)
    return [(frozenset(), line[number.end() :])] if number else []


def _labels_of(line: str) -> set[str]:
    """The marks that a line begins with."""
    label = LEADING_LABEL.match(line)
    mark = split_marked(line)[:1] if line.lstrip().startswith(MARK) else []
    return {label[1]} if label else {sign for marks, _ in mark for sign in marks}


def _is_place(text: str) -> bool:
    """Whether a text is an affiliation alone, not a sentence that names one."""
    return is_affiliation(text) and not has_sentence(text)


def _give_emails(
    people: Sequence[_Person], emails: Sequence[str], everybody: Sequence[_Person]
) -> None:
    """Give each e-mail to the one person whom it fits, the rest to the people in order."""
    unclaimed = []
    for email in dict.fromkeys(emails):
        owners = [person for person in people if person.fits(email)]
        if not owners:
            owners = [person for person in everybody[:_MOST_NAMES] if person.fits(email)]
        if len(owners) == 1:
            owners[0].emails.append(email)
        else:
            unclaimed.append(email)
    without_email = [person for person in people if not person.emails]
    if len(people) == 1:
        people[0].emails += unclaimed
    elif len(unclaimed) == len(without_email):
        for person, email in zip(without_email, unclaimed, strict=True):
            person.emails.append(email)


def _share(people: Sequence[_Person], lines: Sequence[str]) -> list[str]:
    """Give the only affiliation in some lines to all of some people, or one to each if as many;
    returns those of which the page does not say whose they are.
    """
    columns = [list(filter(has_letters, _GAP.split(line.strip(EDGES)))) for line in lines]
    if columns and all(len(cells) == len(people) > 1 for cells in columns):
        for person, column in zip(people, zip(*columns, strict=True), strict=True):
            person.affiliations += join_lines(INNER.join(column).split(INNER))
        return []
    runs: list[list[str]] = [[]]
    for line in lines:
        if line.startswith(LINE) and len(people) > 1:
            runs.append([])
        runs[-1].append(without_signs(line))
    affiliations = [place for run in runs for place in join_lines(run)]
    if len(affiliations) == 1:
        affiliations = _split_for(len(people), affiliations[0])
    if len(affiliations) == len(people):
        for person, text in zip(people, affiliations, strict=True):
            person.affiliations.append(text)
    elif len(people) == 1 or len(affiliations) == 1:
        for person in people:
            person.affiliations += affiliations
    else:
        return affiliations
    return []


def _split_for(count: int, text: str) -> list[str]:
    """The places of as many people in a text, or the text alone."""
    for separator, *kinds in _SEPARATORS:
        parts = text.split(separator)
        if len(parts) == count and not any(kinds_of(part).isdisjoint(kinds) for part in parts):
            return parts
    return [text]
