"""The wheel alone, in an empty environment and an empty folder: the packaged sample runs, can be
searched and shown.

The dependencies are those of the test environment, linked in by a .pth file.
"""

import json
import signal
import subprocess
import sys
import sysconfig
import venv
import zipfile
from contextlib import suppress
from pathlib import Path

import pytest

from tests.processes import ask_graphql, environment_without_settings, free_port, wait_until

CHECKOUT = Path(__file__).resolve().parents[1]
CITELOOM = "from pipeline.doors.cli import main; main()"
LOCATIONS = (
    "{ repositoriesOrError { ... on RepositoryConnection { nodes { location { name } } } } }"
)

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """The interpreter of an environment that has only the wheel and its dependencies, and an empty
    folder.
    """
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "hatchling", "build", "--target", "wheel"]
    build += ["--directory", str(folder)]
    subprocess.run(build, cwd=CHECKOUT, check=True, capture_output=True)
    venv.create(folder / "environment")
    packages = next((folder / "environment" / "lib").glob("python*")) / "site-packages"
    with zipfile.ZipFile(next(folder.glob("citeloom-*.whl"))) as wheel:
        wheel.extractall(packages)
    (packages / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    empty = folder / "empty"
    empty.mkdir()
    return folder / "environment" / "bin" / "python", empty


def _python(installed, code, *arguments):
    """The command of a program of Python, and the folder and environment to run it in."""
    python, folder = installed
    environment = environment_without_settings()
    environment.pop("PYTHONPATH", None)
    return [str(python), "-c", code, *arguments], {"cwd": folder, "env": environment}


def _printed(installed, code, *arguments):
    command, place = _python(installed, code, *arguments)
    ended = subprocess.run(command, **place, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def test_its_modules_are_its_own(installed):
    code = "import assets, pipeline, resources, sensors; print(pipeline.__file__, assets.__file__)"
    environment = str(installed[0].parents[1])
    assert all(file.startswith(environment) for file in _printed(installed, code).split())


@pytest.mark.faults
def test_the_packaged_sample_is_indexed_and_searched(installed):
    run = ("run", "--months", "2024-03", "--until", "index_receipts", "--json")
    assert json.loads(_printed(installed, CITELOOM, *run))["failures"] == []
    query = "summaries of related work"
    results = json.loads(_printed(installed, CITELOOM, "search", query, "--json"))
    code = f"import citeloom; print(citeloom.open_corpus().search({query!r})[0].paper.arxiv_id)"
    assert _printed(installed, code).strip() == results["hits"][0]["paper"]["arxiv_id"]
    assert [path.name for path in installed[1].iterdir()] == ["data"]


@pytest.mark.faults
def test_the_ui_starts(installed):
    url = f"http://127.0.0.1:{free_port()}"
    command, place = _python(installed, CITELOOM, "ui", "--port", url.rpartition(":")[2])

    def is_loaded():
        with suppress(OSError):
            nodes = ask_graphql(url, LOCATIONS)["repositoriesOrError"].get("nodes", ())
            return "citeloom" in [node["location"]["name"] for node in nodes]

    with subprocess.Popen(command, **place, stderr=subprocess.DEVNULL) as server:
        try:
            wait_until(is_loaded, "code location of the web server")
        finally:
            server.send_signal(signal.SIGINT)
