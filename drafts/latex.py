"""Read a LaTeX draft: paragraphs, and sentences that cite. Nothing of it is executed."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from drafts.citation_commands import Citation, find_citations
from drafts.draft import (
    LONGEST_PARAGRAPH,
    Draft,
    DraftSentence,
    bibliography_file,
    replace_spans,
)
from drafts.latex_project import Project, read_project, split_keys
from drafts.latex_scan import Latex, blank
from drafts.latex_text import plain_field, plain_text
from drafts.printed_references import read_bibitems
from drafts.text import citation_marker, one_line
from pipeline.corpus.passages.sentences import split_sentences

_NEW_CITES = re.compile(r"\\newcites\s*\{([^{}]*)\}")
_TITLE = re.compile(r"\\title(?![A-Za-z@])\s*(?:\[[^\[\]]{0,500}\])?")
# Environments without prose. What they cite is read all the same.
_NO_PROSE = r"tikzpicture|(?:equation|align|gather|multline|eqnarray)\*?|(?:display)?math"
# An entry of amsrefs: a field for each author.
_AMS_ENTRY = re.compile(r"\\bib\*?\s*\{([^{}]*)\}\s*\{([^{}]*)\}")
_AMS_AUTHOR = re.compile(r"\bauthor\s*=\s*\{((?:[^{}]++|\{[^{}]*+\})*+)\}\s*,?")
_LIST = "thebibliography"
_BREAK = re.compile(
    r"\n[ \t]*\n|\\\\"
    r"|(?P<heading>\\(?:part|chapter|section|subsection|subsubsection|paragraph|subparagraph|caption"
    r"|captionof|title|subtitle|author|date|address|affiliation|affil|institute|email|footnotetext)"
    r"(?![A-Za-z@])\*?)"
    r"|(?P<option>(?P<begin>\\begin\s*\{[^{}]{0,100}\})|\\end\s*\{[^{}]{0,100}\}"
    r"|\\item(?![A-Za-z@]))(?:<[-+\d.,|]+>)?"
    r"|\\(?:par|maketitle)(?![A-Za-z@])"
)
# A group that begins an environment's text, as in {\em …}, and is no argument.
_GROUP = re.compile(r"\s*\{\s*\\[A-Za-z]+\s")
_MARK = re.compile("⟦(\\d+)⟧")
# Signs of the form [@key1; @key2], which a key must not have there.
_IN_MARKERS = re.compile(r"[\[\]@;]")
_BIBER = re.compile(r"\{biblatex\}|\\addbibresource|\\printbibliography")
_BACKEND = re.compile(r"\bbackend\s*=\s*bibtex")

_PACKAGES = re.compile(
    r"\\(?:usepackage|RequirePackage)\s*(?:\[[^\[\]]{0,500}\]\s*)?\{([^{}]{0,500})\}"
)
_COMMANDS_OF = {
    "natbib": re.compile(r"\\[Cc]ite[tp](?![A-Za-z@])"),
    "biblatex": re.compile(r"\\(?:[Tt]extcites?|[Pp]arencites?)(?![A-Za-z@])"),
}


def read_latex(file: Path, working_folder: Path | None = None) -> Draft:
    """The draft whose main file this is, with the bibliography that is in it.

    `bibliography_files` names the others. No other file is read outside of the main file's folder.
    Raises SettingError for a missing main file, and for a project that includes itself or has more
    than 200 files or 20 MB.
    """
    draft = Draft(file, working_folder=working_folder)
    project = read_project(file, draft)
    text = project.text.replace("⟦", " ").replace("⟧", " ")
    latex = Latex(text)
    endings = [name for match in _NEW_CITES.finditer(text) for name in split_keys(match[1])]
    lists = _environments(text, _LIST)
    citations = []
    for citation in find_citations(latex):
        if any(start <= citation.start < end for start, end in lists):
            continue
        draft.add_unclear_citation(citation, *project.place(citation.start))
        if citation.keys:
            citations.append(citation)
    unprinted = _find_bibliography(latex, project, endings, draft)
    for start, end in lists or ([(0, len(text))] if "\\bibitem" in text else []):
        read_bibitems(text[start:end], partial(_place_from, project, start), draft)
    for match in _AMS_ENTRY.finditer(text):
        if fields := latex.argument(match.end()):
            bibtex = _bibtex_of_amsrefs(match[1], match[2], fields.text)
            draft.embedded.append((bibtex, *project.place(match.start())))
    named = draft.bibliography_files or draft.missing_bibliographies or draft.embedded
    if not (named or draft.entries):
        draft.bibliography_files += _bibliographies_of_class(text, file.resolve().parent)
    command = _TITLE.search(text)
    title = latex.argument(command.end()) if command else None
    draft.title = plain_field(title.text) if title else None
    draft.packages = _packages(text)
    text = _without(text, unprinted, "")
    _read_body(draft, project, text, citations, lists)
    return draft


def _packages(text: str) -> frozenset[str]:
    loaded = {name for match in _PACKAGES.finditer(text) for name in split_keys(match[1])}
    used = {name for name, command in _COMMANDS_OF.items() if command.search(text)}
    return frozenset(loaded | used)


def _place_from(project: Project, start: int, offset: int) -> tuple[str, int]:
    return project.place(start + offset)


def _read_body(
    draft: Draft,
    project: Project,
    text: str,
    citations: Sequence[Citation],
    lists: Sequence[tuple[int, int]],
) -> None:
    """Add the paragraphs and the sentences that cite, in order."""
    prose = _without(text, [*lists, *_environments(text, _NO_PROSE)], "\n\n")
    body = Latex(prose)
    left = deque(citations)

    def take_until(offset: int) -> list[Citation]:
        taken = []
        while left and left[0].start < offset:
            taken.append(left.popleft())
        return taken

    for begin, end, is_prose in _pieces(body, project.body):
        for citation in take_until(begin):
            _read_paragraph(draft, project, citation.start, "", [citation])
        for start in range(begin, end, LONGEST_PARAGRAPH):
            stop = min(end, start + LONGEST_PARAGRAPH)
            cited = take_until(stop)
            if cited or (is_prose and stop - start < LONGEST_PARAGRAPH):
                _read_paragraph(draft, project, start, prose[start:stop], cited)
    for citation in take_until(len(text) + 1):
        _read_paragraph(draft, project, citation.start, "", [citation])


def _environments(text: str, names: str) -> list[tuple[int, int]]:
    """The spans of environments whose names fit a pattern, the outer ones alone."""
    spans, start = list[tuple[int, int]](), 0
    never_closed = set[str]()
    for match in re.finditer(rf"\\begin\s*\{{({names})\}}", text):
        name = match[1]
        if match.start() < start or name in never_closed:
            continue
        end = text.find(f"\\end{{{name}}}", match.end())
        if end < 0 and name != _LIST:
            never_closed.add(name)  # not sought again: a file may open it a million times
            continue
        start = end + len(name) + len("\\end{}") if end >= 0 else len(text)
        spans.append((match.start(), start))
    return spans


def _without(text: str, spans: Sequence[tuple[int, int]], mark: str) -> str:
    """The text at the same length with a mark and blanks in place of each span."""
    return replace_spans(
        text,
        ((start, end, mark + blank(text[start + len(mark) : end])) for start, end in sorted(spans)),
    )


def _pieces(latex: Latex, start: int) -> Iterator[tuple[int, int, bool]]:
    """(begin, end, whether it is prose) of each paragraph, heading, caption and argument."""
    text, position = latex.text, start
    while match := _BREAK.search(text, position):
        if text[start : match.start()].strip():
            yield start, match.start(), True
        start = position = match.end()
        takes_options = match["heading"] or match["option"]
        while takes_options:
            option = latex.argument(start, "[")
            if option is None and match["begin"] and not _GROUP.match(text, start):
                option = latex.argument(start)
            if option is None:
                break
            yield option.start, option.end, False
            start = position = option.after
        argument = latex.argument(start) if match["heading"] else None
        if argument is not None:
            yield argument.start, argument.end, match["heading"].startswith("\\caption")
            start = position = argument.after
    if text[start:].strip():
        yield start, len(text), True


def _find_bibliography(
    latex: Latex, project: Project, endings: Sequence[str], draft: Draft
) -> list[tuple[int, int]]:
    """Fill in the bibliography's files and the keys of `\\nocite`. The spans of these commands."""
    folder = draft.file.resolve().parent
    ends = "|".join(map(re.escape, sorted(endings, key=len, reverse=True)))
    pattern = re.compile(
        rf"\\(nocite|bibliography|nobibliography|addbibresource|addglobalbib|addsectionbib"
        rf"|defaultbibliography|putbib)(?:{ends})?(?![A-Za-z@])\*?"
    )
    draft.ignores_case = not _BIBER.search(latex.text) or bool(_BACKEND.search(latex.text))
    spans = list[tuple[int, int]]()
    for match in pattern.finditer(latex.text):
        argument = latex.argument(match.end(), "[") if match[1] == "putbib" else None
        argument = argument or latex.argument(latex.skip_options(match.end()))
        if argument is None or "#" in argument.text:
            continue
        spans.append((match.start(), argument.after))
        names = split_keys(argument.text)
        if match[1] == "nocite":
            draft.listed |= set(names)
            continue
        for name in names:
            name = name.strip('"').replace("\\jobname", draft.file.stem)
            embedded = project.embedded.get(name) or project.embedded.get(f"{name}.bib")
            if embedded is not None:
                draft.embedded.append(embedded)
                continue
            place = project.place(match.start())
            # A part of a draft names it by its own place: ../refs.
            own_name = str(Path(place[0]).parent / name)
            found = (
                bibliography_file(folder, candidate, draft.working_folder)
                for candidate in (name, own_name)
            )
            file = next(filter(None, found), None)
            if file is None:
                draft.add_missing_bibliography(name, *place)
            elif file not in draft.bibliography_files:
                draft.bibliography_files.append(file)
    return spans


