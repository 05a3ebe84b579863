"""Rules of the project: what loading the code location imports, what the wheel holds, and what the
docs list.
"""

import json
import re
import subprocess
import sys
import tomllib
from graphlib import TopologicalSorter
from pathlib import Path

import grimp
import pytest
import yaml

from pipeline.settings import Settings
from tests.cases import cases_beside

pytestmark = pytest.mark.slow

PROJECT = Path(__file__).resolve().parents[2]
PACKAGES = ("citeloom", "pipeline", "assets", "resources", "sensors")

HEAVY_FOR_HELP = {
    "dagster", "torch", "pyarrow", "qdrant_client", "openai", "numpy", "pydantic",
    "pipeline.settings", "pipeline.stages", "pipeline.engine.stage",
}  # fmt: skip
# What a program imports, and the packages that this may not load.
LIGHT = {
    "import citeloom": {"pyarrow", "torch", "numpy", "pydantic"},
    "import pipeline.settings; pipeline.settings.load_settings()": {"fsspec"},
    "import pipeline.definitions": {
        "torch", "FlagEmbedding", "transformers", "sentence_transformers", "qdrant_client",
        "qdrant_edge", "xllamacpp", "openai", "bs4", "mwparserfromhtml", "arxiv", "ray",
    },
}  # fmt: skip


PROGRAM = """
import json, sys
code = 0
try:
    exec(sys.argv.pop(1))
except SystemExit as end:
    code = end.code or 0
files = {name: getattr(module, "__file__", None) for name, module in list(sys.modules.items())}
print(json.dumps([code, files]))
"""


def modules_after(folder, code, *arguments):
    """The exit code of a program of Python with these arguments, and the modules, with their files,
    that it has loaded.

    It starts in a folder of its own, so that packages come from where the installation says, as
    under `citeloom`.
    """
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, code, *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_each_package_is_the_one_of_this_checkout(tmp_path):
    _, files = modules_after(tmp_path, f"import {', '.join(PACKAGES)}")
    expected = {name: str(PROJECT / name / "__init__.py") for name in PACKAGES}
    assert {name: files[name] for name in PACKAGES} == expected, (
        "another distribution shadows a package of citeloom, or another checkout is installed"
    )


@pytest.mark.parametrize(("code", "heavy"), LIGHT.items())
def test_what_is_imported_first_loads_nothing_heavy(tmp_path, code, heavy):
    _, files = modules_after(tmp_path, code)
    assert files.keys() & heavy == set()


@cases_beside("arguments", "code")
def test_help_and_wrong_arguments_import_no_heavy_package(tmp_path, arguments, code):
    main = "from pipeline.doors.cli.app import main; main()"
    ended, files = modules_after(tmp_path, main, *arguments)
    assert (ended, files.keys() & HEAVY_FOR_HELP) == (code, set())


def test_no_source_lets_a_library_run_what_it_loads():
    """The linter refuses what does so by itself (`banned-api` and the rules S)."""
    sources = [file for name in PACKAGES for file in (PROJECT / name).rglob("*.py")]
    allowing = re.compile("trust_remote_code|allow_pickle")
    assert [file for file in sources if allowing.search(file.read_text())] == []


def test_no_files_import_each_other_in_a_circle():
    """Imports within functions and for types alone count too."""
    graph = grimp.build_graph(*PACKAGES, cache_dir=None)
    imports = {file: graph.find_modules_directly_imported_by(file) for file in graph.modules}
    TopologicalSorter(imports).prepare()  # raises CycleError, which names the files


def test_both_ways_to_load_the_code_location_agree():
    workspace = yaml.safe_load((PROJECT / "workspace.yaml").read_text())["load_from"]
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text())["tool"]["dg"]["project"]
    assert workspace[0]["python_module"] == {
        "module_name": project["code_location_target_module"],
        "location_name": project["code_location_name"],
    }


@pytest.mark.parametrize("name", sorted(Settings.model_fields))
def test_a_setting_says_what_it_is(name):
    assert (Settings.model_fields[name].description or "").endswith(".")


def test_the_example_of_an_env_file_names_only_settings():
    known = {f"CITELOOM_{name.upper()}" for name in Settings.model_fields}
    assert (
        set(re.findall(r"CITELOOM_[A-Z_]+[A-Z]", (PROJECT / ".env.example").read_text())) <= known
    )
