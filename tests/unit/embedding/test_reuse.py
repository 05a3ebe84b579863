"""Rows of vectors found by the digest of their text, in any order and over any groups."""

import hashlib

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from pipeline.embedding.reuse import KnownVectors


class Held:
    """A group in memory: a row's vector is its number; how often these were read."""

    def __init__(self, numbers):
        self.numbers, self.reads = numbers, 0

    def digests(self):
        return _digests(self.numbers)

    def vectors(self):
        self.reads += 1
        return pa.table({"dense": pa.array(self.numbers, pa.int64())})


def _digests(numbers):
    digests = [hashlib.sha256(str(number).encode()).hexdigest() for number in numbers]
    return pa.chunked_array([digests], pa.string())


def _known(groups, wanted):
    return KnownVectors(groups, _digests(wanted))


numbers = st.integers(0, 30)


@given(
    groups=st.lists(st.lists(numbers, max_size=12), max_size=5),
    wanted=st.lists(numbers, max_size=20),
)
def test_every_known_text_gets_its_own_vectors(groups, wanted):
    known = _known([Held(group) for group in groups], wanted)
    rows = known.rows
    there = {number for group in groups for number in group}
    assert [bool(row >= 0) for row in rows] == [number in there for number in wanted]
    found = rows[rows >= 0]
    if len(found):
        assert known.take(found)["dense"].to_pylist() == [
            number for number in wanted if number in there
        ]


def test_of_two_rows_of_one_text_the_first_is_taken():
    assert _known([Held([4, 7]), Held([7, 9])], [7, 9, 1]).rows.tolist() == [1, 3, -1]


def test_a_group_is_read_once_however_its_rows_are_mixed():
    groups = [Held([1, 2, 3]), Held([4, 5, 6])]
    taken = _known(groups, []).take(np.array([5, 0, 3, 2, 4, 1]))
    assert taken["dense"].to_pylist() == [6, 1, 4, 3, 5, 2]
    assert [group.reads for group in groups] == [1, 1]
