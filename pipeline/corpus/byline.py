"""Bylines to authors: names apart from the affiliations, e-mails, notes and marks that stand beside them.

LaTeXML gives one byline per author where the class is known to it, and one for all of them, with line breaks and
superscripts, where it is not. Either way the bylines become groups: names, and what stands below them. Marks then lead
from names to affiliations on the whole page. What a text is says `byline_text`, what a name is `person_names`.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice, takewhile, zip_longest

from pipeline.arxiv.person_names import KnownNames, is_name, is_suffix, split_names, without_titles
from pipeline.arxiv.titles import title_words
from pipeline.corpus.affiliations import (
    add_workplaces,
    contact_affiliations,
    has_sentence,
    join_lines,
    split_marked,
    split_places,
    without_full_stop,
)
from pipeline.corpus.byline_text import (
    EDGES,
    doubled_marks,
    find_emails,
    has_letters,
    is_affiliation,
    kinds_of,
    normalize,
    plain_line,
    split_marks,
    take_emails,
    without_addresses,
    without_signs,
)
from pipeline.corpus.paper import Author
from pipeline.corpus.policies import AUTHOR, CELL, EMAIL, INNER, LINE, MARK, NOTE, PLACE, fold
from pipeline.corpus.printed_byline import AFFILIATION_ROLES, Byline, join_split_bylines

# What parts authors: LaTeX's column sign left over from \And, as "&Ann Lee", or the macro itself.
_NEXT_AUTHOR = re.compile(rf"(?:(?<=[\s{LINE}{MARK}{AUTHOR}])|^)&(?=[^\s&])|\\(?:And|AND|and)\b")
_SPLIT_NAMES = re.compile(rf"\s*(?:[,;·•|{CELL}]|\band\b|\bund\b|&|\\quad|\\qquad)\s*|\s+[-–—]\s+")
_MACRO = re.compile(r"\\[A-Za-z@]+\s*")
# An affiliation in brackets behind a name: "Ann Lee (University of X)".
_BRACKETED = re.compile(r"\(([^()]{3,300})\)")
_ENDS_OPEN = re.compile(r"(?:,|;|&|·|\band)$")
_SOURCE_BREAK = re.compile(r"[ \t]*\n[ \t\n]*")
_GAP = re.compile(r"\s*[\u2001\u2003\u3000]\s*|[ \xa0]{2,}")
# A number or letter that was meant as a mark, before an affiliation or after a name: "1 University of X", "Ann Lee1,2".
_LEADING_MARK = re.compile(r"\s*[(\[]?(\d{1,2}|[a-z])[)\].]?\s*(?=[^\W\d_a-z])")
_TRAILING_MARK = re.compile(r"(?<=[^\W\d_])\s?(\d{1,2}(?:,\s?\d{1,2})*)(?=\s*(?:,|;|$|\band\b))")
# LaTeXML runs the \thanks of several authors together: "Work performed at X.Work performed at Y."
_NEXT_REMARK = re.compile(r"(?<=[a-z]{2}\.)(?=[A-Z][a-z])")
_NO_LETTER = re.compile(r"[^a-z]+")
_LONGEST_NAME, _LONGEST_PLACE = 6, 600
# Lists of thousands of authors name a few addresses; each is sought among all names no further than here.
_MOST_NAMES, _MOST_ADDRESSES = 300, 500


@dataclass(slots=True, eq=False)
class _Name:
    """A name as printed, and what turned out to be its bearer's."""

    text: str
    marks: set[str] = field(default_factory=set)
    affiliations: list[str] = field(default_factory=list)
    emails: list[str] = field(default_factory=list)
    local_parts: list[str] = field(init=False)
    """Words of the name, and what else of it may stand before an address's @."""

    def __post_init__(self) -> None:
        words = [word for word in title_words(self.text) if not is_suffix(word)]
        first, last = (words[0], words[-1]) if words else ("", "")
        initials = "".join(word[0] for word in words)
        self.local_parts = [initials, first[:1] + last, last + first[:1], first + last[:1], last + first, *words]

    def fits(self, email: str) -> bool:
        """Whether an address is made of the name."""
        local = _NO_LETTER.sub("", email.partition("@")[0].lower())
        return bool(local) and (
            local in self.local_parts or any(len(word) > 2 and word in local for word in self.local_parts[4:])
        )


