"""Bylines to authors: names apart from the affiliations, e-mails and marks that are glued to them.

LaTeXML gives one byline per author where the style file is known to it, and one for all of them, with line breaks and
superscripts, where it is not.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from pipeline.corpus.paper import Author
from pipeline.corpus.policies import LINE, MARK, fold
from pipeline.corpus.workplaces import PLACE, is_remark, names_place, with_workplaces

_EMAIL = re.compile(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+")
_EMAIL_GROUP = re.compile(r"[{(\[]([^{}()\[\]]*)[})\]]\s*@\s*([\w-]+(?:\.[\w-]+)+)")
_EMAIL_WORD = re.compile(r"\be-?mails?(?: address(?:es)?)?\b\s*:?", re.IGNORECASE)
# LaTeX's column sign between authors, left over where \and or \AND was not known: "&Noam Shazeer".
_NEXT_AUTHOR = re.compile(r"\s*&(?=[^\s&])")
# LaTeXML runs the \thanks of several authors together: "Work performed at X.Work performed at Y."
_NEXT_REMARK = re.compile(r"(?<=[a-z]{2}\.)(?=[A-Z][a-z])")
_MATH_MARK = re.compile(r"\$\{?\}?\^\{?((?:[^${}]|\{[^{}]*\})*)\}?\$")
_SYMBOLS = "*∗†‡§¶∥‖♯♭♠♣♥♦★☆✉"
_SYMBOL_RUN = re.compile(f"[{_SYMBOLS}]+")
_SPLIT_NAMES = re.compile(r"\s*(?:[,;·•]|\band\b|&|\\quad|\\qquad|\\And\b|\\AND\b)\s*")
_WIDE_GAP = re.compile(r"[\s\xa0]{2,}")
_SUFFIX = re.compile(r"(?:Jr|Sr|II|III|IV|Ph\.?\s?D|M\.?\s?D)\.?")
_NO_LETTER = re.compile(r"[^a-z]+")
_NAME = re.compile(r"[^\W\d_][\w'’.\-‐ ]*")
_LONGEST_NAME = 6


@dataclass(slots=True)
class Byline:
    """One `ltx_creator` as it stands. `names` has LINE between lines and MARK around superscripts."""

    names: str = ""
    contacts: list[tuple[str, str]] = field(default_factory=list)
    notes: list[tuple[str, str]] = field(default_factory=list)
    """(mark, text) of footnotes on the names."""
    remarks: list[str] = field(default_factory=list)

    def add_note(self, mark: str, text: str) -> None:
        """Keep a footnote on a name where it says anything."""
        if fold(text):
            self.notes.append((mark, text))


@dataclass(slots=True)
class _Group:
    """Names that share what stands below them."""

    names: list[tuple[str, frozenset[str]]] = field(default_factory=list)
    affiliations: list[tuple[frozenset[str], str]] = field(default_factory=list)
    emails: list[str] = field(default_factory=list)


def read_bylines(bylines: Sequence[Byline], institutes: Sequence[str]) -> tuple[tuple[Author, ...], list[str]]:
    """(authors in order, remarks that are no affiliation).

    `institutes` are affiliations and e-mails given for all authors at once (LNCS's `\\institute`).
    """
    authors: dict[str, Author] = {}
    remarks: list[tuple[str, str | None]] = []
    for byline in bylines:
        found, more = _read_byline(byline)
        owner = found[0].name if len(found) == 1 else None
        remarks += [(remark, owner) for remark in more]
        for author in found:
            authors.setdefault(author.name, author)
    shared = _share(list(authors.values()), institutes)
    thanks = [(_without_emails(remark), owner) for remark, owner in remarks]
    return tuple(with_workplaces(shared, thanks)), list(dict.fromkeys(remark for remark, _ in remarks))


def _share(authors: list[Author], institutes: Sequence[str]) -> list[Author]:
    if not institutes or not authors:
        return authors
    emails = [email for text in institutes for email in find_emails(text)]
    places = [place for place in (fold(_without_emails(text)) for text in institutes) if place]
    authors = _give_emails(authors, emails)
    if len(places) == 1:
        return [replace(author, affiliations=author.affiliations or (places[0],)) for author in authors]
    return authors


def _read_byline(byline: Byline) -> tuple[list[Author], list[str]]:
    authors, said = _read_names(byline.names, byline.notes)
    affiliations = [_without_emails(text) for role, text in byline.contacts if role in ("affiliation", "address")]
    emails = [email for _, text in byline.contacts for email in find_emails(text)]
    remarks = [text for role, text in byline.contacts if role == "thanks"]
    remarks += [part for text in byline.remarks for part in _NEXT_REMARK.split(text) if part]
    emails += [email for text in remarks for email in find_emails(text)]
    remarks += [fold(text) for _, text in byline.notes if not names_place(text)] + said
    authors = [replace(author, affiliations=(*author.affiliations, *filter(None, affiliations))) for author in authors]
    return _give_emails(authors, emails), remarks


def _read_names(names: str, notes: Sequence[tuple[str, str]]) -> tuple[list[Author], list[str]]:
    """The authors of a byline's names, and what stands among these and says something else of them."""
    groups = [group for part in _author_parts(names) for group in _read_groups(part)]
    said: list[str] = []
    for group in groups:
        said += [text for _, text in group.affiliations if is_remark(text)]
        group.affiliations = [each for each in group.affiliations if not is_remark(each[1])]
        group.affiliations += [(frozenset({mark}), fold(text)) for mark, text in notes if names_place(text)]
    authors = [
        author
        for group in groups
        for author in _give_emails([_author(name, marks, group) for name, marks in group.names], group.emails)
    ]
    return authors, list(dict.fromkeys(said))


def _author_parts(names: str) -> list[str]:
    """The text of each author, or the one text of all of them."""
    marked = _MATH_MARK.sub(rf"{MARK}\1{MARK}", names)
    pieces = marked.split(MARK)
    pieces[::2] = [_SYMBOL_RUN.sub(rf"{MARK}\g<0>{MARK}", piece) for piece in pieces[::2]]
    return [part for part in _NEXT_AUTHOR.split(MARK.join(pieces)) if fold(part)]


def _read_groups(text: str) -> list[_Group]:
    groups: list[_Group] = []
    for line in text.split(LINE):
        if not fold(line.replace(MARK, " ")):
            continue
        emails = find_emails(line)
        rest = _without_emails(line)
        if emails and groups:
            groups[-1].emails += emails
        if not any(letter.isalpha() for letter in re.sub(rf"{MARK}[^{MARK}]*{MARK}", "", rest)):
            continue
        _read_line(rest, groups)
    return groups


def _read_line(line: str, groups: list[_Group]) -> None:
    """Sort a line: names open a group or go on with it, anything else is an affiliation of the group."""
    if not groups or _is_names(line, groups):
        if not groups or groups[-1].affiliations or groups[-1].emails:
            groups.append(_Group())
        groups[-1].names += _split_names(line)
    else:
        groups[-1].affiliations += _split_affiliations(line)


def _is_names(line: str, groups: list[_Group]) -> bool:
    bare = re.sub(rf"{MARK}[^{MARK}]*{MARK}", " ", line)
    if PLACE.search(bare) or line.lstrip().startswith(MARK):
        return False
    names = [name for name, _ in _split_names(line)]
    if groups[-1].affiliations or groups[-1].emails:
        # After an affiliation a lone line may be a city; two names or a mark tell that it is not.
        return len(names) > 1 and all(_looks_like_name(name) for name in names)
    several = len(groups[-1].names) > 1 or len(names) > 1 or MARK in line
    return several and all(_looks_like_name(name) for name in names)


def _looks_like_name(text: str) -> bool:
    words = text.split()
    return 1 < len(words) <= _LONGEST_NAME and words[0][0].isupper() and _NAME.fullmatch(text) is not None


def _split_names(line: str) -> list[tuple[str, frozenset[str]]]:
    """Names with their marks, split at marks, commas, "and", and gaps that leave whole names on both sides."""
    found: list[tuple[str, frozenset[str]]] = []
    pieces = line.split(MARK)
    for place in range(0, len(pieces), 2):
        marks = _marks(pieces[place + 1]) if place + 1 < len(pieces) else frozenset()
        names = [name for part in _SPLIT_NAMES.split(pieces[place]) for name in _split_gaps(part)]
        names = [name for name in names if name.strip(" .:")]
        for name in names:
            if _SUFFIX.fullmatch(name) and found:
                found[-1] = (f"{found[-1][0]}, {name}", found[-1][1])
            else:
                found.append((name, frozenset()))
        if found:
            found[-1] = (found[-1][0], found[-1][1] | marks)
    return found


def _split_gaps(text: str) -> list[str]:
    parts = [fold(part) for part in _WIDE_GAP.split(text) if fold(part)]
    whole = len(parts) > 1 and all(len(part.split()) > 1 for part in parts)
    return parts if whole else [fold(text)]


def _split_affiliations(line: str) -> list[tuple[frozenset[str], str]]:
    pieces = line.split(MARK)
    found = [(frozenset[str](), fold(pieces[0]).strip(" ,;"))]
    for place in range(1, len(pieces), 2):
        text = fold(pieces[place + 1]) if place + 1 < len(pieces) else ""
        found.append((_marks(pieces[place]), text.strip(" ,;")))
    return [(marks, text) for marks, text in found if text]


def _marks(text: str) -> frozenset[str]:
    parts = [fold(part) for part in re.split(r"[,;\s]+", text.replace("\\", " \\")) if fold(part)]
    marks: set[str] = set()
    for part in parts:
        marks.update(part if len(part) > 1 and all(letter in _SYMBOLS for letter in part) else [part])
    return frozenset(marks)


def _author(name: str, marks: frozenset[str], group: _Group) -> Author:
    marked = [text for owner, text in group.affiliations if owner & marks]
    common = [text for owner, text in group.affiliations if not owner]
    return Author(name, tuple(dict.fromkeys([*marked, *common])))


def find_emails(text: str) -> list[str]:
    """The e-mail addresses in a text; `{a, b}@x.org` is two."""
    if "@" not in text:
        return []
    found: list[str] = []
    for match in _EMAIL_GROUP.finditer(text):
        found += [f"{name.strip()}@{match[2]}" for name in match[1].replace(";", ",").split(",") if name.strip()]
    return found + _EMAIL.findall(_EMAIL_GROUP.sub(" ", text))


def _without_emails(text: str) -> str:
    if "@" in text:
        text = _EMAIL_WORD.sub(" ", _EMAIL.sub(" ", _EMAIL_GROUP.sub(" ", text)))
    return text.strip(" ,;")


def _give_emails(authors: Iterable[Author], emails: Sequence[str]) -> list[Author]:
    """The authors with the e-mails that are theirs."""
    people, left = list(authors), []
    names = [_small_words(author.name) for author in people]
    for email in dict.fromkeys(emails):
        local = _NO_LETTER.sub("", email.partition("@")[0].lower())
        owners = [place for place, words in enumerate(names) if _belongs(local, words)]
        if len(owners) == 1 or len(people) == 1:
            place = owners[0] if owners else 0
            people[place] = replace(people[place], emails=tuple(dict.fromkeys([*people[place].emails, email])))
        else:
            left.append(email)
    free = [place for place, author in enumerate(people) if not author.emails]
    if left and len(left) == len(free):
        for place, email in zip(free, left, strict=True):
            people[place] = replace(people[place], emails=(email,))
    return people


def _small_words(name: str) -> list[str]:
    """The words of a name as addresses write them, then its initials."""
    words = [word for part in name.split() if (word := _NO_LETTER.sub("", part.lower()))]
    return [*words, "".join(word[0] for word in words)]


def _belongs(local: str, words: Sequence[str]) -> bool:
    return bool(local) and (local in words or any(len(word) > 2 and word in local for word in words[:-1]))
