"""The cross-encoder: FlagEmbedding's scores from a model's files, whatever else is scored with a
text, and refusals.
"""

from __future__ import annotations

import json
import math
import pickle
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pipeline.errors import SettingError
from pipeline.index.rerank import CrossEncoder, make_reranker
from pipeline.settings import load_settings
from tests.unit.embedding.planted_code import Planted
from tests.unit.index.tiny_reranker import POSITIONS, make_tiny_reranker

QUERY = "which fox jumps over the lazy dog"
TEXTS = [
    "a quick brown fox",
    "jumps",
    "over the lazy dog and the lazy cat",
    "fox " * 40,
    "a",
    "jumps over nothing",
]
# FlagEmbedding turns ids into text and back with transformers 5, which neither of these survives.
ODD = ["§ unknown signs §", "spelt out </s> <s>", " ", "\n\t a"]

# The first import of transformers takes seconds, FlagEmbedding's 10 and more.
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module", params=["xlm-roberta", "bert"])
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_tiny_reranker(tmp_path_factory.mktemp("models") / "tiny", request.param)


@pytest.mark.parametrize("query", [QUERY, "x"], ids=["usual", "short"])
def test_scores_are_those_of_flagembedding(folder: Path, query: str) -> None:
    from FlagEmbedding import FlagReranker

    theirs = FlagReranker(str(folder), use_fp16=False, devices="cpu", max_length=POSITIONS - 2)
    expected = theirs.compute_score([(query, text) for text in TEXTS], batch_size=2)
    scores = CrossEncoder(str(folder), "cpu").score(query, TEXTS)
    assert scores.dtype == np.float32
    np.testing.assert_allclose(scores, expected, atol=2e-5)
    assert np.ptp(scores) > 0.02


def test_odd_texts_are_read_as_the_models_own_tokenizer_joins_them(folder: Path) -> None:
    import torch
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    tokenizer, model = (
        kind.from_pretrained(folder) for kind in (AutoTokenizer, AutoModelForSequenceClassification)
    )
    scores = CrossEncoder(str(folder), "cpu").score(QUERY, ODD)
    for text, score in zip(ODD, scores, strict=True):
        with torch.no_grad():
            expected = model.eval()(**tokenizer(QUERY, text, return_tensors="pt")).logits.item()
        assert score == pytest.approx(expected, abs=2e-5)


def test_a_long_question_leaves_room_for_the_passages(folder: Path) -> None:
    scores = CrossEncoder(str(folder), "cpu").score("a long question " * 300, TEXTS)
    assert np.ptp(scores) > 0.001


def test_a_text_has_the_same_score_whatever_it_is_scored_with(folder: Path) -> None:
    letters = random.Random(7)
    texts = ["".join(letters.choices("abc defg", k=letters.randrange(1, 60))) for _ in range(40)]
    reranker = CrossEncoder(str(folder), "cpu")
    together = reranker.score(QUERY, texts)
    alone = np.concatenate([reranker.score(QUERY, [text]) for text in texts])
    np.testing.assert_allclose(together, alone, atol=2e-5)
    assert reranker.score(QUERY, []).shape == (0,)


def test_weights_of_a_torch_file_give_the_same_scores(folder: Path, tmp_path: Path) -> None:
    import torch
    from safetensors.torch import load_file

    copy = Path(shutil.copytree(folder, tmp_path / "copy"))
    torch.save(load_file(copy / "model.safetensors"), copy / "pytorch_model.bin")
    (copy / "model.safetensors").unlink()
    expected = CrossEncoder(str(folder), "cpu").score(QUERY, TEXTS)
    np.testing.assert_allclose(
        CrossEncoder(str(copy), "cpu").score(QUERY, TEXTS), expected, atol=2e-5
    )


