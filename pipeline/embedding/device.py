"""Devices and precisions that the settings may name, and a model on one of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from pipeline.embedding.encoder import Heads, Tokens, gpu_kernels
from pipeline.embedding.packing import Pack, runs
from pipeline.errors import SettingError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from torch import Tensor

# Tokens of a pack. On a CPU the products are at full speed from 160 rows on, and a pack of 1,024
# tokens of BGE-M3 has 16 MB between its two inner products, which the last cache holds. int8 has
# many passes over the rows between its products: with packs of 256 tokens of MiniLM, which nearly
# fit a core's own cache, it was 1.07 times as fast. On an H200, BGE-M3 was 3 % faster with packs of
# 131,072 tokens than with 65,536, for 2.7 GB more, and 13 % slower with 8,192.
CPU_BUDGET = 1024
INT8_BUDGET = 256
GPU_BUDGET = 65_536


@dataclass(frozen=True, slots=True, eq=False)
class HostVectors:
    """The vectors of `Heads` as arrays in the host's memory."""

    dense: NDArray[np.float32]
    sparse: NDArray[np.float32] | None


class EncodingModel(Protocol):
    """A model on one device. `launch` starts a pack and returns at once on a GPU."""

    def launch(self, pack: Pack) -> Callable[[], HostVectors]:
        """Start a pack, from any thread; the function that is returned waits for its vectors."""
        ...

    def release(self) -> None:
        """Give memory back that the device holds for later."""
        ...


Head = Callable[..., Heads]


class DeviceModel:
    """An encoder and its heads on one device, fed from and copied to the host.

    The head is called with what the encoder returns.
    """

    def __init__(self, encoder: Callable[[Tokens], Any], head: Head, device: str) -> None:
        self._encoder, self._head, self._device = encoder, head, device

    def launch(self, pack: Pack) -> Callable[[], HostVectors]:
        """Start a pack. Raises torch.cuda.OutOfMemoryError where it does not fit."""
        import torch

        with torch.inference_mode(), self._current():
            tokens = self._tokens(pack)
            heads = self._head(
                self._encoder(tokens), tokens, self._to_device(pack.slots), pack.terms
            )
            parts = [
                None if part is None else self._to_host(part)
                for part in (heads.dense, heads.sparse)
            ]
            if self._device == "cpu":
                return lambda: _host_vectors(parts)
            done = torch.cuda.Event()  # type: ignore[no-untyped-call]
            done.record()

        def wait() -> HostVectors:
            done.synchronize()
            return _host_vectors(parts)

        return wait

    def release(self) -> None:
        """Empty torch's cache of device memory."""
        import torch

        if self._device != "cpu":
            torch.cuda.empty_cache()

    def _current(self) -> AbstractContextManager[object]:
        """This thread's kernels and events go to the device."""
        import torch

        return nullcontext() if self._device == "cpu" else torch.cuda.device(self._device)

    def _tokens(self, pack: Pack) -> Tokens:
        return Tokens(
            pack.tokens,
            self._to_device(self._padded(pack.ids)),
            self._to_device(self._padded(pack.positions)),
            self._to_device(pack.starts),
            pack.longest,
            runs(pack.starts),
        )

    def _padded(self, array: NDArray[np.int32]) -> NDArray[np.int32]:
        """On a CPU, the array with zeros up to a number of tokens that oneDNN is likely to know."""
        import numpy as np

        if self._device != "cpu":
            return array
        padded: NDArray[np.int32] = np.pad(array, (0, rounded(len(array)) - len(array)))
        return padded

    def _to_device(self, array: NDArray[Any]) -> Tensor:
        import torch

        tensor = torch.from_numpy(array)
        if self._device == "cpu" or not len(array):
            return tensor.to(self._device)
        # From pinned memory the copy does not hold up this thread.
        return tensor.pin_memory().to(self._device, non_blocking=True)

    def _to_host(self, tensor: Tensor) -> Tensor:
        import torch

        if self._device == "cpu" or not tensor.numel():
            return tensor.cpu()
        host = torch.empty(tensor.shape, dtype=tensor.dtype, pin_memory=True)
        return host.copy_(tensor, non_blocking=True)


