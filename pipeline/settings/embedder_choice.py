"""The embedder of CITELOOM_EMBEDDER=auto: what the data root records, else what suits this machine.

BGE-M3, the model of the published method, runs at hundreds of tokens a second on two cores, so it
is chosen where there is a GPU.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Literal, NamedTuple, cast

from pipeline.errors import CiteloomError, SettingError, missing_package
from pipeline.storage.store import DataPath

Kind = Literal["minilm", "bge-m3", "sentence-transformers"]

NAMED = "CITELOOM_EMBEDDER"
"""The reason for an embedder that the settings name."""
_RECORDED = "recorded in the data root"
_FILE = "embedder.json"
# Seconds to wait for the hub.
_PATIENCE = 3.0


class EmbedderChoice(NamedTuple):
    """An embedder (a kind, and the path of its model) and the reason for it."""

    kind: Kind
    path: str
    reason: str


def choose_embedder(
    root: DataPath,
    path: str,
    device: str,
    obstacle: Callable[[str, str], str] | None = None,
) -> EmbedderChoice:
    """The embedder that a data root records; MiniLM, the earlier default, for a root with vectors
    and no record; else BGE-M3 where a GPU and its weights are.

    path, device: CITELOOM_EMBEDDER_PATH and CITELOOM_EMBEDDER_DEVICE. obstacle: why a machine does
    not embed with BGE-M3 of this path on this device, empty if it does; by default of this machine.
    Raises SettingError for a damaged record: with another model, all texts would be embedded again.
    """
    file = root / _FILE
    try:
        record = json.loads(file.read_bytes())
        return EmbedderChoice(record["embedder"], record["path"] or path, _RECORDED)
    except (ValueError, KeyError, TypeError) as error:
        raise SettingError(
            f"{file} does not name the embedder ({type(error).__name__}: {error}):"
            " set CITELOOM_EMBEDDER to that of its vectors"
        ) from error
    except (OSError, CiteloomError):  # no record, or a store that does not answer
        pass
    with suppress(OSError, CiteloomError):
        if any((root / "embeddings").glob("*.parquet")):
            return EmbedderChoice(
                "minilm", path, "the data root has vectors of the earlier default"
            )
    reason = (obstacle or _obstacle)(path, device)
    if reason:
        return EmbedderChoice("minilm", path, reason)
    return EmbedderChoice("bge-m3", path, "there is a GPU, and the weights can be had")


def record_embedder(root: DataPath, kind: str, path: str, reason: str) -> None:
    """Record the embedder of a data root, which `auto` then stands for there.

    path: of the model; empty for CITELOOM_EMBEDDER_PATH. reason: why it is this one. Raises
    SettingError where `auto` chose another than the recorded one.
    """
    from pipeline.storage.writing import write_whole

    file = root / _FILE
    content = json.dumps({"embedder": kind, "path": path}).encode()
    recorded = file.read_bytes() if file.exists() else b""
    if recorded and reason not in (NAMED, _RECORDED) and recorded != content:
        raise SettingError(f"{file} could not be read when this process began: run it again")
    if recorded != content:
        write_whole(cast(Path, file), content)


@lru_cache(maxsize=1)
def _obstacle(path: str, device: str) -> str:
    """Why this machine does not embed with BGE-M3 by default; empty if it does."""
    # Without a driver, torch need not be imported, which takes two seconds.
    if device.startswith("cpu") or not any(Path("/dev").glob("nvidia[0-9]*")):
        return "there is no GPU"
    import torch

    if not torch.cuda.is_available():
        return "torch cannot use the GPU"
    if message := missing_package("CITELOOM_EMBEDDER=bge-m3", "gpu", "transformers"):
        return f"there is a GPU, and {message}"
    return "" if _has_weights(path) else f"there is a GPU, and {path} cannot be had"


def _has_weights(path: str) -> bool:
    """Whether a model is a folder or in the hub's cache, or the hub offers it."""
    from huggingface_hub import model_info, try_to_load_from_cache

    if Path(path).expanduser().is_dir():
        return True
    model, _, revision = path.partition("@")
    if isinstance(try_to_load_from_cache(model, "config.json", revision=revision or None), str):
        return True
    try:
        model_info(model, revision=revision or None, timeout=_PATIENCE)
    except Exception:  # of the hub's client, or of what is below it
        return False
    return True
