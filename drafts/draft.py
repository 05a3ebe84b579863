"""A draft as data: citing sentences, bibliography, and problems in reading it."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from citeloom import SettingError
from drafts.citation_commands import Citation
from drafts.text import CITATION_MARKER, citation_marker, cited_keys, one_line

# A book of 600 pages is 2 MB of LaTeX. What is larger is no draft, or an attack on the parser.
LARGEST_FILE_BYTES = 10_000_000
# The ACL Anthology has 60 MB of BibTeX.
LARGEST_BIBLIOGRAPHY_BYTES = 200_000_000
MOST_FILES = 200
LONGEST_PARAGRAPH = 20_000
"""A paragraph of a paper has 200 words. No longer one is given to a parser, which is recursive."""
_YEAR = re.compile(r"\b(1[5-9]\d\d|20\d\d)[a-z]?\b")
_DOI = re.compile(r"(?<![\d.])10\.\d{4,9}/\S+")
_DOI_MARKUP = re.compile(r"\\url\b|\\(?=[_%#&])|[{}$]")
# Fewer words before a citation are no claim of their own.
_FEWEST_WORDS = 5
_MOST_LINES = 5
_NOT_UNDERSTOOD = "not understood: "
_SPACE_BEFORE_STOP = re.compile(r" ([.,;:!?)])")


@dataclass(frozen=True, slots=True)
class Entry:
    """An item of the draft's bibliography.

    authors: names in reading order, without "others"; empty if none are given. title, year, venue,
    doi, arxiv_id: None if the entry has none. arxiv_id: as written, with its version. line: of the
    file, from 1. raw: the text of a printed item. notes: remarks of the reader, a sentence each.
    names_all_authors: whether it is data, and not a printed list or one that ends in "others".
    """

    key: str
    kind: str
    title: str | None
    authors: tuple[str, ...]
    year: int | None
    venue: str | None
    doi: str | None
    arxiv_id: str | None
    file: str
    line: int
    raw: str = ""
    notes: tuple[str, ...] = ()
    names_all_authors: bool = False


@dataclass(frozen=True, slots=True)
class DraftSentence:
    """A sentence that cites, in plain text.

    text: formulas as `$TeX$`, citations as `[@key1; @key2]`. keys: in the order of the sentence,
    each once. paragraph: its place among the draft's paragraphs, from 0. line: of the first
    citation, from 1.
    """

    text: str
    keys: tuple[str, ...]
    file: str
    line: int
    paragraph: int

    def claim(self, key: str) -> str:
        """The claim that cites a key: the words between the previous citation and its own, of each
        place that cites it.

        The whole sentence, without citations, where these are few, as in "[@key] show that …".
        """
        groups = list(CITATION_MARKER.finditer(self.text))
        starts = [0, *(group.end() for group in groups)]
        claims = []
        for start, group in zip(starts, groups, strict=False):
            words = _without_space(self.text[start : group.start()]).strip(" ,;:")
            is_own_claim = len(groups) > 1 and len(words.split()) >= _FEWEST_WORDS
            if is_own_claim and key in cited_keys(group[0]):
                claims.append(words)
        return "; ".join(claims) or self.plain

    @property
    def plain(self) -> str:
        """The sentence without its citations."""
        return _without_space(CITATION_MARKER.sub(" ", self.text))

    def with_keys(self, renamed: Mapping[str, Sequence[str]]) -> DraftSentence:
        """The sentence with other keys in the place of some."""

        def rename(match: re.Match[str]) -> str:
            return citation_marker(_renamed(cited_keys(match[0]), renamed))

        if renamed.keys().isdisjoint(self.keys):
            return self
        keys = tuple(dict.fromkeys(_renamed(self.keys, renamed)))
        return replace(self, text=CITATION_MARKER.sub(rename, self.text), keys=keys)

    @property
    def readable(self) -> str:
        """The sentence with its citations as `[key1, key2]`."""
        return CITATION_MARKER.sub(lambda match: f"[{', '.join(cited_keys(match[0]))}]", self.text)


@dataclass(frozen=True, slots=True)
class DraftProblem:
    """What could not be read. file: a name, or empty. line: from 1, if one is known."""

    message: str
    file: str = ""
    line: int | None = None


@dataclass(slots=True)
class Draft:
    """A draft that was read.

    title: None if it has none. paragraphs: their plain text, in order. entries: by key, in the
    order of the bibliography. listed: keys that are to appear in the bibliography without a
    citation (`\\nocite`). duplicate_keys: keys that more than one entry has; the first entry
    counts. embedded: bibliographies that the draft writes itself, as (BibTeX, file, line).
    missing_bibliographies: a problem for each file that is named and not there. ignores_case:
    whether keys that differ in case are one, as for BibTeX. unknown_commands: (keys, problem) of
    commands that are read as citations. working_folder: where the reader works, if anywhere; a
    bibliography may lie anywhere in it. packages: those of LaTeX that it loads, and natbib or
    biblatex where it uses their commands, as its class may load them.
    """

    file: Path
    title: str | None = None
    sentences: list[DraftSentence] = field(default_factory=list)
    paragraphs: list[str] = field(default_factory=list)
    entries: dict[str, Entry] = field(default_factory=dict)
    listed: set[str] = field(default_factory=set)
    duplicate_keys: list[str] = field(default_factory=list)
    bibliography_files: list[Path] = field(default_factory=list)
    embedded: list[tuple[str, str, int]] = field(default_factory=list)
    missing_bibliographies: list[DraftProblem] = field(default_factory=list)
    ignores_case: bool = False
    unknown_commands: list[tuple[tuple[str, ...], DraftProblem]] = field(default_factory=list)
    problems: list[DraftProblem] = field(default_factory=list)
    working_folder: Path | None = None
    packages: frozenset[str] = frozenset()

    @property
    def cited_keys(self) -> list[str]:
        """The keys of all citations, each once, in order."""
        return list(dict.fromkeys(key for sentence in self.sentences for key in sentence.keys))

    def rename_keys(self, renamed: Mapping[str, Sequence[str]]) -> None:
        """Cite other keys in the place of some."""
        self.sentences = [sentence.with_keys(renamed) for sentence in self.sentences]
        self.listed = set(_renamed(self.listed, renamed))
        self.unknown_commands = [
            (tuple(_renamed(keys, renamed)), problem) for keys, problem in self.unknown_commands
        ]

    def add_problem(self, message: str, file: str = "", line: int | None = None) -> None:
        """Add what could not be read there."""
        self.problems.append(DraftProblem(message, file, line))

    def add_not_understood(self, what: str, file: str, line: int | None = None) -> None:
        """Add a form that is not read, or not surely, at its place."""
        self.add_problem(_NOT_UNDERSTOOD + what, file, line)

    @property
    def not_understood(self) -> int:
        """Number of places with a form that is not read, or not surely."""
        return sum(problem.message.startswith(_NOT_UNDERSTOOD) for problem in self.problems)

    def add_missing_bibliography(self, name: str, file: str, line: int | None = None) -> None:
        """Add a bibliography that this place names and `bibliography_file` does not find."""
        message = f"the bibliography {name} is not in the draft's project: give it with --bib"
        self.missing_bibliographies.append(DraftProblem(message, file, line))

    def add_unclear_citation(self, citation: Citation, file: str, line: int) -> None:
        """Add the problem of a citation, if any. With keys, it counts only if one has no entry."""
        problem = DraftProblem(citation.problem, file, line)
        if citation.keys and citation.problem:
            self.unknown_commands.append((citation.keys, problem))
        elif citation.problem:
            self.problems.append(problem)

    def add_entries(self, entries: Sequence[Entry]) -> None:
        """Add the entries of one bibliography; of entries with one key, the first counts."""
        for entry in entries:
            if entry.key in self.entries:
                self.duplicate_keys.append(entry.key)
                message = f"a second entry has the key {entry.key}: the first counts"
                self.add_problem(message, entry.file, entry.line)
            else:
                self.entries[entry.key] = entry


def describe_problems(problems: Sequence[DraftProblem]) -> list[str]:
    """A sentence for each problem, in order; those that differ only in their line share one."""
    lines_of: dict[tuple[str, str], list[str]] = {}
    for problem in problems:
        lines = lines_of.setdefault((problem.file, problem.message), [])
        if problem.line is not None and str(problem.line) not in lines:
            lines.append(str(problem.line))
    sentences = []
    for (place, message), lines in lines_of.items():
        if lines:
            word = "line" if len(lines) == 1 else "lines"
            place += f", {word} {', '.join(lines[:_MOST_LINES])}"
        if len(lines) > _MOST_LINES:
            place += f" and {len(lines) - _MOST_LINES} more"
        sentences.append(f"{place}: {message}" if place else message)
    return sentences


def read_text(file: Path, most_bytes: int = LARGEST_FILE_BYTES) -> str:
    """The text of a file of the draft: UTF-8, or else Latin-1.

    Raises SettingError if there is no such file, if it is a folder or if it has more bytes.
    """
    if not file.is_file():
        raise SettingError(f"{file}: there is no such file")
    if file.stat().st_size > most_bytes:
        raise SettingError(f"{file} has more than {most_bytes // 1_000_000} MB: a draft is smaller")
    content = file.read_bytes()
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = content.decode("latin-1")
    return text.replace("\r\n", "\n").replace("\r", "\n").replace("\0", "")


def replace_spans(text: str, replacements: Iterable[tuple[int, int, str]]) -> str:
    """The text with other words in the place of each span (start, end, words), in order; one that
    begins within the span before it is left out.
    """
    parts, last = list[str](), 0
    for start, end, words in replacements:
        if start >= last:
            parts += [text[last:start], words]
            last = end
    return "".join([*parts, text[last:]])


def find_year(*texts: str) -> int | None:
    """The first year that one of some texts has."""
    year = next(filter(None, map(_YEAR.search, texts)), None)
    return int(year[1]) if year else None


def find_doi(value: str) -> str | None:
    """The DOI of a field, without TeX's signs and the address or `doi:` before it; any other text
    as it is.
    """
    bare = _DOI_MARKUP.sub("", value).strip()
    doi = _DOI.search(bare)
    return doi[0].rstrip(".,;") if doi else bare or None


def name_of_parts(parts: Mapping[str, str]) -> str:
    """A name in reading order, of the parts that biblatex names."""
    order = ("given", "prefix", "family", "suffix")
    return " ".join(filter(None, map(parts.get, order)))


def project_file(folder: Path, name: Path) -> Path | None:
    """The file of this name inside of the project's folder; None if there is none."""
    try:
        file = name.resolve()
        return file if file.is_relative_to(folder) and file.is_file() else None
    except (OSError, ValueError):  # a name that is too long, or has NUL
        return None


def bibliography_file(folder: Path, name: str, working_folder: Path | None) -> Path | None:
    """The bibliography that a draft in this folder names, with or without `.bib`, if there is one.

    It may lie in the folders above, within the repository or the working folder that the draft is
    in: only references are read of it.
    """
    around = [*reversed(folder.parents), folder]
    roots = (place for place in around if place == working_folder or (place / ".git").exists())
    root = next(roots, folder)
    for candidate in (folder / name, folder / f"{name}.bib"):
        if file := project_file(root, candidate):
            return file
    return None


def line_counter(text: str) -> Callable[[int], int]:
    """Returns a function from the offset of a character of the text to its line, from 1."""
    ends = [match.start() for match in re.finditer("\n", text)]
    return lambda offset: bisect_left(ends, offset) + 1


def _renamed(keys: Iterable[str], renamed: Mapping[str, Sequence[str]]) -> list[str]:
    return [new for key in keys for new in renamed.get(key, (key,))]


def _without_space(text: str) -> str:
    return _SPACE_BEFORE_STOP.sub(r"\1", one_line(text))
