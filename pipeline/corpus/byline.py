"""Bylines to authors: names apart from the affiliations, e-mails, notes and marks that stand beside them.

LaTeXML gives one byline per author where the class is known to it, and one for all of them, with line breaks and
superscripts, where it is not. Either way the bylines become groups: names, and what stands below them. Marks then lead
from names to affiliations on the whole page. What a text is says `byline_rules`, what a name is `person_names`.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice, takewhile, zip_longest

from pipeline.corpus.byline_rules import AFFILIATION_KINDS, is_affiliation, kinds_of
from pipeline.corpus.paper import Author
from pipeline.corpus.policies import AUTHOR, CELL, EMAIL, INNER, LINE, MARK, NOTE, PLACE, fold
from pipeline.corpus.workplaces import add_workplaces, has_sentence
from pipeline.metadata.person_names import KnownNames, is_name, is_suffix, split_names, without_titles
from pipeline.metadata.titles import title_words

_AFFILIATION_ROLES = frozenset({"affiliation", "address", "institution", "institute", "organization"})

_EMAILS = re.compile(
    r"[{(\[](?P<group>[^{}()\[\]@]*)[})\]]\s*@\s*(?P<domain>[\w-]+(?:\.[\w-]+)+)|[\w.+-]+@[\w-]+(?:\.[\w-]+)+"
)
_EMAIL_WORD = re.compile(r"\b(?:corresponding |contact )?e-?mails?(?: address(?:es)?)?\b\s*:?", re.IGNORECASE)
_EMAIL_PARTS = re.compile(r"[,;|/\s]+")
_BROKEN_EMAIL = re.compile(rf"@\s*{LINE}\s*|\s*{LINE}\s*@")
_BROKEN_GROUP = re.compile(rf"\{{[^{{}}@]{{0,400}}{LINE}[^{{}}@]{{0,400}}\}}\s*@")
_SPELLED_AT = re.compile(r"\s*[\[(<{]\s*(?:at|@)\s*[\])>}]\s*", re.IGNORECASE)
_SPELLED_DOT = re.compile(r"\s*[\[(<{]\s*dot\s*[\])>}]\s*", re.IGNORECASE)
_URL = re.compile(r"\b(?:https?://|www\.)\S+", re.IGNORECASE)

# Marks: superscripts, symbols among the names, and formulas that are nothing but such.
_SYMBOLS = "*∗⋆★†‡§¶∥‖♯♭♮♠♣♥♦◇⋄☆✉✝∘"
_SYMBOL_RUN = re.compile(f"[{_SYMBOLS}]+")
_MARK_PARTS = re.compile(rf"{NOTE}?\d+|{NOTE}?[{_SYMBOLS}]|{NOTE}?[^\W\d_]+")
_SAME_MARK = str.maketrans({"∗": "*", "★": "⋆", "☆": "⋆", "‖": "∥", "✝": "†", "◇": "⋄"})
_TEX_SYMBOLS = {
    "dagger": "†", "ddagger": "‡", "ast": "*", "star": "⋆", "bigstar": "⋆", "S": "§", "P": "¶", "diamond": "⋄",
    "Diamond": "⋄", "dag": "†", "ddag": "‡", "sharp": "♯", "natural": "♮", "flat": "♭", "clubsuit": "♣",
    "spadesuit": "♠", "heartsuit": "♥", "diamondsuit": "♦", "parallel": "∥", "circ": "∘", "bullet": "•", "cdot": "·",
    "Letter": "✉", "alpha": "α", "beta": "β", "gamma": "γ", "delta": "δ",
}  # fmt: skip
_FORMULA = re.compile(r"\$([^$]*)\$")
_TEX_COMMAND = re.compile(r"\\([A-Za-z]+)\s*|\\.")
_TEX_SPACE = re.compile(r"[\s~{}^_]+")
_MARK_ONLY = re.compile(rf"(?:[{_SYMBOLS}]|\d{{1,2}}|[a-zα-δ]|[,;\s])+")
_FOOTNOTE_MARK = re.compile(r"(\S+?)\1footnotemark:\s*\1")
_SUPERSCRIPT_DIGITS = re.compile("[⁰¹²³⁴⁵⁶⁷⁸⁹]+")
_DIGITS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹", "0123456789")
_WITHOUT_SIGNS = str.maketrans(dict.fromkeys((CELL, INNER, MARK, EMAIL), " "))
_MARKED = re.compile(f"{MARK}[^{MARK}]*{MARK}")
# A number or letter that was meant as a mark, before an affiliation or after a name: "1 University of X", "Ann Lee1,2".
_LEADING_MARK = re.compile(r"\s*[(\[]?(\d{1,2}|[a-z])[)\].]?\s*(?=[^\W\d_a-z])")
_TRAILING_MARK = re.compile(r"(?<=[^\W\d_])\s?(\d{1,2}(?:,\s?\d{1,2})*)(?=\s*(?:,|;|$|\band\b))")

# What LaTeXML makes of LNCS's \\inst{1}, \\inst{1,2}: each mark twice.
_DOUBLED_MARK = re.compile(r"(\d{1,2}(?:,\s?\d{1,2})*?)\1(?!\d*\1)")
_DOUBLED_MARKS = re.compile(r"(?:(\d{1,2}(?:,\s?\d{1,2})*?)\1)+")

# What parts authors: LaTeX's column sign left over from \And, as "&Ann Lee", or the macro itself.
_NEXT_AUTHOR = re.compile(rf"(?:(?<=[\s{LINE}{MARK}{AUTHOR}])|^)&(?=[^\s&])|\\(?:And|AND|and)\b")
_SPLIT_NAMES = re.compile(rf"\s*(?:[,;·•|{CELL}]|\band\b|\bund\b|&|\\quad|\\qquad)\s*")
_ENDS_OPEN = re.compile(r"(?:,|;|&|·|\band)$")
_SOURCE_BREAK = re.compile(r"[ \t]*\n[ \t\n]*")
_GAP = re.compile(r"\s*[\u2001\u2003\u3000]\s*|[ \xa0]{2,}")
_BRACKETS = re.compile(r"\(([^()]{3,300})\)")
# LaTeXML runs the \thanks of several authors together: "Work performed at X.Work performed at Y."
_NEXT_REMARK = re.compile(r"(?<=[a-z]{2}\.)(?=[A-Z][a-z])")
_NO_LETTER = re.compile(r"[^a-z]+")
_LEADING_AND, _TRAILING_AND = re.compile(r"^(?:and|&)\s+"), re.compile(r"(?:,?\s+and|\s+&)$")
_FULL_STOP = re.compile(r"(?<=\w{4})\.$")
_EDGES = " ,;:-–—"


@dataclass(slots=True)
class Byline:
    """One `ltx_creator` as it stands. `names` has the marks LINE, CELL, AUTHOR, and MARK around superscripts."""

    names: str = ""
    contacts: list[tuple[str, str]] = field(default_factory=list)
    """(role, text) of affiliations, e-mails and the like."""
    notes: list[tuple[str, str]] = field(default_factory=list)
    """(mark, text) of footnotes on the names."""
    remarks: list[str] = field(default_factory=list)

    def add_note(self, mark: str, text: str) -> None:
        """Keep a footnote on a name where it says anything."""
        if fold(text):
            self.notes.append((mark, text))


@dataclass(slots=True, eq=False)
class _Name:
    """A name as printed, and what turned out to be its bearer's."""

    text: str
    marks: set[str] = field(default_factory=set)
    affiliations: list[str] = field(default_factory=list)
    emails: list[str] = field(default_factory=list)
    words: list[str] = field(init=False)
    """Initials and words of the name as addresses write them."""

    def __post_init__(self) -> None:
        words = [word for word in title_words(self.text) if not is_suffix(word)]
        first, last = (words[0], words[-1]) if words else ("", "")
        initials = "".join(word[0] for word in words)
        self.words = [initials, first[:1] + last, last + first[:1], first + last[:1], last + first, *words]

    def fits(self, local: str) -> bool:
        """Whether what stands before an address's @ is made of the name."""
        return bool(local) and (local in self.words or any(len(word) > 2 and word in local for word in self.words[:-1]))


