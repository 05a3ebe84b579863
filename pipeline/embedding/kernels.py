"""What lies between the encoder's matrix products on a GPU, in Triton: one pass for each.

torch takes three kernels for a sum and its norm, and its exact GELU waits for arithmetic, not for
memory. Importing this module needs the package triton, which comes with torch for CUDA.

FP8 codes are float8_e4m3fn with a float32 scale for every row: value = code * scale.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
import triton
import triton.language as tl

if TYPE_CHECKING:
    from torch import Tensor

# The greatest value of float8_e4m3fn.
_LARGEST: tl.constexpr = tl.constexpr(448.0)
# In the place of a row of zeros' greatest value, which divides.
_LEAST: tl.constexpr = tl.constexpr(1e-12)
# What was fastest on an H200, of blocks of 1,024 to 8,192 elements and 64 or 128 queries.
_ELEMENTS = 4096
_QUERIES, _KEYS = 64, 64


@triton.jit
def _gelu(x):
    # x·Φ(x), Φ by Abramowitz and Stegun 1964, formula 7.1.26 (off by 1e-7 at most).
    scaled = tl.abs(x) * 0.7071067811865476
    t = 1.0 / (1.0 + 0.3275911 * scaled)
    inner = -1.453152027 + t * 1.061405429
    inner = -0.284496736 + t * (1.421413741 + t * inner)
    tail = 0.5 * t * (0.254829592 + t * inner) * tl.exp(-scaled * scaled)
    return x * tl.where(x < 0, tail, 1.0 - tail)


@triton.jit
def _store_codes(codes, scales, row, places, here, values):
    largest = tl.maximum(tl.max(tl.abs(values), axis=0), _LEAST)
    tl.store(codes + places, (values * (_LARGEST / largest)).to(codes.dtype.element_ty), mask=here)
    tl.store(scales + row, largest / _LARGEST)


@triton.jit
def _add_norm_kernel(
    hidden,
    update,
    weight,
    bias,
    result,
    codes,
    scales,
    width,
    epsilon,
    block: tl.constexpr,
    quantize: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64)
    columns = tl.arange(0, block)
    here = columns < width
    places = row * width + columns
    total = tl.load(hidden + places, mask=here, other=0.0).to(tl.float32)
    total += tl.load(update + places, mask=here, other=0.0).to(tl.float32)
    centred = tl.where(here, total - tl.sum(total, axis=0) / width, 0.0)
    inverse = tl.rsqrt(tl.sum(centred * centred, axis=0) / width + epsilon)
    scale = tl.load(weight + columns, mask=here, other=0.0).to(tl.float32)
    shift = tl.load(bias + columns, mask=here, other=0.0).to(tl.float32)
    normed = centred * inverse * scale + shift
    tl.store(result + places, normed.to(result.dtype.element_ty), mask=here)
    if quantize:
        _store_codes(codes, scales, row, places, here, normed)


@triton.jit
def _gelu_kernel(rows, result, count, block: tl.constexpr):
    places = tl.program_id(0).to(tl.int64) * block + tl.arange(0, block)
    here = places < count
    values = tl.load(rows + places, mask=here, other=0.0).to(tl.float32)
    tl.store(result + places, _gelu(values).to(result.dtype.element_ty), mask=here)


@triton.jit
def _codes_kernel(
    rows,
    codes,
    scales,
    width,
    block: tl.constexpr,
    gelu: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64)
    columns = tl.arange(0, block)
    here = columns < width
    places = row * width + columns
    values = tl.load(rows + places, mask=here, other=0.0).to(tl.float32)
    if gelu:
        values = _gelu(values)
    _store_codes(codes, scales, row, places, here, values)


@triton.jit
def _attention_kernel(
    mixed,
    result,
    starts,
    factor,
    heads: tl.constexpr,
    size: tl.constexpr,
    queries: tl.constexpr,
    keys: tl.constexpr,
):
    text = tl.program_id(2)
    head = tl.program_id(1)
    first = tl.load(starts + text).to(tl.int64)
    length = (tl.load(starts + text + 1).to(tl.int64) - first).to(tl.int32)
    begin = tl.program_id(0) * queries
    if begin < length:
        width: tl.constexpr = heads * size
        inside = tl.arange(0, size)
        query_rows = begin + tl.arange(0, queries)
        query_here = query_rows < length
        key_rows = tl.arange(0, keys)
        base = mixed + first * (3 * width) + head * size
        query = tl.load(
            base + query_rows[:, None] * (3 * width) + inside[None, :],
            mask=query_here[:, None],
            other=0.0,
        )
        key_places = base + width + key_rows[None, :] * (3 * width) + inside[:, None]
        value_places = base + 2 * width + key_rows[:, None] * (3 * width) + inside[None, :]
        largest = tl.full([queries], float("-inf"), tl.float32)
        total = tl.zeros([queries], tl.float32)
        states = tl.zeros([queries, size], tl.float32)
        for start in tl.range(0, length, keys):
            here = start + key_rows < length
            key = tl.load(key_places + start * (3 * width), mask=here[None, :], other=0.0)
            value = tl.load(value_places + start * (3 * width), mask=here[:, None], other=0.0)
            # exp2 is one instruction: `factor` holds 1/ln 2.
            scores = tl.where(here[None, :], tl.dot(query, key) * factor, float("-inf"))
            larger = tl.maximum(largest, tl.max(scores, axis=1))
            shares = tl.exp2(scores - larger[:, None])
            kept = tl.exp2(largest - larger)
            total = total * kept + tl.sum(shares, axis=1)
            states = tl.dot(shares.to(value.dtype), value, states * kept[:, None])
            largest = larger
        places = (first + query_rows)[:, None] * width + head * size + inside[None, :]
        states = states / total[:, None]
        tl.store(result + places, states.to(result.dtype.element_ty), mask=query_here[:, None])


def add_norm(
    hidden: Tensor, update: Tensor, weight: Tensor, bias: Tensor, epsilon: float
) -> Tensor:
    """LayerNorm of hidden + update, in float32 within; (tokens, width), of hidden's type."""
    result = torch.empty_like(hidden)
    _launch_add_norm(hidden, update, weight, bias, epsilon, result, None)
    return result


