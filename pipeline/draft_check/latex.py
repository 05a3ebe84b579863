"""Read a LaTeX draft: files, paragraphs, and sentences that cite. Nothing of it is executed."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from pipeline.corpus.latex_text import LONGEST_PARAGRAPH, plain_field, plain_text
from pipeline.corpus.passages.sentences import split_sentences
from pipeline.draft_check.draft import MOST_FILES, Draft, DraftSentence, read_text
from pipeline.errors import SettingError
from pipeline.text import one_line

_MOST_DEPTH = 20
_MOST_CHARACTERS = 20_000_000

_COMMENT = re.compile(r"(?<!\\)((?:\\\\)*)%.*")
_INPUT = re.compile(r"\\(?:input|include|subfile)\s*(?:\{\s*([^{}]+?)\s*\}|([^\s{}\\]+))")
_BODY = re.compile(r"\\begin\s*\{document\}(.*?)(?:\\end\s*\{document\}|\Z)", re.DOTALL)
_NAMES = (
    "cite", "citet", "citep", "citealt", "citealp", "citeauthor", "citeyear", "citeyearpar",
    "citefullauthor", "citenum", "onlinecite", "citeasnoun", "shortcite", "shortciteA", "citeA",
    "citeNP", "newcite", "citeposs", "Cite", "Citet", "Citep", "Citealt", "Citealp", "Citeauthor",
    "parencite", "textcite", "autocite", "footcite", "footcitetext", "fullcite", "footfullcite",
    "smartcite", "supercite", "Parencite", "Textcite", "Autocite", "Smartcite", "citetitle",
    "cites", "parencites", "textcites", "autocites", "footcites", "smartcites", "supercites",
)  # fmt: skip
_OPTIONS = r"(?:\s*\[(?:[^\[\]]|\[[^\[\]]*\])*\])*"
_COMMANDS = "|".join(sorted(_NAMES, key=len, reverse=True))
_CITE = re.compile(rf"\\(?:{_COMMANDS})(?![a-zA-Z])\*?(?:{_OPTIONS}\s*\{{[^{{}}]*\}})+")
_KEYS = re.compile(r"\{([^{}]*)\}")
_NOCITE = re.compile(r"\\nocite\s*\{([^{}]*)\}")
_BIBLIOGRAPHY = re.compile(
    r"\\(?:bibliography|addbibresource)(?![a-z])\s*(?:\[[^\[\]]*\])?\s*\{([^{}]*)\}"
)
_MACRO = re.compile(
    r"\\(?:re)?newcommand\*?\s*\{?\s*\\([A-Za-z]+)\s*\}?\s*\{((?:[^{}]|\{[^{}]*\})*)\}"
)
_TITLE = re.compile(r"\\title\s*(?:\[[^\[\]]*\])?\s*\{((?:[^{}]|\{[^{}]*\})*)\}")
# Environments without prose, which are not read.
_NO_PROSE = frozenset((
    "verbatim", "verbatim*", "lstlisting", "minted", "tikzpicture", "equation", "equation*",
    "align", "align*", "gather", "gather*", "multline", "multline*", "eqnarray", "eqnarray*",
    "displaymath", "math", "comment", "filecontents", "filecontents*", "thebibliography",
))  # fmt: skip
_BEGIN = re.compile(r"\\begin\s*\{([a-z]+\*?)\}")
_BREAK = re.compile(
    r"\n[ \t]*\n|\\(?:part|chapter|section|subsection|subsubsection|paragraph|subparagraph)\*?\s*"
    r"(?:\[[^\[\]]*\])?\s*\{(?:[^{}]|\{[^{}]*\})*\}|\\(?:begin|end)\s*\{[^{}]*\}(?:\s*\[[^\[\]]*\])?|\\item\b|\\par\b|"
    r"\\caption\b(?:\s*\[[^\[\]]*\])?|\\\\"
)
_MARK = re.compile("⟦(\\d+)⟧")
# Signs of the form [@key1; @key2], which a key must not have there.
_IN_MARKERS = re.compile(r"[\[\]@;]")


@dataclass(slots=True)
class _Source:
    """The text of all files of a project, one after another, and where each line comes from."""

    text: str = ""
    starts: list[int] = field(default_factory=list)
    places: list[tuple[str, int]] = field(default_factory=list)

    def place(self, offset: int) -> tuple[str, int]:
        """File and line of a character."""
        return self.places[bisect_right(self.starts, offset) - 1] if self.places else ("", 0)


def read_latex(file: Path) -> Draft:
    """The draft whose main file this is, without its bibliography; `bibliography_files` names that.

    Files outside of the main file's folder are not read. Raises SettingError for a missing main
    file, and for a project that includes itself or has more than 200 files or 20 MB.
    """
    draft = Draft(file)
    source = _read_project(file, draft)
    text = source.text
    macros = {match[1]: match[2] for match in _MACRO.finditer(text)}
    _find_bibliography(text, draft)
    title = _TITLE.search(text)
    draft.title = plain_field(title[1]) if title else None
    body = _BODY.search(text)
    start, end = body.span(1) if body else (0, len(text))
    for begin, paragraph in _paragraphs(_without_environments(text[:end]), start):
        for offset in range(0, len(paragraph), LONGEST_PARAGRAPH):
            piece = paragraph[offset : offset + LONGEST_PARAGRAPH]
            _read_paragraph(draft, source, macros, begin + offset, piece)
    return draft


def _without_environments(text: str) -> str:
    """The text with environments without prose made blank; offsets still lead to lines."""
    parts, start = [], 0
    without_end = set()
    for match in _BEGIN.finditer(text):
        if match.start() < start or match[1] not in _NO_PROSE or match[1] in without_end:
            continue
        closing = f"\\end{{{match[1]}}}"
        end = text.find(closing, match.end())
        if end < 0:
            without_end.add(match[1])  # not sought again: a file may open it a million times
            continue
        end += len(closing)
        parts += [text[start : match.start()], "\n\n", " " * (end - match.start() - 2)]
        start = end
    return "".join([*parts, text[start:]])


def _read_project(file: Path, draft: Draft) -> _Source:
    folder, source, parts = file.resolve().parent, _Source(), list[str]()
    size = files = 0

    def add(current: Path, above: tuple[Path, ...]) -> None:
        nonlocal size, files
        files += 1
        if current in above:
            raise SettingError(
                f"{current.name} includes itself, by way of {', '.join(p.name for p in above)}"
            )
        if files > MOST_FILES or len(above) > _MOST_DEPTH:
            raise SettingError(
                f"{file}: it includes more than {MOST_FILES} files, or files nested too deep"
            )
        for number, line in enumerate(read_text(current).split("\n"), start=1):
            line = _COMMENT.sub(r"\1", line)
            place = (str(current.relative_to(folder)), number)
            included, last = [], 0
            for match in _INPUT.finditer(line):
                included.append((line[last : match.start()], match[1] or match[2]))
                last = match.end()
            for before, name in included:
                append(before, place)
                child = _included(folder, current, name)
                if child is None:
                    draft.problems.append(
                        f"{place[0]}, line {number}: \\input{{{name}}} is no file of the project"
                    )
                else:
                    add(child, (*above, current))
            append(line[last:] + "\n", place)

    def append(text: str, place: tuple[str, int]) -> None:
        nonlocal size
        source.starts.append(size)
        source.places.append(place)
        parts.append(text)
        size += len(text)
        if size > _MOST_CHARACTERS:
            raise SettingError(
                f"{file}: with what it includes it has more than {_MOST_CHARACTERS // 1_000_000} MB"
            )

    add(file.resolve(), ())
    source.text = "".join(parts)
    return source


def _included(folder: Path, current: Path, name: str) -> Path | None:
    """The file that `\\input` names, inside of the project's folder; None if there is none."""
    for base in (folder, current.parent):
        for candidate in (base / name, base / f"{name}.tex"):
            resolved = candidate.resolve()
            if resolved.is_relative_to(folder) and resolved.is_file():
                return resolved
    return None


