"""The histogram of passage lengths."""

import pyarrow as pa

from pipeline.corpus.passages.packing import length_histogram


def test_ranges_are_of_twenty_words_and_every_passage_is_in_one():
    words = [0, 19, 20, 39, 40, 279, 280, 300, 301, 5_000]
    histogram = length_histogram(pa.chunked_array([words]))
    assert list(histogram)[:3] == ["under 20", "20 to 39", "40 to 59"]
    assert list(histogram)[-2:] == ["280 to 300", "over 300"]
    counts = {name: count for name, count in histogram.items() if count}
    assert counts == {
        "under 20": 2,
        "20 to 39": 2,
        "40 to 59": 1,
        "260 to 279": 1,
        "280 to 300": 2,
        "over 300": 2,
    }
    assert length_histogram(pa.chunked_array([], pa.int32())) == {}
