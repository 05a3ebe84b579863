"""Fixtures of the answering tests. Not here: fakes, which tests import by name (`asking`)."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from pipeline.index.opening import close_indexes
from pipeline.stages import Workspace
from tests.unit.answering.corpus import build_corpus


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    """A small corpus with a real index, which tests only read."""
    yield build_corpus(tmp_path_factory.mktemp("corpus") / "data")
    close_indexes()
