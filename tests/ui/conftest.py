"""A scripted LLM, and a browser on the page of what a module of tests runs."""

import pytest

from tests.scripted_llm import ScriptedLlm
from tests.ui.browser import browse


@pytest.fixture(scope="module")
def llm():
    """A scripted LLM on loopback."""
    with ScriptedLlm() as server:
        yield server


@pytest.fixture(scope="module")
def page(running, tmp_path_factory):
    """A browser on what runs."""
    with browse(running.url, tmp_path_factory) as page:
        yield page
