"""Read a draft in Markdown with pandoc's citations."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from drafts.draft import (
    LONGEST_PARAGRAPH,
    Draft,
    DraftSentence,
    bibliography_file,
    read_text,
)
from drafts.text import CITATION_MARKER, citation_marker, cited_keys, one_line
from pipeline.corpus.passages.sentences import split_sentences

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

_METADATA = re.compile(r"\A---[ \t]*\n(.*?)\n(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.DOTALL)
_CODE_OR_COMMENT = re.compile(r"`[^`\n]*+`|<!--(?s:.*?)(?:-->|\Z)")
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
_ATTRIBUTES = r"\{(?:[#.][\w-][^{}\n]*|[\w-]+=[^{}\n]*|[-=]\w*)\}"
_SPAN = re.compile(rf"(?<!!)\[((?:[^\[\]]|\[[^\[\]]*\])*+)\]{_ATTRIBUTES}")
# Fences of divs, shortcodes and attributes, of pandoc and Quarto; LaTeX's spaces and breaks.
_LAYOUT = re.compile(
    rf"^[ \t>]*:{{3,}}.*$|\{{\{{<(?!\s*include\b)[^<>]*>\}}\}}|(?<=[\])`\s]){_ATTRIBUTES}"
    r"|\\[a-z]*(?:space|skip|page|break)(?![A-Za-z])\*?(?:\{[^{}]*\})?",
    re.MULTILINE,
)
# An example of pandoc: its label is no key.
_EXAMPLE = re.compile(r"^[ \t]*\(@([\w-]{1,100})\)[ \t]", re.MULTILINE)
_FORMULA = re.compile(r"\$\$[^$]+\$\$|(?<![\\$])\$(?![\s$])[^$\n]++(?<![\s\\])\$(?!\d)")
# Included files of Quarto; roles of MyST; LaTeX's citations. Code is no such form.
_OTHER_FORM = re.compile(
    r"\{\{<\s*include\b[^<>]*>\}\}|\{(?:foot)?cite(?::\w+)?\}`[^`]+`|`[^`\n]*+`"
    r"|\\[A-Za-z]{0,9}[Cc]ite[A-Za-z]{0,9}\*?\s?[\[{][^{}\n]*"
)
# A citation in a directive of MyST or in a caption, and an included file, of a fence.
_FORM_IN_FENCE = re.compile(
    r"\{(?:foot)?cite(?::\w+)?\}`[^`]+`|\bcap(?:tion)?\b\W.{0,999}@\w|^\{[^\n]*\bchild\s*=|\[-?@\w"
)
# Citations of a typed list of references: [2, 3], ^2^ or (Lee et al., 2020).
_TYPED = re.compile(
    r"(?<![\w\]])\[\d{1,3}(?:\s?[,;–-]\s?\d{1,3})*\](?![(:\w])|(?:<sup>|\^)\d{1,3}(?:[,–-]\d{1,3})*(?:</sup>|\^)"
    r"|\([A-Z][\w’'-]+(?: et al\.?| (?:and|&) [A-Z][\w’'-]+)?,? (?:19|20)\d\d[a-z]?\)"
)
# Stands for an escaped "@", and for those of addresses and code.
_AT = "\ue000"


def read_markdown(file: Path, working_folder: Path | None = None) -> Draft:
    """The draft in a file. Raises SettingError as `read_text` does.

    Other forms than `[@key]`, as those of typed lists, R Markdown, Quarto and MyST, are problems of
    the draft.
    """
    draft = Draft(file, working_folder=working_folder)
    text = read_text(file)
    if metadata := _METADATA.match(text):
        _read_metadata(draft, metadata[1])
        text = "\n" * metadata[0].count("\n") + text[metadata.end() :]
    paragraphs = list(_paragraphs(draft, _without_comments(text)))
    for line, paragraph in paragraphs:
        _add_paragraph(draft, line, _CITATION.sub(_as_marker, paragraph))
    if not draft.sentences:
        for line, paragraph in paragraphs:
            _report(draft, _TYPED, paragraph, line)
    return draft


def _report(draft: Draft, forms: re.Pattern[str], text: str, line: int) -> None:
    """Report forms that are not read, but not code. line: on which the text begins."""
    for form in forms.finditer(text):
        if not form[0].startswith("`"):
            place = line + text.count("\n", 0, form.start())
            draft.add_not_understood(form[0][:80], draft.file.name, place)


def _read_metadata(draft: Draft, text: str) -> None:
    # With the line before it, since a message of YAML counts lines.
    settings = _load_yaml(draft, "\n" + text)
    title = settings.get("title")
    if isinstance(title, str):
        draft.title = one_line(title)
    _add_bibliographies(draft, settings.get("bibliography"), _line_of(text, "bibliography"))
    if settings.get("references") is not None:
        line = _line_of(text, "references")
        draft.add_not_understood("references in the metadata", draft.file.name, line)
    nocite = str(settings.get("nocite") or "")
    draft.listed |= set(_keys(nocite))
    if "@*" in nocite:
        draft.listed.add("*")


def _line_of(text: str, name: str) -> int:
    """The line of the draft on which metadata have a setting; their first where it is not seen."""
    lines = enumerate(text.split("\n"), 2)
    return next((number for number, line in lines if line.startswith(f"{name}:")), 1)


def _load_yaml(draft: Draft, text: str) -> Mapping[str, Any]:
    import yaml

    from pipeline.yaml_loader import PlainLoader

    class Loader(PlainLoader):
        """Reads the code of R Markdown, such as `!r Sys.time()`, as nothing."""

    Loader.add_multi_constructor("!", lambda *_: None)
    try:
        settings = Loader(text).get_single_data()
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        draft.add_not_understood(f"its YAML: {one_line(str(error))[:200]}", draft.file.name)
        return {}
    return settings if isinstance(settings, dict) else {}


def _add_bibliographies(draft: Draft, value: Any, line: int) -> None:
    """Add the files that `bibliography` names. value: a name, names (by topic), or nothing."""
    if isinstance(value, dict):
        value = list(value.values())
    for name in filter(None, value if isinstance(value, list) else [value]):
        file = bibliography_file(draft.file.resolve().parent, str(name), draft.working_folder)
        if file is not None:
            draft.bibliography_files.append(file)
        else:
            draft.add_missing_bibliography(name, draft.file.name, line)


def _without_comments(text: str) -> str:
    """The text without HTML's comments, on as many lines."""

    def as_lines(match: re.Match[str]) -> str:
        return "\n" * match[0].count("\n") if match[0].endswith("-->") else match[0]

    return _CODE_OR_COMMENT.sub(as_lines, text)