def _bibtex_of_amsrefs(key: str, kind: str, fields: str) -> str:
    """An entry of amsrefs, `\\bib{key}{kind}{fields}`, as BibTeX."""
    authors = " and ".join(_AMS_AUTHOR.findall(fields))
    return f"@{kind}{{{key}, author={{{authors}}}, {_AMS_AUTHOR.sub('', fields)}}}"


def _bibliographies_of_class(text: str, folder: Path) -> list[Path]:
    """The `.bib` files of the folder that commands or options of the draft's class name."""
    files = sorted((*folder.glob("*.bib"), *folder.glob("*/*.bib")))
    names = [re.escape(file.relative_to(folder).with_suffix("").as_posix()) for file in files]
    return [
        file
        for file, name in zip(files, names, strict=True)
        if re.search(rf"[{{=,\[]\s*+{name}(?:\.bib)?\s*+[,}}\]]", text)
    ]


def _read_paragraph(
    draft: Draft, project: Project, begin: int, latex: str, citations: Sequence[Citation]
) -> None:
    """Add a paragraph and its citing sentences to the draft."""
    marks = [
        (max(citation.start - begin, 0), citation.end - begin, f"⟦{number}⟧")
        for number, citation in enumerate(citations)
    ]
    marked = replace_spans(latex, marks).replace("\\citetext", "")
    text = one_line(plain_text(marked))
    for number in range(len(citations)):
        if f"⟦{number}⟧" not in text:
            text += f" ⟦{number}⟧"  # in an argument that the parser of LaTeX does not print
    number = len(draft.paragraphs)
    draft.paragraphs.append(_MARK.sub("", text))

    def as_marker(match: re.Match[str]) -> str:
        keys = citations[int(match[1])].keys
        return citation_marker(_IN_MARKERS.sub("", key) for key in keys)

    for sentence in split_sentences(_MARK.sub(lambda match: f"[@⟦{match[1]}⟧]", text)):
        cited = [citations[int(place)] for place in _MARK.findall(sentence)]
        keys = tuple(dict.fromkeys(key for citation in cited for key in citation.keys))
        if keys:
            readable = _MARK.sub(as_marker, re.sub("\\[@(⟦\\d+⟧)\\]", r"\1", sentence))
            file, line = project.place(cited[0].start)
            draft.sentences.append(DraftSentence(readable, keys, file, line, number))
