"""A Ray cluster on loopback for as long as a benchmark or a test runs: nodes of one processor each
on this machine.

Each node's processes carry a mark in their environment, by which they are found: a node is killed
like a machine that loses its power, and nothing outlives the cluster. Ray binds every interface of
the machine, so a token is required.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.harness import free_ports

_PROJECT = Path(__file__).resolve().parents[1]
_PROGRAMS = Path(sys.executable).parent
_MARK = "CLUSTER_NODE_OF_A_TEST"
# The least that Ray starts with is 75 MB; steps exchange files and put nothing into it.
_OBJECT_STORE_BYTES = 80_000_000


def base_environment() -> dict[str, str]:
    """This process's environment without our settings and Ray's; our code and programs first."""
    others = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("CITELOOM_", "RAY_"))
    }
    path = os.pathsep.join([str(_PROGRAMS), others.get("PATH", os.defpath)])
    return {**others, "PATH": path, "PYTHONPATH": str(_PROJECT)}


@dataclass(slots=True)
class Node:
    """One node: a raylet, its agents, and the steps that it runs."""

    name: str

    def processes(self) -> dict[int, list[str]]:
        """The command line of each process of the node, by process id."""
        commands = {}
        for folder in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                if f"{_MARK}={self.name}".encode() in (folder / "environ").read_bytes().split(
                    b"\0"
                ):
                    commands[int(folder.name)] = (folder / "cmdline").read_text().split("\0")
        return commands

    def steps(self) -> list[int]:
        """The ids of the processes that run a Dagster step."""
        return [
            process for process, command in self.processes().items() if "execute_step" in command
        ]

    def kill(self) -> None:
        """Kill every process of the node at once (SIGKILL), and wait until none is left."""
        end = time.monotonic() + 60
        while (left := self.processes()) and time.monotonic() < end:
            for process in left:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(process, signal.SIGKILL)
            time.sleep(0.1)


@dataclass(slots=True)
class Cluster:
    """A cluster whose nodes share a folder. bound: whether each node has a processor to itself."""

    folder: Path
    variables: Mapping[str, str]
    bound: bool
    token: str = field(default_factory=lambda: secrets.token_hex(32))
    nodes: list[Node] = field(default_factory=list)
    ports: list[int] = field(default_factory=lambda: free_ports(3))

    @property
    def address(self) -> str:
        """URL of the job server."""
        return f"http://127.0.0.1:{self.ports[1]}"

    @property
    def environment(self) -> dict[str, str]:
        """Variables with which the job server admits a client."""
        return {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": self.token}

    def add_node(self) -> Node:
        """Start one more node of one processor, first the head. Raises if it does not come up."""
        node = Node(f"{self.folder.name}-{len(self.nodes)}")
        port, dashboard, client = self.ports
        where = (
            ["--address", f"127.0.0.1:{port}"]
            if self.nodes
            else [
                "--head",
                "--port",
                str(port),
                "--temp-dir",
                str(self.folder),
                "--dashboard-host",
                "127.0.0.1",
                "--dashboard-port",
                str(dashboard),
                "--ray-client-server-port",
                str(client),
            ]
        )
        self.nodes.append(node)
        one_processor = [
            "taskset",
            "--cpu-list",
            str((len(self.nodes) - 1) % (os.cpu_count() or 1)),
        ]
        command = [
            *(one_processor if self.bound else []),
            str(_PROGRAMS / "ray"),
            "start",
            *where,
            "--node-ip-address",
            "127.0.0.1",
            "--num-cpus",
            "1",
            "--num-gpus",
            "0",
            "--disable-usage-stats",
            "--object-store-memory",
            str(_OBJECT_STORE_BYTES),
            "--dashboard-agent-listen-port",
            str(free_ports(1)[0]),
            "--include-log-monitor",
            "false",
        ]
        done = subprocess.run(
            command,
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=180,
            env={**self.variables, **self.environment, _MARK: node.name},
        )
        if done.returncode:
            raise RuntimeError(f"ray start failed:\n{done.stdout[-3000:]}{done.stderr[-3000:]}")
        return node


@contextlib.contextmanager
def cluster(nodes: int, variables: Mapping[str, str], *, bound: bool = False) -> Iterator[Cluster]:
    """A cluster of so many nodes, whose processes have these variables and no other settings;
    killed at the end.
    """
    # Not below a test's own folder: the path of a socket may have 107 characters.
    folder = Path(tempfile.mkdtemp(prefix="citeloom-ray-"))
    started = Cluster(folder, {**base_environment(), **variables}, bound)
    try:
        for _ in range(nodes):
            started.add_node()
        yield started
    finally:
        for node in reversed(started.nodes):
            node.kill()
        shutil.rmtree(folder, ignore_errors=True)
