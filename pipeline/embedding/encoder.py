"""The encoder of BERT (Devlin et al. 2019) and XLM-RoBERTa (Conneau et al. 2020), on packs.

On a CPU the weights are laid out for oneDNN once. Of the products of MiniLM's size (1,024 rows), a
busy core of an EPYC with AVX-512 does 90 to 98 GFLOP/s in float32, 170 to 195 in bfloat16 and 220
to 335 in int8. oneDNN also gave each row the same bits whatever other rows it was multiplied with,
which MKL did not: on a CPU a text's vectors do not depend on its neighbours. The exception is
bfloat16 on an Intel processor with AMX, where their last bits do.

On a GPU torch multiplies; where triton is installed, the module `kernels` computes the rest.

Heads turn the last hidden states into dense and sparse vectors.
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
"""A product of the encoder. It takes rows, or FP8 codes and scales as `kernels.to_codes` gives."""

# Lower bound of a row's greatest value, by which the row is divided: a row may be all zeros.
_LEAST_ROW_MAX = 1e-30


@dataclass(frozen=True, slots=True)
class Shape:
    """The encoder's shape in config.json. padding: the id after which positions count, None where
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
    """The shape in a config.json. Raises KeyError, TypeError or ValueError where the model is
    another kind of encoder.
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

    count: its tokens. ids and positions: int32, of `count` or more; results beyond are not used.
    starts: int32 of shape (texts + 1,), where texts begin. longest: tokens of the longest text.
    runs: as `packing.runs` gives them.
    """

    count: int
    ids: Tensor
    positions: Tensor
    starts: Tensor
    longest: int
    runs: Sequence[tuple[int, int, int]]


@dataclass(frozen=True, slots=True, eq=False)
class _Norm:
    """LayerNorm of a sum. quantize: to FP8 codes for the next product."""

    weight: Tensor
    bias: Tensor
    epsilon: float
    quantize: bool

    def __call__(self, hidden: Tensor, update: Tensor) -> tuple[Tensor, Any]:
        """The norm of hidden + update, and the argument of the next product."""
        import torch

        kernels = gpu_kernels(hidden.device.type, hidden.dtype)
        if kernels is None:
            normed = torch.nn.functional.layer_norm(
                hidden + update, self.weight.shape, self.weight, self.bias, self.epsilon
            )
            return normed, normed
        if self.quantize:
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

    weights: as `model_files.read_weights` gives them; emptied meanwhile, so that memory never holds
    two copies. precision: of the matrix products; int8 only on a CPU, float8_e4m3fn only on a GPU.
    The sums between them are float32 on a CPU, and float16 with FP8 products. Raises KeyError where
    a weight is absent.
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
        self._words = self._take(weights, "embeddings.word_embeddings.weight")
        positions = weights.pop("embeddings.position_embeddings.weight").float()
        # Every token is of type 0.
        token_type = weights.pop("embeddings.token_type_embeddings.weight").float()[0]
        self._positions = (positions + token_type).to(device, self._state_type)
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
            embed(tokens.ids, self._words), embed(tokens.positions, self._positions)
        )
        for layer in self._layers:
            attended = self._attend(layer.query_key_value(rows), self._shape.heads, tokens)
            hidden, rows = layer.attention_norm(hidden, layer.out(attended))
            hidden, rows = layer.norm(hidden, layer.down(layer.up(rows)))
        return hidden[: tokens.count]

    def _take(self, weights: dict[str, Tensor], name: str) -> Tensor:
        return weights.pop(name).to(self._device, self._state_type)

    def _norm_of(self, weights: dict[str, Tensor], name: str) -> _Norm:
        return _Norm(
            self._take(weights, f"{name}.weight"),
            self._take(weights, f"{name}.bias"),
            self._shape.epsilon,
            quantize=self._is_fp8,
        )

    def _layer(self, weights: dict[str, Tensor], name: str) -> _Layer:
        import torch

        parts = [f"{name}.attention.self.{part}" for part in ("query", "key", "value")]
        weight = torch.cat([weights.pop(f"{part}.weight") for part in parts])
        bias = torch.cat([weights.pop(f"{part}.bias") for part in parts])

        def take(part: str) -> tuple[Tensor, Tensor]:
            return weights.pop(f"{name}.{part}.weight"), weights.pop(f"{name}.{part}.bias")

        attention_norm = self._norm_of(weights, f"{name}.attention.output.LayerNorm")
        norm = self._norm_of(weights, f"{name}.output.LayerNorm")
        if self._is_fp8:
            from pipeline.embedding import kernels

            return _Layer(
                _fp8(weight, bias, self._device),
                _fp8(*take("attention.output.dense"), self._device, kernels.to_codes),
                attention_norm,
                _fp8(*take("intermediate.dense"), self._device),
                _fp8(*take("output.dense"), self._device, partial(kernels.to_codes, gelu=True)),
                norm,
            )
        # In int8 these three lost the most. Of ten very short texts, the least cosine of MiniLM's
        # vectors with float32 was 0.986, and 0.992 with these in bfloat16.
        exact = torch.bfloat16 if self._precision == torch.int8 else self._precision
        return _Layer(
            make_linear(weight, bias, self._device, exact),
            make_linear(*take("attention.output.dense"), self._device, self._precision),
            attention_norm,
            make_linear(*take("intermediate.dense"), self._device, self._precision, gelu=True),
            make_linear(*take("output.dense"), self._device, self._precision),
            norm,
        )


