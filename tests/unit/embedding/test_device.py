"""Devices and precisions that the settings may name."""

import numpy as np
import pytest

from pipeline.embedding.bge_m3 import BgeM3
from pipeline.embedding.choice import make_embedder
from pipeline.embedding.device import pick_devices, pick_precision
from pipeline.embedding.embedder import EngineFacts
from pipeline.embedding.minilm import MiniLM
from pipeline.errors import SettingError
from pipeline.settings import load_settings
from tests.cases import cases
from tests.unit.embedding.hashing_embedder import MARGINS


def test_several_devices_may_be_named():
    assert pick_devices("cpu") == ("cpu",)
    assert pick_devices("cpu, cpu:0") == ("cpu", "cpu")


@cases("unit/embedding/cases.toml", "a_device_that_cannot_be_is_named", ["wanted", "message"])
def test_a_device_that_cannot_be_is_named(wanted, message):
    with pytest.raises(SettingError, match=message):
        pick_devices(wanted)


@cases(
    "unit/embedding/cases.toml",
    "auto_is_the_fastest_precision_of_the_processor",
    ("features", "minilm", "bge_m3"),
)
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
@cases(
    "unit/embedding/cases.toml",
    "a_precision_that_a_device_lacks_is_refused",
    ["precision", "device"],
)
def test_a_precision_that_a_device_lacks_is_refused(precision, device):
    with pytest.raises(SettingError, match="CITELOOM_EMBEDDER_PRECISION"):
        pick_precision(precision, device, (*BgeM3.precisions, *MiniLM.precisions))


def test_settings_reach_the_embedder():
    settings = {"embedder_device": "cpu", "embedder_precision": "fp32", "embedder_tokens": 77}
    embedder = make_embedder(load_settings(_env_file=None, **settings))
    embedder.encode(["text"])
    assert embedder.last_facts == EngineFacts(("cpu",), "fp32", token_budget=77, halved=0)


def test_minilm_on_two_devices_gives_the_vectors_of_one():
    texts = ["word " * (place % 23) for place in range(100)]
    (one,), (two,) = (
        list(MiniLM(device, "fp32", tokens=128).encode_stream(texts))
        for device in ("cpu", "cpu,cpu")
    )
    np.testing.assert_allclose(one.dense, two.dense, rtol=0, atol=MARGINS["fp32"])
    assert len(one.sparse.weights) == len(two.sparse.weights) == 0