@dataclass(slots=True)
class _Group:
    """Names that share what stands below them.

    places: (marks, text) of affiliations, line by line. columns: cells of affiliations laid out below each name.
    """

    names: list[_Name] = field(default_factory=list)
    places: list[tuple[frozenset[str], str]] = field(default_factory=list)
    columns: list[list[str]] = field(default_factory=list)
    emails: list[str] = field(default_factory=list)

    @property
    def is_complete(self) -> bool:
        """Whether something stands below the names, so that another name opens another group."""
        return bool(self.names and (self.places or self.columns or self.emails))


def read_bylines(
    bylines: Sequence[Byline], institutes: Sequence[str], known: Sequence[str] = ()
) -> tuple[tuple[Author, ...], list[str]]:
    """(authors in order, remarks that are no affiliation).

    institutes: affiliations and e-mails given for all authors at once (LNCS's `\\institute`). known: the authors as
    arXiv's metadata names them; where a page prints most of them, they tell names from anything else.
    """
    known_names = KnownNames(known)
    bylines = join_split_bylines(bylines, known_names)
    reader = _Reader(bylines, institutes, known_names)
    for byline in bylines:
        reader.read(byline)
    reader.link(institutes)
    return reader.authors(), list(dict.fromkeys(text for text, _ in reader.remarks))