@cache
def gpu_kernels(device: str, precision: dtype) -> ModuleType | None:
    """The module `kernels`, or None where it cannot run in a precision on a device.

    That is on a CPU, in float32, on cards before Ampere, and, with a warning, without triton or a C
    compiler.
    """
    import torch

    if device == "cpu" or precision not in (torch.float16, torch.bfloat16):
        return None
    if torch.cuda.get_device_capability(device) < (8, 0):
        return None
    try:
        from pipeline.embedding import kernels

        kernels.gelu(torch.zeros(1, device=device, dtype=precision))
    except Exception as error:  # errors of Triton, a C compiler and the system share no base
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
    """The function x·weightᵀ + bias of a (tokens, inputs) tensor. gelu: apply GELU to its result.

    weight: (outputs, inputs). On a CPU the function takes any type of number, and returns that of
    `precision`, or float32 for int8.
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
    """A product of 8-bit floating-point numbers (Micikevicius et al. 2022, arXiv:2209.05433), with
    a scale per output and per row.

    to_codes: quantizes the rows that the product takes; without it the product takes codes and
    scales. Its result is bfloat16.
    """
    import torch
    from torch.nn.functional import ScalingType, scaled_mm

    from pipeline.embedding import kernels

    codes, scales = kernels.to_codes(weight.to(device).contiguous())
    # torch takes the second matrix in column-major order, which a transpose is.
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

    # The calls that torch.compile emits for a linear layer on a CPU; no public one keeps oneDNN's
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
    """A product of 8-bit integers, with a scale per output and per row.

    A row's scale is its own greatest value, so its bits do not depend on its neighbours
    (vector-wise quantization: Dettmers et al. 2022, arXiv:2208.07339).
    """
    import torch

    weight_scales = weight.abs().amax(1).clamp_min(_LEAST_ROW_MAX) / 127
    codes = (weight / weight_scales[:, None]).round().to(torch.int8)
    packed = torch.ops.onednn.qlinear_prepack(codes, None)
    zeros = torch.zeros(len(weight), dtype=torch.int32)

    def multiply(rows: Tensor) -> Tensor:
        rows = rows.float()
        largest = torch.maximum(rows.amax(1, keepdim=True), -rows.amin(1, keepdim=True)).clamp_min(
            _LEAST_ROW_MAX
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
"""Takes queries, keys and values side by side, (tokens, 3 * width), the number of heads, and the
pack; returns (tokens, width).
"""


def _attention(device: str, precision: dtype, head_width: int) -> Attention:
    """Attention over texts of any length on a GPU in half precision, else over texts of one length.

    head_width: a row's values for one head. On an H200 the kernel of `kernels` was 1.2 to 2.2 times
    as fast as torch's, which is FlashAttention 2.
    """
    import torch

    if device == "cpu" or precision not in (torch.float16, torch.bfloat16):
        return _by_length
    kernels = gpu_kernels(device.partition(":")[0], precision)
    is_power_of_two = head_width & (head_width - 1) == 0
    if kernels is not None and head_width >= 16 and is_power_of_two:
        return partial(_triton_attention, kernels)
    if torch.cuda.get_device_capability(device) >= (8, 0):
        return _flash_attention
    return _by_length


def _triton_attention(kernels: ModuleType, qkv: Tensor, heads: int, tokens: Tokens) -> Tensor:
    attended: Tensor = kernels.attention(qkv, heads, tokens.starts, tokens.longest)
    return attended


def _flash_attention(qkv: Tensor, heads: int, tokens: Tokens) -> Tensor:
    from torch.nn.attention.varlen import varlen_attn

    query, key, value = qkv.view(len(qkv), 3, heads, -1).unbind(1)
    longest = tokens.longest
    attended = varlen_attn(query, key, value, tokens.starts, tokens.starts, longest, longest)
    return attended.reshape(len(qkv), -1)  # type: ignore[union-attr]


def _by_length(qkv: Tensor, heads: int, tokens: Tokens) -> Tensor:
    """Attention over texts of equal length: they are neighbours in a pack, so nothing is copied."""
    import torch

    width = qkv.shape[1] // 3
    attended = torch.empty((len(qkv), width), dtype=qkv.dtype, device=qkv.device)
    attended[tokens.count :] = 0
    for first, texts, length in tokens.runs:
        last = first + texts * length
        query, key, value = qkv[first:last].view(texts, length, 3, heads, -1).permute(2, 0, 3, 1, 4)
        rows = torch.nn.functional.scaled_dot_product_attention(query, key, value)
        attended[first:last].view(texts, length, heads, -1).copy_(rows.transpose(1, 2))
    return attended


@dataclass(frozen=True, slots=True, eq=False)
class Heads:
    """The vectors of a pack, on its device.

    dense: float32 of shape (texts, dimensions). sparse: float32 of shape (terms,); None where the
    model has no such head.
    """

    dense: Tensor
    sparse: Tensor | None


class M3Heads:
    """BGE-M3's dense and sparse heads (Chen et al. 2024, section 3.2), as FlagEmbedding computes
    them.

    sparse: (weight, bias) of the linear layer. The weight of a term is the greatest of its tokens',
    taken on the device.
    """

    def __init__(self, sparse: tuple[Tensor, Tensor], device: str) -> None:
        import torch

        self._sparse = (sparse[0][0].to(device, torch.float32), sparse[1].to(device, torch.float32))

    def __call__(self, hidden: Tensor, tokens: Tokens, slots: Tensor, terms: int) -> Heads:
        """The vectors of a pack; `slots`, `terms`: as in `Pack`."""
        import torch

        dense = _unit(hidden[tokens.starts[:-1].long()])
        weight, bias = self._sparse
        # Not a matrix product, which with one column gave other bits in another pack.
        weights = torch.relu((hidden.float() * weight).sum(1) + bias)
        return Heads(dense, greatest_weights(weights, slots, terms))


class MeanHead:
    """The mean over all tokens, of unit length, as sentence-transformers computes it."""

    def __call__(self, hidden: Tensor, tokens: Tokens, slots: Tensor, terms: int) -> Heads:
        """The dense vectors of a pack."""
        import torch

        means = [
            hidden[first : first + texts * length].view(texts, length, -1).float().mean(1)
            for first, texts, length in tokens.runs
        ]
        return Heads(_unit(torch.cat(means)), None)


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
