"""The house rules that a reader relies on: who may import whom, what loading costs, what each module and setting says.

Not here: what any module does; these tests read sources and load the code location once.
"""

from __future__ import annotations

import ast
import json
import re
import runpy
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from pipeline.settings import Settings
from pipeline.tables import RELATED_WORK_SYSTEMS, TABLES

PROJECT = Path(__file__).resolve().parents[2]
PACKAGES = ("pipeline", "assets", "resources", "sensors")

# Low to high; a module imports its own layer and those below it.
LAYERS: tuple[tuple[str, ...], ...] = (
    (
        "pipeline.errors", "pipeline.addresses", "pipeline.sampling", "pipeline.sheets", "pipeline.subjects",
        "pipeline.worker_process", "pipeline.liveness", "pipeline.choosing",
    ),
    ("pipeline", "pipeline.tables", "pipeline.storage"),
    (
        "pipeline.settings", "pipeline.redaction", "pipeline.months", "pipeline.identifiers", "pipeline.progress",
        "pipeline.failures", "pipeline.stages", "pipeline.telemetry", "pipeline.workers", "pipeline.accounts",
        "pipeline.digests", "pipeline.stopping",
    ),
    (
        "pipeline.corpus", "pipeline.metadata", "pipeline.passages", "pipeline.embedding", "pipeline.index",
        "pipeline.llm", "pipeline.related_work", "pipeline.answering", "pipeline.evaluation", "pipeline.wikipedia",
        "pipeline.export",
    ),
    (
        "pipeline.placement", "pipeline.registry", "pipeline.services", "pipeline.partitions", "pipeline.pending",
        "pipeline.refresh", "pipeline.standing", "pipeline.webhook",
    ),
    ("resources",),
    ("assets",),
    (
        "pipeline.running.cluster", "pipeline.running.ray_jobs", "pipeline.running.run_process",
        "pipeline.running.ray_executor", "pipeline.running.executors", "pipeline.running.launcher", "pipeline.jobs",
    ),
    ("sensors",),
    ("pipeline.definitions",),
    ("pipeline.running", "pipeline.estimate", "pipeline.refresh.refreshing", "pipeline.doctor"),
    ("pipeline.commands",),
    ("pipeline.cli",),
)  # fmt: skip
DOMAINS = LAYERS[3]
MAY_IMPORT_DAGSTER = {
    "pipeline.definitions", "pipeline.partitions", "pipeline.jobs", "pipeline.running.run_process",
    "pipeline.running.launcher", "pipeline.running.ray_executor", "pipeline.running.executors",
    "pipeline.running.step_on_node",
}  # fmt: skip
HEAVY = {
    "torch", "FlagEmbedding", "transformers", "sentence_transformers", "qdrant_client", "qdrant_edge", "xllamacpp",
    "openai", "matplotlib", "bs4", "mwparserfromhtml", "arxiv", "ray", "nltk",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Import:
    """One import statement: which module names which."""

    importer: str
    imported: str
    place: str


@dataclass(frozen=True, slots=True)
class Module:
    """One source file of the product: its dotted name and its syntax tree."""

    name: str
    path: Path
    tree: ast.Module

    def imports(self) -> Iterator[Import]:
        """Every import in the file, also those inside functions."""
        for node in ast.walk(self.tree):
            for name in self._named(node):
                yield Import(self.name, name, f"{self.path.relative_to(PROJECT)}:{node.lineno}")  # type: ignore[attr-defined]

    def _named(self, node: ast.AST) -> list[str]:
        if isinstance(node, ast.Import):
            return [alias.name for alias in node.names]
        if isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                inside = self.name.split(".") + (["__init__"] if self.path.name == "__init__.py" else [])
                base = ".".join([*inside[: -node.level], *filter(None, [base])])
            # `from pipeline import tables` names the module pipeline.tables, not pipeline alone.
            return [f"{base}.{alias.name}" if _is_module(f"{base}.{alias.name}") else base for alias in node.names]
        return []


def _is_module(name: str) -> bool:
    path = PROJECT.joinpath(*name.split("."))
    return path.with_suffix(".py").is_file() or (path / "__init__.py").is_file()


def _modules() -> list[Module]:
    found = []
    for package in PACKAGES:
        for path in sorted((PROJECT / package).rglob("*.py")):
            name = ".".join(path.relative_to(PROJECT).with_suffix("").parts).removesuffix(".__init__")
            found.append(Module(name, path, ast.parse(path.read_text(encoding="utf-8"), filename=str(path))))
    return found


def _owner(module: str) -> str | None:
    """The entry of LAYERS that a module belongs to: the longest that is its name or a package around it."""
    entries = [entry for layer in LAYERS for entry in layer if entry != "pipeline" or module == "pipeline"]
    around = [entry for entry in entries if module == entry or module.startswith(f"{entry}.")]
    return max(around, key=len, default=None)


def _rank(module: str) -> int:
    owner = _owner(module)
    if owner is None:
        pytest.fail(f"{module} is in no layer: say in LAYERS where it belongs")
    return next(rank for rank, layer in enumerate(LAYERS) if owner in layer)


def _ours(name: str) -> bool:
    return name.split(".")[0] in PACKAGES


@pytest.fixture(scope="module")
def modules() -> list[Module]:
    """All modules of the product."""
    return _modules()


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, str | None]]:
    """Modules, with their files, that are loaded after `import pipeline.definitions` in a fresh process.

    It starts in a folder of its own, so that packages come from where the installation says, as under `citeloom`.
    """
    code = (
        "import json, sys, pipeline.definitions\n"
        "print(json.dumps({name: getattr(m, '__file__', None) for name, m in list(sys.modules.items())}))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path_factory.mktemp("elsewhere"), capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    files: dict[str, str | None] = json.loads(done.stdout.splitlines()[-1])
    heavy = {name: file for name, file in files.items() if name.split(".")[0] in HEAVY}
    ours = {name: files.get(name) for name in PACKAGES}
    return {"heavy": heavy, "ours": ours}


def test_every_module_belongs_to_a_layer(modules: list[Module]) -> None:
    homeless = [module.name for module in modules if _owner(module.name) is None]
    assert homeless == []


def test_imports_run_one_way(modules: list[Module]) -> None:
    upward = [
        f"{found.place}: {found.importer} imports {found.imported}"
        for module in modules
        for found in module.imports()
        if _ours(found.imported) and _rank(found.imported) > _rank(found.importer)
    ]
    assert upward == []


def test_no_two_domains_import_each_other(modules: list[Module]) -> None:
    """Domains may use one another, as long as there is an order in which they could be written."""
    needs: dict[str, set[str]] = {domain: set() for domain in DOMAINS}
    for module in modules:
        owner = _owner(module.name)
        if owner in needs:
            needs[owner] |= {_owner(found.imported) or "" for found in module.imports()} & set(DOMAINS) - {owner}
    while free := [domain for domain, wanted in needs.items() if not wanted & needs.keys()]:
        for domain in free:
            del needs[domain]
    assert needs == {}, "these domains need each other in a circle"


def test_only_the_wiring_knows_dagster(modules: list[Module]) -> None:
    knowing = {
        module.name
        for module in modules
        if module.name.startswith("pipeline")
        and any(found.imported.split(".")[0].startswith("dagster") for found in module.imports())
    }
    assert knowing <= MAY_IMPORT_DAGSTER


def test_nothing_outside_the_product_is_imported_by_it(modules: list[Module]) -> None:
    strangers = [
        found.place
        for module in modules
        for found in module.imports()
        if found.imported.split(".")[0] in {"tests", "benchmarks", "examples"}
    ]
    assert strangers == []


def test_each_package_is_the_one_of_this_checkout(loaded: dict[str, dict[str, str | None]]) -> None:
    expected = {name: str(PROJECT / name / "__init__.py") for name in PACKAGES}
    assert loaded["ours"] == expected, (
        "another distribution shadows a package of citeloom, or another checkout is installed"
    )


def test_loading_the_code_location_loads_nothing_heavy(loaded: dict[str, dict[str, str | None]]) -> None:
    assert sorted({name.split(".")[0] for name in loaded["heavy"]}) == []


@pytest.mark.parametrize("module", _modules(), ids=lambda module: module.name)
def test_a_module_begins_with_a_fence(module: Module) -> None:
    """A docstring first, which says what the module is for and what does not belong in it."""
    text = ast.get_docstring(module.tree) or ""
    assert re.search(r"\b(not|never|nowhere|only)\b", text, re.IGNORECASE), (
        f"{module.path} does not say what is not in it"
    )


def test_both_ways_to_load_the_code_location_agree() -> None:
    workspace = yaml.safe_load((PROJECT / "workspace.yaml").read_text())["load_from"]
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text())["tool"]["dg"]["project"]
    assert [entry["python_module"] for entry in workspace] == [
        {"module_name": project["code_location_target_module"], "location_name": project["code_location_name"]}
    ]


