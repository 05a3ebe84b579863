"""Read a draft in Markdown with pandoc's citations, or a text that ends in a list of references."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from drafts.bibliography import read_csl
from drafts.citation_commands import find_citations
from drafts.draft import (
    MOST_FILES,
    Draft,
    DraftSentence,
    bibliography_file,
    project_file,
    read_text,
)
from drafts.latex_project import split_keys
from drafts.latex_scan import Latex
from drafts.printed_references import read_items
from drafts.typed_list import TypedList, find_list, keys_of_names, mark_citations
from pipeline.corpus.parse.bibliography import ItemParts
from pipeline.corpus.parse.policies import CITATION_MARKER, citation_marker, cited_keys
from pipeline.corpus.passages.sentences import split_sentences
from pipeline.text import one_line, replace_spans

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

_LONGEST_PARAGRAPH = 20_000
_PROJECTS = ("_quarto.yml", "_config.yml", "_bookdown.yml")
_DEEPEST = 10
# At the beginning, or behind an empty line where a setting follows.
_METADATA = re.compile(
    r"(?:\A|(?<=\n\n)(?=---[ \t]*\n\w[\w-]*:\s))---[ \t]*\n(.*?)\n(?:---|\.\.\.)[ \t]*(?:\n|\Z)",
    re.DOTALL,
)
_CODE_OR_COMMENT = re.compile(r"`[^`\n]*+`|<!--(?s:.*?)(?:-->|\Z)")
# Of a chunk of R Markdown or Quarto.
_CAPTION = re.compile(
    r"(?:\bcaption|\b(?:fig|tbl|lst)[.-](?:sub)?cap)\s*+[=:]\s*+(\"[^\"]*\"|'[^']*'|[^\"'\n]++)"
)
_RAISED = re.compile(r"<sup>(\d[\d ,;–-]{0,100})</sup>")
_TAG = re.compile(r"<[^<>]*>")
_ADDRESS = re.compile(r"(?:https?://|www\.)[^\s<>]+|(?<![\w.+-])[\w.+-]++@[\w-]+\.[\w.-]+")
_KEY = re.compile(
    r"(?<![\w@/.])-?@(?:\{([^{}\s]{1,200})\}|(\w(?:[\w:.#$%&+?<>~/-]{0,200}\w)?))"
    r"(?: \[[^\[\]@]*\])?"  # @key [p. 3]
)
# [see @key1; @key2], or a key by itself.
_CITATION = re.compile(rf"\[[^\[\]@]*+@[^\[\]]*+\]|{_KEY.pattern}")
# Quarto's and pandoc-crossref's names of figures, tables, equations, sections and so on.
_REFERENCE = re.compile(
    r"(?:fig|tbl|tab|sec|eq|eqn|lst|thm|lem|cor|prp|cnj|def|exm|exr|sol|rem|alg|nte|tip|wrn|imp|cau"
    r"|vid|prf|app|apx|chap|ch|supp\w{0,8}|figure|table|section|equation|theorem|lemma|ref)[-:]",
    re.IGNORECASE,
)
_NOTE_MARK = re.compile(r"^\[\^[^\[\]\s]{1,100}\]:|\[\^[^\[\]\s]{1,100}\]", re.MULTILINE)
# A footnote of several paragraphs, whose indentation is that of code.
_LONG_NOTE = re.compile(
    r"^\[\^[^\[\]\s]{1,100}\]:.*+(?:\n(?:[ \t]*+\n)*+(?: {4}|\t).*+)++", re.MULTILINE
)
_INDENT = re.compile(r"^(?: {4}|\t)", re.MULTILINE)
_NOTE = re.compile(r"\^\[((?:[^\[\]]|\[[^\[\]]*\])*+)\]")
_ATTRIBUTES = r"\{(?:[#.][\w-][^{}\n]*|[\w-]+=[^{}\n]*|[-=]\w*)\}"
_SPAN = re.compile(rf"(?<!!)\[((?:[^\[\]]|\[[^\[\]]*\])*+)\]{_ATTRIBUTES}")
# Fences of divs, shortcodes and attributes, of pandoc and Quarto; LaTeX's spaces and breaks; a
# comment of MyST that cites.
_LAYOUT = re.compile(
    rf"^[ \t>]*:{{3,}}.*$|\{{\{{<(?!\s*include\b)[^<>]*>\}}\}}|(?<=[\])`\s]){_ATTRIBUTES}"
    r"|\\[a-z]*(?:space|skip|page|break)(?![A-Za-z])\*?(?:\{[^{}]*\})?"
    r"|^%.*\{(?:foot)?cite.*$",
    re.MULTILINE,
)
# A citation of MyST, with the keys in code: {cite:p}`{see}key{p. 3}`.
_ROLE = re.compile(r"\{(?:foot)?cite(?::\w+)?\}`([^`]+)`")
_ROLE_NOTE = re.compile(r"\{[^{}]*\}")
_MYST_OPTION = re.compile(r"^:[\w-]+:.*$", re.MULTILINE)
# An example of pandoc: its label is no key.
_EXAMPLE = re.compile(r"^[ \t]*\(@([\w-]{1,100})\)[ \t]", re.MULTILINE)
_FORMULA = re.compile(r"\$\$[^$]+\$\$|(?<![\\$])\$(?![\s$])[^$\n]++(?<![\s\\])\$(?!\d)")
_INCLUDE = re.compile(r"\s*\{\{<\s*include\s+(\S+)\s*>\}\}\s*$")
_CHILD = re.compile(r"\s*+(?:```|~~~)++\s*+\{(?>[^{}]*\bchild\s*+=)\s*+(c\([^()]*+\)|[^,{}]*+)")
_QUOTED = re.compile(r"[\"']([^\"']+)[\"']")
# Stands for an escaped "@", and for those of addresses.
_AT = "\ue000"
# Stands for a backslash of code.
_BACKSLASH = "\ue001"
# Stands for an opening bracket of code: "[1]" there is no citation.
_BRACKET = "\ue002"
_STAND_INS = str.maketrans({_AT: "@", _BACKSLASH: "\\", _BRACKET: "["})
_OF_CODE = {ord(sign): stand_in for stand_in, sign in _STAND_INS.items()}


def read_markdown(file: Path, working_folder: Path | None = None) -> Draft:
    """The draft in a file, with the references that are in it.

    A plain text is one that cites by the numbers, names or labels of a list at its end. Raises
    SettingError as `read_text` does.
    """
    draft = Draft(file, working_folder=working_folder)
    text = read_text(file)
    for metadata in _METADATA.finditer(text):
        line = text.count("\n", 0, metadata.start()) + 1
        _read_metadata(draft, metadata[1], line)
    text = _without_metadata(text)
    if not draft.bibliography_files:
        _read_project(draft)
    is_plain = file.suffix.lower() == ".txt"
    reader = _Reader(draft, is_plain=is_plain)
    paragraphs = list(reader.paragraphs(file, text, 0))
    if not any(_keys(paragraph) for _, _, paragraph in paragraphs):
        lines = text.split("\n")
        typed = find_list(lines)
        if typed is not None and typed.is_read:
            before = "\n".join(lines[: typed.start])
            _read_typed(
                draft, typed, list(_Reader(draft, is_plain=is_plain).paragraphs(file, before, 0))
            )
            return draft
        if typed is not None:
            message = "this list of references is not understood"
            draft.add_problem(message, file.name, typed.start + 1)
    for name, line, paragraph in paragraphs:
        _add_paragraph(draft, name, line, _CITATION.sub(_as_marker, paragraph))
    return draft


def _read_typed(draft: Draft, typed: TypedList, paragraphs: list[tuple[str, int, str]]) -> None:
    """Add the items of a list, and the sentences that cite them by label, or by name and year."""
    is_plain = draft.file.suffix.lower() == ".txt"
    parts = [
        ItemParts(label, one_line(text)) if is_plain else _item_of_markdown(label, text)
        for label, text, _ in typed.items
    ]
    entries = read_items(parts, [(draft.file.name, line) for _, _, line in typed.items])
    keys = [label for label, _, _ in typed.items]
    if typed.form == "plain":
        keys = keys_of_names(entries)
    entries = [replace(entry, key=key) for entry, key in zip(entries, keys, strict=True)]
    draft.add_entries(entries)
    texts = [text for _, _, text in paragraphs]
    marked_texts = [mark_citations(text, typed.form, entries) for text in texts]
    if typed.form == "dot" and texts == [marked for marked, _ in marked_texts]:
        # Medicine's styles cite "1." as (1).
        marked_texts = [mark_citations(text, "round", entries) for text in texts]
    for (name, line, _), (marked, unknown) in zip(paragraphs, marked_texts, strict=True):
        for words in unknown:
            draft.add_problem(f"({words}) is cited, and no reference fits", name, line)
        _add_paragraph(draft, name, line, marked)
    if not draft.sentences:
        message = "no citation of this list of references was found"
        draft.add_problem(message, draft.file.name, typed.start + 1)


def _item_of_markdown(label: str, text: str) -> ItemParts:
    """An item of a list of references, with its words in italics and its addresses."""
    parser = _parser()
    tokens: list[Token] = []
    parser.inline.parse(one_line(text), parser, {}, tokens)
    parts, words, italics = ItemParts(label), list[str](), 0
    for token in tokens:
        if token.type == "em_open":
            italics = len(words)
        elif token.type == "em_close":
            parts.emphases.append("".join(words[italics:]).strip(" .,"))
        elif token.type == "link_open":
            parts.links.append(str(token.attrGet("href")))
        elif token.type in ("text", "text_special", "code_inline"):
            words.append(token.content)
    parts.raw = one_line("".join(words))
    return parts


def _without_metadata(text: str) -> str:
    return _METADATA.sub(lambda match: "\n" * match[0].count("\n"), text)


def _read_metadata(draft: Draft, text: str, first: int) -> None:
    # With the lines before it, since a message of YAML counts lines.
    settings = _load_yaml(draft, "\n" * first + text, draft.file.name)
    title = settings.get("title")
    if isinstance(title, str):
        draft.title = draft.title or one_line(title)
    line = _line_of_setting(text, "bibliography", first)
    _add_bibliographies(draft, settings.get("bibliography"), draft.file.name, line)
    if settings.get("references") is not None:
        line = _line_of_setting(text, "references", first)
        read_csl(settings["references"], draft.file.name, line, draft)
    nocite = str(settings.get("nocite") or "")
    draft.listed |= set(_keys(nocite))
    if "@*" in nocite:
        draft.listed.add("*")


def _read_project(draft: Draft) -> None:
    """Add the bibliographies of the Quarto project, Jupyter Book or MyST site of the draft."""
    folder = draft.file.resolve().parent
    for place in (folder, *folder.parents)[:_DEEPEST]:
        for name in _PROJECTS:
            if (place / name).is_file():
                settings = _load_yaml(draft, read_text(place / name), name)
                for setting in ("bibliography", "bibtex_bibfiles"):
                    _add_bibliographies(draft, settings.get(setting), name, folder=place)
                return
        if (place / ".git").exists():
            return


def _line_of_setting(text: str, name: str, first: int) -> int:
    """The line of the draft on which metadata have a setting; their first where it is not seen."""
    lines = enumerate(text.split("\n"), first + 1)
    return next((number for number, line in lines if line.startswith(f"{name}:")), first)


def _load_yaml(draft: Draft, text: str, name: str) -> Mapping[str, Any]:
    import yaml

    from pipeline.yaml_loader import PlainLoader

    class Loader(PlainLoader):
        """Reads the code of R Markdown, such as `!r Sys.time()`, as nothing."""

    Loader.add_multi_constructor("!", lambda *_: None)
    try:
        settings = Loader(text).get_single_data()
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        draft.add_problem(f"its YAML is not understood: {one_line(str(error))[:200]}", name)
        return {}
    return settings if isinstance(settings, dict) else {}


def _add_bibliographies(
    draft: Draft, value: Any, source: str, line: int | None = None, *, folder: Path | None = None
) -> None:
    """Add the files that `bibliography` names. value: a name, names (by topic), or nothing.

    folder: in place of the draft's.
    """
    if isinstance(value, dict):
        value = list(value.values())
    names = value if isinstance(value, list) else [value]
    for name in filter(None, names):
        place = folder or draft.file.resolve().parent
        file = bibliography_file(place, str(name), draft.working_folder)
        if file is not None:
            draft.bibliography_files.append(file)
        else:
            draft.add_missing_bibliography(name, source, line)


class _Reader:
    """Yields the paragraphs of a draft and of the files that it includes."""

    def __init__(self, draft: Draft, *, is_plain: bool) -> None:
        self.draft, self.is_plain, self.files = draft, is_plain, 0
        self.folder = draft.file.resolve().parent

    def paragraphs(self, file: Path, text: str, depth: int) -> Iterator[tuple[str, int, str]]:
        """(file, line, text) of each paragraph; what it includes is read where it is included."""
        if self.is_plain:
            yield from _plain_paragraphs(file.name, text)
            return
        text = _LAYOUT.sub("", _SPAN.sub(r"\1", _without_comments(text)))
        text = _LONG_NOTE.sub(lambda note: _INDENT.sub("", note[0]), text)
        for label in set(_EXAMPLE.findall(text)):
            text = re.sub(rf"@{label}\b", f"{_AT}{label}", text)
        lines = text.split("\n")
        begun = 0
        for number, line in enumerate(lines):
            include, child = _INCLUDE.match(line), _CHILD.match(line)
            if include is None and child is None:
                continue
            before = "\n".join(lines[begun:number])
            yield from _markdown_paragraphs(file.name, before, begun + 1, self.draft)
            begun = number + 1 if include else number
            names = [include[1]] if include else _QUOTED.findall(child[1] if child else "")
            if not names:
                self.problem(file, number, f"{line.strip()[:80]} includes a file, and names none")
            for name in names:
                yield from self.included(file, number, name, depth)
        rest = "\n".join(lines[begun:])
        yield from _markdown_paragraphs(file.name, rest, begun + 1, self.draft)

    def included(
        self, file: Path, number: int, name: str, depth: int
    ) -> Iterator[tuple[str, int, str]]:
        self.files += 1
        path = project_file(self.folder, file.resolve().parent / name)
        if path is None:
            self.problem(file, number, f"{name} is not in the draft's folder")
        elif depth >= _DEEPEST or self.files > MOST_FILES:
            self.problem(file, number, f"{name} is nested too deep, or one file too many")
        elif path.suffix.lower() in (".md", ".qmd", ".rmd", ".markdown", ".txt"):
            yield from self.paragraphs(path, _without_metadata(read_text(path)), depth + 1)
        else:
            self.problem(file, number, f"{name} is no Markdown, and is not read")

    def problem(self, file: Path, number: int, message: str) -> None:
        self.draft.add_problem(message, file.name, number + 1)


def _without_comments(text: str) -> str:
    """The text without HTML's comments, on as many lines."""

    def as_lines(match: re.Match[str]) -> str:
        return "\n" * match[0].count("\n") if match[0].endswith("-->") else match[0]

    return _CODE_OR_COMMENT.sub(as_lines, text)


