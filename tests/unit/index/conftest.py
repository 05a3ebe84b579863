"""Fixtures of the index tests: every test's indexes are closed when it ends."""

import pytest

from pipeline.index.edge import EdgeIndex
from pipeline.index.opening import close_indexes
from tests.unit.index.building import make_workspace


@pytest.fixture
def workspace(tmp_path):
    """An empty workspace on Edge."""
    yield make_workspace(tmp_path / "data")
    close_indexes()


@pytest.fixture
def edge(tmp_path):
    """An index in a folder that is not there yet; it does not wait for other processes."""
    index = EdgeIndex(tmp_path / "qdrant-edge" / "passages", patience=0.2)
    yield index
    index.close()