def add_norm_codes(
    hidden: Tensor, update: Tensor, weight: Tensor, bias: Tensor, epsilon: float
) -> tuple[Tensor, Tensor, Tensor]:
    """As `add_norm`, and the result's FP8 codes and scales."""
    result = torch.empty_like(hidden)
    codes, scales = _room_for_codes(hidden)
    _launch_add_norm(hidden, update, weight, bias, epsilon, result, (codes, scales))
    return result, codes, scales


def _launch_add_norm(
    hidden: Tensor,
    update: Tensor,
    weight: Tensor,
    bias: Tensor,
    epsilon: float,
    result: Tensor,
    quantized: tuple[Tensor, Tensor] | None,
) -> None:
    rows, width = hidden.shape
    codes, scales = quantized or (result, result)
    block = triton.next_power_of_2(width)
    _add_norm_kernel[(rows,)](
        hidden,
        update,
        weight,
        bias,
        result,
        codes,
        scales,
        width,
        epsilon,
        block=block,
        quantize=quantized is not None,
        num_warps=_warps(block),
    )


def gelu(rows: Tensor) -> Tensor:
    """GELU (the exact one) of every value."""
    result = torch.empty_like(rows)
    blocks = triton.cdiv(rows.numel(), _ELEMENTS)
    _gelu_kernel[(blocks,)](rows, result, rows.numel(), block=_ELEMENTS, num_warps=4)
    return result


def to_codes(rows: Tensor, *, gelu: bool = False) -> tuple[Tensor, Tensor]:
    """FP8 codes of (tokens, width) rows, after GELU where asked for, and scales (tokens, 1)."""
    codes, scales = _room_for_codes(rows)
    width = rows.shape[1]
    block = triton.next_power_of_2(width)
    _codes_kernel[(len(rows),)](
        rows, codes, scales, width, block=block, gelu=gelu, num_warps=_warps(block)
    )
    return codes, scales


def attention(mixed: Tensor, heads: int, starts: Tensor, longest: int) -> Tensor:
    """Attention of every text to itself (flash attention: Dao et al. 2022, arXiv:2205.14135).

    mixed: queries, keys and values side by side, of shape (tokens, 3 * width); a head's width is a
    power of two, 16 or more. starts: int32 of shape (texts + 1,). longest: tokens of the longest
    text. Returns (tokens, width).
    """
    tokens, width = len(mixed), mixed.shape[1] // 3
    size = width // heads
    result = torch.empty((tokens, width), dtype=mixed.dtype, device=mixed.device)
    grid = (triton.cdiv(longest, _QUERIES), heads, len(starts) - 1)
    factor = 1.4426950408889634 / size**0.5
    _attention_kernel[grid](
        mixed,
        result,
        starts,
        factor,
        heads=heads,
        size=size,
        queries=_QUERIES,
        keys=_KEYS,
        num_warps=4,
        num_stages=3,
    )
    return result


def _room_for_codes(rows: Tensor) -> tuple[Tensor, Tensor]:
    codes = torch.empty(rows.shape, dtype=torch.float8_e4m3fn, device=rows.device)
    return codes, torch.empty((len(rows), 1), dtype=torch.float32, device=rows.device)


def _warps(block: int) -> int:
    return min(4, max(1, block // 256))
