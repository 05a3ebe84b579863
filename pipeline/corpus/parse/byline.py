"""Bylines to authors: what a page prints of the people whom metadata names.

The front matter is read as one run of lines, wherever they stand. Each is cut into names, marks and
other texts. Marks lead from names to the texts that have them; other texts belong to the names
above them where the page says to whom, and to nobody else.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from pipeline.corpus.parse.affiliations import (
    BEFORE_PLACE,
    GAP,
    is_organisation,
    is_place,
    is_place_alone,
    is_remark,
    is_unit,
    join_lines,
    share,
    split_places,
    workplaces,
)
from pipeline.corpus.parse.byline_text import (
    AFFILIATION_ROLES,
    THANKS,
    Byline,
    blank_marks,
    find_emails,
    has_letters,
    marks_of,
    normalize,
    plain_line,
    split_doubled_marks,
    without_addresses,
)
from pipeline.corpus.parse.front_matter import lines_of
from pipeline.corpus.parse.parsed_page import Author
from pipeline.corpus.parse.policies import AUTHOR, CELL, INNER, LINE, MARK, NOTE, PLACE, fold
from pipeline.identity.people import KnownNames, blank_titles, is_name, is_suffix
from pipeline.identity.titles import title_words

# LaTeX's column sign left over from \And, as in "&Ann Lee", or the macro itself.
_NEXT_AUTHOR = re.compile(rf"(?:(?<=[\s{LINE}{MARK}{AUTHOR}])|^)&(?=[^\s&])|\\(?:And|AND|and)\b")
_NEXT = re.compile(f"([{AUTHOR}{PLACE}])")
_BETWEEN_NAMES = re.compile(rf"{MARK}[^{MARK}]*{MARK}?|[,;:·•|()\[\]{CELL}{INNER}]|\band\b|&")
_PART = re.compile(rf"(?:(?!\band\b)[^,;:·•|()\[\]&{CELL}{INNER}])+")
_ENDS_OPEN = re.compile(r"(?:,|;|&|·|\band)\s*$")
_LABEL = re.compile(
    rf"\s*(?:{MARK}([^{MARK}]*){MARK}|[(\[]?(\d{{1,2}}|[a-z])[)\].]?\s*(?=[^\W\d_a-z]))"
)
"""The mark before a place, or a number or letter that was meant as one: "1 University", "2]CWI"."""
# A mark; numbers behind a name that were meant as such, as in "Ann Lee1,2"; or other text.
_PIECE = re.compile(
    rf"{MARK}([^{MARK}]*){MARK}|(\s?\d{{1,2}}(?:,\s?\d{{1,2}})*)(?=\s*(?:[,;]|$|and\b))"
    rf"|(?:[^{MARK}]|{MARK}(?![^{MARK}]*{MARK}))+"
)
_EDGES = " \n,"
_AROUND = f" ,;:·•|([&\n\xa0{CELL}{INNER}"
# LIPIcs's places, e-mails and ORCIDs, which LaTeXML prints without spaces between them.
_PLACE_AND_EMAIL = re.compile(r"([^@]{1,1000})@([\w-]+(?:\.[\w-]+)+)")
_ORCID = re.compile(r"https?://orcid\.org/[\dX-]+")
# LaTeXML runs the \thanks of several authors together: "Work performed at X.Work performed at Y."
_NEXT_REMARK = re.compile(rf"{PLACE}|(?<=[a-z]{{2}}\.)(?=[A-Z][a-z])")
_NO_LETTER = re.compile(r"[^a-z]+")
# Lists of thousands of authors name a few addresses; each is compared with no more names than
# these.
_MOST_NAMES = 300


@dataclass(slots=True, eq=False)
class _Person:
    """An author, or somebody whom the page alone names. marks: all of them, in order."""

    name: str
    marks: str = ""
    affiliations: list[str] = field(default_factory=list)
    emails: list[str] = field(default_factory=list)

    def is_name_of(self, local: str) -> bool:
        """Whether the local part of an address is the name, its end, or initials and a word."""
        words = [word for word in title_words(self.name) if not is_suffix(word)] or [""]
        first, last = words[0], words[-1]
        ends = ("".join(words[start:]) for start in range(len(words)))
        initials = "".join(word[:1] for word in words)
        made = (initials, first, first[:1] + last, last + first[:1], first + last)
        return _NO_LETTER.sub("", local.lower()) in (*made, *ends)

    def fits(self, email: str) -> bool:
        """Whether an address is made of the name, or has a word of it."""
        local, _, _ = email.lower().partition("@")
        words = title_words(self.name)
        return self.is_name_of(local) or any(len(word) > 2 and word in local for word in words)


class _Mark(str):
    """A superscript, or a number that was meant as one."""

    __slots__ = ()


@dataclass(slots=True, eq=False)
class _Place:
    """Lines that follow each other, and the marks before the first of them."""

    marks: list[str] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    is_linked: bool = False


@dataclass(slots=True)
class _Group:
    """People who share the places below them."""

    people: list[_Person] = field(default_factory=list)
    places: list[_Place] = field(default_factory=list)
    is_closed: bool = False


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
    reader = _Reader(known or printed_names(bylines))
    for byline in bylines:
        reader.read(byline)
    used = reader.read_front(front)
    reader.read_institutes(institutes)
    reader.link()
    authors = reader.authors() if bylines else ()
    others = [person.name for person in reader.read_people if person not in reader.people]
    linked = {text for author in authors for text in (author.name, *author.affiliations)}
    return BylineText(
        authors,
        len({*reader.read_people} ^ {*reader.people}) if bylines and known else 0,
        _plain_lines([*reader.remarks, *others]),
        [text for text in _plain_lines(reader.unlinked) if text not in linked],
        used,
    )


def _plain_lines(texts: Iterable[str]) -> list[str]:
    """Each text once, on one line and without marks."""
    return list(dict.fromkeys(filter(has_letters, map(plain_line, texts))))


def printed_names(bylines: Sequence[Byline]) -> list[str]:
    """The names on the first lines of bylines, up to one that holds another text, and those of
    lines below that are lists of names alone.
    """
    names: list[str] = []
    for block in _NEXT.split(AUTHOR.join(_mark_authors(byline.names) for byline in bylines)):
        is_list = True
        is_alone = all(map(_are_names, filter(has_letters, block.split(LINE))))
        for line in block.replace(INNER, LINE).split(LINE):
            parts = _parts(blank_titles(without_addresses(line)))
            people = [part for part in parts if _may_be_person(part) or is_suffix(part)]
            is_list = is_list or "@" in line
            if parts and ((is_list and parts[0] in people) or 1 < len(parts) == len(people)):
                names += people
            goes_on = is_alone or MARK in line or _ENDS_OPEN.search(line) is not None
            is_list = "@" in line or (is_list and parts == people and (goes_on or not parts))
    return list(dict.fromkeys(names))


def _may_be_person(text: str) -> bool:
    return is_name(text) and not is_place(text) and not is_remark(text)


def _mark_authors(names: str) -> str:
    """The text with AUTHOR before authors that a sign or macro begins."""
    return _NEXT_AUTHOR.sub(AUTHOR, normalize(names))


def _parts(line: str) -> list[str]:
    """The parts of a line that may be a name each."""
    parts = list[str]()
    for part in filter(has_letters, _BETWEEN_NAMES.split(line)):
        pieces = [fold(piece).rstrip("0123456789 .") for piece in GAP.split(part)]
        parts += pieces if all(map(is_name, pieces)) else [fold(part).rstrip("0123456789 .")]
    return parts


def _are_names(text: str) -> bool:
    """Whether a text is names of people alone."""
    return "(" not in text and bool(_parts(text)) and all(map(_may_be_person, _parts(text)))


class _Reader:
    """Reads the front matter of one page, and gives each place and e-mail to its people."""

    def __init__(self, names: Sequence[str]) -> None:
        self.people = [_Person(name) for name in names]
        self.known = KnownNames(names)
        self.unread = defaultdict[str, list[_Person]](list)
        """The authors of each name, the first last, until one is left."""
        for person in reversed(self.people):
            self.unread[person.name].append(person)
        self.read_people: list[_Person] = []
        """In the order of the page, those too whom metadata lacks."""
        self.wanted: set[str] = set()
        """The marks of people, and the signs that they are made of."""
        self.groups = [_Group()]
        self.places = defaultdict[str, list[_Place]](list)
        """By their marks."""
        self.emails: list[tuple[str, _Person | None]] = []
        """Each with the one author beside whom it stands."""
        self.unlinked: list[str] = []
        self.remarks: list[str] = []
        self.common: list[str] = []
        """The one place that is given for all authors."""
        self.workplaces = defaultdict[str, list[str]](list)
        """What remarks say, by author."""

    def read(self, byline: Byline) -> None:
        """Read the names of a byline and what stands beside them."""
        count = len(self.read_people)
        if not has_letters(byline.names):
            self.groups.append(_Group())
        # Beside places stands an author, also one whom metadata lacks.
        has_places = any(role in AFFILIATION_ROLES for role, _ in byline.parts)
        self._read_text(AUTHOR * has_places + byline.names)
        people = self.read_people[count:]
        for role, text in byline.parts:
            if role in AFFILIATION_ROLES:
                # The place of a byline without a name goes on from the line above: its class split
                # one at its commas.
                if people:
                    self._begin_place()
                self._read_text(text)
            else:
                self._add_emails(text)
                # Who has no place of his own among people who have shares none with those behind.
                has_places = any(group.places for group in self.groups)
                self.groups[-1].is_closed |= has_places and "@" in text
            if role.startswith((NOTE, THANKS)):
                self._read_note(role, text, people)

    def _read_note(self, role: str, text: str, people: Sequence[_Person]) -> None:
        """Read a footnote or thanks: a place, marks of the people, or a remark."""
        owner = people[0].name if len(people) == 1 else None
        label = [role] if role.startswith(NOTE) else []
        lines = text.split(LINE)
        if any(not self.wanted.isdisjoint(_labels_of(normalize(line))) for line in lines):
            self._begin_place()
            self._read_text(text)
            return
        parts = map(normalize, _NEXT_REMARK.split(text.replace(LINE, ", ")))
        for number, part in enumerate(part for part in parts if part.strip(_EDGES)):
            remark, marks = split_doubled_marks(part.strip(_EDGES))
            for person in people:
                self._add_marks(person, marks)
            place = plain_line(without_addresses(remark))
            if number:
                owner = None  # EPTCS's places of others follow
            is_place = is_place_alone(place) and (label or owner is not None)
            group = self.groups[-1]
            # The second affiliation of acmart and amsart is bare text beside the first.
            if is_place and (label or (group.places and "@" not in remark)):
                for text in split_places(place):
                    self._begin_place(label)
                    group.places[-1].lines.append(text)
                continue
            # The places of others are not those of somebody with thanks that name one.
            group.is_closed |= bool(is_place)
            self.remarks.append(remark)
            for name, found in workplaces(remark, owner, self.known):
                self.workplaces[name].append(found)

    def _add_emails(self, text: str) -> None:
        people = self.groups[-1].people
        owner = people[0] if len(people) == 1 else None
        self.emails += [(email, owner) for email in find_emails(text)]

    def read_front(self, paragraphs: Sequence[str]) -> list[str]:
        """Read paragraphs outside of bylines that have a name or a place with a mark of a name, or
        are places without marks, one for each number; returns these.
        """
        read = {person.name for person in self.read_people}
        missing = KnownNames(name for name in self.known.names if name not in read)
        wanted = frozenset(self.wanted)
        used = []
        for paragraph in paragraphs:
            lines = lines_of(paragraph)
            if self._read_addresses(paragraph):
                used.append(paragraph)
            elif PLACE in paragraph or any(
                missing.find(line) or not wanted.isdisjoint(_labels_of(line)) for line in lines
            ):
                self.groups.append(_Group())
                self._read_text(LINE.join(lines))
                used.append(paragraph)
        places = [text for text in paragraphs if text not in used]
        places = [text for text in places if is_organisation(text) or is_unit(text)]
        numbers = [str(number + 1) for number in range(len(places))]
        is_open = self.places.keys().isdisjoint(numbers)
        if is_open and {*numbers} == set(filter(str.isdigit, wanted)):
            self.read_institutes(places)
            used += places
        return used

    def _read_addresses(self, paragraph: str) -> bool:
        """Read a paragraph with a place and an e-mail for each author, if it is one."""
        pairs = _PLACE_AND_EMAIL.findall(_ORCID.sub(" ", paragraph))
        has_others = any(group.places for group in self.groups)
        if has_others or len(pairs) != len(self.people) or len(pairs) < 2:
            return False
        for person, (text, host) in zip(self.people, pairs, strict=True):
            for start in range(text.rfind(" ") + 2, len(text)):
                if text[start].islower() and person.is_name_of(text[start:]):
                    person.affiliations.append(text[:start])
                    person.emails.append(f"{text[start:]}@{host}")
                    break
        return True

    def read_institutes(self, institutes: Sequence[str]) -> None:
        """Read places that are numbered, or have the names of their people before them."""
        named = [text for text in institutes if has_letters(without_addresses(text))]
        self.common = named if len(named) == 1 else []
        for text in institutes:
            number = named.index(text) + 1 if text in named else 0
            self._begin_place()
            self._read_text(text if self.known.find(text) else f"{MARK}{number}{MARK}{text}")

    def _read_text(self, text: str) -> None:
        """Read a text line by line, and of grids beside each other that begin with names, one by
        one.
        """
        is_author = False
        for piece in _NEXT.split(_mark_authors(text)):
            if _NEXT.fullmatch(piece):
                is_author = piece == AUTHOR
                self._begin_place()
            for line in piece.split(LINE) if has_letters(piece) else ():
                cells = list(filter(has_letters, line.split(CELL)))
                is_grid = all(self.known.find(cell.partition(INNER)[0]) for cell in cells)
                for part in INNER.join(cells).split(INNER) if is_grid and INNER in line else [line]:
                    self._read_line(part, is_author=is_author)
                    is_author = False

    def _read_line(self, line: str, *, is_author: bool) -> None:
        tokens = self._tokens(without_addresses(line), is_author=is_author)
        is_text = not any(isinstance(token, _Person) for token in tokens)
        if is_text and tokens and type(tokens[0]) is str and isinstance(tokens[-1], _Mark):
            tokens.reverse()  # "University of X¹, Institute of Y²"
        owner: _Person | None = None
        marks: list[str] = []
        for token in (*tokens, ""):
            if isinstance(token, _Mark):
                marks.append(token)
                continue
            # "Ann Lee¹, Bob Roe² ¹University of X": the last mark is that of the text.
            is_label = isinstance(token, str) and len(marks) > 1
            label = " ".join(marks) if owner is None else marks.pop() if is_label and token else ""
            if owner is not None:
                self._add_marks(owner, " ".join(marks))
            owner, marks = None, []
            if isinstance(token, _Person):
                self._add_person(token)
                self._add_marks(token, label)
                owner = token
            elif token:
                self._add_text(label, token)
        self._add_emails(line)
        self.groups[-1].is_closed |= "@" in line

    def _tokens(self, line: str, *, is_author: bool) -> list[_Person | _Mark | str]:
        """The people, marks and other texts of a line, in order."""
        bare = blank_titles(line)
        names = [
            name._replace(start=part.start() + name.start, end=part.start() + name.end)
            for part in _PART.finditer(blank_marks(bare))
            for name in self.known.find(part[0])
        ]
        # "MD" is a title behind a name, and Maryland behind a town.
        text = bare if names else line
        tokens: list[_Person | _Mark | str] = []
        position = 0
        for start, end, name in [*names, (len(line), len(line), "")]:
            for piece in _PIECE.finditer(text, position, start):
                if piece[1] or piece[2]:
                    tokens.append(_Mark(piece[1] or piece[2]))
                elif (len(names) > 1 or is_author > len(names)) and _are_names(piece[0]):
                    tokens += map(_Person, _parts(piece[0]))
                # Before a name stands more of it, unless its words say that it is a place.
                elif (place := _without_edges(piece[0])) and (
                    position or not name or is_place(place)
                ):
                    tokens.append(place)
            position = end
            if name:
                authors = self.unread[name]
                tokens.append(authors.pop() if len(authors) > 1 else authors[0])
        return tokens

    def _add_person(self, person: _Person) -> None:
        """Add a person to the group that is open, or open another."""
        group = self.groups[-1]
        has_places = any(place.lines for place in group.places)
        if has_places or (group.people and group.is_closed) or person in group.people:
            self.groups.append(_Group())
        self.groups[-1].people.append(person)
        self.read_people.append(person)

    def _add_marks(self, person: _Person, signs: str) -> None:
        person.marks += f" {signs}"
        for mark in marks_of(signs):
            self.wanted.update((mark,), mark if NOTE not in mark else ())

    def _begin_place(self, marks: Sequence[str] = ()) -> None:
        self.groups[-1].places.append(_Place([*marks]))
        for mark in marks:
            self.places[mark].append(self.groups[-1].places[-1])

    def _add_text(self, signs: str, text: str) -> None:
        """Add a line to the place that is open, or begin another with its marks."""
        marks = marks_of(signs)
        label = None if marks else _LABEL.match(text)
        if label and label[2] in self.wanted:
            marks, text = [label[2]], text[label.end() :]
        if is_remark(plain_line(text)):
            self.remarks.append(text)
            self._begin_place()
        else:
            if marks or not self.groups[-1].places:
                self._begin_place(marks)
            self.groups[-1].places[-1].lines.append(BEFORE_PLACE.sub("", text))

    def link(self) -> None:
        """Give out all places and e-mails."""
        people = list(dict.fromkeys(self.read_people))
        is_linked = any(
            mark in self.places for person in people for mark in marks_of(person.marks, self.places)
        )
        for person in people:
            # \\footnotemark[1] beside all names, 1 before the places.
            signs = person.marks if is_linked else person.marks.replace(NOTE, "")
            marks = marks_of(signs, self.places)
            for place in (place for mark in marks for place in self.places.get(mark, ())):
                person.affiliations.append(", ".join(place.lines))
                place.is_linked = True
        for group in self.groups:
            self._give_places(group)
        rest = []
        for email, owner in dict.fromkeys(self.emails):
            owners = [person for person in people[:_MOST_NAMES] if person.fits(email)]
            owners = [owner] if owner and (owner in owners or len(owners) != 1) else owners
            if len(owners) == 1:
                owners[0].emails.append(email)
            else:
                rest.append(email)
        others = [person for person in people if not person.emails]
        for person, email in zip(others, rest, strict=False) if len(others) == len(rest) else ():
            person.emails.append(email)

    def _give_places(self, group: _Group) -> None:
        """Give places without marks to the people above them, where the page says to whom."""
        places = [place for place in group.places if place.lines and not place.is_linked]
        lines = [place.lines for place in places]
        marks = [mark for person in group.people for mark in marks_of(person.marks, self.places)]
        is_lost = any(mark.isdigit() and mark not in self.places for mark in marks)
        count = len(group.people)
        # Marks that nobody has say nothing where each author has places of their own.
        placed = {person for other in self.groups if other.places for person in other.people}
        is_shared = count > 1 or not placed.issuperset(self.people)
        is_marked = is_shared and sum(bool(place.marks) for place in places) > 1
        shares = share(0 if is_marked or (is_lost and count > 1) else count, lines)
        for person, texts in zip(group.people, shares, strict=False):
            person.affiliations += texts
        if not shares:
            self.unlinked += [place for run in lines for place in join_lines([run])]

    def authors(self) -> tuple[Author, ...]:
        """The authors with what the page says of them, in the order of their names."""
        return tuple(
            Author(
                person.name,
                tuple(
                    _plain_lines(
                        person.affiliations
                        or self.workplaces[person.name]
                        or map(without_addresses, self.common)
                    )
                ),
                tuple(dict.fromkeys(person.emails)),
            )
            for person in self.people
        )


def _without_edges(text: str) -> str:
    """The text without the signs and words that part it from its neighbours."""
    text = text.strip(_AROUND).removeprefix("and ").removesuffix(" and").strip(_AROUND)
    bare = text.rstrip(")") if text.count(")") > text.count("(") else text
    return bare if has_letters(bare) and bare != "and" and not is_suffix(bare) else ""


def _labels_of(line: str) -> list[str]:
    """The marks that a line begins with."""
    label = _LABEL.match(line)
    return marks_of(label[1] or label[2]) if label else []
