"""The GPU kernels, run by Triton's interpreter on the CPU, give the results of torch's operations."""

import json
from itertools import pairwise

import pytest
import torch
from torch.nn.functional import gelu, layer_norm, scaled_dot_product_attention

from pipeline.embedding.encoder import Encoder, Tokens, shape_of
from pipeline.embedding.model_files import read_weights

WIDTHS = [(64, torch.float32), (96, torch.float16), (1024, torch.float16)]


@pytest.fixture(scope="module")
def kernels():
    """The module. TRITON_INTERPRET is set in tests/conftest.py, before anything imports triton."""
    pytest.importorskip("triton", reason="triton is not installed (pip install triton)")
    from pipeline.embedding import kernels

    return kernels


def _close(found, expected, *, atol, rtol=1e-3):
    torch.testing.assert_close(found.float(), expected, atol=atol, rtol=rtol)


def _rows(width, kind, seed):
    return torch.randn(9, width, generator=torch.Generator().manual_seed(seed)).to(kind)


@pytest.mark.parametrize(("width", "kind"), WIDTHS)
def test_the_norm_of_a_sum_is_torchs(kernels, width, kind):
    hidden, update = _rows(width, kind, 1), _rows(width, kind, 2)
    weight, bias = _rows(width, kind, 3)[0], _rows(width, kind, 4)[0]
    expected = layer_norm(
        hidden.float() + update.float(), (width,), weight.float(), bias.float(), 1e-5
    )
    normed = kernels.add_norm(hidden, update, weight, bias, 1e-5)
    assert normed.dtype == kind
    _close(normed, expected, atol=4e-3)
    same, codes, scales = kernels.add_norm_codes(hidden, update, weight, bias, 1e-5)
    assert torch.equal(same, normed)
    largest = expected.abs().amax(1, keepdim=True)
    _close(scales * 448, largest, atol=0)
    # The greatest value of every row has the greatest code.
    assert torch.equal(codes.float().abs().amax(1), torch.full((9,), 448.0))


@pytest.mark.parametrize(("width", "kind"), WIDTHS)
def test_gelu_is_the_exact_one(kernels, width, kind):
    rows = 4 * _rows(width, kind, 5)
    tolerance = 1e-6 if kind == torch.float32 else 4e-3
    _close(kernels.gelu(rows), gelu(rows.float()), atol=tolerance)


def test_values_that_fp8_can_represent_are_exact(kernels):
    # Some other values the interpreter rounds to a wrong power of two; a GPU does not.
    rows = torch.tensor([[448.0, -3.5, 0.25, 0.0], [0.0, 0.0, 0.0, 0.0]]) / 64
    codes, scales = kernels.to_codes(rows)
    assert torch.equal(codes.float() * scales, rows)


@pytest.mark.parametrize("kind", [torch.float32, torch.float16])
def test_attention_is_torchs_text_by_text(kernels, kind):
    starts, heads, size = [0, 150, 213, 214], 2, 16
    mixed = torch.randn(214, 3 * heads * size, generator=torch.Generator().manual_seed(6)).to(kind)
    attended = kernels.attention(mixed, heads, torch.tensor(starts, dtype=torch.int32), 150)
    for first, last in pairwise(starts):
        text = mixed[first:last].float().view(last - first, 3, heads, size)
        expected = scaled_dot_product_attention(*text.permute(1, 2, 0, 3)).transpose(0, 1)
        _close(attended[first:last], expected.reshape(last - first, -1), atol=2e-3)


def test_an_encoder_on_a_gpu_has_the_states_of_one_on_a_cpu(kernels, m3, monkeypatch):
    """The interpreter stands in for a GPU; by its name, "cpu:0" is no CPU to the encoder."""
    monkeypatch.setattr(
        "pipeline.embedding.encoder.gpu_kernels",
        lambda device, precision: (
            kernels if (device, precision) == ("cpu", torch.float16) else None
        ),
    )
    shape = shape_of(json.loads((m3 / "config.json").read_text()))
    ids = torch.arange(5, 17, dtype=torch.int32)
    starts = torch.tensor([0, 7, 12], dtype=torch.int32)
    tokens = Tokens(12, ids, ids - 3, starts, 7, [(0, 1, 7), (7, 1, 5)])
    expected, found = (
        Encoder(read_weights(m3), shape, device, precision)(tokens)
        for device, precision in (("cpu", torch.float32), ("cpu:0", torch.float16))
    )
    _close(found, expected, atol=0.05, rtol=0)