def test_the_setting_chooses_and_empty_is_none(folder: Path) -> None:
    assert make_reranker(load_settings(_env_file=None, reranker="")) is None
    settings = load_settings(_env_file=None, reranker=str(folder), embedder_device="cpu")
    reranker = make_reranker(settings)
    assert reranker is not None
    assert make_reranker(settings) is reranker


def assert_refused(folder: Path, message: str = "it cannot be loaded") -> None:
    """A model is refused when it is first asked."""
    with pytest.raises(SettingError, match=f"CITELOOM_RERANKER: {folder} .*{message}"):
        CrossEncoder(str(folder), "cpu").score(QUERY, TEXTS)


def test_a_folder_that_is_not_there_is_named() -> None:
    with pytest.raises(
        SettingError, match=r"CITELOOM_RERANKER: there is no folder /nowhere/at/all; give one"
    ):
        make_reranker(load_settings(_env_file=None, reranker="/nowhere/at/all"))


@pytest.mark.parametrize("config", ["{", "[]", '{"model_type": "clip"}'])
def test_a_folder_of_something_else_is_named(tmp_path: Path, config: str) -> None:
    folder = make_tiny_reranker(tmp_path / "model")
    (folder / "config.json").write_text(config)
    assert_refused(folder)


def _edit_weights(folder: Path, edit: Callable[[dict[str, Any]], object]) -> None:
    from safetensors.torch import load_file, save_file

    file = folder / "model.safetensors"
    weights = load_file(file)
    edit(weights)
    save_file(weights, file)


def _truncate(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:1000])


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (
            lambda folder: (folder / "model.safetensors").unlink(),
            r"no file named model\.safetensors",
        ),
        (lambda folder: _truncate(folder / "model.safetensors"), "it cannot be loaded"),
        (
            lambda folder: _edit_weights(
                folder, lambda weights: weights.pop("classifier.out_proj.weight")
            ),
            r"it lacks the weights classifier\.out_proj\.weight",
        ),
        (
            lambda folder: _edit_weights(
                folder, lambda weights: weights["classifier.out_proj.bias"].fill_(math.nan)
            ),
            "a score is NaN or infinite",
        ),
        (lambda folder: (folder / "tokenizer.json").write_text("{"), "it cannot be loaded"),
    ],
    ids=["no weights", "torn weights", "no classifier", "NaN", "torn tokenizer"],
)
def test_a_damaged_model_is_named(
    tmp_path: Path, damage: Callable[[Path], object], message: str
) -> None:
    folder = make_tiny_reranker(tmp_path / "model")
    damage(folder)
    assert_refused(folder, message)


@pytest.mark.parametrize("plain", [True, False])
def test_code_planted_among_the_weights_is_refused(tmp_path: Path, plain: bool) -> None:
    import torch

    folder, trace = make_tiny_reranker(tmp_path / "model"), tmp_path / "trace"
    (folder / "model.safetensors").unlink()
    if plain:
        (folder / "pytorch_model.bin").write_bytes(pickle.dumps({"weight": Planted(trace)}))
    else:
        torch.save({"weight": Planted(trace)}, folder / "pytorch_model.bin")
    assert_refused(folder)
    assert not trace.exists(), "the planted code was run"


def test_code_in_a_models_folder_is_not_run(tmp_path: Path) -> None:
    folder, trace = make_tiny_reranker(tmp_path / "model"), tmp_path / "trace"
    (folder / "planted.py").write_text(f"open({str(trace)!r}, 'w').close()\n")
    file = folder / "config.json"
    code = {"AutoConfig": "planted.Config", "AutoModelForSequenceClassification": "planted.Model"}
    file.write_text(
        json.dumps(json.loads(file.read_text()) | {"model_type": "planted", "auto_map": code})
    )
    assert_refused(folder)
    assert not trace.exists(), "the planted code was run"


def test_a_model_of_several_numbers_is_refused(tmp_path: Path) -> None:
    assert_refused(
        make_tiny_reranker(tmp_path / "model", labels=3), "it gives 3 numbers for a pair"
    )
