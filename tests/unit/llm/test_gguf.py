"""Rewriting Q4_1 as Q8_0: the weights stay what they were."""

import numpy as np
import pytest
from gguf import GGMLQuantizationType, GGUFReader, GGUFWriter
from gguf.quants import dequantize, quantize

from pipeline.errors import PermanentFailure
from pipeline.llm.bundled import with_fast_kernels


def test_a_rewritten_file_holds_the_same_weights(tmp_path):
    weights = np.random.default_rng(7).normal(size=(3, 64)).astype(np.float32)
    packed = quantize(weights, GGMLQuantizationType.Q4_1)
    norm = np.arange(5, dtype=np.float32)
    source = tmp_path / "model.gguf"
    writer = GGUFWriter(source, "llama")
    writer.add_tensor("a", packed, raw_dtype=GGMLQuantizationType.Q4_1)
    writer.add_tensor("norm", norm)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    made = with_fast_kernels(source, tmp_path / "cache")
    first, second = GGUFReader(made).tensors
    kind = GGMLQuantizationType.Q8_0
    assert (first.name, first.tensor_type, list(first.shape)) == ("a", kind, [64, 3])
    again = dequantize(first.data, first.tensor_type)
    original = dequantize(packed, GGMLQuantizationType.Q4_1)
    assert np.abs(again - original).max() <= np.abs(original).max() / 127 * 0.6
    assert second.data.tobytes() == norm.tobytes()


def test_a_file_of_another_kind_is_refused_by_name(tmp_path):
    source = tmp_path / "model.gguf"
    source.write_bytes(b"not a model")
    with pytest.raises(PermanentFailure, match=r"model\.gguf is not a GGUF file"):
        with_fast_kernels(source, tmp_path)
    assert not list(tmp_path.glob("*.tmp"))
