"""Turn texts into vectors, in order: threads tokenize windows of texts, others encode them.

`PackedEmbedder` is the base class of the embedders that run on the engine.
"""

from __future__ import annotations

import logging
import os
import queue
import threading
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from functools import cached_property
from typing import TYPE_CHECKING, Any

from pipeline.embedding.device import (
    CPU_BUDGET,
    GPU_BUDGET,
    INT8_BUDGET,
    EncodingModel,
    HostVectors,
    pick_devices,
    pick_precision,
)
from pipeline.embedding.embedder import EngineFacts, SparseRows, VectorBatch, Vectors
from pipeline.embedding.packing import (
    Pack,
    Window,
    cut,
    offsets_of,
    packs,
    positions,
    spans,
    text_windows,
    tokenize,
)
from pipeline.errors import SettingError

if TYPE_CHECKING:
    from numpy.typing import NDArray

_log = logging.getLogger(__name__)

# Texts of a window: enough to find texts of like length, few enough that a killed run loses little.
# A window also ends at a number of characters, so that 512 texts of 8,192 tokens are not 4
# million tokens at once.
WINDOW_TEXTS = 512
WINDOW_CHARS = 4_000_000
# Windows that a GPU encodes at once: one starts while the last packs of the other are computed.
_GPU_WINDOWS = 2
# Packs of a window that a device has before their vectors are fetched: one runs while the next is
# made ready.
_IN_FLIGHT = 2
# Texts that `PackedEmbedder.encode` hands to the engine at once.
_AT_ONCE = 256