def _plain_paragraphs(name: str, text: str) -> Iterator[tuple[str, int, str]]:
    begun, lines = 0, list[str]()
    for number, line in enumerate([*text.split("\n"), ""], start=1):
        if line.strip():
            begun = begun or number
            lines.append(line)
        elif lines:
            yield name, begun, _without_addresses("\n".join(lines))
            begun, lines = 0, []


@cache
def _parser() -> MarkdownIt:
    from markdown_it import MarkdownIt

    # Definitions of footnotes look like those of links, which would be left out.
    return MarkdownIt("commonmark").enable("table").disable(["reference", "inline", "text_join"])


def _markdown_paragraphs(
    name: str, text: str, first: int, draft: Draft
) -> Iterator[tuple[str, int, str]]:
    """(file, line, text) of each block that has text, without code."""
    parser, is_heading = _parser(), False
    for token in parser.parse(text):
        line = first + token.map[0] if token.map else first
        if token.type == "heading_open":
            is_heading = True
        elif token.type == "html_block":
            yield name, line, _without_addresses(_TAG.sub(" ", token.content))
        elif token.type == "fence" and _is_directive(token):
            content = _MYST_OPTION.sub("", f"{token.info.partition('}')[2]}\n{token.content}")
            yield from _markdown_paragraphs(name, content, line, draft)
        elif token.type == "fence" and token.info.startswith("{"):
            for caption_line, caption in _captions(token, line):
                yield name, caption_line, caption
        elif token.type == "inline" and token.content.strip():
            words = _without_markup(token.content, parser)
            words = _with_pandoc_citations(words, name, line, draft)
            for part_line, part in _with_notes_apart(words, line):
                if not is_heading or _keys(part):
                    yield name, part_line, part
            is_heading = False


