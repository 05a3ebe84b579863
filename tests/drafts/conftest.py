"""The finished sample corpus, as the tests of `assets` have it."""

from tests.assets.conftest import finished  # noqa: F401