def rounded(tokens: int) -> int:
    """The next of 16 even steps between a power of two and the next, and of 8 tokens below 128.

    oneDNN makes a kernel for every number of rows and keeps the last 1,024: packs of every size
    took 700 MB more, 64 sizes up to 1,024 tokens take 150. 2 % of the tokens of a pack of 500 to
    1,024 are computed for nothing.
    """
    step = max(8, (1 << (tokens.bit_length() - 1)) // 16)
    return -(-tokens // step) * step


def _host_vectors(parts: list[Tensor | None]) -> HostVectors:
    return HostVectors(*(None if part is None else part.numpy() for part in parts))  # type: ignore[arg-type]


def pick_devices(setting: str) -> tuple[str, ...]:
    """The torch devices for CITELOOM_EMBEDDER_DEVICE; auto and cuda are every GPU.

    Raises SettingError where torch cannot use one.
    """
    import torch

    if setting == "auto" and not torch.cuda.is_available():
        return ("cpu",)
    if setting in ("auto", "cuda"):
        setting = (
            ",".join(f"cuda:{number}" for number in range(torch.cuda.device_count())) or "cuda"
        )
    return tuple(_usable(part.strip()) for part in setting.split(","))


def _usable(device: str) -> str:
    import torch

    if device.partition(":")[0] not in ("cpu", "cuda"):
        raise SettingError(
            f"CITELOOM_EMBEDDER_DEVICE: {device!r} is none of auto, cpu, cuda, cuda:N"
        )
    try:
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        raise SettingError(
            f"CITELOOM_EMBEDDER_DEVICE: torch cannot use {device} here ({error}); set it to auto"
            " or cpu"
        ) from error
    return "cpu" if device.startswith("cpu") else device


def pick_precision(setting: str, device: str, preferred: Sequence[str]) -> str:
    """fp32, bf16, fp16, fp8 or int8 for CITELOOM_EMBEDDER_PRECISION on a device; auto is the first
    of `preferred` it has.

    Raises SettingError where the device cannot compute in that precision, or not faster than in
    fp32.
    """
    supported = _cpu_precisions() if device == "cpu" else _gpu_precisions(device)
    if setting == "auto":
        return next(precision for precision in preferred if precision in supported)
    if setting not in supported:
        raise SettingError(
            f"CITELOOM_EMBEDDER_PRECISION: {device} here has no instructions for {setting}; set it"
            f" to auto or to one of {', '.join(sorted(supported))}"
        )
    return setting


def _cpu_precisions() -> set[str]:
    """bf16 and int8 where the processor multiplies them (AVX-512 BF16 or VNNI, AMX).

    AVX2's 8-bit products saturate between two of them, so there int8 would give other vectors.
    """
    import torch

    features = torch.cpu.get_capabilities()
    supported = {"fp32"}
    if features.get("avx512_bf16") or features.get("amx_bf16"):
        supported.add("bf16")
    if features.get("avx512_vnni") or features.get("amx_int8"):
        supported.add("int8")
    return supported


def _gpu_precisions(device: str) -> set[str]:
    """fp8 from Hopper on, where it was measured, and only with triton."""
    import torch

    supported = {"fp32", "bf16", "fp16"}
    is_hopper = torch.cuda.get_device_capability(device) >= (9, 0)
    if is_hopper and gpu_kernels("cuda", torch.float16) is not None:
        supported.add("fp8")
    return supported


def torch_type(precision: str) -> Any:
    """torch's name of a precision."""
    import torch

    names = {
        "fp32": torch.float32,
        "bf16": torch.bfloat16,
        "fp16": torch.float16,
        "fp8": torch.float8_e4m3fn,
        "int8": torch.int8,
    }
    return names[precision]