@dataclass(slots=True)
class _Group:
    """Names that share what stands below them.

    places: (marks, text) of affiliations, line by line. columns: affiliations laid out below each name.
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
    reader = _Reader(bylines, institutes, KnownNames(known))
    for byline in bylines:
        reader.read(byline)
    reader.link(institutes)
    return reader.authors(), reader.remarks()


class _Reader:
    """Reads the bylines of one page into groups, then links affiliations and e-mails to names."""

    def __init__(self, bylines: Sequence[Byline], institutes: Sequence[str], known: KnownNames) -> None:
        self.several = len(bylines) > 1
        self.in_blocks = False
        """Whether each author's name has its own affiliation below it, so that a line below names is no name."""
        self.expects_name = False
        """Whether the line before says that a name follows: it was an e-mail, or ended with a comma behind a name."""
        self.inline = False
        """Whether a name and its affiliation stand on one line, line by line: "Ann Lee, University of X"."""
        self.marks: set[str] = set()
        self.known, self.all_known = _trusted(known, bylines)
        self.groups: list[_Group] = []
        self.of_bylines: list[tuple[list[_Group], list[str]]] = []
        """The groups of each byline, and the affiliations in its contacts."""
        self.notes: list[tuple[frozenset[str], str]] = []
        self.said: list[tuple[str, _Name | None]] = []
        """Remarks, each with the one author whose byline it stands in."""
        texts = [*institutes, *(text for byline in bylines for text in _texts_of(byline))]
        self.local_parts = [local_part(email) for text in texts for email in find_emails(text)]

    def read(self, byline: Byline) -> None:
        """Sort what a byline holds into groups, notes and remarks."""
        text, emails = _take_emails(_normalize(byline.names))
        addresses = iter(emails)
        parts = [part for part in _NEXT_AUTHOR.sub(AUTHOR, text).split(AUTHOR) if _letters(part) or EMAIL in part]
        first = len(self.groups)
        self.in_blocks = self.several or len(parts) > 1
        for part in parts or [""]:
            self.groups.append(_Group())
            self._read_part(part, addresses, byline)
        groups = self.groups[first:]
        names = [name for group in groups for name in group.names]
        affiliations = [_without_contacts(text) for role, text in byline.contacts if role in _AFFILIATION_ROLES]
        affiliations = [text for text in affiliations if _letters(text) and "nothing" not in kinds_of(text)]
        contacts = [email for _, text in byline.contacts for email in find_emails(text)]
        if not names and self.of_bylines:  # a comma in an affiliation that LaTeXML took for one between authors
            del self.groups[first:]
            self.of_bylines[-1][1].extend([*(text for group in groups for _, text in group.places), *affiliations])
            self.groups[-1].emails += contacts + [email for group in groups for email in group.emails]
            return
        owner = names[0] if len(names) == 1 else None
        self.of_bylines.append((groups, affiliations))
        remarks = [text for role, text in byline.contacts if role == "thanks"]
        remarks += [part for text in byline.remarks for part in _NEXT_REMARK.split(text) if part]
        for doubled in filter(_DOUBLED_MARKS.fullmatch, remarks):
            for name in names:
                name.marks |= {found[1] for found in _DOUBLED_MARK.finditer(doubled)}
        remarks = [text for text in remarks if not _DOUBLED_MARKS.fullmatch(text)]
        # LaTeXML gives the second affiliation of acmart and amsart as bare text beside the first.
        bare = [text for text in remarks if affiliations and is_affiliation(text) and not has_sentence(text)]
        affiliations += [text.strip(_EDGES) for text in bare if not find_emails(text)]
        remarks = [text for text in remarks if text not in bare or find_emails(text)]
        for mark, text in byline.notes:
            if is_affiliation(text):
                self.notes.append((_marks(NOTE + mark), _without_contacts(fold(text))))
                contacts += find_emails(text)
            else:
                remarks.append(fold(text))
        if len(names) == 1 and not affiliations:
            affiliations += filter(None, map(_before_email, remarks))
        self.said += [(remark, owner) for remark in remarks]
        groups[-1].emails += contacts + [email for text in remarks for email in find_emails(text)]

    def _read_part(self, part: str, addresses: Iterator[str], byline: Byline) -> None:
        """Read the lines of one author, or of all; behind PLACE no name follows."""
        part, _, place = part.partition(PLACE)
        lines = part.split(LINE)
        list_of_names = not self.in_blocks and _is_list_of_names(lines, byline)
        self.expects_name = False
        for line, following in zip_longest(lines, lines[1:], fillvalue=""):
            emails = list(islice(addresses, line.count(EMAIL)))
            rest = _without_contacts(line)
            if _letters(rest):
                is_heading = not self.in_blocks and self.groups[-1].is_complete and is_affiliation(_bare(following))
                self._read_line(rest, expects_name=self.expects_name or list_of_names or is_heading)
            elif emails:
                self.expects_name = True
            self.groups[-1].emails += emails
        for line in place.replace(PLACE, LINE).split(LINE):
            self.groups[-1].emails += islice(addresses, line.count(EMAIL))
            if _letters(line):
                self._add_place(_without_contacts(line))

    def _read_line(self, line: str, *, expects_name: bool) -> None:
        """Sort a line: names open a group or go on with it, anything else is an affiliation of the group."""
        bare = fold(_bare(line))
        kinds = kinds_of(bare)
        if "nothing" in kinds:
            return
        if "remark" in kinds:
            self.said.append((bare, None))
            return
        names, place = self._leading_names(line, kinds, expects_name=expects_name)
        self.expects_name = bool(names) and not place and _ENDS_OPEN.search(bare) is not None
        if names:
            if self.groups[-1].is_complete:
                self.groups.append(_Group())
            self.groups[-1].names += names
            self.marks.update(*(name.marks for name in names))
        if place:
            self._add_place(place)

    def _leading_names(self, line: str, kinds: frozenset[str], *, expects_name: bool) -> tuple[list[_Name], str]:
        """The names that a line begins with, and the affiliation that follows them or is the whole line."""
        names = self._names_in(line)
        group = self.groups[-1]
        if self.known is not None:
            matched = [self.known.match(name.text) is not None for name in names]
            if any(matched):
                strict = self.all_known or bool(kinds & AFFILIATION_KINDS)
                likely = [
                    found or (not strict and is_name(name.text)) for found, name in zip(matched, names, strict=True)
                ]
                return _cut(names, likely, line)
            if self.all_known:
                return [], line
        if self.inline and len(names) > 1 and is_name(names[0].text):
            return _cut(names, [True] + [False] * (len(names) - 1), line)
        if kinds & AFFILIATION_KINDS:
            leading = list(takewhile(lambda name: is_name(name.text) and not is_affiliation(name.text), names))
            likely = [place < len(leading) for place in range(len(names))]
            self.inline |= not group.names and not self.in_blocks and len(leading) == 1
            return _cut(names, likely, line) if not group.names else ([], line)
        if not group.names and not line.lstrip().startswith(MARK):
            return (names, "") if self._can_be_authors(names) else ([], line)
        if line.lstrip().startswith(MARK) and (group.names or any(group.names for group in self.groups)):
            return [], line
        if names and all(is_name(name.text) for name in names) and (expects_name or self._is_next_author(line, names)):
            return names, ""
        return [], line

    def _can_be_authors(self, names: Sequence[_Name]) -> bool:
        """Whether texts that open a byline are names. Among several bylines a lone acronym or small word is none."""
        if not self.several or any(is_name(name.text) for name in names):
            return True
        return any(name.text[0].isupper() and not name.text.isupper() for name in names)

    def _is_next_author(self, line: str, names: Sequence[_Name]) -> bool:
        """Whether a line below names that looks like names is such, and no place: "Ben Gurion", "New York"."""
        group = self.groups[-1]
        marked = MARK in line and any(name.marks for name in group.names)
        emailed = any(names[0].fits(local) for local in self.local_parts)
        several = not self.in_blocks and (len(names) > 1 or (len(group.names) > 1 and not group.is_complete))
        return several or marked or emailed

    def _add_place(self, line: str) -> None:
        group = self.groups[-1]
        cells = [cell.strip(_EDGES) for cell in re.split(CELL, _GAP.sub(CELL, _SOURCE_BREAK.sub(" ", line)))]
        cells = [cell for cell in cells if _letters(cell)]
        if len(cells) == len(group.names) > 1 and not any(MARK in cell for cell in cells):
            group.columns.append(cells)
            return
        places = _split_places(line.replace(CELL, " ").replace(INNER, ", "))
        lead = _LEADING_MARK.match(line)
        if lead and lead[1] in self.marks and not places[0][0]:
            places = [(frozenset({lead[1]}), fold(line[lead.end() :]).strip(_EDGES))]
        if places and not places[0][0] and group.places and group.places[-1][0]:
            marks, text = group.places.pop()
            places[0] = (marks, f"{text}, {places[0][1]}")
        group.places += places

    def _names_in(self, line: str) -> list[_Name]:
        """The names of a line with their marks, split at marks, commas, "and", and gaps between whole names."""
        found: list[_Name] = []
        pieces = without_titles(line).split(MARK)
        for place in range(0, len(pieces), 2):
            for part in _SPLIT_NAMES.split(_SOURCE_BREAK.sub(" ", pieces[place])):
                for text in self._split_gaps(part):
                    numbered = _TRAILING_MARK.search(text)
                    name = (text[: numbered.start()] if numbered else text).strip(" :,*-–—")
                    name = name if is_suffix(name) else _FULL_STOP.sub("", name).lstrip(". ")
                    if is_suffix(name) and found:
                        found[-1].text += f", {name}"
                    elif _letters(name):
                        found.append(_Name(fold(name), set(_marks(numbered[1])) if numbered else set()))
            if place + 1 < len(pieces) and found:
                found[-1].marks |= _marks(pieces[place + 1])
        return found

    def _split_gaps(self, text: str) -> list[str]:
        parts = [fold(part) for part in _GAP.split(text) if fold(part)]
        whole = len(parts) > 1 and all(len(part.split()) > 1 or is_name(part) for part in parts)
        parts = parts if whole else [fold(text)]
        return [name for part in parts for name in self._split_run(part)]

    def _split_run(self, text: str) -> list[str]:
        """Known names that stand in a row with nothing between: "Ann Lee Bob Roe"."""
        words = text.split()
        if self.known is None or len(words) < 4 or self.known.match(text):
            return [text]
        found, start = [], 0
        while start < len(words):
            ends = range(min(start + 6, len(words)), start + 1, -1)
            end = next((end for end in ends if self.known.match(" ".join(words[start:end]))), None)
            if end is None:
                return [text]
            found.append(" ".join(words[start:end]))
            start = end
        return found

    def link(self, institutes: Sequence[str]) -> None:
        """Give every affiliation and e-mail to the names that it belongs to."""
        for place, group in enumerate(self.groups):
            if not group.names and place:
                _move(group, next(g for g in reversed(self.groups[:place]) if g.names or g is self.groups[0]))
        names = [name for group in self.groups for name in group.names]
        if all(mark.startswith(NOTE) for mark in self.marks):  # \footnotemark[1] beside names, 1 before affiliations
            for name in names:
                name.marks |= {mark.removeprefix(NOTE) for mark in name.marks}
            self.marks |= {mark.removeprefix(NOTE) for mark in self.marks}
        by_mark: defaultdict[str, list[str]] = defaultdict(list)
        for marks, text in [*self.notes, *(place for group in self.groups for place in group.places)]:
            for mark in marks:
                by_mark[mark].append(text)
        for mark, text in _numbered(institutes):
            by_mark[mark].append(text)
        for name in names:
            marks = [single for mark in sorted(name.marks) for single in ([mark] if mark in by_mark else mark)]
            name.affiliations += [text for mark in marks for text in by_mark.get(mark, ())]
        for group in self.groups:
            _share(group.names, [text for marks, text in group.places if self.marks.isdisjoint(marks)])
            for place, name in enumerate(group.names):
                cells = [cells[place] for cells in group.columns if place < len(cells)]
                name.affiliations += _join_lines([line for cell in cells for line in cell.split(INNER) if line])
            self._give_emails(group.names, group.emails)
        self._share_contacts()
        self._give_emails(names, [email for text in institutes for email in find_emails(text)])
        shared = [place for _, place in _numbered(institutes)]
        if len(shared) == 1:
            for name in names:
                name.affiliations = name.affiliations or list(shared)
        _give_named(names, shared)

    def _give_emails(self, names: Sequence[_Name], emails: Sequence[str]) -> None:
        """Give each e-mail to the name that it fits, in the group or on the page, the rest to the group in order."""
        left = []
        for email in dict.fromkeys(emails):
            local = local_part(email)
            owners = [name for name in names if name.fits(local)] or [
                name for group in self.groups for name in group.names if name.fits(local)
            ]
            if len(owners) == 1:
                owners[0].emails.append(email)
            else:
                left.append(email)
        free = [name for name in names if not name.emails]
        if len(names) == 1:
            names[0].emails += left
        elif left and len(left) == len(free):
            for name, email in zip(free, left, strict=True):
                name.emails.append(email)

    def _share_contacts(self) -> None:
        """Affiliations in contacts: a byline's own, or those of all since the last that had some."""
        waiting: list[_Name] = []
        for groups, contacts in self.of_bylines:
            names = [name for group in groups for name in group.names]
            affiliations = _join_lines(contacts)
            everybody = waiting + [name for name in names if name not in waiting]
            if (len(affiliations) > 1 and len(affiliations) == len(everybody)) or (
                len(affiliations) == 1 and not any(name.affiliations for name in names)
            ):
                names = everybody
            _share(names, contacts)
            waiting = [] if affiliations else [*waiting, *(name for name in names if not name.affiliations)]

    def authors(self) -> tuple[Author, ...]:
        """The authors in the order of the page, each once."""
        names: dict[str, _Name] = {}
        for group in self.groups:
            for name in group.names:
                names.setdefault(name.text, name)
        if not names:
            places = [text for group in self.groups for _, text in group.places]
            return (Author(places[0]),) if len(places) == 1 and len(self.of_bylines) == 1 else ()  # OpenAI
        authors = [Author(name.text, _once(name.affiliations), _once(name.emails)) for name in names.values()]
        thanks = [(_without_contacts(text), owner.text if owner else None) for text, owner in self.said]
        return tuple(add_workplaces(authors, thanks))

    def remarks(self) -> list[str]:
        """What the bylines say besides, each once."""
        return list(dict.fromkeys(text for text, _ in self.said))


