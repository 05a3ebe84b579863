"""Rewriting Q4_1 as Q8_0: the weights stay what they were."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest

from pipeline.errors import PermanentFailure
from pipeline.llm.gguf import q4_1_to_q8_0, with_fast_kernels


def random_q4_1(blocks: int) -> tuple[bytes, np.ndarray]:
    """Blocks, and the weights that they stand for."""
    random = np.random.default_rng(7)
    scale = random.uniform(0.01, 0.2, blocks).astype(np.float16)
    least = random.uniform(-1, 0, blocks).astype(np.float16)
    nibbles = random.integers(0, 16, (blocks, 32), dtype=np.uint8)
    packed = nibbles[:, :16] | (nibbles[:, 16:] << 4)
    weights = nibbles * scale[:, None].astype(np.float32) + least[:, None].astype(np.float32)
    data = b"".join(scale[i].tobytes() + least[i].tobytes() + packed[i].tobytes() for i in range(blocks))
    return data, weights


def test_weights_keep_their_values_to_half_a_step() -> None:
    data, weights = random_q4_1(50)
    blocks = q4_1_to_q8_0(np.frombuffer(data, np.uint8)).reshape(50, 34)
    step = blocks[:, :2].copy().view(np.float16).astype(np.float32)
    again = blocks[:, 2:].view(np.int8) * step
    assert np.abs(again - weights).max() <= (np.abs(weights).max(axis=1) / 127).max() * 0.6


def gguf(tensors: list[tuple[str, tuple[int, ...], int, bytes]]) -> bytes:
    """A file with one key and these tensors."""
    key = b"general.name"
    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), 1)
    head += struct.pack("<Q", len(key)) + key + struct.pack("<IQ", 8, 4) + b"test"
    data, offset = b"", 0
    for name, shape, kind, content in tensors:
        head += struct.pack("<Q", len(name)) + name.encode()
        head += struct.pack(f"<I{len(shape)}Q", len(shape), *shape) + struct.pack("<IQ", kind, offset)
        padded = content + b"\0" * (-len(content) % 32)
        data, offset = data + padded, offset + len(padded)
    return head + b"\0" * (-len(head) % 32) + data


def test_a_rewritten_file_holds_the_other_tensors_as_they_were(tmp_path: Path) -> None:
    packed, _ = random_q4_1(6)
    norm = np.arange(5, dtype=np.float32).tobytes()
    source = tmp_path / "model.gguf"
    source.write_bytes(gguf([("a", (64, 3), 3, packed), ("norm", (5,), 0, norm)]))
    made = with_fast_kernels(source, tmp_path / "cache")
    expected = q4_1_to_q8_0(np.frombuffer(packed, np.uint8)).tobytes()
    assert made.read_bytes() == gguf([("a", (64, 3), 8, expected), ("norm", (5,), 0, norm)])
    written = made.stat().st_mtime_ns
    assert with_fast_kernels(source, tmp_path / "cache").stat().st_mtime_ns == written


def test_a_file_of_another_kind_is_refused_by_name(tmp_path: Path) -> None:
    source = tmp_path / "model.gguf"
    source.write_bytes(b"not a model")
    with pytest.raises(PermanentFailure, match=r"model\.gguf is not a GGUF file"):
        with_fast_kernels(source, tmp_path)
    assert not list(tmp_path.glob("*.tmp"))
