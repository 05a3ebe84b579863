"""The comparison with FlagEmbedding that `citeloom verify-model` prints: it holds, and it can tell."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from pipeline.cli.app import app
from pipeline.embedding.embedder import Vectors
from pipeline.embedding.verify import EXACT, HALF, TEXTS, Reference, compare, verify_model
from pipeline.errors import SettingError
from pipeline.settings import load_settings
from tests.unit.embedding.tiny_m3 import make_tiny_m3

ROWS = np.array([[0.0, 1.0], [1.0, 0.0]], np.float32)
OURS = Vectors(
    dense=np.array([0.6, 0.8], np.float32),
    sparse_ids=np.array([7, 9], np.uint32),
    sparse_weights=np.array([0.5, 0.005], np.float32),
    colbert=ROWS,
    truncated=False,
)
THEIRS = Reference(OURS.dense, {7: 0.5, 9: 0.005}, ROWS)


def test_equal_vectors_are_the_same() -> None:
    compared = compare("a text", OURS, THEIRS, EXACT)
    assert compared.holds
    assert (compared.ids, compared.other_ids) == (2, 0)


@pytest.mark.parametrize(
    "other",
    [
        replace(THEIRS, dense=np.array([0.58, 0.81], np.float32)),
        replace(THEIRS, weights={7: 0.502, 9: 0.005}),
        replace(THEIRS, weights={7: 0.5}),
        replace(THEIRS, weights={7: 0.5, 9: 0.005, 11: 0.001}),
        replace(THEIRS, colbert=np.array([[0.1, 1.0], [1.0, 0.0]], np.float32)),
        replace(THEIRS, colbert=np.array([[0.0, 1.0]], np.float32)),
    ],
    ids=["dense", "weight", "an id too many", "an id too few", "colbert", "a token too many"],
)
def test_each_kind_of_difference_is_seen(other: Reference) -> None:
    assert not compare("a text", OURS, other, EXACT).holds


def test_half_precision_may_lose_a_faint_weight_but_no_other() -> None:
    assert compare("a text", OURS, replace(THEIRS, weights={7: 0.5}), HALF).holds
    assert not compare("a text", OURS, replace(THEIRS, weights={9: 0.005}), HALF).holds


def test_a_text_without_tokens_has_nothing_that_differs() -> None:
    ours = replace(OURS, sparse_ids=OURS.sparse_ids[:0], sparse_weights=OURS.sparse_weights[:0])
    assert compare("empty", ours, replace(THEIRS, weights={}), EXACT).holds


def test_only_bge_m3_can_be_verified() -> None:
    with pytest.raises(SettingError, match="CITELOOM_EMBEDDER is minilm"):
        verify_model(load_settings(_env_file=None))


def test_a_model_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CITELOOM_EMBEDDER", "bge-m3")
    monkeypatch.setenv("CITELOOM_EMBEDDER_PATH", "/nowhere/bge-m3")
    answered = CliRunner().invoke(app, ["verify-model", "--json"])
    assert answered.exit_code == 2
    assert "there is no folder /nowhere/bge-m3" in json.loads(answered.stdout)["message"]


@pytest.mark.slow
def test_the_engine_gives_flagembeddings_vectors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CITELOOM_EMBEDDER", "bge-m3")
    monkeypatch.setenv("CITELOOM_EMBEDDER_PATH", str(make_tiny_m3(tmp_path / "tiny-m3")))
    monkeypatch.setenv("CITELOOM_EMBEDDER_DEVICE", "cpu")
    answered = CliRunner().invoke(app, ["verify-model", "--longest", "--json"])
    verdict = json.loads(answered.stdout)
    assert answered.exit_code == 0, verdict
    assert verdict["holds"]
    assert [row["text"] for row in verdict["texts"]] == [*TEXTS, "beyond the longest"]
    assert sum(row["ids"] for row in verdict["texts"]) > 0
