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

from drafts.draft import DraftProblem, line_counter
from drafts.latex_project import split_keys
from drafts.lists import word_list

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
    file: str
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

    name, first_line: of the file that the text is of, and of its beginning there. macros: of
    `@string`, shared with the files that are read later.
    """

    def __init__(
        self,
        text: str,
        name: str = "",
        first_line: int = 1,
        macros: dict[str, str] | None = None,
    ) -> None:
        self.text, self.name, self.first_line = text, name, first_line
        self.macros = {} if macros is None else macros
        self.problems: list[DraftProblem] = []
        self._heads = list[tuple[int, str, str, int]]()
        self._starts = list[int]()
        self._read_heads()

    @cached_property
    def _line_of(self) -> Callable[[int], int]:
        return line_counter(self.text)

    def _line(self, offset: int) -> int:
        return self._line_of(offset) + self.first_line - 1

    def _add_problem(self, offset: int, message: str) -> None:
        self.problems.append(DraftProblem(message, self.name, self._line(offset)))

    def _skip_blanks(self, start: int, limit: int) -> int:
        """The place behind blanks and comments."""
        blanks = _BETWEEN.match(self.text, start, limit)
        return blanks.end() if blanks else start

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
                self._add_problem(start, f"this @{match[2]} has no key")
                continue
            if key and not key[2] and not self.text.startswith(("}", ")"), key.end()):
                self._add_problem(start, f"{name} has no comma behind its key")
            head = (start, kind, name, key.end() if key else match.end())
            (commented if match[1] else self._heads).append(head)
        for start in macros:
            self._read_macro(start)
        keys = {key.lower() for key in self.keys}
        for head in commented:
            if head[2].lower() not in keys:
                self._heads.append(head)

    def _read_macro(self, start: int) -> None:
        limit = self._limit(start)
        name = _NAME.match(self.text, self._skip_blanks(start, limit))
        if name:
            value = self._value(name.end(), limit)
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
                entry = BibEntry(kind, key, self.name, self._line(start))
                self._read_fields(entry, start, position)
                yield entry

    def _read_fields(self, entry: BibEntry, start: int, position: int) -> None:
        """Fill in the fields of an entry. start: of the entry. position: behind its key."""
        text, limit = self.text, self._limit(start)
        broken = f"the entry {entry.key} is not valid BibTeX from here on"
        position = self._skip_blanks(position, limit)
        while position < limit and text[position] not in "})":
            name = _NAME.match(text, position, limit)
            is_checked = name is not None and name[1].lower() in word_list("checked_fields")
            value = self._value(name.end(), limit, is_checked=is_checked) if name else None
            if name is None or value is None:
                self._add_problem(position, broken)
                return
            own = BibField(name[1].lower(), value.value, value.start, value.end, value.literal)
            first = entry.fields.setdefault(own.name, own)
            if first is not own and is_checked:
                self._add_problem(position, f"{entry.key} has {own.name} twice: the first counts")
            position = self._skip_blanks(value.end, limit)
            if position < limit and text[position] not in ",})":
                message = f"{entry.key} has no comma behind {own.name}: this is not valid BibTeX"
                self._add_problem(value.end, message)
            while text.startswith(",", position):
                position = self._skip_blanks(position + 1, limit)
        if position >= limit:
            self._add_problem(start, broken)
        elif _FIELD_BEHIND.match(text, position + 1, limit):
            message = f"{entry.key} ends here: the fields behind this brace are not read"
            self._add_problem(position, message)

    def _value(self, start: int, limit: int, *, is_checked: bool = True) -> BibField | None:
        """The value that begins here: literals, numbers and macros, joined by #.

        is_checked: whether a macro that is not defined is a problem.
        """
        text, parts, literals = self.text, list[str](), list[str | None]()
        position = first = self._skip_blanks(start, limit)
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
                is_macro = name in self.macros or name in word_list("months")
                parts.append(self.macros.get(name, token[0]))
                if is_checked and not is_macro and name.isalpha():
                    message = f"the abbreviation {token[0]} is not defined in a .bib file"
                    self._add_problem(position, message)
                literals.append("" if is_number else None)
            position = self._skip_blanks(end, limit)
            if not text.startswith("#", position):
                break
            position = self._skip_blanks(position + 1, limit)
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
