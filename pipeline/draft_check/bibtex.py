"""Read BibTeX by BibTeX's rules, with the place of each field in the file.

Only the entries that are asked for are read closely: a bibliography of a whole field has 100,000.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from operator import itemgetter

from pipeline.draft_check.draft import line_counter
from pipeline.draft_check.latex_project import split_keys

# At the beginning of a line, or behind the entry before it.
_HEAD = re.compile(
    r"(?:^|(?<=[})]))[ \t]*+(%*+)[ \t]*+@[ \t]*+([A-Za-z]++)\s*+([{(])", re.MULTILINE
)
_FIELD = re.compile(r"[A-Za-z-]+=")
# Comments between fields are biber's; BibTeX itself has none there.
_BETWEEN = re.compile(r"(?:\s++|%[^\n]*+)*+")
_KEY = re.compile(rf"{_BETWEEN.pattern}([^\s,{{}}]*)\s*(,?)")
_NAME = re.compile(r"([^\s\"#%'(),={}]++)(?:\s++|%[^\n]*+)*+=")
_TOKEN = re.compile(r"[^\s\"#%'(),={}]++")
_FIELD_BEHIND = re.compile(r"[\s,})]*+[A-Za-z]++\s*+=\s*+[{\"]")
_SIGN = re.compile(r"[{}\"]")
# biblatex's other keys of an entry, and the entries of a set.
_OTHER_KEYS = re.compile(r",\s*(ids|entryset)\s*=\s*[{\"]([^{}\"]*)", re.IGNORECASE)
_NO_ENTRIES = frozenset(("comment", "preamble", "string"))
# A fault in another field, such as an abbreviated month, changes nothing that is checked.
_CHECKED = frozenset((
    "author", "title", "subtitle", "year", "date", "journal", "journaltitle", "booktitle", "doi",
    "eprint", "crossref", "xdata",
))  # fmt: skip
_MONTHS = frozenset((
    "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
))  # fmt: skip


@dataclass(frozen=True, slots=True)
class BibField:
    """A field. start, end: the span of its value in the file. literal: `{`, `"`, or "" for a bare
    number; None where macros are in it or parts are joined.
    """

    name: str
    value: str
    start: int
    end: int
    literal: str | None


@dataclass(slots=True)
class BibEntry:
    """An entry. fields: by name in lower case; of a field that is given twice, the first counts."""

    kind: str
    key: str
    start: int
    line: int
    fields: dict[str, BibField] = field(default_factory=dict)
    inherited: dict[str, str] = field(default_factory=dict)

    def value(self, name: str) -> str:
        """The value of a field, its own or inherited; "" where it has none."""
        own = self.fields.get(name)
        return own.value if own else self.inherited.get(name, "")

    def values(self) -> dict[str, str]:
        """All values, inherited ones too."""
        return self.inherited | {name: own.value for name, own in self.fields.items()}


class BibFile:
    """The entries of a BibTeX file.

    macros: of `@string`, shared with the files that are read later. problems: by line.
    """

    def __init__(self, text: str, macros: dict[str, str] | None = None) -> None:
        self.text = text
        self.macros = {} if macros is None else macros
        self.problems: list[tuple[int, str]] = []
        self._heads = list[tuple[int, str, str, int]]()
        self._starts = list[int]()
        self._read_heads()

    @cached_property
    def line(self) -> Callable[[int], int]:
        """From the offset of a character to its line, from 1."""
        return line_counter(self.text)

    @property
    def keys(self) -> list[str]:
        """The keys of all entries, in order, repeated ones too."""
        return [key for _, _, key, _ in self._heads]

    def stand_ins(self) -> dict[str, list[str]]:
        """The keys that other keys stand for: `ids` of biblatex, and its `@set`."""
        heads, own = sorted(self._heads), set(self.keys)
        stand_ins = dict[str, list[str]]()
        for match in _OTHER_KEYS.finditer(self.text):
            place = bisect_right(heads, match.start(), key=itemgetter(0)) - 1
            names = split_keys(match[2])
            if place < 0 or not names:
                continue
            key = heads[place][2]
            if match[1].lower() == "entryset":
                stand_ins[key] = names
            else:
                stand_ins |= {name: [key] for name in names if name not in own}
        return stand_ins

    def _read_heads(self) -> None:
        commented, macros = list[tuple[int, str, str, int]](), list[int]()
        for match in _HEAD.finditer(self.text):
            kind = match[2].lower()
            start = match.start(2)
            self._starts.append(start)
            if kind == "string":
                macros.append(match.end())
            if kind in _NO_ENTRIES:
                continue
            key = _KEY.match(self.text, match.end())
            name = key[1] if key else ""
            if not name or _FIELD.match(name):
                self.problems.append((self.line(start), f"this @{match[2]} has no key"))
                continue
            if key and not key[2] and not self.text.startswith(("}", ")"), key.end()):
                self.problems.append((self.line(start), f"{name} has no comma behind its key"))
            head = (start, kind, name, key.end() if key else match.end())
            (commented if match[1] else self._heads).append(head)
        for start in macros:
            self._read_macro(start)
        keys = {key.lower() for key in self.keys}
        for head in commented:
            if head[2].lower() not in keys:
                self._heads.append(head)

    def _read_macro(self, start: int) -> None:
        position = _BETWEEN.match(self.text, start).end()  # type: ignore[union-attr]
        name = _NAME.match(self.text, position)
        if name:
            value = self._value(name.end(), self._limit(start))
            if value:
                self.macros.setdefault(name[1].lower(), value.value)

    def _limit(self, start: int) -> int:
        """Where the next entry begins: what is not closed by then is broken."""
        following = bisect_right(self._starts, start)
        return self._starts[following] - 1 if following < len(self._starts) else len(self.text)

    def entries(self, keys: Collection[str] | None = None) -> Iterator[BibEntry]:
        """The entries with these keys in lower case, in order; None: all of them."""
        for start, kind, key, position in self._heads:
            if keys is None or key.lower() in keys:
                entry = BibEntry(kind, key, start, self.line(start))
                yield self._entry(entry, position, self._limit(start))

    def _entry(self, entry: BibEntry, position: int, limit: int) -> BibEntry:
        text = self.text
        position = _BETWEEN.match(text, position, limit).end()  # type: ignore[union-attr]
        while position < limit and text[position] not in "})":
            name = _NAME.match(text, position, limit)
            if name is None:
                self._broken(entry, position)
                return entry
            is_checked = name[1].lower() in _CHECKED
            value = self._value(name.end(), limit, is_checked=is_checked)
            if value is None:
                self._broken(entry, position)
                return entry
            own = BibField(name[1].lower(), value.value, value.start, value.end, value.literal)
            first = entry.fields.setdefault(own.name, own)
            if first is not own and is_checked:
                line = self.line(position)
                message = f"{entry.key} has {own.name} twice: the first counts"
                self.problems.append((line, message))
            position = _BETWEEN.match(text, value.end, limit).end()  # type: ignore[union-attr]
            if text.startswith(",", position):
                position = _BETWEEN.match(text, position + 1, limit).end()  # type: ignore[union-attr]
            elif position < limit and text[position] not in "})":
                line = self.line(value.end)
                message = f"{entry.key} has no comma behind {own.name}: this is not valid BibTeX"
                self.problems.append((line, message))
            while text.startswith(",", position):
                position = _BETWEEN.match(text, position + 1, limit).end()  # type: ignore[union-attr]
        if position >= limit:
            self._broken(entry, entry.start)
        elif _FIELD_BEHIND.match(text, position + 1, limit):
            message = f"{entry.key} ends here: the fields behind this brace are not read"
            self.problems.append((self.line(position), message))
        return entry

    def _broken(self, entry: BibEntry, position: int) -> None:
        line = entry.line if position >= len(self.text) else self.line(position)
        message = f"the entry {entry.key} is not valid BibTeX from here on"
        self.problems.append((line, message))

    def _value(self, start: int, limit: int, *, is_checked: bool = True) -> BibField | None:
        """The value that begins here: literals, numbers and macros, joined by #.

        is_checked: whether a macro that is not defined is a problem.
        """
        text, parts, literals = self.text, list[str](), list[str | None]()
        position = first = _BETWEEN.match(text, start, limit).end()  # type: ignore[union-attr]
        while True:
            sign = text[position : position + 1]
            if sign in ("{", '"'):
                end = self._literal_end(position, limit)
                if end < 0:
                    return None
                parts.append(text[position + 1 : end - 1])
                literals.append(sign)
            else:
                token = _TOKEN.match(text, position, limit)
                if token is None:
                    return None
                end = token.end()
                name = token[0].lower()
                is_number = name.isdecimal()
                is_macro = name in self.macros or name in _MONTHS
                parts.append(self.macros.get(name, token[0]))
                if is_checked and not is_macro and name.isalpha():
                    message = f"the abbreviation {token[0]} is not defined in a .bib file"
                    self.problems.append((self.line(position), message))
                literals.append("" if is_number else None)
            position = _BETWEEN.match(text, end, limit).end()  # type: ignore[union-attr]
            if not text.startswith("#", position):
                break
            position = _BETWEEN.match(text, position + 1, limit).end()  # type: ignore[union-attr]
        literal = literals[0] if len(literals) == 1 else None
        return BibField("", "".join(parts), first, end, literal)

    def _literal_end(self, start: int, limit: int) -> int:
        """Where a value in braces or quotation marks ends; -1 where it does not."""
        opening, depth = self.text[start], 0
        for match in _SIGN.finditer(self.text, start + 1, limit):
            if match[0] == "{":
                depth += 1
            elif match[0] == "}":
                if depth == 0:
                    return match.end() if opening == "{" else -1
                depth -= 1
            elif opening == '"' and depth == 0 and self.text[match.start() - 1] != "\\":
                return match.end()
        return -1
