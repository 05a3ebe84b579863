"""Fixtures of the index tests: every test's indexes are closed when it ends."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from pipeline.engine.stage import Workspace
from pipeline.index.edge import EdgeIndex
from pipeline.index.opening import close_indexes
from tests.unit.index.building import make_workspace


@pytest.fixture
def workspace(tmp_path: Path) -> Iterator[Workspace]:
    """An empty workspace on Edge."""
    yield make_workspace(tmp_path / "data")
    close_indexes()


@pytest.fixture
def edge(tmp_path: Path) -> Iterator[EdgeIndex]:
    """An index in a folder that is not there yet; it does not wait for other processes."""
    index = EdgeIndex(tmp_path / "qdrant-edge" / "passages", patience=0.2)
    yield index
    index.close()
