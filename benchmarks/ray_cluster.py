"""A Ray cluster on loopback for as long as a benchmark or a test runs: nodes of one processor each on this machine.

Each node's processes bear a mark in their environment, by which they are found: a node is killed like a machine that
loses its power, and nothing outlives the cluster. Ray binds every interface of the machine, so a token is asked of
whoever comes.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

_MARK = "CLUSTER_NODE_OF_A_TEST"
# The least that Ray starts with is 75 MB; steps hand over by files and put nothing into it.
_OBJECT_STORE_BYTES = 80_000_000


@dataclass(slots=True)
class Node:
    """One node: a raylet, its agents, and the steps that it runs."""

    name: str

    def processes(self) -> dict[int, list[str]]:
        """The command of each process of the node, by its number."""
        found = {}
        for folder in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                if f"{_MARK}={self.name}".encode() in (folder / "environ").read_bytes().split(b"\0"):
                    found[int(folder.name)] = (folder / "cmdline").read_text().split("\0")
        return found

    def kill(self) -> None:
        """End every process of the node at once (SIGKILL), and wait until none is left."""
        end = time.monotonic() + 60
        while (left := self.processes()) and time.monotonic() < end:
            for process in left:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(process, signal.SIGKILL)
            time.sleep(0.1)


@dataclass(slots=True)
class Cluster:
    """A cluster whose nodes share a folder. bound: whether each node has one processor of the machine's alone."""

    folder: Path
    variables: Mapping[str, str]
    bound: bool
    token: str = field(default_factory=lambda: secrets.token_hex(32))
    nodes: list[Node] = field(default_factory=list)
    ports: list[int] = field(default_factory=lambda: free_ports(3))

    @property
    def address(self) -> str:
        """Of the job server."""
        return f"http://127.0.0.1:{self.ports[1]}"

    @property
    def environment(self) -> dict[str, str]:
        """What lets a client of the job server in."""
        return {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": self.token}

    def add_node(self) -> Node:
        """Start one more node with one processor; the first one is the head. Raises where it does not come up."""
        node = Node(f"{self.folder.name}-{len(self.nodes)}")
        port, dashboard, client = self.ports
        where = (
            ["--address", f"127.0.0.1:{port}"]
            if self.nodes
            else [
                "--head", "--port", str(port), "--temp-dir", str(self.folder),
                "--dashboard-host", "127.0.0.1", "--dashboard-port", str(dashboard),
                "--ray-client-server-port", str(client),
            ]
        )  # fmt: skip
        self.nodes.append(node)
        alone = ["taskset", "--cpu-list", str((len(self.nodes) - 1) % (os.cpu_count() or 1))] if self.bound else []
        command = [
            *alone, str(Path(sys.executable).with_name("ray")), "start", *where,
            "--node-ip-address", "127.0.0.1", "--num-cpus", "1", "--num-gpus", "0", "--disable-usage-stats",
            "--object-store-memory", str(_OBJECT_STORE_BYTES),
            "--dashboard-agent-listen-port", str(free_ports(1)[0]), "--include-log-monitor", "false",
        ]  # fmt: skip
        done = subprocess.run(
            command, cwd=self.folder, capture_output=True, text=True, timeout=180,
            env={**self.variables, **self.environment, _MARK: node.name},
        )  # fmt: skip
        if done.returncode:
            raise RuntimeError(f"ray start failed:\n{done.stdout[-3000:]}{done.stderr[-3000:]}")
        return node


@contextlib.contextmanager
def cluster(nodes: int, variables: Mapping[str, str], *, bound: bool = False) -> Iterator[Cluster]:
    """A cluster of so many nodes, whose processes have these variables and no others of ours; ended at the end."""
    # Not below a test's own folder: a socket's path may have 107 signs.
    folder = Path(tempfile.mkdtemp(prefix="citeloom-ray-"))
    basis = {name: value for name, value in os.environ.items() if not name.startswith(("CITELOOM_", "RAY_"))}
    made = Cluster(folder, {**basis, **variables}, bound)
    try:
        for _ in range(nodes):
            made.add_node()
        yield made
    finally:
        for node in reversed(made.nodes):
            node.kill()
        shutil.rmtree(folder, ignore_errors=True)


def free_ports(count: int) -> list[int]:
    """Ports that nobody listens on; taken together, so that they differ."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]
