"""A small corpus, and a client of the application over it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from starlette.testclient import TestClient

from pipeline.engine.stage import Workspace
from pipeline.index.opening import close_indexes
from pipeline.serve.app import make_app
from tests.unit.serve.corpus import make_corpus


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
