"""A table and a figure for the UI, as Markdown; text from papers is escaped."""

from __future__ import annotations

import base64
import html
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import dagster as dg

from pipeline.engine.stage import Workspace
from pipeline.text import one_line

Interval = tuple[float, float | None, float | None]
"""A value, and the ends of its interval where there is one."""

LONGEST_CELL = 80
# A white panel with dark lines, since a transparent one is unreadable in either the light or the
# dark theme of the UI.
_BLUE, _GRID, _INK, _PAPER = "#3b6ea5", "#dddddd", "#20242a", "#ffffff"
# In pixels: the panel, the column of labels, the axis, a row.
_WIDTH, _LABELS, _AXIS, _ROW = 700, 200, 420, 20
_LONGEST_LABEL = 30


def report_address(workspace: Workspace, month: str) -> dg.MetadataValue:
    """A month's report in `citeloom serve`: a link where CITELOOM_SERVE_URL is set, else how to see
    it. A browser opens no file that a page of the UI links to.
    """
    path = f"/reports/{month}/index.html"
    if workspace.settings.serve_url is None:
        return dg.MetadataValue.text(
            f"citeloom serve shows it at {path}; CITELOOM_SERVE_URL makes this a link"
        )
    return dg.MetadataValue.url(f"{workspace.settings.serve_url.rstrip('/')}{path}")


def markdown_table(
    head: Sequence[str], rows: Iterable[Sequence[Any]], longest: int = LONGEST_CELL
) -> str:
    """A Markdown table; markup in cells is escaped."""
    lines = [
        list(head),
        ["---"] * len(head),
        *([cell(value, longest) for value in row] for row in rows),
    ]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def cell(value: Any, longest: int = LONGEST_CELL) -> str:
    """A value as one line of a Markdown table's cell, cut to so many signs."""
    text = one_line(", ".join(value) if isinstance(value, list) else str(value))
    if len(text) > longest:
        text = f"{text[:longest]}…"
    escaped = html.escape(text, quote=False)
    return "".join(f"\\{sign}" if sign in "\\|[]()*_`!$<>#~" else sign for sign in escaped)


def intervals(name: str, rows: Mapping[str, Interval], *, title: str) -> str:
    """Values between 0 and 1 with their intervals as a Markdown image: one dot a value.

    rows: label → (value, lower and upper end, None for no interval).
    """
    shapes = []
    for tick in (0, 0.25, 0.5, 0.75, 1):
        x = _LABELS + tick * _AXIS
        shapes.append(f'<path d="M{x:g} {_ROW + 6}V{_top(len(rows))}" stroke="{_GRID}"/>')
        shapes.append(_text(x, _top(len(rows)) + 14, f"{tick:g}", "middle"))
    for place, (label, (value, low, high)) in enumerate(rows.items()):
        middle = _top(place) + _ROW / 2
        if low is not None and high is not None:
            start, end = (_LABELS + max(0, min(edge, 1)) * _AXIS for edge in (low, high))
            shapes.append(
                f'<path d="M{start:g} {middle:g}H{end:g}" stroke="{_BLUE}" stroke-width="2"/>'
            )
        shapes.append(
            f'<circle cx="{_LABELS + value * _AXIS:g}" cy="{middle:g}" r="4" fill="{_BLUE}"/>'
        )
        if len(label) > _LONGEST_LABEL:
            label = f"{label[: _LONGEST_LABEL - 1]}…"
        shapes.append(_text(_LABELS - 8, middle + 4, label, "end"))
        shapes.append(_text(_LABELS + _AXIS + 12, middle + 4, f"{value:.2f}"))
    return _image(name, title, len(rows) + 1, shapes)


def _top(place: int) -> int:
    """The upper edge of a row, below the title."""
    return _ROW * place + _ROW + 8


def _text(x: float, y: float, words: str, anchor: str = "start") -> str:
    return f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}">{html.escape(words)}</text>'


def _image(name: str, title: str, rows: int, shapes: Iterable[str]) -> str:
    """An SVG as a Markdown image; the same data give the same bytes."""
    height = _top(rows) + 8
    picture = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{height}"'
        f' font-family="sans-serif" font-size="12" fill="{_INK}"><rect width="100%" height="100%"'
        f' fill="{_PAPER}"/>{_text(12, 18, title)}{"".join(shapes)}</svg>'
    )
    return f"![{name}](data:image/svg+xml;base64,{base64.b64encode(picture.encode()).decode()})"
