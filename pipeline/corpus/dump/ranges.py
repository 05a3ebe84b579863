"""Byte ranges of one remote file: neighbours that will be read are fetched by one request.

Only positions are known here, never what lies at them. A request to an object store costs 10 to 50 ms and then brings
some 50 to 100 MB a second, so a gap of 1 MB costs no more than a second request would.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable

Range = tuple[int, int]
"""(first byte, first byte after it)"""

WIDEST_GAP = 1024 * 1024
# Held in memory for every zip that is read; eight times as much would save one request in a hundred pages.
LONGEST_SPAN = 16 * 1024 * 1024


def join_neighbours(ranges: Iterable[Range]) -> list[Range]:
    """Spans that cover the ranges, by position: joined over gaps up to WIDEST_GAP while not above LONGEST_SPAN.

    A range that is longer by itself is a span of its own.
    """
    spans: list[Range] = []
    for start, end in sorted(ranges):
        if spans and start - spans[-1][1] <= WIDEST_GAP and max(end, spans[-1][1]) - spans[-1][0] <= LONGEST_SPAN:
            spans[-1] = (spans[-1][0], max(end, spans[-1][1]))
        else:
            spans.append((start, end))
    return spans


class ReadAhead:
    """Reads ranges of one file, holding the last span that it fetched. `fetch(start, end)` brings one."""

    def __init__(self, fetch: Callable[[int, int], bytes]) -> None:
        self._fetch = fetch
        self._spans: list[Range] = []
        self._held: tuple[int, bytes] = (0, b"")

    def plan(self, ranges: Iterable[Range]) -> None:
        """Say which ranges will be read; replaces what was said before."""
        self._spans = join_neighbours(ranges)

    def read(self, start: int, end: int) -> bytes:
        """The bytes of a range, by one request for its whole span where it was planned."""
        first, held = self._held
        if not first <= start <= end <= first + len(held):
            first, end_of_span = self._span_around(start, end)
            held = self._fetch(first, end_of_span)
            self._held = (first, held)
        return held[start - first : end - first]

    def _span_around(self, start: int, end: int) -> Range:
        place = bisect_right(self._spans, (start, 1 << 63)) - 1
        if place >= 0 and end <= self._spans[place][1]:
            return self._spans[place]
        return start, end