def _without_markup(text: str, parser: MarkdownIt) -> str:
    """The words of a paragraph, with citations as pandoc writes them; a very long one as it is."""
    words = _RAISED.sub(r"^\1^", _ROLE.sub(_as_pandoc, text))
    if len(words) > _LONGEST_PARAGRAPH:
        return words
    children: list[Token] = []
    parser.inline.parse(words, parser, {}, children)
    return "".join(_words(children))


def _captions(chunk: Token, line: int) -> Iterator[tuple[int, str]]:
    """The lines and captions of a chunk of code that cite."""
    text = f"{chunk.info}\n{chunk.content}"
    for caption in _CAPTION.finditer(text):
        if _keys(caption[1]):
            yield line + text.count("\n", 0, caption.start()), caption[1]


def _with_notes_apart(text: str, line: int) -> Iterator[tuple[int, str]]:
    """The line and text of a paragraph, and of each note `^[…]` within it."""
    yield line, _NOTE.sub(lambda note: "\n" * note[0].count("\n"), text)
    for note in _NOTE.finditer(text):
        yield line + text.count("\n", 0, note.start()), note[1]


def _is_directive(fence: Token) -> bool:
    """Whether a fence is a note, figure or other text of MyST that cites, and no code."""
    is_code = not fence.info.startswith("{") or fence.info.startswith("{code")
    return not is_code and _ROLE.search(f"{fence.info} {fence.content}") is not None


