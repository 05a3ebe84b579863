"""Join the files of a LaTeX project to the text that is printed, with the place of each part."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from citeloom import SettingError
from drafts.citation_commands import known_citations
from drafts.draft import MOST_FILES, Draft, line_counter, project_file, read_text
from drafts.latex_macros import (
    DEFINING,
    Macro,
    expand,
    read_alias,
    read_definition,
)
from drafts.latex_scan import Latex, defined_code, without_literals
from drafts.lists import word_list

_MOST_DEPTH = 20
_MOST_CHARACTERS = 20_000_000
# A macro, and one in its arguments or its body.
_DEEPEST_EXPANSION = 2

_COMMAND = re.compile(r"\\([A-Za-z@]+)")
_BARE_NAME = re.compile(r"[ \t]*+(?:=[ \t]*+)?\"?([^\s{}\\\"]+)\"?")
_DOCUMENT = re.compile(r"\\(begin|end)\s*\{document\}")
_OPENING = re.compile(r"\s*\{document\}")
_SWITCH = re.compile(r"(.+)(true|false)")
# Text is put aside by `\if 0 … \fi`, too.
_DIGITS = re.compile(r"\s*(\d)(?:(\d)|\s)?")
_FILECONTENTS = re.compile(
    r"\\begin\s*+\{[a-z*]++\}\s*+(?:\[[^\[\]]{0,200}\]\s*+)?\{([^{}]{1,200})\}"
)
_CITES = re.compile(r"[Cc]ite|\\(?:input|include|subfile)\b")
_NO_LATEX = frozenset((".md", ".markdown", ".bib", ".pdf", ".png", ".jpg", ".svg", ".csv"))
# Commands that name the folder of a file first.
_FROM_FOLDER = re.compile(r"(?:sub)?(?:import|(?:include|input)from)")
# Commands of other names may include a file of the draft, unless they print it as code or picture.
_LOOKS_INCLUDING = re.compile(
    r"(?!.*(?:erbatim|isting|minted|graphics|pdf|svg|path|importan)).*(?:input|include|import|subfile|Input)"
)
_FILE_OF_TEXT = re.compile(r"[^\s{}]+\.(?:tex|md)|[\w.-]+(?:/[\w.-]+)+")
# Commands that begin with "if" and have no \fi. Those whose first argument is in braces need no
# name here.
_NO_CONDITIONALS = re.compile(r"iff|if(?:un)?def|ifdef(?:macro|empty|void|equal|string)")
# Tests of packages, with what they print if true and if false as arguments.
_TEST = re.compile(
    r"(?:if|not)(?:toggle|bool)|ifthenelse|ifSubfilesClassLoaded"
    r"|If(?:FileExists|(?:Boolean|NoValue|Value)TF)"
)


@dataclass(slots=True)
class _File:
    """A file of the project. line: from the offset of a character to its line."""

    name: str
    line: Callable[[int], int]


@dataclass(slots=True)
class Project:
    """The text of a project, as far as TeX prints it.

    body: where it begins. embedded: the bibliographies that the draft writes itself, as name →
    (text, file, line).
    """

    text: str = ""
    body: int = 0
    embedded: dict[str, tuple[str, str, int]] = field(default_factory=dict)
    starts: list[int] = field(default_factory=list)
    origins: list[tuple[_File, int, bool]] = field(default_factory=list)

    def place(self, offset: int) -> tuple[str, int]:
        """File and line of a character."""
        number = bisect_right(self.starts, offset) - 1
        if number < 0:
            return "", 0
        file, begin, is_expansion = self.origins[number]
        return file.name, file.line(begin if is_expansion else begin + offset - self.starts[number])


def read_project(main: Path, draft: Draft) -> Project:
    """The text of a project; what cannot be read is a problem of the draft.

    Raises SettingError for a missing main file, and for a project that includes itself or has more
    than 200 files or 20 MB.
    """
    reader = _Reader(main.resolve(), draft)
    reader.read_file(main.resolve(), ())
    reader.project.text = "".join(reader.parts)
    return reader.project


def _document(text: str, *, is_included: bool) -> tuple[int, int]:
    """The part of a file that TeX reads: up to its `\\end{document}`, and of an included document
    its body. Documents within it are examples of code.
    """
    head = text.find("\\documentclass")
    is_document = head >= 0 and "\\begin" not in text[:head]
    start, depth = 0, 0
    for match in _DOCUMENT.finditer(text):
        depth += 1 if match[1] == "begin" else -1
        if depth < (is_document or not is_included):
            if match[1] == "end":
                return start, match.start()
        elif depth == 1 and is_included and is_document:
            start = match.end()
    return start, len(text)


def find_file(folder: Path, current: Path, name: str, suffix: str = ".tex") -> Path | None:
    """The file that a command names, inside of the project's folder; None if there is none."""
    for base in (folder, current.parent):
        for candidate in (base / name, base / f"{name}{suffix}"):
            if file := project_file(folder, candidate):
                return file
    return None


