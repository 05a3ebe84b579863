"""Texts of passages as HTML: formulas, links to the bibliography, tables, and marked sentences.

Every text of a paper is escaped: all elements are written here or by `render_formulas`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from markupsafe import Markup

from pipeline.corpus.parse.policies import CITATION_MARKER, cited_keys
from pipeline.report.rendering import render_formulas

_CELL_BORDER = re.compile(r"(?<!\\)\|")
_RULE = re.compile(r"\|?(?:\s*:?-{3,}:?\s*\|)+\s*")
_MOST_ROWS = 400


def render_passage(
    text: str, kind: str, *, marked: Sequence[str] = (), numbers: Mapping[str, int] | None = None
) -> Markup:
    """A passage as block elements.

    marked: parts of the text to highlight. numbers: key of a bibliography item → its number in the
    list below, to which citations link.
    """
    blocks: list[Markup] = []
    lines: list[str] = []
    table: list[str] = []
    for line in [*text.split("\n"), ""]:
        if line.startswith("|"):
            blocks += _paragraph(lines, marked, numbers)
            lines = []
            table.append(line)
            continue
        if table:
            blocks.append(_table(table, numbers))
            table = []
        lines.append(line)
    blocks += _paragraph(lines, marked, numbers)
    return Markup('<div class="text {}">{}</div>').format(
        kind.replace("_", "-"), Markup("").join(blocks)
    )


def _paragraph(
    lines: Sequence[str], marked: Sequence[str], numbers: Mapping[str, int] | None
) -> list[Markup]:
    text = "\n".join(lines).strip()
    return [Markup("<p>{}</p>").format(render_inline(text, marked, numbers))] if text else []


def render_inline(
    text: str, marked: Sequence[str] = (), numbers: Mapping[str, int] | None = None
) -> Markup:
    """A text without block elements. marked, numbers: as for `render_passage`."""
    parts: list[Markup] = []
    end = 0
    for start, after in sorted(filter(None, (_find_words(text, words) for words in marked))):
        if start >= end:
            parts.append(_cited(text[end:start], numbers))
            parts.append(Markup("<mark>{}</mark>").format(_cited(text[start:after], numbers)))
            end = after
    return Markup("").join([*parts, _cited(text[end:], numbers)])


def _find_words(text: str, words: str) -> tuple[int, int] | None:
    """Where the words stand in a text, with any white space between them: a quote of two sentences
    may cross a border of paragraphs.
    """
    match = re.search(r"\s+".join(map(re.escape, words.split())), text)
    return match.span() if match else None


def _cited(text: str, numbers: Mapping[str, int] | None) -> Markup:
    """A text whose citation markers are links; markers of unknown items are left out."""
    parts: list[Markup] = []
    end = 0
    for marker in CITATION_MARKER.finditer(text):
        parts.append(render_formulas(text[end : marker.start()]))
        links = [
            Markup('<a href="#ref-{0}">{0}</a>').format(numbers[key])
            for key in cited_keys(marker[0])
            if numbers and key in numbers
        ]
        if links:
            parts.append(Markup('<span class="cite">[{}]</span>').format(Markup(", ").join(links)))
        end = marker.end()
    return Markup("").join([*parts, render_formulas(text[end:])])


def _table(lines: Sequence[str], numbers: Mapping[str, int] | None) -> Markup:
    """The rows of a Markdown table, of which the first is the head where a rule follows it."""
    rows = [_cells(line) for line in lines if not _RULE.fullmatch(line)][:_MOST_ROWS]
    head: list[Markup] = []
    if len(lines) > 1 and _RULE.fullmatch(lines[1]):
        for cell in rows.pop(0):
            head.append(Markup('<th scope="col">{}</th>').format(_cited(cell, numbers)))
    body = []
    for row in rows:
        cells = [Markup("<td>{}</td>").format(_cited(cell, numbers)) for cell in row]
        body.append(Markup("<tr>{}</tr>").format(Markup("").join(cells)))
    return Markup(
        '<div class="scroll" tabindex="0" role="region" aria-label="Table"><table'
        ' class="figures"><thead><tr>{}</tr></thead><tbody>{}</tbody></table></div>'
    ).format(Markup("").join(head), Markup("").join(body))


def _cells(line: str) -> list[str]:
    cells = _CELL_BORDER.split(line.strip().strip("|"))
    return [cell.strip().replace("\\|", "|") for cell in cells]