def _as_pandoc(role: re.Match[str]) -> str:
    return citation_marker(split_keys(_ROLE_NOTE.sub("", role[1])))


def _words(tokens: list[Token]) -> Iterator[str]:
    is_address = False
    for token in tokens:
        if token.type == "link_open":
            is_address = token.info == "auto"
        elif token.type == "link_close":
            is_address = False
        elif token.type == "text" and not is_address:
            yield token.content
        elif token.type == "text_special" and token.content != "\\":
            yield token.content.replace("@", _AT)
        elif token.type == "text_special":
            yield _BACKSLASH
        elif token.type == "code_inline":
            yield token.content.translate(_OF_CODE)
        elif token.type in ("softbreak", "hardbreak"):
            yield "\n"
        elif token.type == "image":
            yield from _words(token.children or [])


def _with_pandoc_citations(text: str, name: str, line: int, draft: Draft) -> str:
    """The text with LaTeX's citations as pandoc's, and addresses that look like none."""
    markers = []
    for citation in find_citations(Latex(text)):
        draft.add_unclear_citation(citation, name, line)
        if citation.keys:
            markers.append((citation.start, citation.end, citation_marker(citation.keys)))
    words = _FORMULA.sub(_without_keys, replace_spans(text, markers))
    return _without_addresses(_NOTE_MARK.sub("", words))


