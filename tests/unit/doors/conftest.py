"""A small corpus, a client of the application over it, and servers of applications on loopback."""

import threading
import time
from contextlib import contextmanager

import pytest
import uvicorn
from starlette.testclient import TestClient

from pipeline.doors.web.app import make_app
from pipeline.index.opening import close_indexes
from tests.processes import PATIENCE, free_port
from tests.unit.doors.corpus import make_corpus


@contextmanager
def serving(app, **options):
    """A server of an application on loopback: its `host:port`. options: as for uvicorn."""
    port = free_port()
    given = {"log_level": "warning", "timeout_keep_alive": int(PATIENCE)} | options
    server = uvicorn.Server(uvicorn.Config(app, port=port, **given))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.05)
    yield f"127.0.0.1:{port}"
    server.should_exit = True
    thread.join()


@pytest.fixture(scope="package")
def corpus(tmp_path_factory):
    yield make_corpus(tmp_path_factory.mktemp("served") / "data")
    close_indexes()


@pytest.fixture(scope="package")
def client(corpus):
    with client_of(corpus, follow_redirects=False) as client:
        yield client


def client_of(workspace, token=None, **options):
    """A client of the application over a workspace, on this machine."""
    return TestClient(make_app(workspace, token), base_url="http://127.0.0.1:8000", **options)
