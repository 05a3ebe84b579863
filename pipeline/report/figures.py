"""Figures of a report as places on their axes, 0 to 1; the templates draw them.

Every figure has its numbers in words too, beside its marks or as the title of each, so that nothing is told by a
picture or by a colour alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from pipeline import tables


@dataclass(frozen=True, slots=True)
class Bar:
    """One bar. `share` of the full width, 0 to 1; `series` is the number of its colour; `told` its value as text.

    low, high: the ends of its interval, as shares. Where `hollow` it is drawn as an outline, as humans' marks are.
    """

    label: str
    told: str
    share: float
    series: int
    low: float | None = None
    high: float | None = None
    hollow: bool = False


@dataclass(frozen=True, slots=True)
class BarFigure:
    """Groups of bars on one axis. kind tells the templates and tests which figure this is."""

    title: str
    groups: Sequence[tuple[str, Sequence[Bar]]]
    about: str = ""
    kind: Literal["bars"] = "bars"


@dataclass(frozen=True, slots=True)
class Box:
    """Five numbers of a sample as shares of the axis, and the sample itself; `told` is what they are, as text."""

    label: str
    series: int
    least: float
    lower: float
    median: float
    upper: float
    most: float
    points: Sequence[float]
    told: str


@dataclass(frozen=True, slots=True)
class BoxFigure:
    """Box plots under one another on one axis. `ticks`: (place, what it says)."""

    title: str
    groups: Sequence[tuple[str, Sequence[Box]]]
    ticks: Sequence[tuple[float, str]]
    about: str = ""
    kind: Literal["boxes"] = "boxes"


@dataclass(frozen=True, slots=True)
class Line:
    """One line. `points`: (x, y, what it says), both from 0 to 1, y counted from below."""

    label: str
    series: int
    points: Sequence[tuple[float, float, str]]

    def segments(self) -> list[tuple[float, float, float, float]]:
        """(x, y, next x, next y) between neighbours."""
        pairs = zip(self.points, self.points[1:], strict=False)
        return [(first[0], first[1], second[0], second[1]) for first, second in pairs]


@dataclass(frozen=True, slots=True)
class LineFigure:
    """Lines over one pair of axes."""

    title: str
    lines: Sequence[Line]
    below: Sequence[tuple[float, str]]
    beside: Sequence[tuple[float, str]]
    about: str = ""
    kind: Literal["lines"] = "lines"


Figure = BarFigure | BoxFigure | LineFigure


COLOURS = 8
"""Colours of the style sheet."""


def series_of(system: str) -> int:
    """The number of a system's colour, the same on every page and for each of its models; the last for a system that
    calls no model, and for an unknown one."""
    known, system = tables.RELATED_WORK_SYSTEMS, tables.parse_writer(system).system
    return min(known.index(system) + 1, COLOURS) if system in known else COLOURS


def box(label: str, series: int, values: Sequence[float], low: float, high: float, digits: int = 2) -> Box:
    """The box plot of a sample on an axis from `low` to `high`: quartiles inclusive, whiskers at the extremes.

    values: one or more. Quartiles lie between the values around them (method 7 of Hyndman and Fan, as numpy's).
    """
    from numpy import quantile

    five = [float(each) for each in quantile(values, (0, 0.25, 0.5, 0.75, 1))]
    told = ", ".join(
        f"{name} {each:.{digits}f}" for name, each in zip(("least", "a quarter below"), five, strict=False)
    )
    told += f", median {five[2]:.{digits}f}, three quarters below {five[3]:.{digits}f}, most {five[4]:.{digits}f}"
    least, lower, median, upper, most = (_place(each, low, high) for each in five)
    points = [_place(value, low, high) for value in values]
    return Box(label, series, least, lower, median, upper, most, points, f"{told} (n = {len(values)})")


def line(label: str, series: int, values: Mapping[int, tuple[float, str]], last: int) -> Line:
    """The line of shares by round, 1 to `last`. values: round → (share, what it says)."""
    wide = max(last - 1, 1)
    return Line(label, series, [((number - 1) / wide, share, told) for number, (share, told) in sorted(values.items())])


def _place(value: float, low: float, high: float) -> float:
    return min(max((value - low) / (high - low), 0.0), 1.0)
