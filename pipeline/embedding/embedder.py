"""The protocol of an embedding model, and its vectors, by text and in columns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from pipeline.embedding.packing import offsets_of, spans

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True, eq=False)
class SparseVector:
    """ids: uint32, ascending, of shape (terms,). weights: float32 of the same shape."""

    ids: NDArray[np.uint32]
    weights: NDArray[np.float32]


@dataclass(frozen=True, slots=True, eq=False)
class SparseRows:
    """Sparse vectors of texts: text n has ids and weights[offsets[n]:offsets[n + 1]].

    offsets: int64 of shape (texts + 1,). ids: uint32, ascending within a text, and weights:
    float32, of shape (terms,).
    """

    offsets: NDArray[np.int64]
    ids: NDArray[np.uint32]
    weights: NDArray[np.float32]

    @classmethod
    def of(cls, rows: Sequence[Mapping[int, float]]) -> SparseRows:
        """The vectors of mappings from id to weight."""
        import numpy as np

        offsets = np.cumsum([0, *map(len, rows)], dtype=np.int64)
        ids = np.fromiter(
            (number for row in rows for number in sorted(row)), np.uint32, int(offsets[-1])
        )
        weights = np.fromiter(
            (row[number] for row in rows for number in sorted(row)), np.float32, int(offsets[-1])
        )
        return cls(offsets, ids, weights)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @classmethod
    def nothing(cls, texts: int) -> SparseRows:
        """As many vectors without a term."""
        return cls.of([{}] * texts)

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Terms of every text, of shape (texts,)."""
        return self.offsets[1:] - self.offsets[:-1]

    def take(self, numbers: NDArray[np.int64]) -> SparseRows:
        """The vectors of some texts, by their numbers."""
        lengths = self.lengths[numbers]
        places = spans(self.offsets[numbers], lengths)
        return SparseRows(offsets_of(lengths), self.ids[places], self.weights[places])

    def row(self, number: int) -> SparseVector:
        """One text's vector."""
        terms = slice(self.offsets[number], self.offsets[number + 1])
        return SparseVector(self.ids[terms], self.weights[terms])


@dataclass(frozen=True, slots=True, eq=False)
class Vectors:
    """One text's vectors.

    dense: float32 of shape (dimensions,), unit length. sparse: its weights are greater than 0.
    truncated: whether the dense vector saw only the text's beginning.
    """

    dense: NDArray[np.float32]
    sparse: SparseVector
    truncated: bool


@dataclass(frozen=True, slots=True, eq=False)
class VectorBatch:
    """Vectors of consecutive texts, columnar.

    dense: float16 of shape (texts, dimensions), of unit length before it was rounded. sparse: with
    weights greater than 0. truncated: bool of shape (texts,). tokens: the tokens that the model
    read for these texts.
    """

    dense: NDArray[np.float16]
    sparse: SparseRows
    truncated: NDArray[np.bool_]
    tokens: int

    def __len__(self) -> int:
        return len(self.dense)


@dataclass(frozen=True, slots=True)
class EngineFacts:
    """How the last texts were encoded: devices and precision, tokens of a batch, how often memory
    made it halve, and the engine (CITELOOM_EMBEDDER_ENGINE).
    """

    devices: tuple[str, ...]
    precision: str
    token_budget: int
    halved: int
    engine: str = "citeloom"


class Embedder(Protocol):
    """A model that turns texts into vectors.

    A text's vectors do not depend on what it is encoded with, as far as the engine says in its own
    docstring.
    """

    @property
    def name(self) -> str:
        """The model's identity: vectors of two models never compare, so no two share a name."""
        ...

    @property
    def dimensions(self) -> int:
        """Length of the dense vector."""
        ...

    @property
    def max_tokens(self) -> int:
        """Tokens that the model reads, special tokens counted."""
        ...

    @property
    def has_sparse(self) -> bool:
        """Whether the model has a sparse head; else sparse vectors are empty."""
        ...

    @property
    def last_facts(self) -> EngineFacts | None:
        """What the last call of `encode…` ran on; None before the first."""
        ...

    def encode(self, texts: Sequence[str]) -> list[Vectors]:
        """Vectors of passages, in the texts' order."""
        ...

    def encode_stream(self, texts: Iterable[str]) -> Iterator[VectorBatch]:
        """Vectors of passages, in order; holds a few windows of texts at a time."""
        ...

    def encode_queries(self, texts: Sequence[str]) -> list[Vectors]:
        """Vectors of questions, in the texts' order."""
        ...
