"""CITELOOM_EMBEDDER=<folder>: the vectors of sentence-transformers with the folder's own prompts, from
Python, in a stage and from the command line.
"""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from pipeline.embedding.choice import files_to_fetch, make_embedder, model_name
from pipeline.embedding.sentence_transformers import SentenceEmbedder, read_config
from pipeline.errors import SettingError
from pipeline.settings import load_settings
from tests import command
from tests.cases import cases_beside
from tests.unit.embedding.planted_code import Planted
from tests.unit.embedding.tiny_sentence_model import DIMENSIONS, TOKENS, set_in
from tests.unit.index.building import TEXTS

# The library's import alone takes ten seconds and more.
pytestmark = pytest.mark.slow

MONTH = "2024-03"
# Of different lengths, so that a pack of them is padded; the last is cut.
MIXED = ["", "a", "which decoder?", *(text[:30] for text in TEXTS), "a b c " * 30]


@pytest.fixture(params=["bert", "modernbert"])
def folder(request, sentence_models):
    return sentence_models[request.param]


def _settings(model, **overrides):
    return load_settings(_env_file=None, embedder=str(model), embedder_device="cpu", **overrides)


def test_vectors_are_those_of_the_library_with_the_prompts_of_the_folder(folder):
    from sentence_transformers import SentenceTransformer

    library = SentenceTransformer(str(folder), device="cpu")
    embedder = make_embedder(_settings(folder))
    assert embedder.dimensions == library.get_embedding_dimension()
    assert embedder.max_tokens == library.max_seq_length == TOKENS
    passages, queries = embedder.encode(MIXED), embedder.encode_queries(MIXED)
    for vectors, prompt in ((passages, "passage: "), (queries, "query: ")):
        expected = library.encode([prompt + text for text in MIXED])
        np.testing.assert_allclose([row.dense for row in vectors], expected, atol=1e-5)
    assert [row.truncated for row in passages] == [False] * 9 + [True]
    assert all(len(row.sparse.ids) == 0 for row in passages)
    streamed = np.concatenate([batch.dense for batch in embedder.encode_stream(MIXED * 60)])
    np.testing.assert_allclose(streamed[-len(MIXED) :], [row.dense for row in passages], atol=2e-3)
    facts = embedder.last_facts
    assert (facts.engine, facts.precision) == ("sentence-transformers", "fp32")


@cases_beside("prompts", "query", "passage")
def test_prompts_are_the_folders_and_none_where_it_has_none(bert, prompts, query, passage):
    set_in(bert / "config_sentence_transformers.json", prompts=prompts)
    config = read_config(bert)
    assert (config.query_prompt, config.passage_prompt) == (query, passage)


def test_the_limit_and_the_dimensions_are_the_models(bert):
    set_in(bert / "sentence_bert_config.json", max_seq_length=20)
    assert read_config(bert).max_tokens == 20
    set_in(bert / "sentence_bert_config.json", max_seq_length=4000)
    assert read_config(bert).max_tokens == TOKENS, "its position embeddings end there"
    set_in(bert / "config.json", model_type="roberta", pad_token_id=1)
    assert read_config(bert).max_tokens == TOKENS - 2
    modes = {"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": True}
    pooling = bert / "1_Pooling" / "config.json"
    pooling.write_text(json.dumps({"word_embedding_dimension": 32, **modes}))
    assert read_config(bert).dimensions == 64
    set_in(bert / "config_sentence_transformers.json", truncate_dim=16)
    assert read_config(bert).dimensions == 16
    (vectors,) = SentenceEmbedder(str(bert), "cpu").encode(["a text"])
    assert vectors.dense.shape == (16,)
    assert np.linalg.norm(vectors.dense) == pytest.approx(1)


