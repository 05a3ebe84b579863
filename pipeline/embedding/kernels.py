"""Triton kernels for the encoder's operations between its matrix products on a GPU.

These are a sum with its LayerNorm, GELU, attention, and quantization to FP8; each reads and writes
its rows once. torch takes three kernels for a sum and its norm, and its exact GELU is bound by
arithmetic, not by memory. Importing this module needs the package triton, which comes with torch
for CUDA.

FP8 codes are float8_e4m3fn with a float32 scale for every row: value = code * scale.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
import triton
import triton.language as tl

if TYPE_CHECKING:
    from torch import Tensor

_FP8_MAX: tl.constexpr = tl.constexpr(448.0)  # the greatest value of float8_e4m3fn
# Lower bound of a row's greatest value, by which the row is divided: a row may be all zeros.
_LEAST_ROW_MAX: tl.constexpr = tl.constexpr(1e-12)
# The fastest on an H200, of blocks of 1,024 to 8,192 elements and of 64 or 128 queries.
_GELU_BLOCK = 4096
_QUERY_BLOCK, _KEY_BLOCK = 64, 64


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
def _store_codes(codes, scales, row, offsets, mask, values):
    row_max = tl.maximum(tl.max(tl.abs(values), axis=0), _LEAST_ROW_MAX)
    tl.store(codes + offsets, (values * (_FP8_MAX / row_max)).to(codes.dtype.element_ty), mask=mask)
    tl.store(scales + row, row_max / _FP8_MAX)


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
    mask = columns < width
    offsets = row * width + columns
    total = tl.load(hidden + offsets, mask=mask, other=0.0).to(tl.float32)
    total += tl.load(update + offsets, mask=mask, other=0.0).to(tl.float32)
    centred = tl.where(mask, total - tl.sum(total, axis=0) / width, 0.0)
    inverse = tl.rsqrt(tl.sum(centred * centred, axis=0) / width + epsilon)
    scale = tl.load(weight + columns, mask=mask, other=0.0).to(tl.float32)
    shift = tl.load(bias + columns, mask=mask, other=0.0).to(tl.float32)
    normed = centred * inverse * scale + shift
    tl.store(result + offsets, normed.to(result.dtype.element_ty), mask=mask)
    if quantize:
        _store_codes(codes, scales, row, offsets, mask, normed)


@triton.jit
def _gelu_kernel(rows, result, count, block: tl.constexpr):
    offsets = tl.program_id(0).to(tl.int64) * block + tl.arange(0, block)
    mask = offsets < count
    values = tl.load(rows + offsets, mask=mask, other=0.0).to(tl.float32)
    tl.store(result + offsets, _gelu(values).to(result.dtype.element_ty), mask=mask)


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
    mask = columns < width
    offsets = row * width + columns
    values = tl.load(rows + offsets, mask=mask, other=0.0).to(tl.float32)
    if gelu:
        values = _gelu(values)
    _store_codes(codes, scales, row, offsets, mask, values)


@triton.jit
def _attention_kernel(
    qkv,
    result,
    starts,
    factor,
    heads: tl.constexpr,
    head_width: tl.constexpr,
    query_block: tl.constexpr,
    key_block: tl.constexpr,
):
    text = tl.program_id(2)
    head = tl.program_id(1)
    first = tl.load(starts + text).to(tl.int64)
    length = (tl.load(starts + text + 1).to(tl.int64) - first).to(tl.int32)
    first_query = tl.program_id(0) * query_block
    if first_query < length:
        width: tl.constexpr = heads * head_width
        within_head = tl.arange(0, head_width)
        query_rows = first_query + tl.arange(0, query_block)
        query_mask = query_rows < length
        key_rows = tl.arange(0, key_block)
        base = qkv + first * (3 * width) + head * head_width
        query = tl.load(
            base + query_rows[:, None] * (3 * width) + within_head[None, :],
            mask=query_mask[:, None],
            other=0.0,
        )
        key_pointers = base + width + key_rows[None, :] * (3 * width) + within_head[:, None]
        value_pointers = base + 2 * width + key_rows[:, None] * (3 * width) + within_head[None, :]
        row_max = tl.full([query_block], float("-inf"), tl.float32)
        total = tl.zeros([query_block], tl.float32)
        attended = tl.zeros([query_block, head_width], tl.float32)
        for first_key in tl.range(0, length, key_block):
            mask = first_key + key_rows < length
            key = tl.load(key_pointers + first_key * (3 * width), mask=mask[None, :], other=0.0)
            value = tl.load(value_pointers + first_key * (3 * width), mask=mask[:, None], other=0.0)
            # exp2 is one instruction: `factor` holds 1/ln 2.
            scores = tl.where(mask[None, :], tl.dot(query, key) * factor, float("-inf"))
            new_max = tl.maximum(row_max, tl.max(scores, axis=1))
            weights = tl.exp2(scores - new_max[:, None])
            decay = tl.exp2(row_max - new_max)
            total = total * decay + tl.sum(weights, axis=1)
            attended = tl.dot(weights.to(value.dtype), value, attended * decay[:, None])
            row_max = new_max
        offsets = (first + query_rows)[:, None] * width + head * head_width + within_head[None, :]
        attended = attended / total[:, None]
        tl.store(result + offsets, attended.to(result.dtype.element_ty), mask=query_mask[:, None])


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
    """The result of `add_norm`, its FP8 codes (tokens, width), and their scales (tokens, 1)."""
    result = torch.empty_like(hidden)
    codes, scales = _empty_codes(hidden)
    _launch_add_norm(hidden, update, weight, bias, epsilon, result, (codes, scales))
    return result, codes, scales


def _launch_add_norm(
    hidden: Tensor,
    update: Tensor,
    weight: Tensor,
    bias: Tensor,
    epsilon: float,
    result: Tensor,
    codes_and_scales: tuple[Tensor, Tensor] | None,
) -> None:
    rows, width = hidden.shape
    # Without them the kernel does not write to the two arguments, and any tensor will do.
    codes, scales = codes_and_scales or (result, result)
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
        quantize=codes_and_scales is not None,
        num_warps=_warps(block),
    )


def gelu(rows: Tensor) -> Tensor:
    """Exact GELU of every value, in float32 within; of the rows' type."""
    result = torch.empty_like(rows)
    blocks = triton.cdiv(rows.numel(), _GELU_BLOCK)
    _gelu_kernel[(blocks,)](rows, result, rows.numel(), block=_GELU_BLOCK, num_warps=4)
    return result