def _trusted(known: KnownNames, bylines: Sequence[Byline]) -> tuple[KnownNames | None, bool]:
    """The known names if the page prints at least half of them, and whether it prints all."""
    printed = {word for byline in bylines for word in title_words(byline.names.replace(MARK, " "))}
    ends = [title_words(name)[-1:] for name in known.names]
    count = sum(not printed.isdisjoint(words) for words in ends)
    return (known if count and 2 * count >= len(ends) else None), count == len(ends)


def _texts_of(byline: Byline) -> Iterator[str]:
    yield _normalize(byline.names)
    yield from byline.remarks
    yield from (text for _, text in (*byline.contacts, *byline.notes))


def _is_list_of_names(lines: Sequence[str], byline: Byline) -> bool:
    """Whether the lines of the only byline are a name each, as their affiliations stand elsewhere or nowhere."""
    texts = [fold(_bare(_without_contacts(line))) for line in lines]
    texts = [text for text in texts if text]
    contacts = sum(role in _AFFILIATION_ROLES for role, _ in byline.contacts)
    return (len(texts) > 2 or len(texts) == contacts > 1) and all(
        is_name(text) and not kinds_of(text) for text in texts
    )


def _normalize(names: str) -> str:
    """The text of names with formulas and symbols as marks, and addresses that were broken over lines whole again."""
    text = _FORMULA.sub(_formula_as_mark, names)
    text = _FOOTNOTE_MARK.sub(rf"{NOTE}\1", text)
    pieces = text.split(MARK)
    pieces[::2] = [_SYMBOL_RUN.sub(rf"{MARK}\g<0>{MARK}", piece) for piece in pieces[::2]]
    text = _SUPERSCRIPT_DIGITS.sub(lambda found: f"{MARK}{found[0].translate(_DIGITS)}{MARK}", MARK.join(pieces))
    if "@" in text:
        text = _BROKEN_GROUP.sub(lambda found: found[0].replace(LINE, " "), _BROKEN_EMAIL.sub("@", text))
    return LINE.join(map(_lay_out, text.split(LINE)))


