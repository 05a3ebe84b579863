"""Fixtures that every tier shares."""

import os
import signal
import sys
from contextlib import redirect_stderr
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.fake_arxiv import FakeOai
from tests.required_tools import tests_not_run
from tests.scripted_llm import ScriptedLlm

PROJECT = Path(__file__).resolve().parent.parent
SHARED_DATA = PROJECT.parent / "shared" / "data"

# The same cases in every run, so that a change alone can turn a test red; to look for new ones,
# give `--hypothesis-profile=search`. Nothing that a busy machine decides: no deadline, no check of
# how fast cases are made.
UNTIMED = [HealthCheck.too_slow]
settings.register_profile(
    "steady", derandomize=True, database=None, deadline=None, suppress_health_check=UNTIMED
)
settings.register_profile(
    "search", derandomize=False, print_blob=True, deadline=None, suppress_health_check=UNTIMED
)
settings.load_profile("steady")

# The GPU's kernels are tested on the CPU; triton reads this when it is imported, which torch may do.
os.environ["TRITON_INTERPRET"] = "1"

# absl, which rouge-score imports, keeps the standard error of its import, and closes it where Dagster
# configures logging: pytest's file for output must not be it.
with redirect_stderr(sys.__stderr__):
    import absl.logging  # noqa: F401

# A shell starts what it puts in the background deaf to Ctrl-C, and every process below inherits
# that; tests send it.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def shared_data():
    """The folder of real papers and metadata that lies beside a checkout where it was laid out
    so.
    """
    if not SHARED_DATA.is_dir():
        pytest.skip("the real papers (../shared/data) are not on this machine")
    return SHARED_DATA


@pytest.fixture
def no_settings(monkeypatch, tmp_path):
    """No setting of the machine's environment, and no `.env` beside the checkout."""
    for name in [name for name in os.environ if name.startswith("CITELOOM_")]:
        monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)


@pytest.fixture(scope="session")
def llm():
    """A scripted LLM on loopback."""
    with ScriptedLlm() as server:
        yield server


@pytest.fixture
def oai(httpserver):
    """An arXiv that has nothing new to say."""
    return FakeOai(httpserver)


# The groups that the workers begin with: the one that computes the data root of the tests of assets
# and drafts, for which no other should wait, and the longest, which would end alone on one core.
_FIRST = (
    "assets/test_cli.py",
    "server",
    "ui",
    "unit/index",
    "unit/engine",
    "unit/corpus",
    "assets/test_dagster.py",
    "unit/doors",
    "unit/embedding",
    "unit/storage",
    "drafts",
    "unit/test_stage_contract.py",
)


# First, since pytest-xdist reads the groups in the same hook.
@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Tests that share costly fixtures and imports go to one worker: those of a folder."""
    items.sort(key=lambda item: [*_FIRST, _group(item)].index(_group(item)))
    for item in items:
        if not _group(item).startswith("faults"):  # which has groups of its own
            item.add_marker(pytest.mark.xdist_group(_group(item)))
        if _group(item).startswith("assets"):  # they share a data root on which every stage has run
            item.add_marker(pytest.mark.slow)


def pytest_terminal_summary(terminalreporter):
    """Name the tests that were not run because this machine lacks a tool."""
    for reason, tests in tests_not_run(terminalreporter.stats.get("skipped", [])).items():
        terminalreporter.write_sep("!", f"{len(tests)} TESTS NOT RUN", red=True, bold=True)
        terminalreporter.write_line(reason, red=True)
        for test in tests:
            terminalreporter.write_line(f"  {test}")


def _group(item):
    file = item.path.relative_to(PROJECT / "tests")
    folders = file.parts[:-1]
    package = folders[:2] if folders[:1] == ("unit",) else folders[:1]
    # Tests of assets share a data root through the disk; files beside the packages share nothing.
    by_file = package in ((), ("unit",), ("assets",))
    return file.as_posix() if by_file else "/".join(package)
