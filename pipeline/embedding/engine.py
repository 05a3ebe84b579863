"""Texts in, vectors out, in order: tokens made ahead in threads, packs taken by one worker per device
from one queue.
"""

from __future__ import annotations

import logging
import os
import queue
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any

from pipeline.embedding.device import Landed, Model
from pipeline.embedding.embedder import VectorBatch
from pipeline.embedding.packing import Pack, Window, packs
from pipeline.embedding.tokens import spans, text_windows

if TYPE_CHECKING:
    from numpy.typing import NDArray

_log = logging.getLogger(__name__)

# Texts of a window: enough to find texts of like length, few enough that a killed run loses little. A window also
# ends at a number of characters, so that 1,024 texts of 8,192 tokens are not 8 million tokens at once; ColBERT
# vectors of the smaller number are 250 MB.
WINDOW_TEXTS = 1024
WINDOW_CHARS = 4_000_000
COLBERT_CHARS = 500_000
# Packs that a device has before their vectors are fetched: one runs while the next is made ready.
_IN_FLIGHT = 2


class Budget:
    """The tokens of a pack, shared by the workers; halved where a device runs out of memory, and said once."""

    def __init__(self, tokens: int) -> None:
        self.tokens, self.halved = tokens, 0
        self._lock = threading.Lock()

    def too_large(self, pack: Pack, device: str) -> None:
        """A pack did not fit; halve the budget, unless another worker has done so since the pack was started."""
        with self._lock:
            if pack.tokens > self.tokens:
                return
            if not self.halved:
                _log.warning(
                    "%s ran out of memory with %d tokens in a batch: batches are halved from here on; "
                    "set CITELOOM_EMBEDDER_TOKENS lower to begin so",
                    device,
                    pack.tokens,
                )
            self.tokens = max(1, self.tokens // 2)
            self.halved += 1


@dataclass(frozen=True, slots=True)
class Options:
    """How an engine reads a stream: texts and characters of a window, and whether vectors are rounded to float16."""

    texts: int = WINDOW_TEXTS
    chars: int = WINDOW_CHARS
    half: bool = True


Prepare = Callable[[Sequence[str]], Window]


class Engine:
    """A model on its devices. models: one per device, with the device's name."""

    def __init__(self, models: Sequence[tuple[str, Model]], budget: Budget) -> None:
        self._models, self.budget = models, budget

    @property
    def devices(self) -> tuple[str, ...]:
        """The devices, in the order of the setting."""
        return tuple(device for device, _ in self._models)

    def stream(self, texts: Iterable[str], prepare: Prepare, options: Options) -> Iterator[VectorBatch]:
        """Vectors of the texts, window by window, in their order.

        prepare: makes a window of texts, in another thread. Texts are taken from the iterator in the caller's. Any
        error of a device is raised as it is, but for memory: see `Budget`.
        """
        ahead = len(self._models) + 2
        waiting: deque[Future[VectorBatch]] = deque()
        with _Crew(self._models, self.budget, options.half) as crew, _Tokenizers() as tokenizers:
            for window in text_windows(texts, options.texts, options.chars):
                waiting.append(self._begin(window, prepare, crew, tokenizers))
                if len(waiting) > ahead:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()

    def encode(self, texts: Sequence[str], prepare: Prepare) -> VectorBatch:
        """Vectors of a few texts in the caller's thread, on the first device, as float32. `texts` is not empty."""
        collected = _Collected(prepare(texts), half=False)
        device, model = self._models[0]
        for pack in packs(collected.window, self.budget.tokens):
            for part, land in _launched(pack, device, model, self.budget, False, deque()):
                collected.put(part, land())
        return collected.done.result()

    def _begin(
        self, texts: Sequence[str], prepare: Prepare, crew: _Crew, tokenizers: ThreadPoolExecutor
    ) -> Future[VectorBatch]:
        promised: Future[VectorBatch] = Future()

        def begin() -> None:
            try:
                crew.take(_Collected(prepare(texts), crew.half, promised))
            except Exception as error:
                promised.set_exception(error)

        tokenizers.submit(begin)
        return promised


class _Tokenizers(ThreadPoolExecutor):
    """Threads that make windows. The tokenizer uses all cores itself: two threads keep it busy."""

    def __init__(self) -> None:
        super().__init__(max_workers=min(2, os.cpu_count() or 1), thread_name_prefix="tokens")

    def __exit__(self, *error: object) -> None:
        self.shutdown(wait=True, cancel_futures=True)


class _Collected:
    """A window's vectors as packs bring them, put back into the texts' order."""

    def __init__(self, window: Window, half: bool, done: Future[VectorBatch] | None = None) -> None:
        self.window, self._half = window, half
        self.done: Future[VectorBatch] = done or Future()
        self._left = len(window.rows)
        self._lock = threading.Lock()
        self._dense: NDArray[Any] | None = None
        self._weights: NDArray[Any] | None = None
        self._colbert: NDArray[Any] | None = None

    def put(self, pack: Pack, landed: Landed) -> None:
        """Take a pack's vectors; with the last pack, the window is done."""
        with self._lock:
            self._keep(pack, landed)
            self._left -= len(pack.places)
            if not self._left:
                self.done.set_result(self._batch())

    def _keep(self, pack: Pack, landed: Landed) -> None:
        import numpy as np

        rows, terms = self.window.rows, self.window.terms
        if self._dense is None:
            self._dense = np.empty((len(rows), landed.dense.shape[1]), np.float16 if self._half else np.float32)
            if landed.sparse is not None and terms is not None:
                self._weights = np.empty(len(terms.ids), dtype=np.float32)
            if landed.colbert is not None:
                shape = (len(rows.ids) - len(rows), landed.colbert.shape[1])
                self._colbert = np.empty(shape, dtype=landed.colbert.dtype)
        self._dense[pack.places] = landed.dense
        if landed.sparse is not None and terms is not None and self._weights is not None:
            self._weights[spans(terms.offsets[pack.places], terms.lengths[pack.places])] = landed.sparse
        if landed.colbert is not None and self._colbert is not None:
            first = rows.offsets[pack.places] - pack.places
            self._colbert[spans(first, rows.lengths[pack.places] - 1)] = landed.colbert

    def _batch(self) -> VectorBatch:
        import numpy as np

        window = self.window
        if self._dense is None:
            raise AssertionError("a window without texts")
        places = np.arange(len(window.rows) + 1)
        offsets, ids, weights = self._sparse()
        return VectorBatch(
            dense=self._dense,
            sparse_offsets=offsets,
            sparse_ids=ids,
            sparse_weights=weights,
            colbert_offsets=None if self._colbert is None else (window.rows.offsets - places).astype(np.int32),
            colbert=self._colbert,
            truncated=window.truncated,
            tokens=len(window.rows.ids),
        )

    def _sparse(self) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
        """Offsets, ids and weights of the sparse vectors, which are empty where the model makes none."""
        import numpy as np

        terms = self.window.terms
        if terms is None or self._weights is None:
            texts = len(self.window.rows)
            return np.zeros(texts + 1, np.int32), np.empty(0, np.uint32), np.empty(0, np.float32)
        kept = self._weights > 0  # a weight of 0 is none
        before = np.concatenate([np.zeros(1, np.int64), np.cumsum(kept)])
        return before[terms.offsets].astype(np.int32), terms.ids[kept], self._weights[kept]


@dataclass(frozen=True, slots=True, eq=False)
class _Task:
    pack: Pack
    collected: _Collected


class _Crew:
    """One thread per device, all taking packs from one queue."""

    def __init__(self, models: Sequence[tuple[str, Model]], budget: Budget, half: bool) -> None:
        self.half = half
        self._budget = budget
        self._tasks: queue.SimpleQueue[_Task | None] = queue.SimpleQueue()
        self._stopped = threading.Event()
        self._threads = [
            threading.Thread(target=self._work, args=pair, name=f"encode {pair[0]}", daemon=True) for pair in models
        ]

    def __enter__(self) -> _Crew:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stopped.set()
        for _ in self._threads:
            self._tasks.put(None)
        for thread in self._threads:
            thread.join()

    def take(self, collected: _Collected) -> None:
        """Queue a window's packs."""
        for pack in packs(collected.window, self._budget.tokens):
            self._tasks.put(_Task(pack, collected))

    def _work(self, device: str, model: Model) -> None:
        flying: deque[Callable[[], None]] = deque()
        while (task := self._next(flying)) is not None:
            try:
                for pack, land in _launched(task.pack, device, model, self._budget, self.half, flying):
                    flying.append(_landing(task.collected, pack, land))
                    if len(flying) >= _IN_FLIGHT:
                        flying.popleft()()
            except Exception as error:
                _fail(task.collected, error)

    def _next(self, flying: deque[Callable[[], None]]) -> _Task | None:
        """The next task; while there is none, vectors that are under way are fetched."""
        while True:
            try:
                task = self._tasks.get(block=not flying)
            except queue.Empty:
                flying.popleft()()
            else:
                return None if self._stopped.is_set() else task


def _landing(collected: _Collected, pack: Pack, land: Callable[[], Landed]) -> Callable[[], None]:
    def fetch() -> None:
        try:
            collected.put(pack, land())
        except Exception as error:
            _fail(collected, error)

    return fetch


def _fail(collected: _Collected, error: BaseException) -> None:
    if not collected.done.done():
        collected.done.set_exception(error)


def _launched(
    pack: Pack, device: str, model: Model, budget: Budget, half: bool, flying: deque[Callable[[], None]]
) -> Iterator[tuple[Pack, Callable[[], Landed]]]:
    """A pack started; where memory lacks, its halves, once what is `flying` has landed and given its memory back.

    A single text that does not fit raises torch.cuda.OutOfMemoryError as it is, and so does any other error.
    """
    if len(pack.places) < 2:
        yield pack, model.launch(pack, half=half)
        return
    import torch

    # One made before the budget was halved is not tried as it is.
    if pack.tokens <= budget.tokens:
        try:
            land = model.launch(pack, half=half)
        except torch.cuda.OutOfMemoryError:
            pass
        else:
            yield pack, land
            return
        budget.too_large(pack, device)
        while flying:
            flying.popleft()()
        model.release()
    for part in pack.halves():
        yield from _launched(part, device, model, budget, half, flying)