def _lay_out(line: str) -> str:
    """Grids that stand beside each other: authors where each begins with a name, else columns below names."""
    if INNER not in line:
        return line
    pieces = line.split(CELL)
    cells = [cell for cell in pieces[1::2] if _letters(cell)]
    first = [fold(_bare(cell.partition(INNER)[0])) for cell in cells]
    if not all(all(map(is_name, split_names(text))) and not kinds_of(text) for text in first):
        return line
    return LINE.join([AUTHOR + AUTHOR.join(cells).replace(INNER, LINE), *filter(_letters, pieces[::2])])


def _formula_as_mark(formula: re.Match[str]) -> str:
    """A formula among names: a mark where it is nothing else, else its text."""
    tex = formula[1].replace("\\{", "{").replace("\\}", "}")
    if tex in ("{", "}"):
        return tex
    plain = _TEX_COMMAND.sub(lambda command: _TEX_SYMBOLS.get(command[1] or "", " "), tex)
    text = _TEX_SPACE.sub(" ", plain).strip()
    if text in ("•", "·", "|", "&"):
        return text
    if not text:
        return "  " if "quad" in tex else " "
    return f"{MARK}{text}{MARK}" if _MARK_ONLY.fullmatch(text) else formula[0]


def _marks(text: str) -> frozenset[str]:
    """The single marks in a superscript: "1,2", "∗1", "2†", "a,b"."""
    return frozenset(_MARK_PARTS.findall(fold(text).translate(_SAME_MARK)))