def _find_bibliography(text: str, draft: Draft) -> None:
    """Fill in the bibliography's files and the keys of `\\nocite`."""
    folder = draft.file.resolve().parent
    for match in _NOCITE.finditer(text):
        draft.listed |= set(_split_keys(match[1]))
    for match in _BIBLIOGRAPHY.finditer(text):
        for name in _split_keys(match[1]):
            file = _included(folder, folder / "x", name if name.endswith(".bib") else f"{name}.bib")
            if file is None:
                draft.problems.append(f"the bibliography {name} is no file of the project")
            else:
                draft.bibliography_files.append(file)


def _split_keys(text: str) -> list[str]:
    return [key.strip() for key in text.split(",") if key.strip()]


def _paragraphs(text: str, start: int) -> Iterator[tuple[int, str]]:
    """(offset, text) of each piece between two breaks that has any text."""
    for match in _BREAK.finditer(text, start):
        if text[start : match.start()].strip():
            yield start, text[start : match.start()]
        start = match.end()
    if text[start:].strip():
        yield start, text[start:]


def _read_paragraph(
    draft: Draft, source: _Source, macros: dict[str, str], begin: int, latex: str
) -> None:
    """Add a paragraph and its citing sentences to the draft."""
    citations: list[tuple[tuple[str, ...], int]] = []

    def mark(match: re.Match[str]) -> str:
        keys = tuple(key for part in _KEYS.findall(match[0]) for key in _split_keys(part))
        citations.append((keys, begin + match.start()))
        return f"⟦{len(citations) - 1}⟧" if keys else ""

    marked = _CITE.sub(mark, latex.replace("⟦", "").replace("⟧", ""))
    if len(latex) == LONGEST_PARAGRAPH and not citations:
        return  # a piece of data, not of a paper
    text = one_line(plain_text(_expand(marked, macros)))
    number = len(draft.paragraphs)
    draft.paragraphs.append(_MARK.sub("", text))

    def as_marker(match: re.Match[str]) -> str:
        keys, _ = citations[int(match[1])]
        return f"[{'; '.join('@' + _IN_MARKERS.sub('', key) for key in keys)}]"

    for sentence in split_sentences(_MARK.sub(lambda match: f"[@⟦{match[1]}⟧]", text)):
        places = [int(place) for place in _MARK.findall(sentence) if int(place) < len(citations)]
        keys = tuple(dict.fromkeys(key for place in places for key in citations[place][0]))
        if keys:
            readable = _MARK.sub(as_marker, re.sub("\\[@(⟦\\d+⟧)\\]", r"\1", sentence))
            file, line = source.place(citations[places[0]][1])
            draft.sentences.append(DraftSentence(readable, keys, file, line, number))


def _expand(text: str, macros: dict[str, str]) -> str:
    """The text with the draft's macros without arguments replaced, once each."""
    if not macros:
        return text
    names = "|".join(sorted(map(re.escape, macros), key=len, reverse=True))
    expanded = re.sub(rf"\\({names})(?![A-Za-z])(?:\{{\}})?", lambda match: macros[match[1]], text)
    return expanded if len(expanded) <= 2 * len(text) + LONGEST_PARAGRAPH else text
