"""Lines of a byline to groups of names and what is below them.

`byline_rules` says what a text is, `person_names` what a name is; the place of a line decides what
they leave open.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice, takewhile, zip_longest

from pipeline.arxiv.person_names import KnownNames, is_name, is_suffix, split_names, without_titles
from pipeline.arxiv.titles import title_words
from pipeline.corpus.parse.affiliations import split_marked, without_full_stop
from pipeline.corpus.parse.byline_rules import (
    EDGES,
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
from pipeline.corpus.parse.policies import AUTHOR, CELL, EMAIL, INNER, LINE, MARK, PLACE, fold
from pipeline.corpus.parse.printed_byline import AFFILIATION_ROLES, Byline

# What separates authors: LaTeX's column sign left over from \And, as "&Ann Lee", or the macro
# itself.
_NEXT_AUTHOR = re.compile(rf"(?:(?<=[\s{LINE}{MARK}{AUTHOR}])|^)&(?=[^\s&])|\\(?:And|AND|and)\b")
_BETWEEN_NAMES = re.compile(rf"\s*(?:[,;·•|{CELL}]|\band\b|&)\s*")
# An affiliation in brackets behind a name: "Ann Lee (University of X)".
_BRACKETED = re.compile(r"\(([^()]{3,300})\)")
_ENDS_OPEN = re.compile(r"(?:,|;|&|·|\band)$")
_SOURCE_BREAK = re.compile(r"[ \t]*\n[ \t\n]*")
_GAP = re.compile(r"\s*[\u2001\u2003\u3000]\s*|[ \xa0]{2,}")
# A number or letter that was meant as a mark, before an affiliation or after a name: "1 University
# of X", "Ann Lee1,2".
_LEADING_MARK = re.compile(r"\s*[(\[]?(\d{1,2}|[a-z])[)\].]?\s*(?=[^\W\d_a-z])")
_TRAILING_MARK = re.compile(r"(?<=[^\W\d_])\s?(\d{1,2}(?:,\s?\d{1,2})*)(?=\s*(?:,|;|$|\band\b))")
_LONGEST_NAME, _LONGEST_AFFILIATION = 6, 600
# Lists of thousands of authors name a few addresses; a line below names is compared with no more
# than these.
_MOST_ADDRESSES = 500
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
    """What an address made of the name may have before its @: combinations of its words, then each
    word.
    """

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
    """The names of some groups, in order."""
    return [name for group in groups for name in group.names]


class LineReader:
    """Reads the bylines of one page, one by one, since later lines follow the layout of earlier
    ones.
    """

    def __init__(
        self, bylines: Sequence[Byline], institutes: Sequence[str], known: KnownNames
    ) -> None:
        self.known, self.all_are_known = _trusted(known, bylines)
        of_bylines = (
            normalize(text) for byline in bylines for text in byline.texts() if "@" in text
        )
        self.addresses = find_emails(*institutes, *of_bylines)
        self.has_several_bylines = len(bylines) > 1
        self.one_author_a_block = False
        """Whether each author has a block, so that a line below the name is no name."""
        self.affiliations_beside_names = False
        """Whether names and their affiliation are on one line: "Ann Lee, University of X"."""
        self.expects_name = False
        """Whether the line before says that a name follows: it was an e-mail, or ended with a comma
        behind a name.
        """
        self.marks: set[str] = set()
        """The marks of all names so far."""
        self.groups: list[AuthorGroup] = []
        self.remarks: list[str] = []

    def read(self, byline: Byline) -> tuple[list[AuthorGroup], list[str]]:
        """(groups, remarks) of the lines of one byline; at least one group."""
        self.groups, self.remarks = [], []
        text, emails = take_emails(LINE.join(map(_lay_out, normalize(byline.names).split(LINE))))
        blocks = [
            block
            for block in _NEXT_AUTHOR.sub(AUTHOR, text).split(AUTHOR)
            if has_letters(block) or EMAIL in block
        ]
        self.one_author_a_block = self.has_several_bylines or len(blocks) > 1
        list_of_names = not self.one_author_a_block and _is_list_of_names(text, byline)
        addresses = iter(emails)
        for block in blocks or [""]:
            self.groups.append(AuthorGroup())
            self._read_block(block, addresses, list_of_names=list_of_names)
        return self.groups, self.remarks

    def _read_block(self, block: str, addresses: Iterator[str], *, list_of_names: bool) -> None:
        """Read the lines of one author, or of all; behind PLACE no name follows."""
        block, _, address = block.partition(PLACE)
        lines = block.split(LINE)
        self.expects_name = False
        for line, following in zip_longest(lines, lines[1:], fillvalue=""):
            emails = list(islice(addresses, line.count(EMAIL)))
            rest = without_addresses(line)
            if has_letters(rest):
                above_affiliation = self.groups[-1].is_complete and is_affiliation(
                    plain_line(following)
                )
                self.expects_name |= list_of_names or (
                    above_affiliation and not self.one_author_a_block
                )
                self._read_brackets(rest)
                self.expects_name &= _ENDS_OPEN.search(plain_line(line)) is not None
            elif emails:
                self.expects_name = True
            self.groups[-1].emails += emails
        for line in address.replace(PLACE, LINE).split(LINE):
            self.groups[-1].emails += islice(addresses, line.count(EMAIL))
            if has_letters(line):
                self._add_affiliation(without_addresses(line))

    def _read_brackets(self, line: str) -> None:
        """Read a line in which affiliations may be in brackets behind names."""
        for bracketed in _BRACKETED.finditer(line):
            before, _, rest = line.partition(bracketed[0])
            if is_affiliation(bracketed[1]) and is_name(plain_line(before).strip(EDGES)):
                self._read_line(before.strip(EDGES))
                self._add_affiliation(bracketed[1])
                line = rest.strip(EDGES)
        self._read_line(line)

    def _read_line(self, line: str) -> None:
        """Sort a line: names open a group or go on with it, anything else is an affiliation of the
        group.
        """
        kinds = kinds_of(plain_line(line))
        if "nothing" in kinds:
            return
        if "remark" in kinds:
            self.remarks += [text for _, text in split_marked(line)]
            return
        names = self._names_in(line)
        likely = self._likely_names(line, names, kinds)
        affiliation = _behind_names(line, names, likely)
        names = [name for name, is_likely in zip(names, likely, strict=True) if is_likely]
        self.expects_name = bool(names) and not affiliation
        if names:
            if self.groups[-1].is_complete:
                self.groups.append(AuthorGroup())
            self.groups[-1].names += names
            self.marks.update(*(name.marks for name in names))
        if affiliation:
            self._add_affiliation(affiliation)

    def _likely_names(
        self, line: str, names: Sequence[PrintedName], kinds: frozenset[str]
    ) -> list[bool]:
        """Which of the texts that a line falls into are names."""
        none, every = [False] * len(names), [True] * len(names)
        if self.known is not None:
            matched = [self.known.match(name.text) is not None for name in names]
            if self.all_are_known:
                return matched
            if any(matched):
                return [
                    found or (not kinds and is_name(name.text))
                    for found, name in zip(matched, names, strict=True)
                ]
        leading = _count_leading_names(names) if kinds else 1
        if self.affiliations_beside_names and leading < len(names) and is_name(names[0].text):
            return [place < leading for place in range(len(names))]
        has_names = bool(self.groups[-1].names)
        if kinds and has_names:
            return none
        if kinds:
            self.affiliations_beside_names |= leading > 0 and not self.one_author_a_block
            return [place < leading for place in range(len(names))]
        is_marked = line.lstrip().startswith(MARK)
        if not has_names and not is_marked:
            return every if self._can_be_authors(names) else none
        if is_marked and any(group.names for group in self.groups):
            return none
        are_names = bool(names) and all(is_name(name.text) for name in names)
        return (
            every
            if are_names and (self.expects_name or self._is_next_author(line, names))
            else none
        )

    def _can_be_authors(self, names: Sequence[PrintedName]) -> bool:
        """Whether texts that open a byline are names. Among several bylines a lone acronym or small
        word is none.
        """
        if any(is_name(name.text) for name in names):
            return True
        if not self.has_several_bylines:
            return all(name.text.count(" ") < _LONGEST_NAME for name in names)
        return any(name.text[0].isupper() and not name.text.isupper() for name in names)

    def _is_next_author(self, line: str, names: Sequence[PrintedName]) -> bool:
        """Whether a line below names that looks like names is such, and no affiliation: "Ben
        Gurion", "New York".
        """
        marked = MARK in line and any(name.marks for name in self.groups[-1].names)
        several = not self.one_author_a_block and len(names) > 1
        return (
            several
            or marked
            or any(names[0].fits(email) for email in self.addresses[:_MOST_ADDRESSES])
        )

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
        if lead and lead[1] in self.marks and not lines[0][0]:
            lines = [(frozenset({lead[1]}), fold(line[lead.end() :]).strip(EDGES))]
        above_marks, above = (
            group.affiliation_lines[-1] if group.affiliation_lines else (frozenset(), "")
        )
        if lines and not lines[0][0] and above_marks and len(above) < _LONGEST_AFFILIATION:
            group.affiliation_lines.pop()
            lines[0] = (above_marks, f"{above}, {lines[0][1]}")
        group.affiliation_lines += lines

    def _names_in(self, line: str) -> list[PrintedName]:
        """The texts of a line with their marks, split at marks, commas, "and", and gaps between
        whole names.
        """
        found: list[PrintedName] = []
        pieces = _TRAILING_MARK.sub(rf"{MARK}\1{MARK}", without_titles(line)).split(MARK)
        for text, mark in zip_longest(pieces[::2], pieces[1::2], fillvalue=""):
            for part in _BETWEEN_NAMES.split(_SOURCE_BREAK.sub(" ", text)):
                for name in self._split_gaps(part):
                    _append_name(found, name)
            if found:
                found[-1].marks |= split_marks(mark)
        return found

    def _split_gaps(self, text: str) -> list[str]:
        parts = [fold(part) for part in _GAP.split(text) if fold(part)]
        whole = len(parts) > 1 and all(" " in part or is_name(part) for part in parts)
        return [
            name for part in (parts if whole else [fold(text)]) for name in self._split_known(part)
        ]

    def _split_known(self, text: str) -> list[str]:
        """Known names that are in a row with nothing between: "Ann Lee Bob Roe"."""
        words = text.split()
        if self.known is None or len(words) < 4:
            return [text]
        found: list[str] = []
        while words:
            ends = range(min(_LONGEST_NAME, len(words)), 1, -1)
            name = next(
                (name for end in ends if self.known.holds(name := " ".join(words[:end]))), None
            )
            if name is None:
                return [text]
            found.append(name)
            del words[: name.count(" ") + 1]
        return found


def _trusted(known: KnownNames, bylines: Sequence[Byline]) -> tuple[KnownNames | None, bool]:
    """The known names if the page prints at least half of them, and whether it prints all."""
    printed = {
        word
        for byline in bylines
        for word in title_words(plain_line(byline.names.replace(LINE, " ")))
    }
    ends = [title_words(name)[-1:] for name in known.names]
    count = sum(not printed.isdisjoint(words) for words in ends)
    return (known if count and 2 * count >= len(ends) else None), count == len(ends)


def _is_list_of_names(text: str, byline: Byline) -> bool:
    """Whether the lines of the only byline are a name each, as their affiliations are elsewhere or
    nowhere.
    """
    lines = [plain_line(without_addresses(line)) for line in text.split(LINE)]
    lines = [line for line in lines if line]
    contacts = sum(role in AFFILIATION_ROLES for role, _ in byline.contacts)
    return (len(lines) > 2 or len(lines) == contacts > 1) and all(
        is_name(line) and not kinds_of(line) for line in lines
    )


def _lay_out(line: str) -> str:
    """A line of grids that are beside each other: authors where each begins with names, else
    columns below names.
    """
    if INNER not in line:
        return line
    pieces = line.split(CELL)
    cells = [cell for cell in pieces[1::2] if has_letters(cell)]
    for cell in cells:
        first = plain_line(cell.partition(INNER)[0])
        if kinds_of(first) or not all(map(is_name, split_names(first))):
            return line
    return LINE.join(
        [AUTHOR + AUTHOR.join(cells).replace(INNER, LINE), *filter(has_letters, pieces[::2])]
    )


def _count_leading_names(names: Sequence[PrintedName]) -> int:
    """How many texts of a line are before its affiliation, which is not a location alone."""
    leading = list(
        takewhile(lambda name: is_name(name.text) and not is_affiliation(name.text), names)
    )
    rest = names[len(leading) :]
    is_located = bool(rest) and all(kinds_of(text.text) <= {"location", "street"} for text in rest)
    return len(leading) - (is_located and len(leading) > 1)


def _append_name(names: list[PrintedName], text: str) -> None:
    """Add a text to those of a line; a suffix belongs to the one before."""
    name = text.strip(" :,*-–—")
    if is_suffix(name) and names:
        names[-1].text += f", {name}"
    elif has_letters(name):
        names.append(PrintedName(without_signs(without_full_stop(name).lstrip(". "))))


def _behind_names(line: str, names: Sequence[PrintedName], likely: Sequence[bool]) -> str:
    """What follows the last name of a line: "University of X" of "Ann Lee, University of X"; all
    where it has none.
    """
    if not any(likely):
        return line
    last = max(place for place, is_likely in enumerate(likely) if is_likely)
    if last == len(names) - 1:
        return ""
    start = line.find(names[last + 1].text.split()[0], line.find(names[last].text.split()[-1]))
    return line[start:] if start > 0 else ""
