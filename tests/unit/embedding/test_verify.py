"""The comparison with FlagEmbedding that `citeloom verify-model` prints: it holds, and it can
tell.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from pipeline.cli.app import app
from pipeline.embedding.embedder import Vectors
from pipeline.embedding.verify import EXACT, HALF, TEXTS, ReferenceVectors, compare
from tests.unit.embedding.tiny_m3 import make_tiny_m3

ROWS = np.array([[0.0, 1.0], [1.0, 0.0]], np.float32)
OURS = Vectors(
    dense=np.array([0.6, 0.8], np.float32),
    sparse_ids=np.array([7, 9], np.uint32),
    sparse_weights=np.array([0.5, 0.005], np.float32),
    colbert=ROWS,
    truncated=False,
)
THEIRS = ReferenceVectors(OURS.dense, {7: 0.5, 9: 0.005}, ROWS)


def test_equal_vectors_are_the_same_and_so_are_texts_without_tokens() -> None:
    compared = compare("a text", OURS, THEIRS, EXACT)
    assert (compared.holds, compared.ids, compared.other_ids) == (True, 2, 0)
    empty = replace(OURS, sparse_ids=OURS.sparse_ids[:0], sparse_weights=OURS.sparse_weights[:0])
    assert compare("empty", empty, replace(THEIRS, weights={}), EXACT).holds


@pytest.mark.parametrize(
    "difference",
    [
        {"dense": np.array([0.58, 0.81], np.float32)},
        {"weights": {7: 0.502, 9: 0.005}},
        {"weights": {7: 0.5}},
        {"weights": {7: 0.5, 9: 0.005, 11: 0.001}},
        {"colbert": np.array([[0.1, 1.0], [1.0, 0.0]], np.float32)},
        {"colbert": np.array([[0.0, 1.0]], np.float32)},
    ],
    ids=["dense", "weight", "an id too many", "an id too few", "colbert", "a token too many"],
)
def test_each_kind_of_difference_is_seen(difference: dict[str, Any]) -> None:
    assert not compare("a text", OURS, replace(THEIRS, **difference), EXACT).holds


@pytest.mark.parametrize(("weights", "holds"), [({7: 0.5}, True), ({9: 0.005}, False)])
def test_half_precision_may_lose_a_faint_weight_but_no_other(
    weights: dict[int, float], holds: bool
) -> None:
    assert compare("a text", OURS, replace(THEIRS, weights=weights), HALF).holds is holds


@pytest.mark.parametrize(
    ("embedder", "fault"),
    [
        ("minilm", "CITELOOM_EMBEDDER is minilm"),
        ("bge-m3", "there is no folder /nowhere/bge-m3"),
    ],
)
def test_a_model_that_cannot_be_verified_is_named(
    monkeypatch: pytest.MonkeyPatch, embedder: str, fault: str
) -> None:
    monkeypatch.setenv("CITELOOM_EMBEDDER", embedder)
    monkeypatch.setenv("CITELOOM_EMBEDDER_PATH", "/nowhere/bge-m3")
    answered = CliRunner().invoke(app, ["verify-model", "--json"])
    assert answered.exit_code == 2
    assert fault in json.loads(answered.stdout)["message"]


@pytest.mark.slow
def test_the_engine_gives_flagembeddings_vectors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CITELOOM_EMBEDDER", "bge-m3")
    monkeypatch.setenv("CITELOOM_EMBEDDER_PATH", str(make_tiny_m3(tmp_path / "tiny-m3")))
    monkeypatch.setenv("CITELOOM_EMBEDDER_DEVICE", "cpu")
    answered = CliRunner().invoke(app, ["verify-model", "--longest", "--json"])
    verdict = json.loads(answered.stdout)
    assert answered.exit_code == 0, verdict
    assert verdict["holds"]
    assert [row["text"] for row in verdict["texts"]] == [*TEXTS, "beyond the longest"]
    assert sum(row["ids"] for row in verdict["texts"]) > 0