def test_the_wheel_holds_every_package() -> None:
    build = tomllib.loads((PROJECT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["wheel"]
    assert sorted(build["packages"]) == sorted(PACKAGES)


@pytest.mark.parametrize("name", sorted(Settings.model_fields))
def test_a_setting_says_what_it_is(name: str) -> None:
    assert (Settings.model_fields[name].description or "").endswith(".")


@pytest.mark.parametrize("name", sorted(Settings.model_fields))
def test_a_setting_is_in_the_table_of_the_readme(name: str) -> None:
    """Its row says the same as the setting itself."""
    rows = [line.split("|") for line in (PROJECT / "README.md").read_text().splitlines() if line.startswith("|")]
    told = {row[1].strip(" `"): row[-2].strip() for row in rows}
    assert told.get(f"CITELOOM_{name.upper()}") == Settings.model_fields[name].description


def test_the_readme_names_no_setting_that_is_not_there() -> None:
    known = {f"CITELOOM_{name.upper()}" for name in Settings.model_fields}
    named = set()
    for file in ("README.md", ".env.example"):
        named |= set(re.findall(r"CITELOOM_[A-Z_]+[A-Z]", (PROJECT / file).read_text()))
    assert named - known <= {"CITELOOM_REQUIRE_TOOLS"}


def test_the_readme_says_of_every_table_what_a_row_is() -> None:
    rows = [line.split("|") for line in (PROJECT / "README.md").read_text().splitlines() if line.startswith("| `")]
    told = {row[1].strip(" `"): row[2].strip() for row in rows}
    families = ("summaries_", "answers_")
    others = {name: table.row for name, table in TABLES.items() if not name.startswith(families)}
    assert {name: told.get(name) for name in others} == others
    assert {f"{family}<system>" for family in families} <= told.keys()


def test_every_system_has_a_table() -> None:
    from pipeline.related_work.systems import SYSTEMS

    assert sorted(SYSTEMS) == sorted(RELATED_WORK_SYSTEMS)


def test_a_setting_that_a_stage_names_is_there() -> None:
    from pipeline.registry import STAGES

    named = {setting for stage in STAGES for setting in stage.settings}
    assert named <= set(Settings.model_fields)


def test_a_stage_reads_only_stages_that_run_before_it() -> None:
    from pipeline.registry import STAGES

    before: set[str] = set()
    for stage in STAGES:
        assert {table.name for table in stage.upstream} <= before, stage.name
        before.add(stage.name)


@pytest.mark.parametrize("script", sorted((PROJECT / "docs").glob("*.py")), ids=lambda script: script.name)
def test_what_a_script_of_the_documents_imports_is_there(script: Path) -> None:
    runpy.run_path(str(script), run_name="loaded")
