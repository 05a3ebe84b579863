"""The packages of the extras: a bare install runs, searches and serves without them, and what needs
one says which extra has it.
"""

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from pipeline.corpus.dump.folder import RemoteFolder
from pipeline.corpus.stages import PAPERS
from pipeline.doors.cli import serve
from pipeline.doors.web import app
from pipeline.embedding.choice import make_embedder
from pipeline.engine.stage import Workspace
from pipeline.errors import SettingError
from pipeline.index.opening import open_collections
from pipeline.llm.bundled import packaged_model
from pipeline.ops.ray_cluster import check_installed
from pipeline.settings import PROJECT, load_settings
from pipeline.storage.store import StorePath
from resources.dagster_home import share_postgres
from tests.cases import cases
from tests.processes import free_port
from tests.workspaces import make_workspace

pytestmark = pytest.mark.slow

USES = {
    "parser": PAPERS.parser,
    "embedder": make_embedder,
    "index": lambda settings: open_collections(Workspace(settings)).live(),
    "model": lambda settings: packaged_model(),
    "mcp": lambda settings: serve.mcp(),
    "ray": lambda settings: check_installed(),
    "postgres": share_postgres,
    "store": lambda settings: StorePath("s3://b", Path()).exists(),
    "dump": lambda settings: RemoteFolder("s3://b"),
}
CASES = "unit/absent_packages.toml"
MODULES = [row[0] for row in tomllib.loads((PROJECT / "tests" / CASES).read_text())["absent"]]


@cases(CASES, "absent", ["module", "use", "user", "extra", "settings"])
def test_an_absent_package_is_named_with_what_needs_it_and_an_extra_that_has_it(
    module, use, user, extra, settings, monkeypatch
):
    monkeypatch.setitem(sys.modules, module, None)
    sentence = f"{user} needs {module}: pip install 'citeloom[{extra}]'"
    with pytest.raises(SettingError, match=f"^{re.escape(sentence)}$"):
        USES[use](load_settings(_env_file=None, **(settings or {})))
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]
    package = module.replace("_", "-").replace("bs4", "beautifulsoup4")
    assert re.search(rf"'{package}\W", str(project["optional-dependencies"][extra]))


def test_a_server_without_mcp_says_so_and_serves_the_rest(tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "mcp", None)
    monkeypatch.setattr(app, "run_server", print)
    monkeypatch.chdir(tmp_path)
    serve.serve(free_port())
    assert "/mcp needs mcp: pip install 'citeloom[mcp]'" in capsys.readouterr().err
    client = TestClient(app.make_app(make_workspace(tmp_path)), base_url="http://127.0.0.1")
    statuses = [client.get(path).status_code for path in ("/", "/mcp")]
    assert statuses == [200, 404]


def test_the_sample_is_indexed_and_searched_without_them(tmp_path):
    block = "import sys\nsys.modules.update(dict.fromkeys({!r}))\n"
    (tmp_path / "sitecustomize.py").write_text(block.format(MODULES))
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")]),
        "CITELOOM_DATA": str(tmp_path / "data"),
    }

    def run(command, status, **settings):
        done = subprocess.run(
            [sys.executable, "-c", "from pipeline.doors.cli import main; main()", *command.split()],
            env=environment | settings,
            capture_output=True,
            text=True,
        )
        assert done.returncode == status, done.stderr
        return done.stderr

    for command in ("run --months 2024-03 --until index_receipts", "search fusion", "--help"):
        run(command, 0)
    refused = run("run --select papers --force", 2, CITELOOM_PARSER="reference")
    assert "needs bs4: pip install" in refused
