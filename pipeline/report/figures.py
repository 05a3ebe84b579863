"""Figures of a report as positions on their axes, 0 to 1; the templates draw them.

Every figure also has its numbers as text, so that nothing is shown by shape or colour alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from pipeline.report.grid import Cell
from pipeline.system_names import RELATED_WORK_SYSTEMS
from pipeline.tables.writers import parse_writer

COLOURS = 8
"""Colours of the style sheet."""
# Answering systems by name, so that one has the same colour in every month; imported ones share the
# others.
_ANSWERING_COLOURS = {"arxivbot": 1, "direct": 2, "wikichat": 3, "arxivbot_report": 4}


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


def bar(label: str, cell: Cell, colour: int, most: float = 1, *, hollow: bool = False) -> Bar:
    """The bar of a cell with a number, on an axis from 0 to `most`."""
    value = float(cell.value or 0)
    low, high = (None if end is None else min(end / most, 1.0) for end in (cell.low, cell.high))
    return Bar(label, cell.text, min(value / most, 1.0), colour, low, high, hollow)


@dataclass(frozen=True, slots=True)
class BarFigure:
    """Groups of bars on one axis."""

    title: str
    groups: Sequence[tuple[str, Sequence[Bar]]]
    about: str = ""
    kind: Literal["bars"] = "bars"


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


@dataclass(frozen=True, slots=True)
class Line:
    """One line. points: (x, y, text), x and y from 0 to 1, y counted from below."""

    label: str
    colour: int
    points: Sequence[tuple[float, float, str]]

    def segments(self) -> list[tuple[float, float, float, float]]:
        """(x, y, next x, next y) between neighbours."""
        pairs = zip(self.points, self.points[1:], strict=False)
        return [(first[0], first[1], second[0], second[1]) for first, second in pairs]


@dataclass(frozen=True, slots=True)
class LineFigure:
    """Lines over one pair of axes, whose ticks are (position, label)."""

    title: str
    lines: Sequence[Line]
    x_ticks: Sequence[tuple[float, str]]
    y_ticks: Sequence[tuple[float, str]]
    about: str = ""
    kind: Literal["lines"] = "lines"


def system_colour(system: str) -> int:
    """The colour of a related-work system, the same on every page and for each of its models; the
    last one for a system that calls no model, and for an unknown one.
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


def line(label: str, colour: int, values: Mapping[int, tuple[float, str]], last: int) -> Line:
    """The line of shares by step, 1 to `last`. values: step → (share, text)."""
    width = max(last - 1, 1)
    return Line(
        label,
        colour,
        [((step - 1) / width, share, text) for step, (share, text) in sorted(values.items())],
    )


def step_ticks(last: int) -> list[int]:
    """Steps to write under an axis from 1 to `last`: all of a few, else about five."""
    every = max(1, -(-last // 6))
    steps = list(range(1, last + 1, every))
    return steps if steps[-1] == last else [*steps, last]


def _place(value: float, low: float, high: float) -> float:
    return min(max((value - low) / (high - low), 0.0), 1.0)
