"""The embedder, devices and precision that the settings name, and the message where its model is
absent.
"""

import httpx2
import pytest
from huggingface_hub.errors import LocalEntryNotFoundError

from pipeline.embedding.bge_m3 import BgeM3
from pipeline.embedding.choice import make_embedder, model_name
from pipeline.embedding.device import pick_devices, pick_precision
from pipeline.embedding.embedder import EngineFacts
from pipeline.embedding.minilm import MiniLM
from pipeline.embedding.model_files import find_folder
from pipeline.embedding.stages import EMBEDDINGS
from pipeline.engine.stage import Workspace
from pipeline.errors import SettingError
from pipeline.settings import load_settings
from pipeline.settings.embedder_choice import NAMED, choose_embedder, record_embedder
from tests.cases import cases_beside


def _settings(**overrides):
    return load_settings(_env_file=None, **overrides)


@cases_beside("path")
def test_a_folder_that_is_not_there_is_named(path):
    with pytest.raises(SettingError, match=f"CITELOOM_EMBEDDER_PATH: there is no folder {path}"):
        make_embedder(_settings(embedder="bge-m3", embedder_path=path))


def test_a_hub_whose_failure_says_nothing_is_named(monkeypatch):
    def silent(name, *, local_files_only=False, **_):
        raise LocalEntryNotFoundError("not there") if local_files_only else httpx2.ReadTimeout("")

    monkeypatch.setattr("huggingface_hub.snapshot_download", silent)
    with pytest.raises(SettingError, match=r"nobody/model is neither a folder nor .*ReadTimeout"):
        find_folder("nobody/model", "CITELOOM_EMBEDDER_PATH", "leave it empty")


def test_what_a_model_in_the_cache_lacks_is_fetched_at_the_same_commit(monkeypatch, tmp_path):
    head, commits = tmp_path / "sparse_linear.pt", []

    def download(name, *, revision, ignore_patterns, local_files_only=False):
        commits.append(revision)
        assert "onnx/*" in ignore_patterns
        if not local_files_only:
            head.touch()
        return str(tmp_path)

    def lacking(folder):
        return [] if head.exists() else [head.name]

    monkeypatch.setattr("huggingface_hub.snapshot_download", download)
    found = find_folder("nobody/model@5617a9f", "CITELOOM_EMBEDDER_PATH", "", lacking)
    assert (found, commits) == (tmp_path, ["5617a9f", tmp_path.name])


def test_settings_of_bge_m3_do_not_touch_what_minilm_made():
    assert model_name(_settings(embedder="bge-m3")) == "BAAI/bge-m3", "without a network"
    plain, other = map(Workspace, (_settings(), _settings(embedder_path="/elsewhere")))
    assert EMBEDDINGS.inputs(plain, "2024-03") == EMBEDDINGS.inputs(other, "2024-03")


def test_the_embedder_is_chosen_once_for_a_data_root(tmp_path):
    def chosen(obstacle):
        return choose_embedder(tmp_path, "BAAI/bge-m3", "auto", lambda path, device: obstacle)[:2]

    assert chosen("") == ("bge-m3", "BAAI/bge-m3")
    assert chosen("there is no GPU") == ("minilm", "BAAI/bge-m3")
    (tmp_path / "embeddings").mkdir()
    (tmp_path / "embeddings" / "2024-03.parquet").touch()
    assert chosen("") == ("minilm", "BAAI/bge-m3"), "what was the default of its vectors"
    record_embedder(tmp_path, "bge-m3", "", NAMED)
    assert chosen("there is no GPU") == ("bge-m3", "BAAI/bge-m3"), "its own folder on each machine"
    record_embedder(tmp_path, "sentence-transformers", "a/model", NAMED)
    assert chosen("there is no GPU") == ("sentence-transformers", "a/model")
    with pytest.raises(SettingError, match="run it again"):
        record_embedder(tmp_path, "minilm", "", "there is no GPU")
    (tmp_path / "embedder.json").write_text('{"embedder": "bge-m3"')
    with pytest.raises(SettingError, match="does not name the embedder"):
        chosen("there is no GPU")
    record_embedder(tmp_path, "bge-m3", "", NAMED)
    assert chosen("there is no GPU") == ("bge-m3", "BAAI/bge-m3"), "as the message advises"


def test_auto_stands_for_the_embedder_of_the_data_root(tmp_path):
    fresh = _settings(data=tmp_path, embedder_device="cpu")
    assert (fresh.embedder, fresh.embedder_reason) == ("minilm", "there is no GPU")
    record_embedder(tmp_path, "bge-m3", "", NAMED)
    later = _settings(data=tmp_path, embedder_device="cpu")
    assert (later.embedder, later.embedder_reason) == ("bge-m3", "recorded in the data root")
    assert _settings(data=tmp_path, embedder="minilm").embedder_reason == "CITELOOM_EMBEDDER"


@cases_beside("wanted", "message")
def test_a_device_that_cannot_be_is_named(wanted, message):
    with pytest.raises(SettingError, match=message):
        pick_devices(wanted)


@cases_beside("features", "minilm", "bge_m3")
def test_auto_is_the_fastest_precision_of_the_processor(monkeypatch, features, minilm, bge_m3):
    import torch

    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: features)
    assert pick_precision("auto", "cpu", MiniLM.precisions) == minilm
    assert pick_precision("auto", "cpu", BgeM3.precisions) == bge_m3


@pytest.fixture
def _hopper_without_triton(monkeypatch):
    monkeypatch.setattr("torch.cuda.get_device_capability", lambda _device: (9, 0))
    monkeypatch.setattr("pipeline.embedding.device.gpu_kernels", lambda _device, _precision: None)


@pytest.mark.usefixtures("_hopper_without_triton")
def test_a_gpu_has_half_precision():
    assert pick_precision("auto", "cuda:0", BgeM3.precisions) == "fp16"
    assert pick_precision("auto", "cuda:0", MiniLM.precisions) == "fp32"
    assert pick_precision("bf16", "cuda:0", BgeM3.precisions) == "bf16"


@pytest.mark.usefixtures("_hopper_without_triton")
@cases_beside("precision", "device")
def test_a_precision_that_a_device_lacks_is_refused(precision, device):
    with pytest.raises(SettingError, match="CITELOOM_EMBEDDER_PRECISION"):
        pick_precision(precision, device, (*BgeM3.precisions, *MiniLM.precisions))


def test_settings_reach_the_embedder():
    settings = {"embedder_device": "cpu", "embedder_precision": "fp32", "embedder_tokens": 77}
    embedder = make_embedder(_settings(**settings))
    embedder.encode(["text"])
    assert embedder.last_facts == EngineFacts(("cpu",), "fp32", token_budget=77, halved=0)