def _bare(line: str) -> str:
    """A line without marks."""
    return _MARKED.sub(" ", line).translate(_WITHOUT_SIGNS)


def plain_line(line: str) -> str:
    """A line of a byline as words, without marks."""
    return fold(_bare(_normalize(line)).replace(AUTHOR, " "))


def _letters(text: str) -> bool:
    """Whether a text says anything beside its marks."""
    return any(letter.isalpha() for letter in _bare(text))


def _cut(names: list[_Name], likely: Sequence[bool], line: str) -> tuple[list[_Name], str]:
    """The likely names of a line, and what follows the last of them: "Ann Lee, University of X"."""
    good = [place for place, is_likely in enumerate(likely) if is_likely]
    if not good:
        return [], line
    kept = [names[place] for place in good]
    if good[-1] == len(names) - 1:
        return kept, ""
    start = line.find(names[good[-1] + 1].text.split()[0], line.find(kept[-1].text.split()[-1]))
    return kept, line[start:] if start > 0 else ""


def _split_places(line: str) -> list[tuple[frozenset[str], str]]:
    """(marks, text) of the affiliations in a line; marks stand before what they mark, or all of them after."""
    pieces = line.split(MARK)
    texts = [fold(piece).strip(_EDGES) for piece in pieces[::2]]
    marks = [_marks(piece) for piece in pieces[1::2]]
    if len(marks) == len(texts) - 1 and texts[0] and not texts[-1] and all(texts[:-1]):
        return list(zip(marks, texts, strict=False))
    places: list[tuple[frozenset[str], str]] = [(frozenset(), texts[0])] if texts[0] else []
    pending = frozenset[str]()
    for mark, text in zip(marks, texts[1:], strict=False):
        pending |= mark
        if _letters(text):
            places.append((pending, text))
            pending = frozenset()
    return places