def _without_keys(formula: re.Match[str]) -> str:
    """A formula, or an amount of money before a citation."""
    return formula[0] if "[@" in formula[0] else formula[0].replace("@", _AT)


def _without_addresses(text: str) -> str:
    return _ADDRESS.sub(lambda match: match[0].replace("@", _AT), text)


def _keys(text: str) -> list[str]:
    keys = (match[1] or match[2] for match in _KEY.finditer(text))
    return [key for key in keys if not _REFERENCE.match(key)]


def _as_marker(match: re.Match[str]) -> str:
    """`[see @a, p. 3; @b]` as `[@a; @b]`; what has no key as words."""
    keys = _keys(match[0])
    if keys:
        return citation_marker(keys)
    words = match[0].replace("@", _AT)
    return f"({words[1:-1]})" if words[0] == "[" else words


def _add_paragraph(draft: Draft, name: str, line: int, marked: str) -> None:
    number = len(draft.paragraphs)
    draft.paragraphs.append(one_line(CITATION_MARKER.sub(" ", marked)).translate(_STAND_INS))
    position = 0
    for sentence in split_sentences(one_line(marked)):
        keys = cited_keys(sentence)
        if not keys:
            continue
        offset = marked.find(f"@{keys[0]}", position)
        position = offset + 1 if offset >= 0 else position
        cited_line = line + marked.count("\n", 0, position)
        text = sentence.translate(_STAND_INS)
        draft.sentences.append(DraftSentence(text, keys, name, cited_line, number))
