"""A browser on the page of what a module of tests runs."""

import pytest

from tests.ui.browser import browse


@pytest.fixture(scope="module")
def page(running, tmp_path_factory):
    """A browser on what runs."""
    with browse(running.url, tmp_path_factory) as page:
        yield page
