"""The finished sample corpus, as the tests of `assets` have it, and a browser as those of the report."""

from tests.assets.conftest import finished  # noqa: F401
from tests.ui.test_report import chrome  # noqa: F401
