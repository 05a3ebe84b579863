"""The corpus whose answers are graded."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from pipeline.engine.stage import Workspace
from pipeline.index.opening import close_indexes
from tests.unit.answering.corpus import build_corpus


@pytest.fixture(scope="package")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    """A small corpus with a real index, which tests only read."""
    yield build_corpus(tmp_path_factory.mktemp("corpus") / "data")
    close_indexes()
