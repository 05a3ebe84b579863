"""Macros that a draft defines, and their expansion."""

from __future__ import annotations

import re
from dataclasses import dataclass

from drafts.latex_scan import Latex

_NAME = re.compile(r"\s*+(?:\{\s*+)?\\([A-Za-z@]++)\s*+\}?")
_COUNT = re.compile(r"\s*\[\s*(\d)\s*\]")
_PARAMETERS = re.compile(r"((?:#+\d)*)\s*(?=\{)")
_PARAMETER = re.compile(r"#(\d)")
_COMMAND = re.compile(r"\\(?:[A-Za-z@]+|.)", re.DOTALL)
_ALIAS = re.compile(r"\s*+\\([A-Za-z@]++)\s*+(?:=\s*+)?\\([A-Za-z@]++)")

DEFINING = frozenset((
    "newcommand", "renewcommand", "providecommand", "DeclareRobustCommand", "def", "gdef", "edef",
    "newrobustcmd", "renewrobustcmd", "providerobustcmd",
))  # fmt: skip


@dataclass(frozen=True, slots=True)
class Macro:
    """A definition. arguments: `m`, or the default of one that need not be given."""

    arguments: tuple[str, ...]
    body: str


def read_definition(latex: Latex, command: str, start: int) -> tuple[str, Macro, int] | None:
    """(name, macro, end) of a definition behind its command; None for a form that is not known."""
    text = latex.text
    if text.startswith("*", start):
        start += 1
    named = _NAME.match(text, start)
    if named is None or command.endswith("DocumentCommand"):
        return None
    position = named.end()
    if command.endswith("def"):
        parameters = _PARAMETERS.match(text, position)
        if parameters is None:
            return None
        arguments = ("m",) * len(re.findall(r"\d", parameters[1]))
        position = parameters.end()
    else:
        count = _COUNT.match(text, position)
        number = int(count[1]) if count else 0
        position = count.end() if count else position
        default = latex.argument(position, "[") if number else None
        arguments = ("m",) * number
        if default is not None:
            arguments = (default.text, *arguments[1:])
            position = default.after
    body = latex.argument(position)
    if body is None:
        return None
    return named[1], Macro(arguments, body.text), body.after


def read_alias(text: str, start: int) -> tuple[str, str, int] | None:
    """(new name, old name, end) behind `\\let`."""
    match = _ALIAS.match(text, start)
    return (match[1], match[2], match.end()) if match else None


def expand(macro: Macro, latex: Latex, start: int) -> tuple[str, int] | None:
    """(expansion, end) of a macro whose name ends here; None where an argument is missing."""
    text, values, position = latex.text, list[str](), start
    for kind in macro.arguments:
        place = latex.skip_space(position)
        argument = latex.argument(place, "{" if kind == "m" else "[")
        if argument is not None:
            values.append(argument.text)
            position = argument.after
        elif kind != "m":
            values.append(kind)
        else:
            token = _COMMAND.match(text, place)
            end = token.end() if token else place + 1
            if place >= len(text) or text[place] in "}\n":
                return None
            values.append(text[place:end])
            position = end

    def value(match: re.Match[str]) -> str:
        number = int(match[1])
        return values[number - 1] if 0 < number <= len(values) else match[0]

    if not macro.arguments and text.startswith("{}", position):
        position += 2
    return _PARAMETER.sub(value, macro.body), position