class _Reader:
    """Reads the bylines of one page into groups, then links affiliations and e-mails to names."""

    def __init__(self, bylines: Sequence[Byline], institutes: Sequence[str], known: KnownNames) -> None:
        self.known, self.all_known = _trusted(known, bylines)
        of_bylines = (normalize(text) for byline in bylines for text in byline.texts() if "@" in text)
        self.addresses = find_emails(*institutes, *of_bylines)
        self.several = len(bylines) > 1
        self.in_blocks = False
        """Whether each author's name has its own affiliation below it, so that a line below names is no name."""
        self.inline = False
        """Whether a name and its affiliation stand on one line, line by line: "Ann Lee, University of X"."""
        self.expects_name = False
        """Whether the line before says that a name follows: it was an e-mail, or ended with a comma behind a name."""
        self.by_gaps = False
        """Whether nothing but gaps parts the names of a line, so that the last line of a list may hold one alone."""
        self.groups: list[_Group] = []
        self.contacts: list[tuple[list[_Group], list[str]]] = []
        """The groups of each byline, and the affiliations in its contacts."""
        self.addresses_below: list[tuple[list[_Group], list[str]]] = []
        """The groups of a byline that has several, and the e-mails in its contacts, notes and remarks."""
        self.marks: set[str] = set()
        self.notes: list[tuple[frozenset[str], str]] = []
        self.remarks: list[tuple[str, _Name | None]] = []
        """Each with the one author whose byline it stands in."""

    # Lines to groups.

    def read(self, byline: Byline) -> None:
        """Sort what a byline holds into groups, notes and remarks."""
        text, emails = take_emails(LINE.join(map(_lay_out, normalize(byline.names).split(LINE))))
        parts = [part for part in _NEXT_AUTHOR.sub(AUTHOR, text).split(AUTHOR) if has_letters(part) or EMAIL in part]
        self.in_blocks = self.several or len(parts) > 1
        list_of_names = not self.in_blocks and _is_list_of_names(text, byline)
        addresses, first = iter(emails), len(self.groups)
        for part in parts or [""]:
            self.groups.append(_Group())
            self._read_part(part, addresses, list_of_names=list_of_names)
        groups = self.groups[first:]
        affiliations = contact_affiliations([text for role, text in byline.contacts if role in AFFILIATION_ROLES])
        emails = find_emails(*(text for _, text in (*byline.contacts, *byline.notes)), *byline.remarks)
        self.contacts.append((groups, affiliations))
        if sum(bool(group.names) for group in groups) > 1:
            self.addresses_below.append((groups, emails))
        else:
            groups[-1].emails += emails
        self._read_remarks(byline, groups, affiliations)

    def _read_remarks(self, byline: Byline, groups: Sequence[_Group], affiliations: list[str]) -> None:
        """Sort thanks and footnotes: marks and affiliations among them are none."""
        names = _names_of(groups)
        owner = names[0] if len(names) == 1 else None
        for mark, text in byline.notes:
            if is_affiliation(text) and not has_sentence(text):
                places = split_places(without_full_stop(without_addresses(fold(text))))
                self.notes += [(split_marks(NOTE + mark), place) for place in places]
            else:
                self.remarks.append((fold(text), owner))
        thanks = [text for role, text in byline.contacts if role == "thanks"]
        for text in [*thanks, *(part for remark in byline.remarks for part in _NEXT_REMARK.split(remark) if part)]:
            if marks := doubled_marks(text):
                for name in names:
                    name.marks |= marks
                self.marks |= marks
            elif affiliations and is_affiliation(text) and not has_sentence(text) and "@" not in text:
                # LaTeXML gives the second affiliation of acmart and amsart as bare text beside the first.
                affiliations.append(text.strip(EDGES))
            else:
                self.remarks.append((text, owner))

    def _read_part(self, part: str, addresses: Iterator[str], *, list_of_names: bool) -> None:
        """Read the lines of one author, or of all; behind PLACE no name follows."""
        part, _, address = part.partition(PLACE)
        lines = part.split(LINE)
        self.expects_name = False
        for line, following in zip_longest(lines, lines[1:], fillvalue=""):
            emails = list(islice(addresses, line.count(EMAIL)))
            rest = without_addresses(line)
            if has_letters(rest):
                above_affiliation = self.groups[-1].is_complete and is_affiliation(plain_line(following))
                self.expects_name |= list_of_names or (above_affiliation and not self.in_blocks)
                self._read_brackets(rest)
                self.expects_name &= _ENDS_OPEN.search(plain_line(line)) is not None
            elif emails:
                self.expects_name = True
            self.groups[-1].emails += emails
        for line in address.replace(PLACE, LINE).split(LINE):
            self.groups[-1].emails += islice(addresses, line.count(EMAIL))
            if has_letters(line):
                self._add_place(without_addresses(line))

    def _read_brackets(self, line: str) -> None:
        """Read a line in which affiliations may stand in brackets behind names."""
        for bracketed in _BRACKETED.finditer(line):
            before, _, rest = line.partition(bracketed[0])
            if is_affiliation(bracketed[1]) and is_name(plain_line(before).strip(EDGES)):
                self._read_line(before.strip(EDGES))
                self._add_place(bracketed[1])
                line = rest.strip(EDGES)
        self._read_line(line)

    def _read_line(self, line: str) -> None:
        """Sort a line: names open a group or go on with it, anything else is an affiliation of the group."""
        words = plain_line(line)
        kinds = kinds_of(words)
        if "nothing" in kinds:
            return
        if "remark" in kinds:
            self.remarks += [(text, None) for _, text in split_marked(line)]
            return
        names = self._names_in(line)
        likely = self._likely_names(line, names, kinds)
        place = _behind_names(line, names, likely)
        names = [name for name, is_likely in zip(names, likely, strict=True) if is_likely]
        self.expects_name = bool(names) and not place
        if names:
            self.by_gaps = "," not in words
            if self.groups[-1].is_complete:
                self.groups.append(_Group())
            self.groups[-1].names += names
            self.marks.update(*(name.marks for name in names))
        if place:
            self._add_place(place)

    def _likely_names(self, line: str, names: Sequence[_Name], kinds: frozenset[str]) -> list[bool]:
        """Which of the texts that a line falls into are names."""
        group = self.groups[-1]
        none, every = [False] * len(names), [True] * len(names)
        if self.known is not None:
            matched = [self.known.match(name.text) is not None for name in names]
            if any(matched) and (self.all_known or kinds):
                return matched
            if any(matched):
                return [found or is_name(name.text) for found, name in zip(matched, names, strict=True)]
            if self.all_known:
                return none
        leading = _count_leading_names(names) if kinds else 1
        if self.inline and leading < len(names) and is_name(names[0].text):
            return [place < leading for place in range(len(names))]
        if kinds and group.names:
            return none
        if kinds:
            self.inline |= leading > 0 and not self.in_blocks
            return [place < leading for place in range(len(names))]
        if not group.names and not line.lstrip().startswith(MARK):
            return every if self._can_be_authors(names) else none
        if line.lstrip().startswith(MARK) and any(group.names for group in self.groups):
            return none
        are_names = bool(names) and all(is_name(name.text) for name in names)
        return every if are_names and (self.expects_name or self._is_next_author(line, names)) else none

    def _can_be_authors(self, names: Sequence[_Name]) -> bool:
        """Whether texts that open a byline are names. Among several bylines a lone acronym or small word is none."""
        if any(is_name(name.text) for name in names):
            return True
        if not self.several:
            return all(name.text.count(" ") < _LONGEST_NAME for name in names)
        return any(name.text[0].isupper() and not name.text.isupper() for name in names)

    def _is_next_author(self, line: str, names: Sequence[_Name]) -> bool:
        """Whether a line below names that looks like names is such, and no place: "Ben Gurion", "New York"."""
        group = self.groups[-1]
        marked = MARK in line and any(name.marks for name in group.names)
        in_rows = self.by_gaps and len(group.names) > 1 and not group.is_complete
        several = not self.in_blocks and (len(names) > 1 or in_rows)
        return several or marked or any(names[0].fits(email) for email in self.addresses[:_MOST_ADDRESSES])

    def _add_place(self, line: str) -> None:
        """Add a line of affiliations to the group that is open."""
        group = self.groups[-1]
        cells = line.split(CELL)[1::2] if CELL in line else _GAP.split(_SOURCE_BREAK.sub(" ", line))
        cells = [cell.strip(f"{EDGES}\n\xa0") for cell in cells]
        if len(cells) == len(group.names) > 1 and not any(MARK in cell for cell in cells):
            group.columns.append(cells)
            return
        places = split_marked(line.replace(CELL, " ").replace(INNER, ", "))
        lead = _LEADING_MARK.match(line)
        if lead and lead[1] in self.marks and not places[0][0]:
            places = [(frozenset({lead[1]}), fold(line[lead.end() :]).strip(EDGES))]
        goes_on = group.places and group.places[-1][0] and len(group.places[-1][1]) < _LONGEST_PLACE
        if places and not places[0][0] and goes_on:
            marks, text = group.places.pop()
            places[0] = (marks, f"{text}, {places[0][1]}")
        group.places += places

    def _names_in(self, line: str) -> list[_Name]:
        """The texts of a line with their marks, split at marks, commas, "and", and gaps between whole names."""
        found: list[_Name] = []
        pieces = _TRAILING_MARK.sub(rf"{MARK}\1{MARK}", without_titles(line)).split(MARK)
        for text, mark in zip_longest(pieces[::2], pieces[1::2], fillvalue=""):
            for part in _SPLIT_NAMES.split(_SOURCE_BREAK.sub(" ", text)):
                for name in self._split_gaps(part):
                    _append_name(found, name)
            if found:
                found[-1].marks |= split_marks(mark)
        return found

    def _split_gaps(self, text: str) -> list[str]:
        parts = [fold(part) for part in _GAP.split(text) if fold(part)]
        whole = len(parts) > 1 and all(" " in part or is_name(part) for part in parts)
        return [name for part in (parts if whole else [fold(text)]) for name in self._split_known(part)]

    def _split_known(self, text: str) -> list[str]:
        """Known names that stand in a row with nothing between: "Ann Lee Bob Roe"."""
        words = text.split()
        if self.known is None or len(words) < 4:
            return [text]
        found: list[str] = []
        while words:
            ends = range(min(_LONGEST_NAME, len(words)), 1, -1)
            name = next((name for end in ends if self.known.holds(name := " ".join(words[:end]))), None)
            if name is None:
                return [text]
            found.append(name)
            del words[: name.count(" ") + 1]
        return found

    # Groups to authors.

    def link(self, institutes: Sequence[str]) -> None:
        """Give every affiliation and e-mail to the names that it belongs to."""
        places = [place for place in (fold(without_addresses(text)) for text in institutes) if place]
        names = _names_of(self.groups)
        for before, group in zip(self.groups, self.groups[1:], strict=False):
            if not group.names:
                before.places, group.places = before.places + group.places, []
                before.emails, group.emails = before.emails + group.emails, []
        self._follow_marks(names, places)
        for group in self.groups:
            _share(group.names, [text for marks, text in group.places if self.marks.isdisjoint(marks)])
            for place, name in enumerate(group.names):
                lines = [line for cells in group.columns for line in cells[place].split(INNER)]
                lines = [without_signs(line) for line in lines if has_letters(line)]
                name.affiliations += join_lines(lines)
            self._give_emails(group.names, group.emails)
        for groups, emails in self.addresses_below:
            self._give_emails(_names_of(groups), emails)
        self._share_contacts()
        self._give_emails(names, find_emails(*institutes))
        _give_institutes(names, places)

    def _follow_marks(self, names: Sequence[_Name], institutes: Sequence[str]) -> None:
        """Give names the affiliations that stand behind their marks; institutes are numbered."""
        places = [place for group in self.groups for place in group.places]
        if any(marks for marks, _ in places) and all(mark.startswith(NOTE) for mark in self.marks):
            # \footnotemark[1] beside names, 1 before affiliations.
            for name in names:
                name.marks |= {mark.removeprefix(NOTE) for mark in name.marks}
            self.marks |= {mark.removeprefix(NOTE) for mark in self.marks}
        by_mark: defaultdict[str, list[str]] = defaultdict(list)
        for marks, text in [*self.notes, *places]:
            for mark in marks:
                by_mark[mark].append(text)
        for number, text in enumerate(institutes, start=1):
            by_mark[str(number)].append(text)
        for name in names:
            # "12" is 1 and 2 where there is no twelfth.
            for mark in sorted(name.marks):
                digits = mark if mark.isdigit() and mark not in by_mark else [mark]
                name.affiliations += [text for single in digits for text in by_mark.get(single, ())]

    def _share_contacts(self) -> None:
        """Affiliations in contacts: a byline's own, or those of all since the last that had some."""
        thanked = {name for text, name in self.remarks if is_affiliation(text) or "@" in text}
        waiting: list[_Name] = []
        for groups, lines in self.contacts:
            names = _names_of(groups)
            count, everybody = len(join_lines(lines)), [*waiting, *names]
            alone = count == 1 and not any(name.affiliations for name in names)
            _share(everybody if alone or 1 < count == len(everybody) else names, lines)
            waiting = [] if lines else [name for name in everybody if not name.affiliations and name not in thanked]

    def _give_emails(self, names: Sequence[_Name], emails: Sequence[str]) -> None:
        """Give each e-mail to the name that it fits, in the group or on the page, the rest to the group in order."""
        left = []
        everybody = _names_of(self.groups)[:_MOST_NAMES]
        for email in dict.fromkeys(emails):
            owners = [name for name in names if name.fits(email)] or [name for name in everybody if name.fits(email)]
            if len(owners) == 1:
                owners[0].emails.append(email)
            else:
                left.append(email)
        free = [name for name in names if not name.emails]
        if len(names) == 1:
            names[0].emails += left
        elif len(left) == len(free):
            for name, email in zip(free, left, strict=True):
                name.emails.append(email)

    def authors(self) -> tuple[Author, ...]:
        """The authors in the order of the page, each once."""
        names: dict[str, _Name] = {}
        for name in _names_of(self.groups):
            names.setdefault(name.text, name)
        if not names:
            places = [text for group in self.groups for _, text in group.places]
            return (Author(places[0]),) if len(places) == len(self.contacts) == 1 else ()  # OpenAI
        authors = [
            Author(name.text, tuple(dict.fromkeys(name.affiliations)), tuple(dict.fromkeys(name.emails)))
            for name in names.values()
        ]
        thanks = [(take_emails(text)[0], owner.text if owner else None) for text, owner in self.remarks]
        return tuple(add_workplaces(authors, thanks))


