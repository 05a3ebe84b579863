"""Histogram of passage lengths, as in the arXivBot report's appendix."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from pipeline.corpus.passages.packing import FEWEST_WORDS, MOST_WORDS

_BIN = 20
_STARTS = range(FEWEST_WORDS, MOST_WORDS, _BIN)
SHORT, LONG = f"under {FEWEST_WORDS}", f"over {MOST_WORDS}"
"""The ranges of passages outside the limits of packing."""


def length_histogram(words: pa.ChunkedArray) -> dict[str, int]:
    """The number of passages of each range of lengths, the shortest first; empty without any.

    words: the lengths of passages in words.
    """
    if not len(words):
        return {}
    histogram = dict.fromkeys(map(_range_of, [0, *_STARTS, MOST_WORDS + 1]), 0)
    for length in pc.value_counts(words).to_pylist():
        histogram[_range_of(length["values"])] += length["counts"]
    return histogram


def _range_of(length: int) -> str:
    if length < FEWEST_WORDS:
        return SHORT
    if length > MOST_WORDS:
        return LONG
    start = min(length, _STARTS[-1]) // _BIN * _BIN
    end = MOST_WORDS if start == _STARTS[-1] else start + _BIN - 1
    return f"{start} to {end}"
