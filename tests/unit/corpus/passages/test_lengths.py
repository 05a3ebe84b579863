"""The histogram of passage lengths."""

import pyarrow as pa

from pipeline.corpus.passages.packing import length_histogram


def test_ranges_are_of_twenty_words_and_every_passage_is_in_one():
    words = [0, 19, 20, 39, 40, 279, 280, 300, 301, 5_000]
    histogram = length_histogram(pa.chunked_array([words]))
    names = ["under 20", *(f"{low} to {low + 19}" for low in range(20, 280, 20)), "280 to 300"]
    assert list(histogram) == [*names, "over 300"]
    assert list(histogram.values()) == [2, 2, 1, *[0] * 10, 1, 2, 2]
    assert length_histogram(pa.chunked_array([], pa.int32())) == {}
