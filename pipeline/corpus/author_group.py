"""Names of a byline, and groups of names that share what stands below them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from pipeline.arxiv.person_names import is_suffix
from pipeline.arxiv.titles import title_words

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
    """What an address made of the name may have before its @: combinations of its words, then each word."""

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
class AuthorGroup:
    """Names that share what stands below them. `affiliation_lines` are (marks, text)."""

    names: list[PrintedName] = field(default_factory=list)
    affiliation_lines: list[tuple[frozenset[str], str]] = field(default_factory=list)
    emails: list[str] = field(default_factory=list)

    @property
    def is_complete(self) -> bool:
        """Whether something stands below the names, so that another name opens another group."""
        has_columns = any(name.column for name in self.names)
        return bool(self.names and (self.affiliation_lines or self.emails or has_columns))


def names_of(groups: Sequence[AuthorGroup]) -> list[PrintedName]:
    """The names of some groups, in order."""
    return [name for group in groups for name in group.names]
