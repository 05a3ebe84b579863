"""Packages that a setting chooses: the defaults run without them, and each path of `PATHS` needs
its own.
"""

import os
import subprocess
import sys

import pytest

from pipeline.arxiv.api import ArxivApi
from pipeline.arxiv.rate_limited_client import Pace
from pipeline.corpus.parse import reference
from pipeline.embedding.flag_embedding import FlagBgeM3
from pipeline.index.opening import open_collections
from pipeline.settings import SAMPLE_DUMP, load_settings
from tests.fake_arxiv import FakeApi, entry
from tests.unit.corpus.building import pages_of
from tests.unit.embedding.tiny_m3 import make_tiny_m3
from tests.workspaces import make_workspace

pytestmark = pytest.mark.slow


def _parse(folder, server):
    reference.parse(pages_of(SAMPLE_DUMP)[0][1])


def _ask_api(folder, server):
    api = FakeApi(server)
    api.papers = {"2403.00001": entry("2403.00001")}
    settings = load_settings(_env_file=None, arxiv_api_url=api.url)
    with ArxivApi(settings, folder, pace=Pace(folder / "machine", gap=0.0)) as client:
        client.find(api.papers)


def _encode(folder, server):
    FlagBgeM3(str(make_tiny_m3(folder / "tiny-m3")), "cpu").encode(["a text"])


def _open_index(folder, server):
    open_collections(make_workspace(folder, qdrant_url=server.url_for(""))).live()


PATHS = {
    "bs4": _parse,
    "mwparserfromhtml": _parse,
    "arxiv": _ask_api,
    "FlagEmbedding": _encode,
    "qdrant_client": _open_index,
}


@pytest.mark.parametrize("package", PATHS)
def test_a_path_needs_its_package(package, tmp_path, httpserver, monkeypatch):
    monkeypatch.setitem(sys.modules, package, None)
    for name in [name for name in sys.modules if name.startswith(f"{package}.")]:
        monkeypatch.delitem(sys.modules, name)
    with pytest.raises(ImportError, match=package):
        PATHS[package](tmp_path, httpserver)


def test_the_sample_runs_to_the_index_without_them(tmp_path):
    block = "import sys\nsys.modules.update(dict.fromkeys({!r}))\n"
    (tmp_path / "sitecustomize.py").write_text(block.format([*PATHS]))
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")]),
        "CITELOOM_DATA": str(tmp_path / "data"),
    }
    command = [sys.executable, "-c", "from pipeline.doors.cli import main; main()"]
    command += ["run", "--months", "2024-03"]

    def run(*arguments, **settings):
        return subprocess.run(
            [*command, *arguments],
            env=environment | settings,
            capture_output=True,
            text=True,
        )

    done = run("--until", "index_receipts")
    assert done.returncode == 0, done.stderr
    failed = run("--select", "papers", "--force", CITELOOM_PARSER="reference")
    assert failed.returncode == 1
    assert "bs4" in failed.stderr
