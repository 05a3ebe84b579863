"""A data root on which every stage has run over the sample corpus, shared by the tests of this
folder and tests/ui.
"""

import json
import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import dagster as dg
import pytest
from filelock import FileLock

from pipeline.doors.cli.dagster_reporter import reporting_to_dagster
from pipeline.engine.stage import Workspace
from pipeline.ops.run_months import run_months
from pipeline.ops.services import release_services
from pipeline.settings import SAMPLE_DUMP, SAMPLE_SNAPSHOT, Settings, load_settings
from resources.dagster_home import dagster_home, open_instance
from tests.definitions import load_definitions
from tests.folders import copy_folder
from tests.processes import COMMAND, end_with_tests, environment_without_settings
from tests.sentinels import is_secret, sentinel

MONTHS = ("2024-03", "2024-04", "2024-05")
# The shared data root is made under these, so that test_secrets can look for them in all that it
# holds; but not under Postgres's address, which would be used.
SECRETS = (
    *(
        f"CITELOOM_{name.upper()}"
        for name in Settings.model_fields
        if is_secret(name) and name != "dagster_pg_url"
    ),
    *("HF_TOKEN", "AWS_SECRET_ACCESS_KEY"),
    "STRICT_KEY",  # of a model in the file of CITELOOM_MODELS
)


