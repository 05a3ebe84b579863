"""Devices and precisions that the settings may name."""

from __future__ import annotations

import pytest

from pipeline.embedding.choice import make_embedder
from pipeline.embedding.device import pick_devices, pick_precision
from pipeline.embedding.minilm import MiniLM
from pipeline.errors import SettingError
from pipeline.settings import load_settings


def test_several_devices_may_be_named() -> None:
    assert pick_devices("cpu") == ("cpu",)
    assert pick_devices("cpu, cpu:0") == ("cpu", "cpu")


@pytest.mark.parametrize("wanted", ["tpu", "cpu,tpu", ""])
def test_a_device_that_cannot_be_is_named(wanted: str) -> None:
    with pytest.raises(SettingError, match="CITELOOM_EMBEDDER_DEVICE"):
        pick_devices(wanted)


def test_a_gpu_that_is_not_there_is_named() -> None:
    with pytest.raises(SettingError, match="torch cannot use cuda:99 here"):
        pick_devices("cuda:99")


def test_precision_is_single_on_a_cpu_and_half_on_a_gpu() -> None:
    assert pick_precision("auto", "cpu") == "fp32"
    assert pick_precision("auto", "cuda:0") == "fp16"
    assert pick_precision("bf16", "cuda:0") == "bf16"
    with pytest.raises(SettingError, match="CITELOOM_EMBEDDER_PRECISION: this processor cannot compute in fp16"):
        pick_precision("fp16", "cpu")


def test_settings_reach_the_embedder() -> None:
    embedder = make_embedder(load_settings(_env_file=None, embedder_device="cpu", embedder_tokens=77))
    assert embedder.last_facts is None or embedder.last_facts.token_budget == 77
    embedder.encode_queries(["text"])
    facts = embedder.last_facts
    assert facts is not None
    assert (facts.devices, facts.precision, facts.token_budget, facts.halved) == (("cpu",), "fp32", 77, 0)


def test_minilm_on_two_devices_gives_the_bits_of_one() -> None:
    texts = ["word " * (place % 23) for place in range(100)]
    (one,), (two,) = (list(MiniLM(device, tokens=128).encode_stream(texts)) for device in ("cpu", "cpu,cpu"))
    assert one.dense.tobytes() == two.dense.tobytes()
    assert one.sparse_weights.tobytes() == two.sparse_weights.tobytes()
