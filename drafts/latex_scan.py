"""Arguments and text that is not printed, in LaTeX that is not executed. Every scan is linear."""

from __future__ import annotations

import re
from collections.abc import Set
from dataclasses import dataclass
from functools import cache, cached_property

# An option that is not closed within so many characters, or nests deeper, is none.
_LONGEST_OPTION = 2_000
_DEEPEST_OPTION = 3
# A book has 200,000 pairs of braces. More are not matched, so that memory stays bounded.
_MOST_PAIRS = 1_000_000
_LONGEST_CODE = 2_000

_BRACE = re.compile(r"\\.|[{}]", re.DOTALL)
_SIGN = re.compile(r"\\.|[{}\[\]()<>]", re.DOTALL)
_CLOSING = {"[": "]", "(": ")", "<": ">"}
_SPACE = re.compile(r"[ \t]*(?:\n[ \t]*)?")

# Text in these environments is not LaTeX.
_VERBATIM = (
    r"(?:[BLS]|sp|Save)?[Vv]erbatim(?:Out|tab|write)?\*?|lstlisting\*?|minted\*?|luacode\*?"
    r"|comment|filecontents\*?"
)
# Definitions of such environments.
_DEFINED_CODE = re.compile(
    r"\\(?:lstnewenvironment|(?:Define|Recustom)VerbatimEnvironment|newverbatim"
    r"|newminted\s*+\[([^\[\]{}]{1,100})\]|newminted)\s*+(?:\[[^\[\]]{0,200}\]\s*+)?"
    r"\{([^{}]{1,100})\}"
)
# The caption of a listing, which is LaTeX.
_CAPTION = re.compile(r"\s*\[[^\[\]]{0,500}?\b(?:caption|title)\s*=\s*\{((?:[^{}]|\{[^{}]*\})*+)\}")
_INLINE_CODE = re.compile(r"(?:\[[^\[\]\n]{0,200}\])?(?:\{\w+\})? ?([^A-Za-z\s*])")
_NOT_NEWLINE = re.compile(r"[^\n]")


@dataclass(frozen=True, slots=True)
class Argument:
    """An argument of a command. start, end: its span in the source, without its two signs."""

    source: str
    start: int
    end: int

    @property
    def text(self) -> str:
        return self.source[self.start : self.end]

    @property
    def after(self) -> int:
        """The place behind its closing sign."""
        return self.end + 1


class Latex:
    """A text with its pairs of braces."""

    def __init__(self, text: str) -> None:
        self.text = text

    @cached_property
    def _pairs(self) -> dict[int, int]:
        """The place of each opening brace → that of its closing one."""
        pairs, opened = dict[int, int](), list[int]()
        for match in _BRACE.finditer(self.text):
            if match[0] == "{":
                opened.append(match.start())
            elif match[0] == "}" and opened and len(pairs) < _MOST_PAIRS:
                pairs[opened.pop()] = match.start()
        return pairs

    def skip_space(self, start: int) -> int:
        """The place after blanks and at most one end of line."""
        match = _SPACE.match(self.text, start)
        return match.end() if match else start

    def argument(self, start: int, opening: str = "{") -> Argument | None:
        """The argument that begins here or after blanks."""
        start = self.skip_space(start)
        if not self.text.startswith(opening, start):
            return None
        if opening == "{":
            end = self._pairs.get(start)
            return Argument(self.text, start + 1, end) if end is not None else None
        depth, position = 1, start + 1
        limit = min(len(self.text), start + _LONGEST_OPTION)
        while depth and (match := _SIGN.search(self.text, position, limit)):
            sign, position = match[0], match.end()
            if sign == "{":
                position = self._pairs.get(match.start(), limit) + 1
            elif sign == "}":
                return None
            elif sign == opening:
                depth += 1
            elif sign == _CLOSING[opening]:
                depth -= 1
            if depth > _DEEPEST_OPTION:
                return None
        return None if depth else Argument(self.text, start + 1, position - 1)

    def arguments(self, start: int, count: int) -> list[Argument]:
        """As many arguments in braces, if there are so many, from here on."""
        arguments = list[Argument]()
        while len(arguments) < count and (argument := self.argument(start)):
            arguments.append(argument)
            start = argument.after
        return arguments

    def skip_options(self, start: int, opening: str = "[", most: int = 1) -> int:
        """The place after the options that begin here."""
        for _ in range(most):
            option = self.argument(start, opening)
            if option is None:
                break
            start = option.after
        return start


