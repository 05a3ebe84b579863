"""What the tests of faults share: an undisturbed run, runs that start at once, and one JSON line
for each result.

This tier is not part of `make test`; `make test-faults` runs it. Where and when a fault strikes is
drawn from a seed that is printed; CITELOOM_TEST_SEED sets another. CITELOOM_FAULTS_REPORT names a
file to which the lines are added.
"""

import json
import os
import subprocess
from pathlib import Path

import pytest

from tests.assets.conftest import MONTHS, make_place
from tests.faults.zygote import Zygote
from tests.required_tools import missing_tool

FOLDER = Path(__file__).parent
# No draft or answer twice where once will do: what is tried is the writing, not the models.
SMALL = {"outside_references": "drop", "max_questions": 1, "judge_repeats": 1, "workers": 1}

_APART = ("test_kills", "test_cluster", "test_object_store")


# First, since pytest-xdist reads the groups in the same hook.
@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """All of this folder, and nothing else, is of the tier. The 200 kills take about as long as
    most of the rest, the
    cluster eight minutes: groups of their own, for whichever worker is free.
    """
    for item in items:
        if FOLDER in item.path.parents:
            item.add_marker(pytest.mark.faults)
            item.add_marker(
                pytest.mark.xdist_group(item.path.stem if item.path.stem in _APART else "faults")
            )


@pytest.fixture(scope="session")
def seed():
    """Of everything that is drawn."""
    return int(os.environ.get("CITELOOM_TEST_SEED", "20261122"))


@pytest.fixture
def tell(seed, request, capfd):
    """Print a result as one line of JSON, with the test's name and the seed."""

    def print_line(**counts):
        line = json.dumps({"test": request.node.name, "seed": seed, **counts})
        with capfd.disabled():
            print(f"\n{line}", flush=True)
        if report := os.environ.get("CITELOOM_FAULTS_REPORT"):
            with Path(report).open("a") as file:
                file.write(line + "\n")

    return print_line


@pytest.fixture(scope="session")
def library(tmp_path_factory):
    """faulty.c, compiled."""
    made = tmp_path_factory.mktemp("library") / "faulty.so"
    try:
        subprocess.run(
            ["cc", "-shared", "-fPIC", "-O1", "-o", str(made), str(FOLDER / "faulty.c"), "-ldl"],
            check=True,
        )
    except (OSError, subprocess.CalledProcessError) as error:
        missing_tool(f"no C compiler makes {FOLDER / 'faulty.c'}: {error}")
    return made


@pytest.fixture(scope="session")
def zygote(library, tmp_path_factory):
    """Starts runs, one at a time."""
    with Zygote(library, tmp_path_factory.mktemp("zygote") / "log") as found:
        yield found


@pytest.fixture(scope="session")
def other_zygote(library, tmp_path_factory):
    """Starts runs beside those of the first."""
    with Zygote(library, tmp_path_factory.mktemp("zygote") / "log") as found:
        yield found


@pytest.fixture(scope="session")
def make(llm):
    """Makes a place on the sample corpus, under settings of one's own."""

    def made(root, **settings):
        return make_place(
            root, **{"llm_url": llm.url, "llm_model": "scripted", **SMALL, **settings}
        )

    return made


@pytest.fixture(scope="session")
def calm(zygote, make, tmp_path_factory):
    """A data root that every stage has run on, undisturbed."""
    place = make(tmp_path_factory.mktemp("calm") / "data")
    end = zygote.run(place, MONTHS)
    assert end.done, end
    return place
