"""What embedders share that run on the engine: passages by the stream, a few texts and questions at once, the facts."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from threading import Lock
from typing import TYPE_CHECKING

from pipeline.embedding.device import CPU_BUDGET, GPU_BUDGET, INT8_BUDGET, Model, pick_devices, pick_precision
from pipeline.embedding.embedder import EngineFacts, VectorBatch, Vectors
from pipeline.embedding.engine import COLBERT_CHARS, WINDOW_CHARS, Budget, Engine

if TYPE_CHECKING:
    from pipeline.embedding.packing import Window

# Texts that `encode` hands to the engine at once.
_AT_ONCE = 256


class PackedEmbedder(ABC):
    """An embedder on the engine. Weights are loaded on first use, onto every device that is named.

    device, precision and tokens: as in the settings CITELOOM_EMBEDDER_DEVICE, _PRECISION and _TOKENS. On a CPU a
    text's vectors do not depend on its neighbours, nor on the number of threads or workers. On a GPU the last place of
    a value may differ with the pack, the card and its driver.
    """

    engine = "citeloom"
    precisions: Sequence[str]
    """What the setting auto takes: the first that the device has."""

    def __init__(
        self, device: str = "auto", precision: str = "auto", tokens: int = 0, *, colbert: bool = False
    ) -> None:
        self._wanted, self._wanted_precision, self._wanted_tokens = device, precision, tokens
        self._colbert = colbert
        self._loading = Lock()
        self._loaded: Engine | None = None

    @abstractmethod
    def _window(self, texts: Sequence[str]) -> Window:
        """The texts as the model reads them; called from several threads."""

    @abstractmethod
    def _model(self, device: str, precision: str) -> Model:
        """The model's weights on a device."""

    @property
    def last_facts(self) -> EngineFacts | None:
        """Devices, precision and tokens of a batch; None until the model is loaded."""
        if self._loaded is None:
            return None
        budget = self._loaded.budget
        return EngineFacts(self._loaded.devices, self._precision, budget.tokens, budget.halved, self.engine)

    def encode(self, texts: Sequence[str]) -> list[Vectors]:
        """Vectors of passages, in float32. For many texts `encode_stream` is faster."""
        return self._encode(self._engine(), texts)

    def encode_queries(self, texts: Sequence[str]) -> list[Vectors]:
        """Vectors of questions, in float32, made in the caller's thread; these models read them as they do passages."""
        return self._encode(self._query_engine(), texts)

    def encode_stream(self, texts: Iterable[str]) -> Iterator[VectorBatch]:
        """Vectors of passages, in float16 and the texts' order, a window of texts at a time."""
        chars = COLBERT_CHARS if self._colbert else WINDOW_CHARS
        return self._engine().stream(texts, self._window, window_chars=chars)

    def _query_engine(self) -> Engine:
        return self._engine()

    def _encode(self, engine: Engine, texts: Sequence[str]) -> list[Vectors]:
        found: list[Vectors] = []
        for first in range(0, len(texts), _AT_ONCE):
            found += _rows(engine.encode(texts[first : first + _AT_ONCE], self._window))
        return found

    def _engine(self) -> Engine:
        with self._loading:
            if self._loaded is None:
                # The tokenizer before the threads that would each load it.
                self._window([""])
                models = [(device, self._model(device, self._precision)) for device in self._devices]
                self._loaded = Engine(models, Budget(self._wanted_tokens or self._usual_tokens()))
            return self._loaded

    @cached_property
    def _devices(self) -> tuple[str, ...]:
        return pick_devices(self._wanted)

    @cached_property
    def _precision(self) -> str:
        return pick_precision(self._wanted_precision, self._devices[0], self.precisions)

    def _usual_tokens(self) -> int:
        if self._devices[0] != "cpu":
            return GPU_BUDGET
        return INT8_BUDGET if self._precision == "int8" else CPU_BUDGET


def _rows(batch: VectorBatch) -> Iterator[Vectors]:
    sparse, colbert = batch.sparse_offsets.tolist(), batch.colbert_offsets
    for text in range(len(batch)):
        terms = slice(sparse[text], sparse[text + 1])
        rows = None
        if batch.colbert is not None and colbert is not None:
            rows = batch.colbert[int(colbert[text]) : int(colbert[text + 1])]
        yield Vectors(
            batch.dense[text],
            batch.sparse_ids[terms],
            batch.sparse_weights[terms],
            rows,  # type: ignore[arg-type]
            truncated=bool(batch.truncated[text]),
        )
