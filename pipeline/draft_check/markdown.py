"""Read a draft in Markdown with pandoc's citations, or a text with `[1]` and a numbered list."""

from __future__ import annotations

import re
from pathlib import Path

from pipeline.corpus.passages.sentences import split_sentences
from pipeline.draft_check.bibliography import read_item
from pipeline.draft_check.draft import Draft, DraftSentence, read_text
from pipeline.text import one_line

_FRONT_MATTER = re.compile(r"\A---\n(.*?)\n(?:---|\.\.\.)\n", re.DOTALL)
_BIBLIOGRAPHY = re.compile(r"^bibliography:\s*(.+)$|^\s+-\s*(\S+\.bib)\s*$", re.MULTILINE)
_GROUP = re.compile(r"\[([^\[\]]*@[^\[\]]*)\]")
_KEY = re.compile(r"(?<![\w@])-?@\{?([A-Za-z0-9_][\w:.#$%&+?<>~/-]*[\w]|[A-Za-z0-9_])\}?")
_NUMBERS = re.compile(r"\[(\d{1,3}(?:\s*[,;–-]\s*\d{1,3})*)\]")
_LIST_ITEM = re.compile(r"^\[(\d{1,3})\]\s+(.+?)(?=^\[\d{1,3}\]\s|\Z)", re.MULTILINE | re.DOTALL)
_CODE = re.compile(r"^(```|~~~).*?^\1[ \t]*$", re.MULTILINE | re.DOTALL)
_MARKUP = re.compile(r"[*_`]{1,3}(?=\S)|(?<=\S)[*_`]{1,3}|^#+\s.*$|^>\s?", re.MULTILINE)
# Two blank lines are two breaks, with nothing between them.
_BLANK_LINES = re.compile(r"\n[ \t]*\n")
_LINES_OF_A_BREAK = 2
_LONGEST_RANGE = 50
# "Ann Lee and Bo Roe. Title of it. Venue, 2020."
_BLOCKS = re.compile(r"(?<=[a-z0-9)”\"?!])\.\s+|(?<=[a-z]\w)[.?!][”\"]\s+")


def read_markdown(file: Path) -> Draft:
    """The draft in a file; a plain text is one whose citations are numbers of a list at its end.

    Raises SettingError as `read_text` does.
    """
    draft, text = Draft(file), read_text(file)
    front = _FRONT_MATTER.match(text)
    if front:
        for match in _BIBLIOGRAPHY.finditer(front[1]):
            _add_bibliography(draft, (match[1] or match[2]).strip(" \"'[]"))
        text = "\n" * front[0].count("\n") + text[front.end() :]
    # At equal length, so that a place leads to its line.
    text = _CODE.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), text)
    by_number = not _KEY.search(text) and _LIST_ITEM.search(text) is not None
    if by_number:
        text = _read_list(draft, text)
    line = 1
    for paragraph in _BLANK_LINES.split(text):
        _read_paragraph(draft, paragraph, line, by_number=by_number)
        line += paragraph.count("\n") + _LINES_OF_A_BREAK
    return draft


def _add_bibliography(draft: Draft, name: str) -> None:
    folder = draft.file.resolve().parent
    for single in name.split(","):
        file = (folder / single.strip(" \"'")).resolve()
        if file.is_relative_to(folder) and file.is_file():
            draft.bibliography_files.append(file)
        else:
            draft.problems.append(
                f"{draft.file.name}: the bibliography {single.strip()} is no file of the project"
            )


def _read_list(draft: Draft, text: str) -> str:
    """Read the numbered list at the end; the text before it."""
    items = list(_LIST_ITEM.finditer(text))
    entries = []
    for item in items:
        blocks = [block for block in _BLOCKS.split(one_line(item[2])) if block.strip()]
        blocks = [block.strip(' ."“”') for block in blocks]
        line = text.count("\n", 0, item.start()) + 1
        entries.append(read_item(item[1], blocks, draft.file.name, line))
    draft.add_entries(entries)
    return text[: items[0].start()]


def _read_paragraph(draft: Draft, text: str, line: int, *, by_number: bool) -> None:
    plain = _MARKUP.sub("", text).strip()
    if not plain:
        return
    if by_number:
        marked = _NUMBERS.sub(_numbers_as_keys, plain)
    else:
        marked = _KEY.sub(_as_group, _GROUP.sub(_group, plain))
    number = len(draft.paragraphs)
    draft.paragraphs.append(one_line(_GROUP.sub(" ", marked)))
    for sentence in split_sentences(one_line(marked)):
        cited = [key for group in _GROUP.findall(sentence) for key in _KEY.findall(group)]
        if cited:
            start = max(text.find("[" if by_number else cited[0]), 0)
            cited_line = line + text.count("\n", 0, start)
            keys = tuple(dict.fromkeys(cited))
            draft.sentences.append(
                DraftSentence(sentence, keys, draft.file.name, cited_line, number)
            )


def _group(match: re.Match[str]) -> str:
    """`[see @a, p. 3; @b]` as `[@a; @b]`."""
    return f"[{'; '.join(f'@{key}' for key in _KEY.findall(match[1]))}]"


def _as_group(match: re.Match[str]) -> str:
    """A key in running text as a group of its own; one that is in a group already stays."""
    before = match.string[: match.start()]
    inside = before.rfind("[") > before.rfind("]")
    return match[0] if inside else f"[@{match[1]}]"


def _numbers_as_keys(match: re.Match[str]) -> str:
    numbers: list[str] = []
    for part in re.split(r"\s*[,;]\s*", match[1]):
        first, _, last = (piece.strip() for piece in part.replace("–", "-").partition("-"))
        if last and int(last) - int(first) < _LONGEST_RANGE:
            numbers += map(str, range(int(first), int(last) + 1))
        else:
            numbers.append(first)
    return f"[{'; '.join(f'@{number}' for number in numbers)}]"