def _names_of(groups: Sequence[_Group]) -> list[_Name]:
    return [name for group in groups for name in group.names]


def _trusted(known: KnownNames, bylines: Sequence[Byline]) -> tuple[KnownNames | None, bool]:
    """The known names if the page prints at least half of them, and whether it prints all."""
    printed = {word for byline in bylines for word in title_words(plain_line(byline.names.replace(LINE, " ")))}
    ends = [title_words(name)[-1:] for name in known.names]
    count = sum(not printed.isdisjoint(words) for words in ends)
    return (known if count and 2 * count >= len(ends) else None), count == len(ends)


def _is_list_of_names(text: str, byline: Byline) -> bool:
    """Whether the lines of the only byline are a name each, as their affiliations stand elsewhere or nowhere."""
    lines = [plain_line(without_addresses(line)) for line in text.split(LINE)]
    lines = [line for line in lines if line]
    contacts = sum(role in AFFILIATION_ROLES for role, _ in byline.contacts)
    return (len(lines) > 2 or len(lines) == contacts > 1) and all(
        is_name(line) and not kinds_of(line) for line in lines
    )


def _lay_out(line: str) -> str:
    """A line of grids that stand beside each other: authors where each begins with names, else columns below names."""
    if INNER not in line:
        return line
    pieces = line.split(CELL)
    cells = [cell for cell in pieces[1::2] if has_letters(cell)]
    for cell in cells:
        first = plain_line(cell.partition(INNER)[0])
        if kinds_of(first) or not all(map(is_name, split_names(first))):
            return line
    return LINE.join([AUTHOR + AUTHOR.join(cells).replace(INNER, LINE), *filter(has_letters, pieces[::2])])