def split_keys(text: str) -> list[str]:
    """The keys of a citation, or the names of a list of files."""
    return [key.strip() for key in text.split(",") if key.strip()]


class _Reader:
    """Reads the files of a project; holds what they share: macros, switches and limits."""

    def __init__(self, main: Path, draft: Draft) -> None:
        self.main, self.folder, self.draft = main, main.parent, draft
        self.project = Project()
        self.parts: list[str] = []
        self.size = self.files = 0
        self.macros = {"@gobble": Macro(("m",), "")}
        self.switches = {"true": True, "false": False}
        self.included_only: set[str] | None = None
        self.code_environments: set[str] = set()

    def read_file(self, current: Path, above: tuple[Path, ...]) -> None:
        self.files += 1
        if current in above:
            names = ", ".join(path.name for path in above)
            raise SettingError(f"{current.name} includes itself, by way of {names}")
        if self.files > MOST_FILES or len(above) > _MOST_DEPTH:
            raise SettingError(
                f"{self.main}: it includes more than {MOST_FILES} files, or files nested too deep"
            )
        original = read_text(current)
        self.code_environments |= defined_code(original)
        text, environments = without_literals(original, self.code_environments)
        name = str(current.relative_to(self.folder))
        file = _File(name, line_counter(original))
        self.keep_embedded(original, environments, file)
        start, end = _document(text, is_included=bool(above))
        _Scan(self, file, Latex(text), (*above, current)).read(start, end)

    def keep_embedded(
        self, original: str, environments: list[tuple[int, int, str]], file: _File
    ) -> None:
        """Keep the bibliographies that `filecontents` writes."""
        for start, end, environment in environments:
            head = _FILECONTENTS.match(original, start)
            if head and environment.startswith("filecontents") and ".bib" in head[1]:
                name = head[1].strip().replace("\\jobname", self.main.stem)
                text = original[head.end() : end]
                self.project.embedded[name] = (text, file.name, file.line(head.end()))

    def append(self, text: str, file: _File, origin: int, *, is_expansion: bool) -> None:
        if not text:
            return
        self.project.starts.append(self.size)
        self.project.origins.append((file, origin, is_expansion))
        self.parts.append(text)
        self.size += len(text)
        if self.size > _MOST_CHARACTERS:
            raise SettingError(
                f"{self.main}: with what it includes it has more than"
                f" {_MOST_CHARACTERS // 1_000_000} MB"
            )

    def find(self, current: Path, name: str) -> Path | None:
        name = name.strip().strip('"').replace("\\jobname", self.main.stem)
        return find_file(self.folder, current, name)

    def read_styles(self, names: str) -> None:
        """Take the macros that cite from packages and classes that lie beside the draft."""
        for name in split_keys(names):
            paths = (find_file(self.folder, self.main, name, end) for end in (".sty", ".cls"))
            path = next(filter(None, paths), None)
            if path is None or path.suffix not in (".sty", ".cls") or self.files >= MOST_FILES:
                continue
            self.files += 1
            latex = Latex(without_literals(read_text(path))[0])
            self.code_environments |= defined_code(latex.text)
            for command in _COMMAND.finditer(latex.text):
                if command[1] in DEFINING:
                    definition = read_definition(latex, command[1], command.end())
                    if definition and _CITES.search(definition[1].body):
                        self.define(command[1], *definition[:2])

    def define(self, command: str, name: str, macro: Macro) -> None:
        """Take a definition, but not one of LaTeX's own commands by another form of itself."""
        is_own = name in self.macros or not command.lower().startswith(("renew", "declarerobust"))
        cites = _CITES.search(macro.body) is not None
        hides = bool(macro.arguments) and not macro.body
        if (
            name in known_citations()
            or name in word_list("not_redefined")
            or not (is_own or cites or hides)
        ):
            return
        self.macros[name] = macro


@dataclass(slots=True)
class _Branch:
    """An open conditional. printed: whether its text is; None if that is not known. within_dead:
    whether an open one around it is not printed.
    """

    printed: bool | None
    start: int
    within_dead: bool

    @property
    def is_dead(self) -> bool:
        return self.within_dead or self.printed is False


