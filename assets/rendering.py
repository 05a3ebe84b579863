"""Pictures and tables for the UI, as Markdown; text from papers is escaped."""

from __future__ import annotations

import base64
import html
import io
import logging
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Interval = tuple[float, float | None, float | None]
"""A value, and the ends of its interval where there is one."""

LONGEST_CELL = 80
MOST_BARS = 12
# A white panel with dark lines, since a transparent one is unreadable in either the light or the dark theme of the UI.
_BLUE, _RED, _INK, _PAPER = "#3b6ea5", "#b5523b", "#20242a", "#ffffff"


def markdown_table(head: Sequence[str], rows: Iterable[Sequence[Any]], longest: int = LONGEST_CELL) -> str:
    """A Markdown table; text from papers is data, so whatever could be markup in a cell is escaped."""
    lines = [list(head), ["---"] * len(head), *([cell(value, longest) for value in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def cell(value: Any, longest: int = LONGEST_CELL) -> str:
    """A value as one line of a Markdown table's cell, cut to so many signs."""
    text = " ".join((", ".join(value) if isinstance(value, list) else str(value)).split())
    if len(text) > longest:
        text = f"{text[:longest]}…"
    escaped = html.escape(text, quote=False)
    return "".join(f"\\{sign}" if sign in "\\|[]()*_`!$<>#~" else sign for sign in escaped)


def share(part: int, whole: int) -> str:
    """A part in percent, with as many digits as a reader needs."""
    return f"{100 * part / whole:.1f} %" if whole else "–"


def histogram(
    name: str, values: Sequence[float], bins: Sequence[float], marks: Iterable[float] = (), **labels: str
) -> str:
    """A histogram as a Markdown image. `marks` are drawn as lines; `labels` are the title, xlabel and ylabel."""
    figure, axes = _panel(3.0)
    axes.hist(values, bins=list(bins), color=_BLUE)
    axes.locator_params(axis="y", integer=True)
    for mark in marks:
        axes.axvline(mark, color=_RED, linewidth=1, linestyle="--")
    axes.set(**labels)
    return _image(name, figure)


def bars(name: str, counts: Mapping[str, int], **labels: str) -> str:
    """Horizontal bars in the order of `counts` as a Markdown image; those beyond MOST_BARS are one bar, `other`."""
    ordered = list(counts.items())
    rest = sum(count for _, count in ordered[MOST_BARS:])
    rows = [*ordered[:MOST_BARS], *([("other", rest)] if rest else [])][::-1]
    figure, axes = _panel(0.9 + 0.27 * len(rows))
    container = axes.barh([kind for kind, _ in rows], [count for _, count in rows], color=_BLUE)
    axes.bar_label(container, [f"{count:,}" for _, count in rows], padding=3, color=_INK, fontsize=8)
    axes.margins(x=0.12)
    axes.locator_params(axis="x", integer=True)
    axes.set(**labels)
    return _image(name, figure)


def intervals(name: str, groups: Mapping[str, Mapping[str, Interval]], **labels: str) -> str:
    """Values between 0 and 1 with their intervals as a Markdown image: one dot a value, group under group.

    groups: name of the group → name of the value → (value, lower and upper end, None for no interval).
    """
    rows = [(f"{name}, {group}", interval) for group, values in groups.items() for name, interval in values.items()]
    figure, axes = _panel(0.9 + 0.22 * len(rows))
    for place, (_, (value, low, high)) in enumerate(reversed(rows)):
        if low is not None and high is not None:
            axes.plot([low, high], [place, place], color=_BLUE, linewidth=1.5)
        axes.plot([value], [place], "o", color=_BLUE, markersize=5)
        axes.annotate(f"{value:.2f}", (1.02, place), color=_INK, fontsize=8, va="center", annotation_clip=False)
    axes.set_yticks(range(len(rows)), [label for label, _ in reversed(rows)])
    axes.set_xlim(0, 1.1)
    axes.grid(axis="x", color="#dddddd", linewidth=0.6)
    axes.set(**labels)
    return _image(name, figure)


def _panel(height: float) -> tuple[Figure, Axes]:
    """A small figure, `height` in inches; drawn by Agg, which needs no display and no global state."""
    # Otherwise it announces on standard error, once on a machine, that it builds its font cache.
    logging.getLogger("matplotlib.font_manager").setLevel(logging.ERROR)
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, height), layout="constrained", facecolor=_PAPER)
    FigureCanvasAgg(figure)
    axes = figure.subplots()
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(colors=_INK, labelsize=9)
    return figure, axes


def _image(name: str, figure: Figure) -> str:
    picture = io.BytesIO()
    # Without date and version in the file, the same counts give the same picture.
    figure.savefig(picture, format="png", dpi=100, metadata={"Software": None})
    return f"![{name}](data:image/png;base64,{base64.b64encode(picture.getvalue()).decode()})"
