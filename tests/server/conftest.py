"""A real Qdrant server on loopback, with an API key, random ports and storage that goes with it.

`.ci/install-qdrant` installs the binary; CITELOOM_TEST_QDRANT names another. Without one these
tests are not run.
"""

import os
import re
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

import pytest
from pydantic import SecretStr

from benchmarks.harness import free_ports
from benchmarks.qdrant_server import INSTALLED, start
from pipeline.index.opening import close_indexes
from pipeline.index.server import ServerCollections
from pipeline.index.server_requests import Storage
from tests.processes import end_with_tests
from tests.required_tools import missing_tool
from tests.unit.index.building import make_workspace

KEY = "a key of the tests"
# A file system in memory, which Linux has, and the bytes that it must have to spare.
MEMORY, ROOM = Path("/dev/shm"), 4 << 30


@dataclass
class Server:
    """Where the server listens."""

    http_port: int
    grpc_port: int

    @property
    def url(self):
        return f"http://127.0.0.1:{self.http_port}"


def open_collections(server, alias, over="grpc", patience=60.0, **storage):
    """The collections of an alias, over "http" or "grpc"."""
    port = server.grpc_port if over == "grpc" else None
    key, kept = SecretStr(KEY), Storage(**storage)
    return ServerCollections(
        server.url, alias, key, grpc_port=port, patience=patience, storage=kept
    )


def workspace_on(folder, server, alias, **overrides):
    """A workspace whose index is on the server, over gRPC."""
    return make_workspace(
        folder,
        qdrant_url=server.url,
        qdrant_api_key=KEY,
        qdrant_grpc_port=server.grpc_port,
        qdrant_collection=alias,
        **overrides,
    )


def sweep(collections):
    """Delete all that a test made, which would be 30 MB of memory for each collection, and let go
    of the server.
    """

    def delete(client):
        for collection in client.get_collections().collections:
            if collection.name.startswith(collections.alias):
                client.delete_collection(collection.name)

    collections.connection.write(delete)
    collections.close()


def pytest_collection_modifyitems(items):
    """Mark what needs the server."""
    for item in items:
        if "qdrant_binary" in item.fixturenames:
            item.add_marker(pytest.mark.server)


@pytest.fixture(scope="session")
def qdrant_binary():
    """The server's binary."""
    binary = Path(os.environ.get("CITELOOM_TEST_QDRANT", INSTALLED))
    if not binary.is_file():
        missing_tool(f"there is no Qdrant server at {binary}: run .ci/install-qdrant")
    return binary


@pytest.fixture(scope="session")
def server_folder(tmp_path_factory):
    """A folder in memory, where there is room: a server waits for its disk ten times when it makes
    a collection, which took 1.2 s on a busy machine, and 0.1 s in memory.
    """
    if not MEMORY.is_dir() or shutil.disk_usage(MEMORY).free < ROOM:
        yield tmp_path_factory.mktemp("qdrant")
        return
    with tempfile.TemporaryDirectory(dir=MEMORY, prefix="citeloom-qdrant-") as folder:
        yield Path(folder)


class MortalServer:
    """A server that can be killed and started again on the same ports and storage."""

    def __init__(self, binary, folder):
        self.at = Server(*free_ports(2))
        self._binary, self._folder = binary, folder
        self._process = None

    def start(self):
        """Start it, and wait until it is ready."""
        ports = (self.at.http_port, self.at.grpc_port)
        self._process = start(self._binary, self._folder, *ports, QDRANT__SERVICE__API_KEY=KEY)
        end_with_tests(self._process)

    def revive(self):
        """Start it where it has died."""
        if self._process is None or self._process.poll() is not None:
            self.start()

    def kill(self):
        """End it as kill -9 does."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()


@pytest.fixture(scope="session")
def qdrant(qdrant_binary, server_folder):
    """A running server; one for all tests, which take collections of their own."""
    server = MortalServer(qdrant_binary, server_folder)
    try:
        server.start()
        yield server.at
    finally:
        server.kill()


@pytest.fixture(params=["http", "grpc"])
def collections(qdrant, request):
    """Collections of an alias of the test's own, over HTTP and over gRPC; none is there yet."""
    made = open_collections(qdrant, _alias(request), request.param)
    yield made
    sweep(made)


def _alias(request):
    return re.sub(r"[^a-z0-9]+", "-", request.node.name.lower()).strip("-")


@pytest.fixture(autouse=True)
def _few_segments(monkeypatch):
    """64 empty segments take a second or two to make, and these tests make a hundred
    collections.
    """
    monkeypatch.setattr("pipeline.index.server_requests.LOADING_SEGMENTS", 4)


@pytest.fixture(autouse=True)
def _closing():
    """Lets go of every index that a test opened through a workspace."""
    yield
    close_indexes()