class PackBudget:
    """The most tokens of a pack, for all threads; halved, with a warning, where memory runs out."""

    def __init__(self, tokens: int) -> None:
        self.tokens, self.halved = tokens, 0
        self._lock = threading.Lock()

    def too_large(self, pack: Pack, device: str) -> None:
        """Halve the budget, unless another thread has done so since the pack was started."""
        with self._lock:
            if pack.tokens > self.tokens:
                return
            if not self.halved:
                _log.warning(
                    "%s ran out of memory with %d tokens in a batch: batches are halved from here"
                    " on; set CITELOOM_EMBEDDER_TOKENS lower to begin so",
                    device,
                    pack.tokens,
                )
            self.tokens = max(1, self.tokens // 2)
            self.halved += 1


Prepare = Callable[[Sequence[str]], Window]


class Engine:
    """A model on its devices.

    models: one per device, with the device's name. On a GPU, two threads call one model.
    """

    def __init__(self, models: Sequence[tuple[str, EncodingModel]], budget: PackBudget) -> None:
        self._models, self.budget = models, budget

    @property
    def devices(self) -> tuple[str, ...]:
        """The devices, in the order of the setting."""
        return tuple(device for device, _ in self._models)

    def stream(
        self,
        texts: Iterable[str],
        prepare: Prepare,
        *,
        window_texts: int = WINDOW_TEXTS,
        window_chars: int = WINDOW_CHARS,
    ) -> Iterator[VectorBatch]:
        """Vectors of the texts as float16, window by window, in their order.

        prepare: makes a window of texts, in another thread. window_texts, window_chars: a window's
        greatest size. Texts are taken from the iterator in the caller's thread. Raises SettingError
        where a device's memory does not hold a single text; its other errors are raised as they
        are.
        """
        free: queue.SimpleQueue[tuple[str, EncodingModel]] = queue.SimpleQueue()
        for device, model in self._models:
            for _ in range(1 if device == "cpu" else _GPU_WINDOWS):
                free.put((device, model))
        threads = free.qsize()
        stopped = threading.Event()

        def divide(texts: Sequence[str]) -> tuple[Window, list[Pack]]:
            window = prepare(texts)
            return window, packs(window, self.budget.tokens)

        def encode(division: Future[tuple[Window, list[Pack]]]) -> VectorBatch:
            device, model = free.get()
            try:
                window, window_packs = division.result()
                return _encode_window(
                    window, window_packs, device, model, self.budget, half=True, stopped=stopped
                )
            finally:
                free.put((device, model))

        # The tokenizer uses all cores itself: two threads keep it busy.
        tokenizers = ThreadPoolExecutor(min(2, os.cpu_count() or 1), "tokens")
        workers = ThreadPoolExecutor(threads, "encode")
        waiting: deque[Future[VectorBatch]] = deque()
        try:
            for window in text_windows(texts, window_texts, window_chars):
                waiting.append(workers.submit(encode, tokenizers.submit(divide, window)))
                if len(waiting) > threads + 2:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            stopped.set()
            for pool in (workers, tokenizers):
                pool.shutdown(cancel_futures=True)

    def encode(self, texts: Sequence[str], prepare: Prepare) -> VectorBatch:
        """Vectors of a few texts (at least one) in the caller's thread, as float32."""
        device, model = self._models[0]
        window = prepare(texts)
        window_packs = packs(window, self.budget.tokens)
        return _encode_window(window, window_packs, device, model, self.budget, half=False)


def _encode_window(
    window: Window,
    window_packs: Sequence[Pack],
    device: str,
    model: EncodingModel,
    budget: PackBudget,
    *,
    half: bool,
    stopped: threading.Event | None = None,
) -> VectorBatch:
    """A window's vectors.

    window_packs: all its texts. half: as float16, else float32. stopped: raise CancelledError
    before the next pack once it is set.

    A pack that does not fit into memory is halved. Raises SettingError where a single text does not
    fit; other errors of the device are raised as they are.
    """
    vectors = _WindowVectors(window, half)
    waiting = deque(window_packs)
    in_flight: deque[tuple[Pack, Callable[[], HostVectors]]] = deque()
    while waiting:
        if stopped is not None and stopped.is_set():
            raise CancelledError
        pack = waiting.popleft()
        # The pack was made before the budget was halved.
        if len(pack.places) > 1 and pack.tokens > budget.tokens:
            waiting.extendleft(reversed(pack.halves()))
            continue
        wait = _launch(pack, model)
        if wait is None:
            while in_flight:  # this frees their memory
                vectors.put(*in_flight.popleft())
            model.release()
            if len(pack.places) > 1:
                budget.too_large(pack, device)
                waiting.extendleft(reversed(pack.halves()))
                continue
            wait = _launch(pack, model)
            if wait is None:
                raise SettingError(
                    f"CITELOOM_EMBEDDER_DEVICE: the memory of {device} does not hold one text of"
                    f" {pack.tokens} tokens: end other programs that use it, or set another device"
                    " or cpu"
                )
        in_flight.append((pack, wait))
        if len(in_flight) >= _IN_FLIGHT:
            vectors.put(*in_flight.popleft())
    while in_flight:
        vectors.put(*in_flight.popleft())
    return vectors.batch()


def _launch(pack: Pack, model: EncodingModel) -> Callable[[], HostVectors] | None:
    """Start a pack; None where it does not fit into memory."""
    try:
        return model.launch(pack)
    except RuntimeError as error:
        import torch  # not before: a query is encoded without it

        if isinstance(error, torch.cuda.OutOfMemoryError):
            return None
        raise


class _WindowVectors:
    """A window's vectors, collected pack by pack and put into the order of the texts."""

    def __init__(self, window: Window, half: bool) -> None:
        self._window, self._half = window, half
        self._dense: NDArray[Any] | None = None
        self._weights: NDArray[Any] | None = None

    def put(self, pack: Pack, wait: Callable[[], HostVectors]) -> None:
        """Wait for a pack's vectors and take them."""
        import numpy as np

        vectors = wait()
        rows, terms = self._window.rows, self._window.terms
        if self._dense is None:
            self._dense = np.empty(
                (len(rows), vectors.dense.shape[1]), np.float16 if self._half else np.float32
            )
            if vectors.sparse is not None and terms is not None:
                self._weights = np.empty(len(terms.ids), dtype=np.float32)
        self._dense[pack.places] = vectors.dense
        if vectors.sparse is not None and terms is not None and self._weights is not None:
            self._weights[spans(terms.offsets[pack.places], terms.lengths[pack.places])] = (
                vectors.sparse
            )

    def batch(self) -> VectorBatch:
        """The vectors of all texts, once every pack was put. Raises AssertionError for a window
        without texts.
        """
        window = self._window
        if self._dense is None:
            raise AssertionError("a window without texts")
        return VectorBatch(
            dense=self._dense,
            sparse=self._sparse(),
            truncated=window.truncated,
            tokens=len(window.rows.ids),
        )

    def _sparse(self) -> SparseRows:
        """The sparse vectors; empty where the model makes none."""
        terms = self._window.terms
        if terms is None or self._weights is None:
            return SparseRows.nothing(len(self._window.rows))
        positive = self._weights > 0  # a sparse vector has no weights of 0
        before = offsets_of(positive)
        return SparseRows(before[terms.offsets], terms.ids[positive], self._weights[positive])


class PackedEmbedder(ABC):
    """An embedder on the engine. Weights are loaded on first use, onto every device that is named.

    device, precision and tokens: as in the settings CITELOOM_EMBEDDER_DEVICE, _PRECISION and
    _TOKENS. On a CPU a text's vectors do not depend on its neighbours or on the number of threads.
    On a GPU the last digit of a value may differ with the pack, the card and its driver.
    """

    engine = "citeloom"
    max_tokens: int
    precisions: Sequence[str]
    """The setting auto takes the first that the device supports."""

    def __init__(self, device: str = "auto", precision: str = "auto", tokens: int = 0) -> None:
        self._device_setting, self._precision_setting, self._tokens_setting = (
            device,
            precision,
            tokens,
        )
        self._loading = threading.Lock()
        self._loaded: Engine | None = None

    @property
    @abstractmethod
    def _tokenizer(self) -> Any:
        """The tokenizer of the model."""

    def _window(self, texts: Sequence[str]) -> Window:
        """The texts as the model reads them; called from several threads."""
        rows, truncated = cut(tokenize(self._tokenizer, texts), self.max_tokens)
        return Window(rows, positions(rows, None), None, truncated)

    @abstractmethod
    def _model(self, device: str, precision: str) -> EncodingModel:
        """The model's weights on a device."""

    @property
    def last_facts(self) -> EngineFacts | None:
        """Devices, precision and tokens of a batch; None until the model is loaded."""
        if self._loaded is None:
            return None
        budget = self._loaded.budget
        return EngineFacts(
            self._loaded.devices, self._precision, budget.tokens, budget.halved, self.engine
        )

    def encode(self, texts: Sequence[str]) -> list[Vectors]:
        """Vectors of passages, in float32. For many texts `encode_stream` is faster."""
        return self._encode(self._engine(), texts)

    def encode_queries(self, texts: Sequence[str]) -> list[Vectors]:
        """Vectors of questions, in float32, made in the caller's thread."""
        return self._encode(self._query_engine(), texts)

    def encode_stream(self, texts: Iterable[str]) -> Iterator[VectorBatch]:
        """Vectors of passages, in float16 and the texts' order, a window of texts at a time."""
        return self._engine().stream(texts, self._window)

    def _query_engine(self) -> Engine:
        return self._engine()

    def _encode(self, engine: Engine, texts: Sequence[str]) -> list[Vectors]:
        vectors: list[Vectors] = []
        for first in range(0, len(texts), _AT_ONCE):
            batch = engine.encode(texts[first : first + _AT_ONCE], self._window)
            vectors += [
                Vectors(batch.dense[text], batch.sparse.row(text), bool(batch.truncated[text]))
                for text in range(len(batch))
            ]
        return vectors

    def _engine(self) -> Engine:
        with self._loading:
            if self._loaded is None:
                # The tokenizer before the threads that would each load it.
                self._window([""])
                models = [
                    (device, self._model(device, self._precision)) for device in self._devices
                ]
                self._loaded = Engine(
                    models, PackBudget(self._tokens_setting or self._usual_tokens())
                )
            return self._loaded

    @cached_property
    def _devices(self) -> tuple[str, ...]:
        return pick_devices(self._device_setting)

    @cached_property
    def _precision(self) -> str:
        return pick_precision(self._precision_setting, self._devices[0], self.precisions)

    def _usual_tokens(self) -> int:
        if self._devices[0] != "cpu":
            return GPU_BUDGET
        return INT8_BUDGET if self._precision == "int8" else CPU_BUDGET