def _move(group: _Group, to: _Group) -> None:
    """Add what a group without names holds to the group before it."""
    if group is not to:
        to.places += group.places
        to.emails += group.emails
        group.places, group.emails = [], []


def _share(names: Sequence[_Name], lines: Sequence[str]) -> None:
    """Give the affiliations in some lines to each of the names, or one to each where there are as many."""
    affiliations = _join_lines(lines)
    if len(affiliations) == 1 and affiliations[0].count(",") == len(names) - 1:
        parts = affiliations[0].split(", ")
        affiliations = parts if all("organisation" in kinds_of(part) for part in parts) else affiliations
    if len(affiliations) == len(names) > 1:
        for name, text in zip(names, affiliations, strict=True):
            name.affiliations.append(text)
        return
    for name in names:
        name.affiliations += affiliations


def _join_lines(lines: Sequence[str]) -> list[str]:
    """Lines of one address as one affiliation; a second organisation, or what follows a location, begins another."""
    kinds = [kinds_of(line) for line in lines]
    affiliations: list[list[str]] = []
    seen: set[str] = set()
    goes_on = True
    for place, (line, of_line) in enumerate(zip(lines, kinds, strict=True)):
        second = "organisation" in of_line and "organisation" in seen
        second |= "institute" in of_line and "organisation" in seen
        after_location = "location" in seen and ("location" not in of_line or "," in line)
        of_next = "unit" in of_line and "organisation" in seen and any("organisation" in k for k in kinds[place + 1 :])
        bare = _LEADING_AND.sub("", line.strip(_EDGES))
        and_next = not goes_on or bare != line.strip(_EDGES)
        goes_on = _TRAILING_AND.search(bare) is None
        if not affiliations or second or after_location or of_next or and_next:
            affiliations.append([])
            # A name that no rule knows is that of an organisation, unless it is an acronym of a unit: LTI, umiacs.
            seen = {"organisation"} if not of_line and line[:1].isupper() and not line.isupper() else set()
        affiliations[-1].append(_FULL_STOP.sub("", _TRAILING_AND.sub("", bare)))
        seen |= of_line
    return [", ".join(filter(None, parts)) for parts in affiliations]