@dataclass
class Place:
    """A data root and the settings that lead to it, as environment variables."""

    root: Path
    variables: Mapping[str, str]

    def with_settings(self, **changes):
        """The same place under other settings, named as the fields of Settings."""
        changed = {f"CITELOOM_{name.upper()}": str(value) for name, value in changes.items()}
        return replace(self, variables={**self.variables, **changed})

    def copy_to(self, folder):
        """A copy that a test may change."""
        copy_folder(self.root, folder)
        return replace(self, root=folder).with_settings(data=folder)

    def workspace(self, **overrides):
        """A workspace on this data root; overrides as for `load_settings`."""
        with self.entered():
            return Workspace(load_settings(**overrides))

    @contextmanager
    def entered(self):
        """This process under the settings of this place and no others; the in-process index is let go
        at the end.
        """
        with pytest.MonkeyPatch.context() as patch:
            for name in [name for name in os.environ if name.startswith("CITELOOM_")]:
                patch.delenv(name)
            for name, value in self.variables.items():
                patch.setenv(name, value)
            patch.setenv("DAGSTER_HOME", str(self.root / "dagster"))
            # A folder without a .env: a developer's own settings are none of the tests' business.
            patch.chdir(self.root)
            try:
                yield
            finally:
                release_services()
                # A command hands settings to its runs by the environment, and in a process of its
                # own that ends there.
                for name in [name for name in os.environ if name.startswith("CITELOOM_")]:
                    del os.environ[name]

    def citeloom(self, *arguments):
        """Run the command as a user does, in a process of its own."""
        return subprocess.run(
            [COMMAND, *arguments],
            env=self.environment,
            cwd=self.root,
            capture_output=True,
            text=True,
        )

    def start(self, *arguments):
        """Start the command in a process group of its own, its progress lines to be read."""
        process = subprocess.Popen(
            [COMMAND, *arguments],
            env=self.environment,
            cwd=self.root,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        end_with_tests(process)
        return process

    @property
    def environment(self):
        """The variables of a process that runs the command here."""
        return {
            **environment_without_settings(),
            "COLUMNS": "200",
            "NO_COLOR": "1",
            **self.variables,
        }

    def run_months(self, stages, months, *, force=False):
        """Run stages as the command line does, and report them to Dagster as it does."""
        with self.entered():
            workspace = self.workspace()
            with reporting_to_dagster(workspace):
                return run_months(workspace, months, stages, force=force)

    @contextmanager
    def dagster(self):
        """Dagster's instance of this data root, made where it is missing."""
        with self.entered(), open_instance(dagster_home(self.workspace())) as instance:
            yield instance

    def run_in_dagster(self, stages, month, *, force=False):
        """Run stages as a run of Dagster's does, in this process."""
        config = {name: {"config": {"force": force, "retries": 0}} for name in stages}
        with self.dagster() as instance:
            return (
                load_definitions()
                .resolve_job_def("refresh_corpus")
                .execute_in_process(
                    instance=instance,
                    partition_key=month,
                    asset_selection=[dg.AssetKey(name) for name in stages],
                    run_config={"ops": config},
                    raise_on_error=False,
                )
            )

    def invoke(self, *arguments):
        """Run the command within this process, where what is loaded need not be loaded again."""
        from tests.command import invoke

        with self.entered():
            return invoke(*arguments, catch_exceptions=False)

    def told(self, *arguments, exit_code=0):
        """What the command prints as JSON, run within this process."""
        done = self.invoke(*arguments, "--json")
        assert done.exit_code == exit_code, done.output
        return json.loads(done.stdout)


@dataclass
class Finished:
    """A worker's copy of the shared data root, and what its run reported. Tests read it and leave
    it as it is.
    """

    place: Place
    computed: Sequence[tuple[str, str]]
    """Month and stage of everything that was computed, in this order."""
    failures: Sequence[tuple[str, str, str]]


@pytest.fixture(scope="session")
def finished(tmp_path_factory, llm):
    """Every stage of the three months of the sample corpus, run and reported to Dagster as the
    command line does.

    The first worker of pytest-xdist that needs it runs the stages; each worker has a copy.
    """
    folder = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = folder.parent
    summary = folder / "finished.json"
    with FileLock(f"{summary}.lock"):
        if not summary.is_file():
            summary.write_text(json.dumps(run_all_stages(folder / "finished", llm)))
    run = json.loads(summary.read_text())
    place = Place(folder / "finished", run["variables"]).copy_to(
        tmp_path_factory.mktemp("finished") / "data"
    )
    computed, failures = (
        [tuple(entry) for entry in run[name]] for name in ("computed", "failures")
    )
    return Finished(place.with_settings(llm_url=llm.url), computed, failures)


def run_all_stages(folder, llm):
    """Run every stage in a new data root. Returns its variables and what the run reported, as JSON
    can hold it.
    """
    from pipeline.stages import STAGES

    place = make_place(folder, llm_url=llm.url, llm_model="scripted")
    place = replace(
        place, variables={**place.variables, **{name: sentinel(name) for name in SECRETS}}
    )
    report = place.run_months(STAGES, MONTHS)
    return {
        "variables": dict(place.variables),
        "computed": [
            (outcome.month, outcome.stage) for outcome in report.outcomes if not outcome.skipped
        ],
        "failures": report.failures,
    }


@pytest.fixture
def place(finished):
    """The shared data root, to be read."""
    return finished.place


@pytest.fixture
def own(finished, tmp_path):
    """A copy of the shared data root, to be changed."""
    return finished.place.copy_to(tmp_path / "data")


@pytest.fixture
def empty(tmp_path, llm):
    """A data root with nothing in it."""
    return make_place(tmp_path / "data", llm_url=llm.url, llm_model="scripted")


@pytest.fixture
def dump(tmp_path):
    """A copy of the sample zips, to be changed."""
    return Path(shutil.copytree(SAMPLE_DUMP, tmp_path / "dump"))


def make_place(root, **settings):
    """A new place on the sample corpus, which asks no server but the scripted LLM."""
    root.mkdir(parents=True)
    base = {
        "dump_dir": SAMPLE_DUMP,
        "metadata_snapshot": SAMPLE_SNAPSHOT,
        "data": root,
        "arxiv_api": "false",
    }
    # The least that still samples, votes and chooses: 479 calls of the default settings are 150
    # here.
    small = {"chatcite_samples": 2, "chatcite_votes": 2, "chatcite_kept": 1, "max_questions": 3}
    return Place(root, {"OMP_NUM_THREADS": "1"}).with_settings(**{**base, **small, **settings})


def digests(root):
    """Every table and every page of the report below a data root, by its path; not the page of what
    runs took.
    """
    files = [
        *root.glob("*/*.parquet"),
        *root.glob("ledger/*/*.parquet"),
        *root.glob("reports/**/*"),
    ]
    return {str(file.relative_to(root)): file.read_bytes() for file in files if file.is_file()}