@cache
def _literal(environments: Set[str]) -> re.Pattern[str]:
    """Comments and code, in these environments too."""
    names = "|".join([_VERBATIM, *map(re.escape, sorted(environments))])
    return re.compile(
        r"(?P<code>\\(?:verb|lstinline|mintinline)(?![A-Za-z@])\*?)"
        r"|(?P<address>\\(?:url|path|nolinkurl|href)\s*\{)"
        rf"|\\begin\s*\{{(?P<environment>{names})\}}"
        r"|\\."
        r"|(?P<comment>%[^\n]*)",
        re.DOTALL,
    )


def defined_code(text: str) -> set[str]:
    """The environments of code that a text defines by listings, fancyvrb, minted or newverbs."""
    return {
        match[1] or (f"{match[2]}code" if match[0].startswith("\\newminted") else match[2])
        for match in _DEFINED_CODE.finditer(text)
    }


def blank(text: str) -> str:
    """As many blanks, with the ends of lines."""
    return _NOT_NEWLINE.sub(" ", text)


def _end_of_code(text: str, start: int) -> int:
    """The end of what `\\verb` and its like print; `start` where it does not end in its line."""
    sign = _INLINE_CODE.match(text, start)
    if sign is None:
        return start
    closing = text.find("}" if sign[1] == "{" else sign[1], sign.end(), sign.end() + _LONGEST_CODE)
    return start if closing < 0 or "\n" in text[sign.end() : closing] else closing + 1


def _end_of_environment(text: str, name: str, start: int) -> int:
    """The place of its `\\end`, or -1; that of a comment is not one behind a percent sign."""
    end = text.find(f"\\end{{{name}}}", start)
    while name == "comment" and "%" in text[max(start, end - 200) : end].rpartition("\n")[2]:
        end = text.find(f"\\end{{{name}}}", end + 1)
    return end


def _without_code(text: str, start: int, begun: int, end: int) -> str:
    """An environment of code as blanks, but for its caption. begun: where its options may begin."""
    caption = _CAPTION.match(text, begun, end)
    first, last = caption.span(1) if caption else (end - 2, end - 2)
    before, after = blank(text[start + 2 : first]), blank(text[last : end - 2])
    return f"\n\n{before}{text[first:last]}{after}\n\n"


def without_literals(
    text: str, code: Set[str] = frozenset()
) -> tuple[str, list[tuple[int, int, str]]]:
    """The text, at the same length, without comments and code; and its environments.

    code: environments of code that the draft defines. The environments of code as (start, end,
    name). A line that is nothing but a comment ends no paragraph.
    """
    parts, last, environments = list[str](), 0, list[tuple[int, int, str]]()
    never_closed = set[str]()
    literal, position = _literal(frozenset(code)), 0
    while match := literal.search(text, position):
        start, end = match.span()
        position, replacement = end, ""
        name = match["environment"]
        if match["comment"]:
            before = text[max(last, start - 200) : start].rpartition("\n")[2]
            if not before.strip() and text.startswith("\n", end):
                end += 1
            replacement = " " * (end - start)
        elif name and name not in never_closed:
            closing = _end_of_environment(text, name, end)
            if closing < 0:
                never_closed.add(name)  # not sought again: a file may open it a million times
                continue
            environments.append((start, closing, name))
            end = closing + len(name) + len("\\end{}")
            replacement = _without_code(text, start, match.end(), end)
        elif match["address"]:
            closing = text.find("}", end, end + _LONGEST_CODE)
            start, end = end, max(closing, end)
            replacement = text[start:end].replace("%", " ")
        elif match["code"]:
            end = _end_of_code(text, end)
            replacement = " " * (end - start)
        if replacement:
            parts += [text[last:start], replacement]
            last = position = end
    return "".join([*parts, text[last:]]), environments