def _give_named(names: Sequence[_Name], institutes: Sequence[str]) -> None:
    """Give institutes to the names that stand before them in the list: Springer's "A. Lee and B. Roe at X"."""
    known = KnownNames(name.text for name in names)
    people: set[str] = set()
    before = ""
    for text in institutes:
        person = known.match(text)
        if person and before and before not in known.names:
            people = set()
        if person:
            people.add(person)
        for name in names:
            if not person and name.text in people:
                name.affiliations.append(text)
        before = person or text


def _numbered(institutes: Sequence[str]) -> list[tuple[str, str]]:
    """Institutes given for all authors, with the number that marks on names mean."""
    places = [place for place in (fold(_without_contacts(text)) for text in institutes) if place]
    return [(str(number), place) for number, place in enumerate(places, start=1)]


def _once(texts: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(texts))


# E-mails.


def _before_email(text: str) -> str:
    """What stands before an e-mail in thanks where that can be an affiliation alone: "Acme Analytics. Email: a@x"."""
    before = _EMAIL_WORD.split(_take_emails(text)[0], maxsplit=1)[0].strip(f" .,;(:{EMAIL}")
    capitals = all(word[0].isupper() or word in ("of", "for", "and", "the", "&") for word in before.split())
    return before if EMAIL in _take_emails(text)[0] and capitals and not kinds_of(before) else ""