@cache
def _parser() -> MarkdownIt:
    from markdown_it import MarkdownIt

    # Definitions of footnotes look like those of links, which would be left out.
    return MarkdownIt("commonmark").enable("table").disable(["reference", "inline", "text_join"])


def _paragraphs(draft: Draft, text: str) -> Iterator[tuple[int, str]]:
    """(line, text) of each block that has text, without code."""
    text = _LAYOUT.sub("", _SPAN.sub(r"\1", text))
    text = _LONG_NOTE.sub(lambda note: _INDENT.sub("", note[0]), text)
    for label in set(_EXAMPLE.findall(text)):
        text = re.sub(rf"@{label}\b", f"{_AT}{label}", text)
    parser, is_heading = _parser(), False
    for token in parser.parse(text):
        line = 1 + token.map[0] if token.map else 1
        if token.type == "heading_open":
            is_heading = True
        elif token.type == "html_block":
            yield line, _without_addresses(_TAG.sub(" ", token.content))
        elif token.type == "fence" and token.info.startswith("{"):
            if not token.info.startswith("{code"):
                _report(draft, _FORM_IN_FENCE, f"{token.info}\n{token.content}", line)
        elif token.type == "inline" and token.content.strip():
            _report(draft, _OTHER_FORM, token.content, line)
            words = _FORMULA.sub(_without_keys, _without_markup(token.content, parser))
            words = _without_addresses(_NOTE_MARK.sub("", words))
            if not is_heading or _keys(words):
                yield line, words
            is_heading = False


def _without_markup(text: str, parser: MarkdownIt) -> str:
    """The words of a paragraph; a very long one as it is."""
    if len(text) > LONGEST_PARAGRAPH:
        return text
    children: list[Token] = []
    parser.inline.parse(text, parser, {}, children)
    return "".join(_words(children))


def _words(tokens: list[Token]) -> Iterator[str]:
    is_address = False
    for token in tokens:
        if token.type == "link_open":
            is_address = token.info == "auto"
        elif token.type == "link_close":
            is_address = False
        elif token.type == "text" and not is_address:
            yield token.content
        elif token.type in ("text_special", "code_inline"):
            yield token.content.replace("@", _AT)
        elif token.type in ("softbreak", "hardbreak"):
            yield "\n"
        elif token.type == "image":
            yield from _words(token.children or [])


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


def _add_paragraph(draft: Draft, line: int, marked: str) -> None:
    number = len(draft.paragraphs)
    draft.paragraphs.append(one_line(CITATION_MARKER.sub(" ", marked)).replace(_AT, "@"))
    position = 0
    for sentence in split_sentences(one_line(marked)):
        keys = cited_keys(sentence)
        if not keys:
            continue
        offset = marked.find(f"@{keys[0]}", position)
        position = offset + 1 if offset >= 0 else position
        cited_line = line + marked.count("\n", 0, position)
        text = sentence.replace(_AT, "@")
        draft.sentences.append(DraftSentence(text, keys, draft.file.name, cited_line, number))