def _count_leading_names(names: Sequence[_Name]) -> int:
    """How many texts of a line stand before its affiliation, which is not a location alone."""
    leading = list(takewhile(lambda name: is_name(name.text) and not is_affiliation(name.text), names))
    rest = names[len(leading) :]
    is_located = bool(rest) and all(kinds_of(text.text) <= {"location", "street"} for text in rest)
    return len(leading) - (is_located and len(leading) > 1)


def _append_name(names: list[_Name], text: str) -> None:
    """Add a text to those of a line; a suffix belongs to the one before."""
    name = _MACRO.sub("", text).strip(" :,*-–—")
    if is_suffix(name) and names:
        names[-1].text += f", {name}"
    elif has_letters(name):
        names.append(_Name(without_signs(without_full_stop(name).lstrip(". "))))


def _behind_names(line: str, names: Sequence[_Name], likely: Sequence[bool]) -> str:
    """What follows the last name of a line: "University of X" of "Ann Lee, University of X"; all where it has none."""
    if not any(likely):
        return line
    last = max(place for place, is_likely in enumerate(likely) if is_likely)
    if last == len(names) - 1:
        return ""
    start = line.find(names[last + 1].text.split()[0], line.find(names[last].text.split()[-1]))
    return line[start:] if start > 0 else ""


def _share(names: Sequence[_Name], lines: Sequence[str]) -> None:
    """Give the affiliations in some lines to each of the names, or one to each where there are as many."""
    affiliations = join_lines(lines)
    parts = affiliations[0].split(", ") if len(affiliations) == 1 else []
    if len(parts) == len(names) > 1 and all("organisation" in kinds_of(part) for part in parts):
        affiliations = parts
    if len(affiliations) == len(names) > 1:
        for name, text in zip(names, affiliations, strict=True):
            name.affiliations.append(text)
    else:
        for name in names:
            name.affiliations += affiliations


def _give_institutes(names: Sequence[_Name], institutes: Sequence[str]) -> None:
    """Give the only institute to all without one, others to the names before them: Springer's "A. Lee, B. Roe at X"."""
    if len(institutes) == 1:
        for name in names:
            name.affiliations = name.affiliations or list(institutes)
    known = KnownNames(name.text for name in names)
    people: set[str] = set()
    was_person = False
    for text in institutes:
        person = known.match(text)
        if person is not None:
            people = {*people, person} if was_person else {person}
        for name in names:
            if person is None and name.text in people:
                name.affiliations.append(text)
        was_person = person is not None