def find_emails(text: str) -> list[str]:
    """The e-mail addresses in a text; `{a, b}@x.org` is two."""
    return _take_emails(text)[1] if "@" in text or _SPELLED_AT.search(text) else []


def local_part(email: str) -> str:
    """The letters before the @, in lower case."""
    return _NO_LETTER.sub("", email.partition("@")[0].lower())


def _take_emails(text: str) -> tuple[str, list[str]]:
    """The text with a sign in place of each e-mail address, and the addresses."""
    text = _SPELLED_DOT.sub(".", _SPELLED_AT.sub("@", text))
    emails: list[str] = []

    def take(found: re.Match[str]) -> str:
        group = _EMAIL_PARTS.split(found["group"]) if found["group"] is not None else []
        addresses = [f"{name}@{found['domain']}" for name in group if name] or [found[0]]
        emails.extend(addresses)
        return EMAIL * len(addresses)

    return _EMAILS.sub(take, text), emails


def _without_contacts(text: str) -> str:
    """The text without e-mails, addresses of pages and the words that announce them."""
    text = _take_emails(text)[0] if "@" in text else text
    if EMAIL in text:
        text = _EMAIL_WORD.sub(" ", text.replace(EMAIL, " "))
    return (_URL.sub(" ", text) if "www." in text or "://" in text else text).strip(_EDGES)
