"""A small corpus, a client of the application over it, and servers of applications on loopback."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import uvicorn
from starlette.testclient import TestClient
from starlette.types import ASGIApp

from pipeline.engine.stage import Workspace
from pipeline.index.opening import close_indexes
from pipeline.serve.app import make_app
from tests.processes import PATIENCE, free_port
from tests.unit.serve.corpus import make_corpus


@contextmanager
def serving(app: ASGIApp) -> Iterator[str]:
    """A server of an application on loopback: its `host:port`."""
    port = free_port()
    server = uvicorn.Server(
        uvicorn.Config(app, port=port, log_level="warning", timeout_keep_alive=int(PATIENCE))
    )
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.05)
    yield f"127.0.0.1:{port}"
    server.should_exit = True
    thread.join()


@pytest.fixture(scope="package")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    yield make_corpus(tmp_path_factory.mktemp("served") / "data")
    close_indexes()


@pytest.fixture(scope="package")
def client(corpus: Workspace) -> Iterator[TestClient]:
    with TestClient(
        make_app(corpus), base_url="http://127.0.0.1:8000", follow_redirects=False
    ) as client:
        yield client
