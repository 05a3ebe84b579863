"""The wheel alone, in an empty environment and an empty folder: the packaged sample runs, can be
searched and shown.

The dependencies are those of the test environment, linked in by a .pth file.
"""

import json
import signal
import subprocess
import sys
import sysconfig
import urllib.request
import venv
import zipfile
from pathlib import Path

import pytest

from tests.processes import PATIENCE, environment_without_settings, free_port, wait_until

CHECKOUT = Path(__file__).resolve().parents[1]

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """The interpreter of an environment that has only the wheel and its dependencies, and an empty
    folder.
    """
    folder = tmp_path_factory.mktemp("wheel")
    build = [
        sys.executable,
        "-m",
        "hatchling",
        "build",
        "--target",
        "wheel",
        "--directory",
        str(folder),
    ]
    subprocess.run(build, cwd=CHECKOUT, check=True, capture_output=True)
    venv.create(folder / "environment")
    packages = next((folder / "environment" / "lib").glob("python*")) / "site-packages"
    with zipfile.ZipFile(next(folder.glob("citeloom-*.whl"))) as wheel:
        wheel.extractall(packages)
    (packages / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    empty = folder / "empty"
    empty.mkdir()
    return folder / "environment" / "bin" / "python", empty


def _environment():
    kept = environment_without_settings()
    kept.pop("PYTHONPATH", None)
    return kept


def _citeloom(installed, *arguments):
    python, folder = installed
    command = [str(python), "-c", "from pipeline.doors.cli import main; main()", *arguments]
    ended = subprocess.run(command, cwd=folder, env=_environment(), capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def test_its_modules_are_its_own(installed):
    python, folder = installed
    code = "import assets, pipeline, resources, sensors; print(pipeline.__file__, assets.__file__)"
    printed = subprocess.run(
        [str(python), "-c", code],
        cwd=folder,
        env=_environment(),
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert all(file.startswith(str(python.parents[1])) for file in printed.split())


@pytest.mark.faults
def test_the_packaged_sample_is_indexed_and_searched(installed):
    run = json.loads(
        _citeloom(installed, "run", "--months", "2024-03", "--until", "index_receipts", "--json")
    )
    assert run["failures"] == []
    results = json.loads(_citeloom(installed, "search", "summaries of related work", "--json"))
    assert results["hits"]
    python, folder = installed
    code = (
        "import citeloom; print(citeloom.open_corpus().search('summaries of related"
        " work')[0].paper.arxiv_id)"
    )
    printed = subprocess.run(
        [str(python), "-c", code], cwd=folder, env=_environment(), capture_output=True, text=True
    )
    assert printed.stdout.strip() == results["hits"][0]["paper"]["arxiv_id"]
    assert [path.name for path in installed[1].iterdir()] == ["data"]


@pytest.mark.faults
def test_the_ui_starts(installed):
    (python, folder), port = installed, free_port()
    command = [
        str(python),
        "-c",
        "from pipeline.doors.cli import main; main()",
        "ui",
        "--port",
        str(port),
    ]
    with subprocess.Popen(
        command, cwd=folder, env=_environment(), stderr=subprocess.DEVNULL
    ) as server:
        try:
            assert "citeloom" in _locations(port)
        finally:
            server.send_signal(signal.SIGINT)


def _locations(port):
    """What the web server answers about its code locations, once it does."""
    query = json.dumps(
        {
            "query": (
                "{ repositoriesOrError { __typename ... on RepositoryConnection "
                "{ nodes { location { name } } } } }"
            )
        }
    ).encode()
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}/graphql", query, headers={"Content-Type": "application/json"}
    )

    def locations():
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
                text = answer.read().decode()
        except OSError:
            return None
        return text if "RepositoryConnection" in text else None

    return wait_until(locations, "an answer of the web server")
