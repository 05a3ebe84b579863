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

pytestmark = pytest.mark.slow

PROJECT = Path(__file__).resolve().parents[2]
PACKAGES = ("citeloom", "pipeline", "assets", "resources", "sensors")

HEAVY = {
    "torch", "FlagEmbedding", "transformers", "sentence_transformers", "qdrant_client",
    "qdrant_edge", "xllamacpp", "openai", "bs4", "mwparserfromhtml", "arxiv", "ray",
  }  # fmt: skip


@pytest.fixture(scope="module")
def loaded(tmp_path_factory):
    """Modules, with their files, that are loaded after `import pipeline.definitions` in a fresh
    process.

    It starts in a folder of its own, so that packages come from where the installation says, as
    under `citeloom`.
    """
    code = (
        "import json, sys, citeloom, pipeline.definitions\nprint(json.dumps({name: getattr(m,"
        " '__file__', None) for name, m in list(sys.modules.items())}))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path_factory.mktemp("elsewhere"),
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    files = json.loads(done.stdout.splitlines()[-1])
    heavy = {name: file for name, file in files.items() if name.split(".")[0] in HEAVY}
    ours = {name: files.get(name) for name in PACKAGES}
    return {"heavy": heavy, "ours": ours}


def test_each_package_is_the_one_of_this_checkout(loaded):
    expected = {name: str(PROJECT / name / "__init__.py") for name in PACKAGES}
    assert loaded["ours"] == expected, (
        "another distribution shadows a package of citeloom, or another checkout is installed"
    )


def test_loading_the_code_location_loads_nothing_heavy(loaded):
    assert sorted({name.split(".")[0] for name in loaded["heavy"]}) == []


def test_no_files_import_each_other_in_a_circle():
    """Imports within functions and for types alone count too."""
    graph = grimp.build_graph(*PACKAGES, cache_dir=None)
    imports = {file: graph.find_modules_directly_imported_by(file) for file in graph.modules}
    TopologicalSorter(imports).prepare()  # raises CycleError, which names the files


# Part of what the project is: each stays a dependency or one of an extra, and is imported by the
# product.
REQUIRED = {
    "dagster": "dagster",
    "beautifulsoup4": "bs4",
    "mwparserfromhtml": "mwparserfromhtml",
    "FlagEmbedding": "FlagEmbedding",
    "torch": "torch",
    "qdrant-client": "qdrant_client",
    "pyarrow": "pyarrow",
    "arxiv": "arxiv",
}


@pytest.mark.parametrize("package", REQUIRED)
def test_a_required_package_is_a_dependency_that_the_product_imports(package):
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    dependencies = project["dependencies"] + extras["papers"] + extras["server"]
    assert any(re.match(rf"{package}\b(?!-)", line) for line in dependencies)
    imported = re.compile(rf"^\s*(?:import|from) {REQUIRED[package]}\b", re.MULTILINE)
    files = [file for name in PACKAGES for file in (PROJECT / name).rglob("*.py")]
    assert any(imported.search(file.read_text()) for file in files)


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