def test_a_model_is_named_by_what_lies_in_its_folder(bert, tmp_path):
    copy = Path(shutil.copytree(bert, tmp_path / "elsewhere" / "bert"))
    assert model_name(_settings(bert)) == model_name(_settings(copy))
    assert _settings(copy).embedder == "sentence-transformers", "the path is not in fingerprints"
    assert model_name(_settings("BAAI/bge-small-en-v1.5")) == "BAAI/bge-small-en-v1.5"
    for part in ("config_sentence_transformers.json", "1_Pooling/config.json"):
        before = model_name(_settings(copy))
        set_in(copy / part, changed=True)
        assert model_name(_settings(copy)) != before


@cases_beside("file", "values", "message")
def test_a_model_whose_vectors_would_be_others_is_refused(bert, file, values, message):
    modules = json.loads((bert / "modules.json").read_text())
    (bert / "modules.json").write_text(json.dumps(modules[:-1]))  # without Normalize
    make_embedder(_settings(bert))
    set_in(bert / file, **values)
    with pytest.raises(SettingError, match=f"CITELOOM_EMBEDDER: .*{message}"):
        SentenceEmbedder(str(bert))


@cases_beside("file", "message", "content")
def test_a_folder_of_another_kind_is_named(bert, file, message, content):
    (bert / file).unlink()
    if content is not None:
        (bert / file).write_text(content)
    with pytest.raises(SettingError, match=f"CITELOOM_EMBEDDER: .*{message}"):
        make_embedder(_settings(bert))


def test_no_folder_is_named(bert):
    for find in (make_embedder, model_name):
        with pytest.raises(SettingError, match="there is no folder /nowhere"):
            find(_settings("/nowhere/x"))
    with pytest.raises(SettingError, match="CITELOOM_EMBEDDER: "):
        _settings("minlm")
    with pytest.raises(SettingError, match="CITELOOM_EMBEDDER_PRECISION"):
        SentenceEmbedder(str(bert), "cpu", "int8").encode(["a text"])


def test_a_name_of_the_hub_is_found_in_its_cache_and_what_it_lacks_is_named(
    bert, tmp_path, monkeypatch
):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    name, commit = "somebody/tiny", "0" * 40
    with pytest.raises(SettingError, match="hf download somebody/tiny"):
        make_embedder(_settings(name))
    model = tmp_path / "cache" / "models--somebody--tiny"
    shutil.copytree(bert, model / "snapshots" / commit)
    (model / "refs").mkdir()
    (model / "refs" / "main").write_text(commit)
    assert files_to_fetch(_settings(name)) == []
    assert make_embedder(_settings(name)).name == name
    (model / "snapshots" / commit / "modules.json").unlink()
    assert files_to_fetch(_settings(name)) == ["modules.json"]
    with pytest.raises(SettingError, match=r"lacks modules\.json"):
        SentenceEmbedder(name)


def test_code_planted_among_the_weights_is_refused(bert, tmp_path):
    import torch

    (bert / "model.safetensors").unlink()
    torch.save({"weight": Planted(tmp_path / "trace")}, bert / "pytorch_model.bin")
    with pytest.raises(SettingError, match="cannot be loaded"):
        SentenceEmbedder(str(bert), "cpu").encode(["a text"])
    assert not (tmp_path / "trace").exists()


def test_the_commands_run_search_and_name_the_model(folder, tmp_path):
    environment = {
        "CITELOOM_DATA": str(tmp_path / "data"),
        "CITELOOM_EMBEDDER": str(folder),
        "CITELOOM_EMBEDDER_DEVICE": "cpu",
    }

    def invoke(*arguments):
        done = command.invoke(*arguments, env=environment)
        assert done.exit_code == 0, done.output
        return done.stdout

    invoke("run", "--months", MONTH, "--until", "index_receipts")
    assert json.loads(invoke("search", "beam search", "--by", "dense", "--json"))["hits"]
    # Words alone: the table's width is that of the process, which wraps them.
    doctor = " ".join(invoke("doctor").replace("│", " ").split())
    dimensions = DIMENSIONS if folder.name == "bert" else DIMENSIONS // 2
    assert f"{dimensions} dimensions, reads {TOKENS} tokens" in doctor
