"""The encoder of BERT (Devlin et al. 2019) and XLM-RoBERTa (Conneau et al. 2020), packed.

On a CPU the weights are packed for oneDNN once. Of the products of MiniLM's size (1,024 rows), a
busy core of an EPYC with AVX-512 does 90 to 98 GFLOP/s in float32, 170 to 195 in bfloat16 and 220
to 335 in int8. oneDNN also gave each row the same bits whatever other rows it was multiplied with,
which MKL did not: on a CPU a text's vectors do not depend on its neighbours. The exception is
bfloat16 on an Intel processor with AMX, where their last bits do.

On a GPU torch multiplies, and `kernels` does the rest in one pass each, where triton is installed.

Heads turn the last hidden states into dense, sparse and ColBERT vectors.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import Tensor, dtype

_log = logging.getLogger(__name__)

Linear = Callable[["Tensor"], "Tensor"]
Product = Callable[[Any], "Tensor"]
"""A product of the encoder. It takes rows, or in FP8 what `kernels.to_codes` makes of them."""

# In the place of a row of zeros' greatest value, which divides.
_LEAST_SCALE = 1e-30


@dataclass(frozen=True, slots=True)
class Shape:
    """The encoder's shape by config.json. padding: the id from which positions count, None where
    they start at 0.
    """

    hidden: int
    layers: int
    heads: int
    positions: int
    epsilon: float
    padding: int | None

    @property
    def longest(self) -> int:
        """Tokens that the model has positions for."""
        return self.positions if self.padding is None else self.positions - self.padding - 1


def shape_of(config: Mapping[str, Any]) -> Shape:
    """The shape in a config.json. Raises KeyError, TypeError or ValueError where it is none
    of these models.
    """
    if (
        config.get("hidden_act", "gelu") != "gelu"
        or config.get("position_embedding_type", "absolute") != "absolute"
    ):
        raise ValueError("it is no encoder with gelu and absolute positions")
    is_bert = config.get("model_type") == "bert"
    return Shape(
        hidden=int(config["hidden_size"]),
        layers=int(config["num_hidden_layers"]),
        heads=int(config["num_attention_heads"]),
        positions=int(config["max_position_embeddings"]),
        epsilon=float(config.get("layer_norm_eps", 1e-12)),
        # XLM-RoBERTa counts positions from pad_token_id + 1.
        padding=None if is_bert else int(config.get("pad_token_id", 1)),
    )


@dataclass(frozen=True, slots=True, eq=False)
class Tokens:
    """A pack on a device.

    count: its tokens. ids and positions: int32, of `count` or more; the encoder computes what is
    beyond for nothing. starts: int32 of shape (texts + 1,), where texts begin. inner: int64 of
    shape (count - texts,), the places of all tokens but each text's first. runs: as `packing.runs`
    gives them.
    """

    count: int
    ids: Tensor
    positions: Tensor
    starts: Tensor
    inner: Tensor
    longest: int
    runs: Sequence[tuple[int, int, int]]


@dataclass(frozen=True, slots=True, eq=False)
class _Norm:
    """LayerNorm of a sum. codes: the next product takes FP8 codes."""

    weight: Tensor
    bias: Tensor
    epsilon: float
    codes: bool

    def __call__(self, hidden: Tensor, update: Tensor) -> tuple[Tensor, Any]:
        """The norm of hidden + update, and what the next product takes of it."""
        import torch

        kernels = gpu_kernels(hidden.device.type, hidden.dtype)
        if kernels is None:
            normed = torch.nn.functional.layer_norm(
                hidden + update, self.weight.shape, self.weight, self.bias, self.epsilon
            )
            return normed, normed
        if self.codes:
            normed, codes, scales = kernels.add_norm_codes(
                hidden, update, self.weight, self.bias, self.epsilon
            )
            return normed, (codes, scales)
        normed = kernels.add_norm(hidden, update, self.weight, self.bias, self.epsilon)
        return normed, normed


@dataclass(frozen=True, slots=True, eq=False)
class _Layer:
    query_key_value: Product
    out: Product
    attention_norm: _Norm
    up: Product
    down: Product
    norm: _Norm


class Encoder:
    """The encoder on one device.

    weights: as `model_files.read_weights` gives them; emptied on the way, so that two copies never
    lie in memory. precision: the type of the matrix products; int8 on a CPU alone, float8_e4m3fn on
    a GPU alone. The sums between them stay float32 on a CPU, and float16 beside FP8 products.
    Raises KeyError where a weight is absent.
    """

    def __init__(
        self, weights: dict[str, Tensor], shape: Shape, device: str, precision: dtype
    ) -> None:
        import torch

        self._shape = shape
        self._is_fp8 = precision == torch.float8_e4m3fn
        self._state_type = torch.float16 if self._is_fp8 else precision
        if device == "cpu":
            self._state_type = torch.float32
        self._precision, self._device = precision, device
        self.head_precision = self._state_type if self._is_fp8 else precision
        self._words = self._take(weights, "embeddings.word_embeddings.weight")
        places = weights.pop("embeddings.position_embeddings.weight").float()
        # Every token here is of type 0.
        kind = weights.pop("embeddings.token_type_embeddings.weight").float()[0]
        self._places = (places + kind).to(device, self._state_type)
        self._norm = self._norm_of(weights, "embeddings.LayerNorm")
        self._layers = [
            self._layer(weights, f"encoder.layer.{number}") for number in range(shape.layers)
        ]
        self._attend = _attention(device, self._state_type, shape.hidden // shape.heads)

    def __call__(self, tokens: Tokens) -> Tensor:
        """The last hidden states, of shape (tokens.count, hidden)."""
        import torch

        embed = torch.nn.functional.embedding
        hidden, rows = self._norm(
            embed(tokens.ids, self._words), embed(tokens.positions, self._places)
        )
        for layer in self._layers:
            mixed = self._attend(layer.query_key_value(rows), self._shape.heads, tokens)
            hidden, rows = layer.attention_norm(hidden, layer.out(mixed))
            hidden, rows = layer.norm(hidden, layer.down(layer.up(rows)))
        return hidden[: tokens.count]

    def _take(self, weights: dict[str, Tensor], name: str) -> Tensor:
        return weights.pop(name).to(self._device, self._state_type)

    def _norm_of(self, weights: dict[str, Tensor], name: str) -> _Norm:
        return _Norm(
            self._take(weights, f"{name}.weight"),
            self._take(weights, f"{name}.bias"),
            self._shape.epsilon,
            codes=self._is_fp8,
        )

    def _layer(self, weights: dict[str, Tensor], name: str) -> _Layer:
        import torch

        parts = [f"{name}.attention.self.{part}" for part in ("query", "key", "value")]
        weight = torch.cat([weights.pop(f"{part}.weight") for part in parts])
        bias = torch.cat([weights.pop(f"{part}.bias") for part in parts])

        def pair(part: str) -> tuple[Tensor, Tensor]:
            return weights.pop(f"{name}.{part}.weight"), weights.pop(f"{name}.{part}.bias")

        norms = (
            self._norm_of(weights, f"{name}.attention.output.LayerNorm"),
            self._norm_of(weights, f"{name}.output.LayerNorm"),
        )
        if self._is_fp8:
            from pipeline.embedding import kernels

            return _Layer(
                _fp8(weight, bias, self._device),
                _fp8(*pair("attention.output.dense"), self._device, kernels.to_codes),
                norms[0],
                _fp8(*pair("intermediate.dense"), self._device),
                _fp8(*pair("output.dense"), self._device, partial(kernels.to_codes, gelu=True)),
                norms[1],
            )
        # In int8 these three lost the most. Of ten very short texts, the least cosine of MiniLM's
        # vectors with float32 was 0.986, and 0.992 with these in bfloat16.
        exact = torch.bfloat16 if self._precision == torch.int8 else self._precision
        return _Layer(
            make_linear(weight, bias, self._device, exact),
            make_linear(*pair("attention.output.dense"), self._device, self._precision),
            norms[0],
            make_linear(*pair("intermediate.dense"), self._device, self._precision, gelu=True),
            make_linear(*pair("output.dense"), self._device, self._precision),
            norms[1],
        )


@cache
def gpu_kernels(device: str, precision: dtype) -> ModuleType | None:
    """The module `kernels` where it runs on a device in a precision; None where torch's own are to
    be used: on a CPU, in float32, on cards before Ampere, without triton or a C compiler.
    """
    import torch

    if device == "cpu" or precision not in (torch.float16, torch.bfloat16):
        return None
    if torch.cuda.get_device_capability(device) < (8, 0):
        return None
    try:
        from pipeline.embedding import kernels

        kernels.gelu(torch.zeros(1, device=device, dtype=precision))
    except Exception as error:  # Triton's errors, a compiler's and the system's share no other base
        _log.warning(
            "Triton's kernels cannot be used on %s (%s): torch's own take about 15 %% longer; they"
            " need the package triton and a C compiler",
            device,
            error,
        )
        return None
    return kernels


def make_linear(
    weight: Tensor, bias: Tensor, device: str, precision: dtype, *, gelu: bool = False
) -> Linear:
    """x·weightᵀ + bias on rows of a (tokens, inputs) tensor, with gelu where asked for.

    weight: (outputs, inputs). On a CPU the result has the type of `precision`, for int8 float32,
    and the argument may have any.
    """
    import torch

    if precision == torch.int8:
        return _int8(weight.float(), bias.float(), gelu=gelu)
    weight, bias = weight.to(device, precision), bias.to(device, precision)
    if device == "cpu" and _has_onednn():
        return _packed(weight, bias, gelu=gelu)

    def multiply(rows: Tensor) -> Tensor:
        product = torch.nn.functional.linear(rows.to(precision), weight, bias)
        if not gelu:
            return product
        kernels = gpu_kernels(product.device.type, precision)
        activated: Tensor = (kernels or torch.nn.functional).gelu(product)
        return activated

    return multiply


def _fp8(
    weight: Tensor,
    bias: Tensor,
    device: str,
    to_codes: Callable[[Tensor], tuple[Tensor, Tensor]] | None = None,
) -> Product:
    """The product of 8-bit floating-point numbers (Micikevicius et al. 2022, arXiv:2209.05433).

    It has a scale per output and per row, and its result is bfloat16. It takes codes and scales, or
    rows where `to_codes` makes these.
    """
    import torch
    from torch.nn.functional import ScalingType, scaled_mm

    from pipeline.embedding import kernels

    codes, scales = kernels.to_codes(weight.to(device).contiguous())
    # The product wants the weights by columns, which the rows of their transpose are.
    columns, column_scales = codes.t(), scales.t().contiguous()
    bias = bias.to(device, torch.bfloat16)

    def multiply(operand: Any) -> Tensor:
        rows, row_scales = operand if to_codes is None else to_codes(operand)
        product: Tensor = scaled_mm(
            rows,
            columns,
            row_scales,
            ScalingType.RowWise,
            column_scales,
            ScalingType.RowWise,
            bias=bias,
            output_dtype=torch.bfloat16,
            use_fast_accum=True,
        )
        return product

    return multiply


def _packed(weight: Tensor, bias: Tensor, *, gelu: bool) -> Linear:
    import torch

    # What torch's own compiler emits for a linear layer on a CPU; no public call keeps oneDNN's
    # layout of weights.
    packed = torch.ops.mkldnn._reorder_linear_weight(weight, None)
    kind, precision = ("gelu" if gelu else "none"), weight.dtype

    def multiply(rows: Tensor) -> Tensor:
        product: Tensor = torch.ops.mkldnn._linear_pointwise(
            rows.to(precision), packed, bias, kind, [], "none"
        )
        return product

    return multiply


def _int8(weight: Tensor, bias: Tensor, *, gelu: bool) -> Linear:
    """The product of 8-bit numbers, with a scale per output and per row.

    A row's scale is its own greatest value, so its bits do not depend on its neighbours
    (vector-wise quantization: Dettmers et al. 2022, arXiv:2208.07339).
    """
    import torch

    weight_scales = weight.abs().amax(1).clamp_min(_LEAST_SCALE) / 127
    codes = (weight / weight_scales[:, None]).round().to(torch.int8)
    packed = torch.ops.onednn.qlinear_prepack(codes, None)
    zeros = torch.zeros(len(weight), dtype=torch.int32)

    def multiply(rows: Tensor) -> Tensor:
        rows = rows.float()
        largest = torch.maximum(rows.amax(1, keepdim=True), -rows.amin(1, keepdim=True)).clamp_min(
            _LEAST_SCALE
        )
        signed = (rows * (127 / largest)).round_().to(torch.int8)
        # oneDNN has fast kernels only for unsigned rows, and torch converts fast only to signed
        # ones: flip the sign bit, which adds 128.
        unsigned = signed.view(torch.uint8).bitwise_xor_(128)
        product: Tensor = torch.ops.onednn.qlinear_pointwise(
            unsigned,
            1.0,
            128,
            packed,
            weight_scales,
            zeros,
            None,
            1.0,
            0,
            torch.float32,
            "none",
            [],
            "",
        )
        product.mul_(largest / 127).add_(bias)
        return torch.nn.functional.gelu(product) if gelu else product

    return multiply


def _has_onednn() -> bool:
    import torch

    names = ("_reorder_linear_weight", "_linear_pointwise")
    available: bool = torch.backends.mkldnn.is_available()  # type: ignore[no-untyped-call]
    return available and all(hasattr(torch.ops.mkldnn, name) for name in names)


Attention = Callable[["Tensor", int, Tokens], "Tensor"]


def _attention(device: str, precision: dtype, head: int) -> Attention:
    """Variable-length attention on a GPU in half precision, else by equal length.

    head: the width of a head. The kernel of `kernels` was 1.2 to 2.2 times as fast on an H200 as
    torch's, which is FlashAttention 2.
    """
    import torch

    if device == "cpu" or precision not in (torch.float16, torch.bfloat16):
        return _by_length
    kernels = gpu_kernels(device.partition(":")[0], precision)
    if kernels is not None and head >= 16 and head & (head - 1) == 0:
        return partial(_in_one_kernel, kernels)
    return _flash if torch.cuda.get_device_capability(device) >= (8, 0) else _by_length


def _in_one_kernel(kernels: ModuleType, mixed: Tensor, heads: int, tokens: Tokens) -> Tensor:
    attended: Tensor = kernels.attention(mixed, heads, tokens.starts, tokens.longest)
    return attended


def _flash(mixed: Tensor, heads: int, tokens: Tokens) -> Tensor:
    from torch.nn.attention.varlen import varlen_attn

    query, key, value = mixed.view(len(mixed), 3, heads, -1).unbind(1)
    longest = tokens.longest
    attended = varlen_attn(query, key, value, tokens.starts, tokens.starts, longest, longest)
    return attended.reshape(len(mixed), -1)  # type: ignore[union-attr]


def _by_length(mixed: Tensor, heads: int, tokens: Tokens) -> Tensor:
    """Attention over texts of equal length, which are neighbours in a pack: no copy."""
    import torch

    width = mixed.shape[1] // 3
    attended = torch.empty((len(mixed), width), dtype=mixed.dtype, device=mixed.device)
    attended[tokens.count :] = 0
    for first, texts, length in tokens.runs:
        last = first + texts * length
        query, key, value = (
            mixed[first:last].view(texts, length, 3, heads, -1).permute(2, 0, 3, 1, 4)
        )
        states = torch.nn.functional.scaled_dot_product_attention(query, key, value)
        attended[first:last].view(texts, length, heads, -1).copy_(states.transpose(1, 2))
    return attended


@dataclass(frozen=True, slots=True, eq=False)
class Heads:
    """The vectors of a pack, on its device.

    dense: float32 of shape (texts, dimensions). sparse: float32 of shape (terms,); None where the
    model has no such head. colbert: of shape (tokens - texts, dimensions), every token's but each
    text's first; None unless asked for.
    """

    dense: Tensor
    sparse: Tensor | None
    colbert: Tensor | None


class M3Heads:
    """BGE-M3's three heads (Chen et al. 2024, section 3.2), as FlagEmbedding computes them.

    sparse and colbert: (weight, bias) of the two linear layers; without `colbert` there are no such
    vectors. The weight of a term is the greatest of its tokens', found on the device.
    """

    def __init__(
        self,
        sparse: tuple[Tensor, Tensor],
        colbert: tuple[Tensor, Tensor] | None,
        device: str,
        precision: dtype,
    ) -> None:
        import torch

        self._sparse = (sparse[0][0].to(device, torch.float32), sparse[1].to(device, torch.float32))
        self._colbert: Linear | None = (
            None if colbert is None else make_linear(*colbert, device, precision)
        )

    def __call__(
        self, hidden: Tensor, tokens: Tokens, slots: Tensor, terms: int, *, half: bool
    ) -> Heads:
        """The vectors of a pack; `slots`, `terms`: as in `Pack`; `half`: ColBERT's as float16."""
        import torch

        dense = _unit(hidden[tokens.starts[:-1].long()])
        weight, bias = self._sparse
        # A product and a sum, since a matrix product with one column gave other bits in another
        # pack.
        weights = torch.relu((hidden.float() * weight).sum(1) + bias)
        colbert = None
        if self._colbert is not None:
            colbert = _unit(self._colbert(hidden[tokens.inner]))
            colbert = colbert.half() if half else colbert
        return Heads(dense, greatest_weights(weights, slots, terms), colbert)


class MeanHead:
    """The mean over all tokens, of unit length: sentence-transformers' pooling and normalising."""

    def __call__(
        self, hidden: Tensor, tokens: Tokens, slots: Tensor, terms: int, *, half: bool
    ) -> Heads:
        """The dense vectors of a pack."""
        import torch

        means = [
            hidden[first : first + texts * length].view(texts, length, -1).float().mean(1)
            for first, texts, length in tokens.runs
        ]
        return Heads(_unit(torch.cat(means)), None, None)


def greatest_weights(weights: Tensor, slots: Tensor, terms: int) -> Tensor:
    """The greatest weight of each term's tokens, float32 of shape (terms,).

    weights: float32 of shape (tokens,), none below 0. slots and terms: as in `Pack`.
    """
    import torch

    return torch.zeros(terms + 1, device=weights.device).scatter_reduce_(0, slots, weights, "amax")[
        :terms
    ]


def _unit(rows: Tensor) -> Tensor:
    import torch

    return torch.nn.functional.normalize(rows.float(), dim=1)
