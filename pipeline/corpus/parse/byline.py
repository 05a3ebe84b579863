"""Bylines to authors: what a page prints of the people whom metadata names.

The front matter is read as one run of lines, wherever they stand. Each is cut into names, marks and
other texts. Marks lead from names to the texts that have them; other texts belong to the names
above them where the page says to whom, and to nobody else.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import NamedTuple

from pipeline.corpus.parse.affiliations import (
    GAP,
    is_place,
    is_remark,
    join_lines,
    places_of_note,
    share,
    stated_places,
)
from pipeline.corpus.parse.byline_text import (
    AFFILIATION_ROLES,
    THANKS,
    Byline,
    blank_marks,
    find_emails,
    has_letters,
    lines_of,
    marks_of,
    normalize,
    plain_line,
    split_doubled_marks,
    without_addresses,
)
from pipeline.corpus.parse.parsed_page import Author
from pipeline.corpus.parse.policies import AUTHOR, CELL, INNER, LINE, MARK, NOTE, PLACE, fold
from pipeline.identity.people import KnownNames, blank_titles, is_name
from pipeline.identity.titles import title_words

_NEXT = re.compile(f"(?=[{AUTHOR}{PLACE}])")
_CELLS = re.compile(f"[{CELL}{INNER}]")
_BETWEEN_NAMES = re.compile(
    rf"{MARK}[^{MARK}]*{MARK}?|[,;:·•|()\[\]{CELL}{INNER}{AUTHOR}]|\band\b|&"
)
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
# A word of a text, apart from the signs and words that part it from its neighbours.
_SIGN = rf"\s,;:·•|(\[&{CELL}{INNER}{AUTHOR}{PLACE}"
_WORD = re.compile(rf"(?<![^{_SIGN}])(?!and\b)[^{_SIGN}]+")
# LaTeXML runs the \thanks of several authors together: "Work performed at X.Work performed at Y."
_NEXT_REMARK = re.compile(rf"{PLACE}|(?<=[a-z]{{2}}\.)(?=[A-Z][a-z])")
_NO_LETTER = re.compile(r"[^a-z]+")
# Lists of thousands of authors name a few addresses; each is compared with no more names than
# these.
_MOST_NAMES = 300
# Not of an abbreviation.
_SENTENCE_END = re.compile(r"(?<=\w{5})\.(?:\s+(?=[^\W\d_a-z])|$)")
_STUCK_EMAIL = re.compile(r"(?<![\w.-])([\w.-]++)@[\w-]+(?:\.[\w-]+)+")


@dataclass(slots=True, eq=False)
class _Person:
    """An author, or somebody whom the page alone names. marks: all of them, in order.

    local_parts: what an e-mail of names or initials alone has before its @.
    """

    name: str
    marks: str = ""
    affiliations: list[str] = field(default_factory=list)
    emails: list[str] = field(default_factory=list)
    words: list[str] = field(init=False)
    local_parts: set[str] = field(init=False)

    def __post_init__(self) -> None:
        self.words = title_words(self.name) or [""]
        first = self.words[0]
        ends = ("".join(self.words[start:]) for start in range(len(self.words)))
        initials = "".join(word[:1] for word in self.words)
        self.local_parts = {initials, first, first[:1] + self.words[-1], *ends}

    def fit(self, email: str) -> int:
        """How well an address fits the name: 2 where it is made of names or initials alone, 1 where
        it has a word of it.
        """
        local = _NO_LETTER.sub("", email.partition("@")[0].lower())
        if local in self.local_parts:
            return 2
        return int(any(len(word) > 2 and word in local for word in self.words))


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
    return BylineText(
        authors,
        len({*reader.read_people} ^ {*reader.people}) if bylines and known else 0,
        _plain_lines([*reader.remarks, *others]),
        _plain_lines(reader.unlinked),
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
    for block in _NEXT.split(AUTHOR.join(normalize(byline.names) for byline in bylines)):
        is_list = True
        is_alone = all(map(_are_names, filter(has_letters, block.split(LINE))))
        for line in block.replace(INNER, LINE).split(LINE):
            parts = _parts(blank_titles(without_addresses(line)))
            people = list(filter(_may_be_person, parts))
            is_list = is_list or "@" in line
            if parts and ((is_list and parts[0] in people) or 1 < len(parts) == len(people)):
                names += people
            goes_on = is_alone or MARK in line or not parts
            is_list = "@" in line or (is_list and parts == people and goes_on)
    return list(dict.fromkeys(names))


def _may_be_person(text: str) -> bool:
    return is_name(text) and not is_place(text) and not is_remark(text)


def _parts(line: str) -> list[str]:
    """The parts of a line that may be a name each."""
    parts: list[str] = []
    for part in filter(has_letters, _BETWEEN_NAMES.split(line)):
        pieces = [fold(piece).rstrip("0123456789 .") for piece in GAP.split(part)]
        if pieces[1:] and not all(map(is_name, pieces)):
            pieces = [fold(part).rstrip("0123456789 .")]
        parts += pieces
    return parts


def _are_names(text: str) -> bool:
    """Whether a text is names of people alone."""
    parts = [] if "(" in text else _parts(text)
    return bool(parts) and all(map(_may_be_person, parts))


class _Reader:
    """Reads the front matter of one page, and gives each place and e-mail to its people."""

    def __init__(self, names: Sequence[str]) -> None:
        self.people = [_Person(name) for name in names]
        self.known = KnownNames(names)
        self.by_name = {person.name: person for person in self.people}
        self.read_people: list[_Person] = []
        """In the order of the page, those too whom metadata lacks."""
        self.wanted: set[str] = set()
        """The marks of people."""
        self.groups = [_Group()]
        self.places = defaultdict[str, list[_Place]](list)
        """By their marks."""
        self.emails: list[str] = []
        self.unlinked: list[str] = []
        self.remarks: list[str] = []
        self.stated = defaultdict[str, list[str]](list)
        """Places that remarks state, by author."""

    def read(self, byline: Byline) -> None:
        """Read the names of a byline and what stands beside them."""
        count = len(self.read_people)
        self._read_text(byline.names)
        people = self.read_people[count:]
        for role, text in byline.parts:
            if role in AFFILIATION_ROLES:
                # The place of a byline without a name goes on from the line above: its class split
                # one at its commas.
                if people:
                    self._begin_place()
                self._read_text(text)
            else:
                self.emails += find_emails(text)
            if role.startswith((NOTE, THANKS)):
                self._read_note(role, text, people)

    def _read_note(self, role: str, text: str, people: Sequence[_Person]) -> None:
        """Read a footnote or thanks: places, marks of the people, or a remark."""
        text = normalize(text)
        stated = [*stated_places(text.replace(LINE, ", "), self.known)]
        for name, place in stated:
            self.stated[name].append(place)
        if not stated and self._is_labelled(text.split(LINE)):
            self._begin_place()
            self._read_text(text)
            return
        label = [role] if role.startswith(NOTE) else []
        # Beside contacts, bare text is the second affiliation of acmart and amsart.
        has_places = bool(self.groups[-1].places)
        parts = _NEXT_REMARK.split(text.replace(LINE, ", "))
        for number, part in enumerate(filter(None, (part.strip(_EDGES) for part in parts))):
            remark, marks = split_doubled_marks(part)
            for person in people:
                self._add_marks(person, marks)
            # EPTCS's later places are those of others.
            is_own = len(people) == 1 and "@" not in remark if has_places else people and not number
            places = places_of_note(plain_line(remark)) if label or is_own else []
            if places and self.groups[-1].people != people:
                self.groups.append(_Group([*people]))
            for place in places:
                self._begin_place(label, [place])
            # Thanks that are no label or contact may say more than a place.
            if not places or not (label or has_places):
                self.remarks.append(remark)

    def _is_labelled(self, lines: Iterable[str]) -> bool:
        """Whether a line begins with a mark of somebody."""
        labels = (marks_of(label[1] or label[2]) for label in map(_LABEL.match, lines) if label)
        return not self.wanted.isdisjoint(chain(*labels))

    def read_front(self, paragraphs: Sequence[str]) -> list[str]:
        """Read paragraphs outside of bylines that have a name that these lack, an e-mail of an
        author, or a place with a mark of one; returns these.
        """
        missing = KnownNames(
            person.name for person in self.people if person not in self.read_people
        )
        used = []
        for paragraph in paragraphs:
            text = _STUCK_EMAIL.sub(self._line_of_email, LINE.join(lines_of(paragraph)))
            lines = text.split(LINE)
            is_labelled = PLACE in paragraph or self._is_labelled(lines)
            emails = {*find_emails(text)}.difference(self.emails)
            if is_labelled or self._owners(emails) or any(map(missing.find, lines)):
                self.groups.append(_Group())
                self._read_text(text)
                used.append(paragraph)
        return used

    def _line_of_email(self, email: re.Match[str]) -> str:
        """An e-mail at the end of its line, apart from a place that LIPIcs's class prints without
        space before it.
        """
        for start in range(len(email[1])):
            address = email[0][start:]
            if any(person.fit(address) > 1 for person in self.people[:_MOST_NAMES]):
                return f"{email[0][:start]} {address}{LINE}"
        return email[0]

    def _owners(self, emails: Collection[str]) -> list[_Person]:
        """The people whose names fit one of some e-mails best."""
        if not emails:
            return []
        people = self.people[:_MOST_NAMES]
        fits = [max(map(person.fit, emails)) for person in people]
        best = max([1, *fits])
        return [person for person, fit in zip(people, fits, strict=True) if fit == best]

    def read_institutes(self, institutes: Sequence[str]) -> None:
        """Read places that have the names of their people before them, or else are numbered."""
        is_named = any(map(self.known.find, map(without_addresses, institutes)))
        number = 0
        for text in institutes:
            number += has_letters(without_addresses(text))
            self._begin_place()
            self._read_text(text if is_named else f"{MARK}{number}{MARK}{text}")

    def _read_text(self, text: str) -> None:
        """Read a text line by line, and of grids beside each other that begin with names, one by
        one.
        """
        for line in _NEXT.sub(LINE, normalize(text)).split(LINE):
            if _NEXT.match(line):
                self._begin_place()
            is_grid = INNER in line and self.known.find(line.split(INNER)[0])
            for part in _CELLS.split(line) if is_grid else [line]:
                self._read_line(part)

    def _read_line(self, line: str) -> None:
        tokens = self._tokens(without_addresses(line))
        is_text = not any(isinstance(token, _Person) for token in tokens)
        # "University of X¹, Institute of Y²", or "¹Ann Lee, ²Bob Roe".
        ends = [isinstance(token, _Mark) for token in tokens[:1] + tokens[-1:]]
        if ends == ([False, True] if is_text else [True, False]):
            tokens.reverse()
        emails = find_emails(line)
        owners = self._owners(emails)
        if is_text and tokens and len(owners) == 1 and owners[0] not in self.groups[-1].people:
            tokens[:0] = owners  # the place of whom the e-mail behind it is
        owner: _Person | None = None
        marks = ""
        for token in tokens:
            if isinstance(token, _Person):
                self._add_person(token)
                self._add_marks(token, marks)
                owner, marks = token, ""
            elif not isinstance(token, _Mark):
                self._add_text(marks, token)
                owner, marks = None, ""
            elif owner is not None:
                self._add_marks(owner, token)
            else:
                marks += f" {token}"
        self.emails += emails

    def _tokens(self, line: str) -> list[_Person | _Mark | str]:
        """The people, marks and other texts of a line, in order."""
        bare = blank_titles(line)
        names = self.known.find(blank_marks(bare))
        # "MD" is a title behind a name, and Maryland behind a town.
        text = bare if names else line
        tokens: list[_Person | _Mark | str] = []
        position = 0
        for start, end, name in [*names, (len(line), len(line), "")]:
            for piece in _PIECE.finditer(text, position, start):
                if mark := piece[1] or piece[2]:
                    tokens.append(_Mark(mark))
                elif (names[1:] or (AUTHOR in line and not names)) and _are_names(piece[0]):
                    tokens += map(_Person, _parts(piece[0]))
                # Before a name stands more of it, unless its words say that it is a place.
                elif (place := _without_edges(piece[0])) and (
                    position or not name or is_place(place)
                ):
                    tokens.append(place)
            position = end
            if name:
                tokens.append(self.by_name[name])
        return tokens

    def _add_person(self, person: _Person) -> None:
        """Add a person to the group that is open, or open another."""
        group = self.groups[-1]
        if person in group.people or any(place.lines for place in group.places):
            self.groups.append(_Group())
        self.groups[-1].people.append(person)
        self.read_people.append(person)

    def _add_marks(self, person: _Person, signs: str) -> None:
        person.marks += f" {signs}"
        self.wanted.update(marks_of(signs))

    def _begin_place(self, marks: Sequence[str] = (), lines: Sequence[str] = ()) -> None:
        place = _Place([*marks], [*lines])
        self.groups[-1].places.append(place)
        for mark in marks:
            self.places[mark].append(place)

    def _add_text(self, signs: str, text: str) -> None:
        """Add a line to the place that is open, or begin another with its marks."""
        marks = marks_of(signs)
        label = None if marks else _LABEL.match(text)
        if label and (label[2] in self.wanted or "]" in label[0]):
            marks, text = [label[2]], text[label.end() :]
        lines = [one for one in _SENTENCE_END.split(text) if one and not is_remark(plain_line(one))]
        if not lines:
            self.remarks.append(text)
        if marks or not (lines and self.groups[-1].places):
            self._begin_place(marks if lines else ())
        self.groups[-1].places[-1].lines += filter(None, [". ".join(lines)])

    def link(self) -> None:
        """Give out all places and e-mails."""
        for person in self.people:
            for mark in marks_of(person.marks, self.places):
                for place in self.places.get(mark, ()):
                    person.affiliations.append(", ".join(place.lines))
                    place.is_linked = True
        for group in self.groups:
            self._give_places(group)
        rest = []
        for email in dict.fromkeys(self.emails):
            owners = self._owners([email])
            if len(owners) == 1:
                owners[0].emails.append(email)
            else:
                rest.append(email)
        others = [person for person in self.people if not person.emails]
        for person, email in zip(others, rest, strict=False) if len(others) == len(rest) else ():
            person.emails.append(email)

    def _give_places(self, group: _Group) -> None:
        """Give places without marks to the people above them, where the page says to whom."""
        places = [place for place in group.places if place.lines and not place.is_linked]
        lines = [place.lines for place in places]
        people = group.people
        is_lost = len(people) > 1 and any(
            mark.isdigit() for person in people for mark in marks_of(person.marks)
        )
        # Marks that nobody has.
        is_several = len(places) > 1 or any(person.affiliations for person in people)
        is_lost |= is_several and any(place.marks for place in places)
        shares = share(0 if is_lost else len(people), lines)
        for person, texts in zip(people, shares, strict=False):
            person.affiliations += texts
        if not shares:
            self.unlinked += [place for run in lines for place in join_lines(run)]

    def authors(self) -> tuple[Author, ...]:
        """The authors with what the page says of them, in the order of their names."""
        return tuple(
            Author(
                person.name,
                tuple(_plain_lines(person.affiliations or self.stated[person.name])),
                tuple(dict.fromkeys(person.emails)),
            )
            for person in self.people
        )


def _without_edges(text: str) -> str:
    """The text without the signs and words that part it from its neighbours."""
    words = [word.span() for word in _WORD.finditer(text)] or [(0, 0)]
    text = text[words[0][0] : words[-1][1]]
    bare = text if "(" in text else text.removesuffix(")")
    return bare if has_letters(bare) else ""
