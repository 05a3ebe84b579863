"""Figures of a report as positions on their axes, 0 to 1; the templates draw them.

Every figure also has its numbers as text, so that nothing is shown by shape or colour alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from pipeline.report.grid import Grid
from pipeline.stage_names import RELATED_WORK_SYSTEMS
from pipeline.tables.writers import parse_writer

COLOURS = 8
"""Colours of the style sheet."""
# Answering systems by name, so that one has the same colour in every month; imported ones share the
# others.
_ANSWERING_COLOURS = {"arxivbot": 1, "direct": 2, "wikichat": 3, "arxivbot_fused": 4}


@dataclass(frozen=True, slots=True)
class Bar:
    """One bar. share: of the full width, 0 to 1; colour: a number of the style sheet; text: its
    value.

    low, high: the ends of its interval, as shares. hollow: drawn as an outline, as people's marks
    and published values are.
    """

    label: str
    text: str
    share: float
    colour: int
    low: float | None = None
    high: float | None = None
    hollow: bool = False


@dataclass(frozen=True, slots=True)
class BarFigure:
    """Groups of bars on one axis."""

    title: str
    groups: Sequence[tuple[str, Sequence[Bar]]]
    about: str = ""
    kind: Literal["bars"] = "bars"


def bar_figure(
    title: str,
    grid: Grid,
    columns: Mapping[str, float],
    colours: Mapping[str, int],
    about: str,
    outlined: str = "",
) -> BarFigure:
    """Some columns of a table as bars: a group for each column, a bar for each row with a number.

    columns: name → the end of its axis. colours: first cell of a row → colour. outlined: the title
    of the group of rows whose bars are outlines.
    """
    figure_groups = []
    for name, most in columns.items():
        place = list(grid.columns).index(name)
        bars = []
        for group in grid.groups:
            hollow = bool(outlined) and group.title == outlined
            for row in group.rows:
                label, cell = row[0].text, row[place]
                if cell.value is None:
                    continue
                low, high = (
                    None if end is None else min(end / most, 1.0) for end in (cell.low, cell.high)
                )
                share = min(float(cell.value) / most, 1.0)
                text = f"{label}, {outlined.lower()}" if hollow else label
                colour = colours.get(label, COLOURS)
                bars.append(Bar(text, cell.text, share, colour, low, high, hollow))
        figure_groups.append((name, bars))
    return BarFigure(title, figure_groups, about)


@dataclass(frozen=True, slots=True)
class Box:
    """Five numbers of a sample as shares of the axis, and the sample itself; `text` names them."""

    label: str
    colour: int
    least: float
    lower: float
    median: float
    upper: float
    most: float
    points: Sequence[float]
    text: str


@dataclass(frozen=True, slots=True)
class BoxFigure:
    """Box plots under one another on one axis. ticks: (position, label)."""

    title: str
    groups: Sequence[tuple[str, Sequence[Box]]]
    ticks: Sequence[tuple[float, str]]
    about: str = ""
    kind: Literal["boxes"] = "boxes"


def system_colour(system: str) -> int:
    """The colour of a related-work system, the same on every page and for each of its models; the
    last one for those beyond the paper's that come last in the list, and for an unknown one.
    """
    known, system = RELATED_WORK_SYSTEMS, parse_writer(system).system
    return min(known.index(system) + 1, COLOURS) if system in known else COLOURS


def answering_colour(system: str, systems: Sequence[str]) -> int:
    """The colour of an answering system, the same for each of its models. systems: all that are
    shown beside it.
    """
    own_name = parse_writer(system).system
    if own_name in _ANSWERING_COLOURS:
        return _ANSWERING_COLOURS[own_name]
    others = sorted(
        other for other in systems if parse_writer(other).system not in _ANSWERING_COLOURS
    )
    return min(len(_ANSWERING_COLOURS) + 1 + others.index(system), COLOURS)


def box(label: str, colour: int, values: Sequence[float], low: float, high: float) -> Box:
    """The box plot of a sample on an axis from `low` to `high`: quartiles inclusive, whiskers at
    the extremes.

    values: one or more. Quartiles lie between the values around them (method 7 of Hyndman and Fan,
    as numpy's).
    """
    from numpy import quantile

    numbers = [float(number) for number in quantile(values, (0, 0.25, 0.5, 0.75, 1))]
    names = ("least", "a quarter below", "median", "three quarters below", "most")
    text = ", ".join(f"{name} {number:.2f}" for name, number in zip(names, numbers, strict=True))
    least, lower, median, upper, most = (_place(number, low, high) for number in numbers)
    points = [_place(value, low, high) for value in values]
    return Box(
        label, colour, least, lower, median, upper, most, points, f"{text} (n = {len(values)})"
    )


def _place(value: float, low: float, high: float) -> float:
    return min(max((value - low) / (high - low), 0.0), 1.0)
