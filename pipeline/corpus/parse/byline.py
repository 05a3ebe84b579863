"""Bylines to authors: names with the affiliations and e-mails that belong to them, and remarks.

LaTeXML gives one byline per author where the class is known to it, and one for all of them, with
line breaks and superscripts, where it is not. Either way `byline_lines` makes groups of them:
names, and what is below them. Marks then lead from names to affiliations on the whole page.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from pipeline.corpus.parse.affiliations import (
    add_workplaces,
    contact_affiliations,
    has_sentence,
    join_lines,
    split_numbered,
    split_places,
    without_full_stop,
)
from pipeline.corpus.parse.byline_lines import (
    AuthorGroup,
    LineReader,
    NameFinder,
    PrintedName,
    join_split_bylines,
    names_of,
)
from pipeline.corpus.parse.byline_rules import is_affiliation, kinds_of
from pipeline.corpus.parse.byline_text import (
    AFFILIATION_ROLES,
    EDGES,
    Byline,
    doubled_marks,
    find_emails,
    has_letters,
    plain_line,
    split_marks,
    take_emails,
    without_addresses,
)
from pipeline.corpus.parse.parsed_page import Author
from pipeline.corpus.parse.policies import NOTE, fold
from pipeline.identity.people import KnownNames
from pipeline.identity.titles import title_words

# LaTeXML runs the \thanks of several authors together: "Work performed at X.Work performed at Y."
_NEXT_REMARK = re.compile(r"(?<=[a-z]{2}\.)(?=[A-Z][a-z])")
# Lists of thousands of authors name a few addresses; each is compared with no more names than
# these.
_MOST_NAMES = 300


def read_bylines(
    bylines: Sequence[Byline], institutes: Sequence[str], known: Sequence[str] = ()
) -> tuple[tuple[Author, ...], list[str]]:
    """(authors in order, remarks that are no affiliation).

    institutes: affiliations and e-mails given for all authors at once (LNCS's `\\institute`).
    known: the authors as arXiv's metadata names them. Without them, or where a page prints none of
    them, names are what the first line of a byline prints.
    """
    finder = NameFinder(KnownNames(known), bylines)
    joined = join_split_bylines(bylines, finder)
    _remove_repeated_institutes(joined)
    reader = LineReader(finder)
    linker = _Linker(matches_email_hosts=any(byline.labels_emails for byline in bylines))
    for byline in joined:
        linker.add(byline, *reader.read(byline))
    linker.link(institutes)
    remarks = dict.fromkeys(text for text, _ in linker.remarks if has_letters(text))
    return linker.authors(), list(remarks)


def _remove_repeated_institutes(bylines: Sequence[Byline]) -> None:
    """Remove from each byline's last remark the institutes of the bylines after it, if each has
    them.

    LaTeXML repeats them in classes that it does not know, such as EPTCS's.
    """
    own_institutes: list[str] = []
    following = ""
    for byline in reversed(bylines):
        remark = byline.remarks[-1] if byline.remarks else ""
        own = remark.removesuffix(following).rstrip()
        if not has_letters(own) or (following and own == remark):
            return
        own_institutes.append(own)
        following = own + following
    for byline, own in zip(reversed(bylines), own_institutes, strict=True):
        byline.remarks[-1] = own


@dataclass(slots=True)
class _Contacts:
    """The groups of a byline, and the affiliations and e-mails that are beside its names."""

    groups: list[AuthorGroup]
    affiliations: list[str]
    emails: list[str]


class _Linker:
    """Gives every affiliation and e-mail of a page to the names that it belongs to."""

    def __init__(self, *, matches_email_hosts: bool) -> None:
        self.matches_email_hosts = matches_email_hosts
        """Whether the affiliations of several names are matched to the hosts of their e-mails."""
        self.groups: list[AuthorGroup] = []
        self.contacts: list[_Contacts] = []
        """Of each byline."""
        self.notes: list[tuple[frozenset[str], str]] = []
        """(marks, affiliation) of footnotes."""
        self.remarks: list[tuple[str, PrintedName | None]] = []
        """Each with the one author whose byline it is in."""

    def add(self, byline: Byline, groups: list[AuthorGroup], remarks: Sequence[str]) -> None:
        """Add a byline: the groups and remarks of its lines, its contacts, footnotes and thanks."""
        self.groups += groups
        self.remarks += [(text, None) for text in remarks]
        affiliations = contact_affiliations(
            [text for role, text in byline.contacts if role in AFFILIATION_ROLES]
        )
        emails = find_emails(
            *(text for _, text in (*byline.contacts, *byline.notes)), *byline.remarks
        )
        self.contacts.append(_Contacts(groups, affiliations, emails))
        names = names_of(groups)
        owner = names[0] if len(names) == 1 else None
        for mark, text in byline.notes:
            if _is_place(text):
                places = split_places(without_full_stop(without_addresses(fold(text))))
                self.notes += [(split_marks(NOTE + mark), place) for place in places]
            else:
                self.remarks.append((fold(text), owner))
        thanks = [text for role, text in byline.contacts if role == "thanks"]
        thanks += [part for remark in byline.remarks for part in _NEXT_REMARK.split(remark) if part]
        for text in thanks:
            if marks := doubled_marks(text):
                for name in names:
                    name.marks |= marks
            elif affiliations and _is_place(text) and "@" not in text:
                # The second affiliation of acmart and amsart is bare text beside the first.
                affiliations.append(text.strip(EDGES))
            else:
                self.remarks.append((text, owner))

    def link(self, institutes: Sequence[str]) -> None:
        """Fill in the affiliations and e-mails of all names."""
        names = names_of(self.groups)
        places = [
            place for place in (fold(without_addresses(text)) for text in institutes) if place
        ]
        self._follow_marks(names, places)
        marks = {mark for name in names for mark in name.marks}
        for group in self.groups:
            unmarked = [
                text
                for marks_of_line, text in group.affiliation_lines
                if marks.isdisjoint(marks_of_line)
            ]
            _share(group.names, unmarked)
            for name in group.names:
                name.affiliations += join_lines(name.column)
            _give_emails(group.names, group.emails, names)
        for contacts in self.contacts:
            _give_emails(names_of(contacts.groups), contacts.emails, names)
        self._share_contacts()
        _give_emails(names, find_emails(*institutes), names)
        _give_institutes(names, places)

    def _follow_marks(self, names: Sequence[PrintedName], institutes: Sequence[str]) -> None:
        """Give names the affiliations that are behind their marks; institutes are numbered."""
        lines = [line for group in self.groups for line in group.affiliation_lines]
        if any(marks for marks, _ in lines) and all(
            mark.startswith(NOTE) for name in names for mark in name.marks
        ):
            # \footnotemark[1] beside names, 1 before affiliations.
            for name in names:
                name.marks |= {mark.removeprefix(NOTE) for mark in name.marks}
        by_mark: defaultdict[str, list[str]] = defaultdict(list)
        for marks, text in [*self.notes, *lines]:
            for mark in marks:
                by_mark[mark].append(text)
        for number, text in enumerate(institutes, start=1):
            by_mark[str(number)].append(text)
        for name in names:
            # "12" is 1 and 2 where there is no twelfth.
            for mark in sorted(name.marks):
                is_several = mark.isdigit() and mark not in by_mark
                for single in mark if is_several else [mark]:
                    name.affiliations += by_mark.get(single, ())

    def _share_contacts(self) -> None:
        """Give affiliations of contacts to their byline's names, or to all since the last ones."""
        thanked = {name for text, name in self.remarks if is_affiliation(text) or "@" in text}
        waiting: list[PrintedName] = []
        for contacts in self.contacts:
            names = names_of(contacts.groups)
            names_so_far = [*waiting, *names]
            if self.matches_email_hosts and contacts.affiliations and len(names_so_far) > 1:
                _share_by_email(names_so_far, contacts.affiliations)
                continue
            count = len(join_lines(contacts.affiliations))
            is_first = not any(name.affiliations for name in names)
            is_for_all = (count == 1 and is_first) or 1 < count == len(names_so_far)
            _share(names_so_far if is_for_all else names, contacts.affiliations)
            if contacts.affiliations:
                waiting = []
            else:
                waiting = [
                    name for name in names_so_far if not name.affiliations and name not in thanked
                ]

    def authors(self) -> tuple[Author, ...]:
        """The authors in the page's order; a team where its name is all there is."""
        names = names_of(self.groups)
        if not names:
            lines = [text for group in self.groups for _, text in group.affiliation_lines]
            return (Author(lines[0]),) if len(lines) == len(self.contacts) == 1 else ()
        authors = [
            Author(
                name.text,
                tuple(dict.fromkeys(name.affiliations)),
                tuple(dict.fromkeys(name.emails)),
            )
            for name in names
        ]
        thanks = [
            (take_emails(text)[0], owner.text if owner else None) for text, owner in self.remarks
        ]
        placed = add_workplaces(authors, thanks)
        return tuple(_with_plain_affiliations(author) for author in placed)


def _is_organisation(text: str) -> bool:
    """Whether a text names an organisation or a part of one."""
    return not kinds_of(text).isdisjoint({"organisation", "institute"})


def _is_place(text: str) -> bool:
    """Whether a text is an affiliation alone, not a sentence that names one."""
    return is_affiliation(text) and not has_sentence(text)


def _with_plain_affiliations(author: Author) -> Author:
    """The author with affiliations as printed: one may hold a mark that no other rule took out."""
    return author._replace(
        affiliations=tuple(filter(None, dict.fromkeys(map(plain_line, author.affiliations))))
    )


def _give_emails(
    names: Sequence[PrintedName], emails: Sequence[str], everybody: Sequence[PrintedName]
) -> None:
    """Give each e-mail to the one name that it fits, the rest to the names in order."""
    unclaimed = []
    for email in dict.fromkeys(emails):
        owners = [name for name in names if name.fits(email)]
        if not owners:
            owners = [name for name in everybody[:_MOST_NAMES] if name.fits(email)]
        if len(owners) == 1:
            owners[0].emails.append(email)
        else:
            unclaimed.append(email)
    without_email = [name for name in names if not name.emails]
    if len(names) == 1:
        names[0].emails += unclaimed
    elif len(unclaimed) == len(without_email):
        for name, email in zip(without_email, unclaimed, strict=True):
            name.emails.append(email)


def _share(names: Sequence[PrintedName], lines: Sequence[str]) -> None:
    """Give the affiliations in some lines to every name, or one to each if as many."""
    affiliations = join_lines(lines)
    if len(affiliations) == 1:
        for separator in (", ", " & ", " and "):
            parts = affiliations[0].split(separator)
            if len(parts) == len(names) > 1 and all(map(_is_organisation, parts)):
                affiliations = parts
                break
    if len(affiliations) == len(names) > 1:
        for name, text in zip(names, affiliations, strict=True):
            name.affiliations.append(text)
    else:
        for name in names:
            name.affiliations += affiliations


def _share_by_email(names: Sequence[PrintedName], affiliations: Sequence[str]) -> None:
    """Give each affiliation to the names whose e-mail has a word of it: ann@foo.edu, Foo Labs."""
    places = [place for text in affiliations for place in split_numbered(text)]
    for name in names:
        host_words: set[str] = set()
        for email in name.emails:
            _, _, host = email.partition("@")
            host_words.update(host.lower().split("."))
        for place in places:
            long_words = {word for word in title_words(place) if len(word) > 3}
            if not long_words.isdisjoint(host_words):
                name.affiliations.append(place)


def _give_institutes(names: Sequence[PrintedName], institutes: Sequence[str]) -> None:
    """Give the only institute to names without one, others to the names printed before them.

    Springer's styles print "A. Lee, B. Roe at X".
    """
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
        else:
            for name in names:
                if name.text in people:
                    name.affiliations.append(text)
        was_person = person is not None