def to_codes(rows: Tensor, *, gelu: bool = False) -> tuple[Tensor, Tensor]:
    """FP8 codes of (tokens, width) rows, and their scales (tokens, 1). gelu: apply GELU first."""
    codes, scales = _empty_codes(rows)
    width = rows.shape[1]
    block = triton.next_power_of_2(width)
    _codes_kernel[(len(rows),)](
        rows, codes, scales, width, block=block, gelu=gelu, num_warps=_warps(block)
    )
    return codes, scales


def attention(qkv: Tensor, heads: int, starts: Tensor, longest: int) -> Tensor:
    """Self-attention within every text (FlashAttention: Dao et al. 2022, arXiv:2205.14135).

    qkv: queries, keys and values side by side, of shape (tokens, 3 * width); a head's width is a
    power of two, 16 or more. starts: int32 of shape (texts + 1,). longest: tokens of the longest
    text. Returns (tokens, width).
    """
    tokens, width = len(qkv), qkv.shape[1] // 3
    head_width = width // heads
    result = torch.empty((tokens, width), dtype=qkv.dtype, device=qkv.device)
    grid = (triton.cdiv(longest, _QUERY_BLOCK), heads, len(starts) - 1)
    factor = 1.4426950408889634 / head_width**0.5  # 1/ln 2, since the kernel computes exp2
    _attention_kernel[grid](
        qkv,
        result,
        starts,
        factor,
        heads=heads,
        head_width=head_width,
        query_block=_QUERY_BLOCK,
        key_block=_KEY_BLOCK,
        num_warps=4,
        num_stages=3,
    )
    return result


def _empty_codes(rows: Tensor) -> tuple[Tensor, Tensor]:
    codes = torch.empty(rows.shape, dtype=torch.float8_e4m3fn, device=rows.device)
    return codes, torch.empty((len(rows), 1), dtype=torch.float32, device=rows.device)


def _warps(block: int) -> int:
    return min(4, max(1, block // 256))