class _Scan:
    """Reads a file, or the expansion of a macro, up to where TeX stops reading it.

    origin: of an expansion, where it is called.
    """

    def __init__(
        self, reader: _Reader, file: _File, latex: Latex, above: tuple[Path, ...],
        origin: int | None = None, depth: int = 0,
    ) -> None:  # fmt: skip
        self.reader, self.file, self.latex, self.above = reader, file, latex, above
        self.origin, self.depth, self.done = origin, depth, 0
        self.branches: list[_Branch] = []

    def read(self, start: int, end: int) -> None:
        text, self.done, position = self.latex.text, start, start
        while match := _COMMAND.search(text, position, end):
            position = match.end()
            name = match[1]
            was_dead = self.is_dead
            resumed = self.conditional(name, match.start(), position)
            if resumed is not None:
                if not was_dead:
                    self.emit(match.start())
                self.done = position = resumed
            elif was_dead:
                continue
            elif name == "endinput":
                line_end = text.find("\n", position, end)
                self.emit(match.start())
                self.done = position
                end = line_end if line_end >= 0 else end
            else:
                resumed = self.command(name, match.start(), position)
                if resumed is not None:
                    self.emit(match.start())
                    self.done = position = max(resumed, position)
        for branch in self.branches if self.origin is None else ():
            if branch.printed is not None:
                self.problem(branch.start, "this conditional has no \\fi")
        if not self.is_dead:
            self.emit(end)

    @property
    def is_dead(self) -> bool:
        return bool(self.branches) and self.branches[-1].is_dead

    def emit(self, end: int) -> None:
        """Hand over what has been read up to a place."""
        text = self.latex.text[self.done : end]
        origin = self.done if self.origin is None else self.origin
        self.reader.append(text, self.file, origin, is_expansion=self.origin is not None)
        self.done = end

    def problem(self, place: int, message: str) -> None:
        line = self.file.line(place if self.origin is None else self.origin)
        self.reader.draft.add_problem(message, self.file.name, line)

    def not_understood(self, place: int, what: str) -> None:
        line = self.file.line(place if self.origin is None else self.origin)
        self.reader.draft.add_not_understood(what, self.file.name, line)

    def conditional(self, name: str, start: int, end: int) -> int | None:
        """Read a conditional's beginning, middle or end; where text goes on, None for no such."""
        if name in ("else", "fi"):
            if self.branches and name == "fi":
                branch = self.branches.pop()
                if branch.printed is None and not self.is_dead:
                    self.both_are_read("this conditional", branch.start, start)
            elif self.branches and self.branches[-1].printed is not None:
                self.branches[-1].printed = not self.branches[-1].printed
            return end
        if not name.startswith("if") or name in self.reader.macros:
            return None
        if _NO_CONDITIONALS.fullmatch(name):
            return None
        printed = self.reader.switches.get(name[2:])
        if printed is None and self.latex.argument(end):
            return None
        text = self.latex.text
        if name == "if" and (digits := _DIGITS.match(text, end)):
            printed, end = digits[1] == digits[2], digits.end()
        if text.startswith("\\unless", start - len("\\unless")):
            printed = None
        self.branches.append(_Branch(printed, start, self.is_dead))
        return end

    def command(self, name: str, start: int, end: int) -> int | None:
        """Act on a command; where the text goes on behind it, or None where it is left there."""
        if name in DEFINING or name.endswith("DocumentCommand"):
            return self.definition(name, start, end)
        if name in ("let", "newif"):
            return self.naming(name, end)
        if name in word_list("loading"):
            self.load(end)
            return None
        if name in word_list("including") or _FROM_FOLDER.fullmatch(name):
            return self.inclusion(name, start, end)
        if _TEST.fullmatch(name):
            return self.test(name, start, end)
        if name in self.reader.macros:
            return self.macro(name, start, end)
        if name in word_list("removing") or name == "replaced":
            return self.removed_text(name, start, end)
        if name == "begin":
            return self.begin_body(start, end)
        return self.switch(name, end) or self.other(name, start, end)

    def removed_text(self, name: str, start: int, end: int) -> int | None:
        """Skip what a command does not print as text; of `\\replaced` the second argument."""
        is_replaced = name == "replaced"
        arguments = self.latex.arguments(self.latex.skip_options(end), 2 if is_replaced else 1)
        if len(arguments) <= is_replaced:
            return None
        self.emit(start)
        if is_replaced:
            self.expansion(arguments[0].text, start)
        return arguments[-1].after

    def begin_body(self, start: int, end: int) -> int | None:
        opening = _OPENING.match(self.latex.text, end)
        is_main = self.origin is None and len(self.above) == 1
        if opening is None or not is_main or self.reader.project.body:
            return None
        self.emit(start)
        self.reader.project.body = self.reader.size
        return opening.end()

    def naming(self, name: str, end: int) -> int | None:
        """Read `\\let` and `\\newif`."""
        reader, text = self.reader, self.latex.text
        if name == "newif":
            switch = _COMMAND.search(text, end, end + 100)
            if switch is None:
                return None
            reader.switches[switch[1][2:]] = False
            return switch.end()
        alias = read_alias(text, end)
        if alias is None:
            return None
        new, old, after = alias
        if old in reader.macros:
            reader.macros[new] = reader.macros[old]
        elif old in known_citations():
            reader.define(name, new, Macro((), f"\\{old}"))
        return after

    def load(self, end: int) -> None:
        names = self.latex.argument(self.latex.skip_options(end))
        if names and self.origin is None:
            self.reader.read_styles(names.text)

    def switch(self, name: str, end: int) -> int | None:
        """Read `\\drafttrue` behind `\\newif\\ifdraft`."""
        switches = self.reader.switches
        switch = _SWITCH.fullmatch(name)
        if switch is not None and switch[1] in switches:
            switches[switch[1]] = switch[2] == "true"
            return end
        return None

    def test(self, name: str, start: int, end: int) -> int | None:
        """Read both parts that a test of a package may print."""
        count = 2 if name == "ifSubfilesClassLoaded" else 3
        arguments = self.latex.arguments(end, count)
        if len(arguments) < count:
            return None
        self.both_are_read(f"\\{name}", start, arguments[-1].end)
        return arguments[0].after if count == 3 else end

    def both_are_read(self, what: str, start: int, end: int) -> None:
        """Report a test whose result is not known and that prints a citation or a file."""
        if _CITES.search(self.latex.text, start, end):
            self.not_understood(start, f"{what}: both of its parts are read")

    def other(self, name: str, start: int, end: int) -> int | None:
        """Read `\\includeonly`, and report commands that may include a file or leave text out."""
        argument = self.latex.argument(end)
        words = argument.text if argument else ""
        if name in ("excludecomment", "excludeversion"):
            self.not_understood(start, f"\\{name}{{{words[:80]}}}: its text is read")
        if not _LOOKS_INCLUDING.match(name):
            return None
        if name == "includeonly" and argument:
            self.reader.included_only = set(split_keys(words))
            return argument.after
        if _FILE_OF_TEXT.fullmatch(words.strip()):
            self.not_understood(start, f"\\{name}{{{words[:80]}}} may include a file")
        return None

    def definition(self, name: str, start: int, end: int) -> int | None:
        definition = read_definition(self.latex, name, end)
        if definition is None:
            beginning = self.latex.text[end : end + 300]
            if _CITES.search(beginning):
                self.not_understood(start, f"\\{name}{beginning[:30]} … defines a macro")
            return None
        defined, macro, after = definition
        self.reader.define(name, defined, macro)
        return after

    def macro(self, name: str, start: int, end: int) -> int | None:
        expanded = expand(self.reader.macros[name], self.latex, end)
        if expanded is None:
            return None
        body, after = expanded
        if self.depth >= _DEEPEST_EXPANSION:
            if _CITES.search(body):
                self.not_understood(start, f"\\{name} within macros")
            return None
        self.emit(start)
        self.expansion(body, start)
        return after

    def expansion(self, body: str, place: int) -> None:
        origin = place if self.origin is None else self.origin
        scan = _Scan(self.reader, self.file, Latex(body), self.above, origin, self.depth + 1)
        scan.read(0, len(body))

    def inclusion(self, name: str, start: int, end: int) -> int | None:
        latex, reader = self.latex, self.reader
        folder = ""
        if latex.text.startswith("*", end):
            end += 1
        if _FROM_FOLDER.fullmatch(name):
            argument = latex.argument(end)
            if argument is None:
                self.problem(start, f"\\{name} names no folder")
                return None
            folder, end = argument.text.strip().rstrip("/") + "/", argument.after
        end = latex.skip_options(end)
        argument = latex.argument(end)
        bare = _BARE_NAME.match(latex.text, end)
        if argument is not None:
            named, after = argument.text, argument.after
        elif bare is not None and name == "input":
            named, after = bare[1], bare.end()
        else:
            self.problem(start, f"\\{name} names no file")
            return None
        named = " ".join(named.split())
        self.emit(start)
        left_out = reader.included_only is not None and named not in reader.included_only
        if name in ("include", "subfileinclude") and left_out:
            self.problem(start, f"\\includeonly leaves \\{name}{{{named}}} out: it is not read")
            return after
        child = reader.find(self.above[-1], folder + named)
        if child is None and name != "InputIfFileExists":
            self.problem(start, f"\\{name}{{{folder}{named}}} is not in the draft's folder")
        elif child is not None and child.suffix.lower() in _NO_LATEX:
            self.problem(start, f"\\{name}{{{folder}{named}}} is no LaTeX, and is not read")
        elif child is not None:
            reader.read_file(child, self.above)
        return after
