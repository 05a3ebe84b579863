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


def test_equal_vectors_are_the_same_and_so_are_texts_without_tokens():
    assert compare(OURS, THEIRS, EXACT).holds
    empty = replace(OURS, sparse=SparseRows.nothing(1).row(0))
    assert compare(empty, replace(THEIRS, weights={}), EXACT).holds


@pytest.mark.parametrize(
    "difference",
    [
        {"dense": np.array([0.58, 0.81], np.float32)},
        {"weights": {7: 0.502, 9: 0.005}},
        {"weights": {7: 0.5}},
        {"weights": {7: 0.5, 9: 0.005, 11: 0.001}},
    ],
    ids=["dense", "weight", "an id too many", "an id too few"],
)
def test_each_kind_of_difference_is_seen(difference):
    assert not compare(OURS, replace(THEIRS, **difference), EXACT).holds


@pytest.mark.parametrize(("weights", "holds"), [({7: 0.5}, True), ({9: 0.005}, False)])
def test_half_precision_may_lose_a_faint_weight_but_no_other(weights, holds):
    assert compare(OURS, replace(THEIRS, weights=weights), HALF).holds is holds
