"""The comparison with FlagEmbedding: it holds for equal vectors, and sees each difference."""

from dataclasses import replace

import numpy as np
import pytest

from benchmarks.vector_parity import EXACT, HALF, ReferenceVectors, compare
from pipeline.embedding.embedder import SparseRows, SparseVector, Vectors

OURS = Vectors(
    dense=np.array([0.6, 0.8], np.float32),
    sparse=SparseVector(np.array([7, 9], np.uint32), np.array([0.5, 0.005], np.float32)),
    truncated=False,
)
THEIRS = ReferenceVectors(OURS.dense, {7: 0.5, 9: 0.005})


NOTHING = SparseRows.nothing(1).row(0)


@pytest.mark.parametrize(
    ("ours", "theirs", "bounds", "holds"),
    [
        ({}, {}, EXACT, True),
        ({"sparse": NOTHING}, {"weights": {}}, EXACT, True),
        ({}, {"dense": np.array([0.58, 0.81], np.float32)}, EXACT, False),
        ({}, {"weights": {7: 0.502, 9: 0.005}}, EXACT, False),
        ({}, {"weights": {7: 0.5}}, EXACT, False),
        ({}, {"weights": {7: 0.5, 9: 0.005, 11: 0.001}}, EXACT, False),
        ({}, {"weights": {7: 0.5}}, HALF, True),
        ({}, {"weights": {9: 0.005}}, HALF, False),
    ],
    ids=str,
)
def test_vectors_are_the_same_within_the_bounds(ours, theirs, bounds, holds):
    """Half precision may lose a faint weight, but no other."""
    assert compare(replace(OURS, **ours), replace(THEIRS, **theirs), bounds).holds is holds
