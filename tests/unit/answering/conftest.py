"""Fixtures of the answering tests."""

import pytest

from pipeline.index.opening import close_indexes
from tests.unit.answering.corpus import build_corpus


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """A small corpus with a real index, which tests only read."""
    yield build_corpus(tmp_path_factory.mktemp("corpus") / "data")
    close_indexes()
