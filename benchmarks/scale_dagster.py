"""What Dagster's UI and daemon take over a corpus of many months.

    python -m benchmarks.scale_dagster [--months 424] [--quick] [--folder FOLDER]

A data root with a dump of that many months, of one paper each, and an instance whose event log has
a materialization of each asset and month. `citeloom ui` runs on it, and gets its pages' queries
by Dagster's GraphQL, and in headless Chromium where a page is meant. Each operation is measured in
seconds of wall and in processor seconds of all of Dagster's processes, so that other work on the
machine shows.

    a step's overhead    seconds of the step in the event log, less those that its stage took
"""

from __future__ import annotations

import contextlib
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import dagster as dg
import httpx2
import psutil

from benchmarks.harness import Claim, argument_parser, compile_modules, free_ports, report
from benchmarks.serve import COMMAND
from benchmarks.synthetic_corpus import SyntheticCorpus, months_until
from pipeline.engine.stage import Workspace
from pipeline.settings import load_settings
from pipeline.stages import STAGES
from resources.dagster_home import dagster_home, open_instance

MONTHS, QUICK_MONTHS = 424, 12
# Runs of the backfill that are waited for before it is cancelled.
FIRST_RUNS = 4
# Between two questions to Dagster, whose answers take processor time too.
POLL_SECONDS = 1.0
IDLE_SECONDS = 60.0
# Longer than anything that a person would wait for.
PATIENCE = 600.0
# Of any answer that may be an error.
ERROR_FIELDS = "__typename ... on Error { message }"
LOCATION = {"repositoryName": "__repository__", "repositoryLocationName": "citeloom"}
BACKFILL_ASSET = "dump_members"
BROWSER = (
    "--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-dev-shm-usage",
    "--disable-background-networking", "--window-size=1600,1200",
)  # fmt: skip

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class DagsterCost:
    """What an operation took. processor_seconds: of all processes of Dagster."""

    seconds: float
    processor_seconds: float

    def __str__(self) -> str:
        return f"{self.seconds:.2f} s, {self.processor_seconds:.2f} s of processor"


def main(arguments: Sequence[str] | None = None) -> None:
    """Make the instance, measure, print the figures."""
    parser = argument_parser(__doc__, "12 months")
    parser.add_argument("--months", type=int, default=0)
    parser.add_argument("--folder", type=Path, default=None, help="is kept; must be empty at first")
    options = parser.parse_args(arguments)
    count = options.months or (QUICK_MONTHS if options.quick else MONTHS)
    compile_modules()
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.folder or Path(temporary)
        workspace = make_root(folder, months_until(count))
        costs: dict[str, DagsterCost] = {}
        with running_ui(workspace, costs) as ui:
            overheads = measure(ui, months_until(count), folder, costs)
    figures: dict[str, object] = {"months": count, "assets": len(STAGES)}
    figures |= {name: str(cost) for name, cost in costs.items()}
    overhead = statistics.median(overheads)
    figures["overhead of a step, median s"] = round(overhead, 2)
    report("scale_dagster", figures, claims(costs, overhead))


def claims(costs: Mapping[str, DagsterCost], overhead: float) -> list[Claim]:
    """What a person waits for."""
    limits = {"code location": 3.0, "asset page": 5.0, "asset graph": 5.0}
    measured = [
        Claim(f"{name}, s", round(costs[name].seconds, 2), limit, at_most=True)
        for name, limit in limits.items()
        if name in costs
    ]
    return [*measured, Claim("overhead of a step, s", round(overhead, 2), 2.0, at_most=True)]


def make_root(folder: Path, months: Sequence[str]) -> Workspace:
    """A dump of the months, and an instance that has a materialization of each asset and month."""
    dump = folder / "dump"
    workspace = Workspace(
        load_settings(
            _env_file=None,
            data=folder / "data",
            dump_dir=dump,
            metadata_snapshot=folder / "snapshot.jsonl",
            arxiv_api=False,
        )
    )
    if not dump.exists():
        dump.mkdir(parents=True)
        corpus = SyntheticCorpus(months, 1)
        corpus.write_snapshot(folder / "snapshot.jsonl")
        for month in months:
            corpus.write_month(dump, month)
    with open_instance(dagster_home(workspace)) as instance:
        if instance.get_materialized_partitions(dg.AssetKey(STAGES[-1].name)):
            return workspace
        for stage in STAGES:
            for month in months:
                instance.report_runless_asset_event(_materialization(stage.name, month))
    return workspace


def _materialization(name: str, month: str) -> dg.AssetMaterialization:
    return dg.AssetMaterialization(
        name,
        partition=month,
        metadata={
            "dagster/row_count": 240,
            "seconds": 1.0,
            "preview": dg.MetadataValue.md("| a |"),
        },
        tags={"dagster/data_version": f"{name} {month}"},
    )


class DagsterUi:
    """A `citeloom ui` that answers: its GraphQL, and the processor time of its processes."""

    def __init__(self, url: str, process: psutil.Process) -> None:
        self.url, self._process = url, process

    def ask(self, query: str, **variables: object) -> dict[str, Any]:
        """The data of an answer. Raises RuntimeError for errors, of which a query includes
        ERROR_FIELDS.
        """
        answer = httpx2.post(
            f"{self.url}/graphql",
            json={"query": query, "variables": variables},
            timeout=PATIENCE,
        ).json()
        if "errors" in answer:
            raise RuntimeError(str(answer["errors"]))
        data: dict[str, Any] = answer["data"]
        for value in data.values():
            if "message" in value:
                raise RuntimeError(f"{value['__typename']}: {value['message']}")
        return data

    def processor_seconds(self) -> float:
        """Of all processes since the start: those that ended count as children of their parents."""
        seconds = 0.0
        for process in (self._process, *self._process.children(recursive=True)):
            with contextlib.suppress(psutil.Error):
                seconds += sum(process.cpu_times()[:4])
        return seconds

    @contextmanager
    def measured(self, costs: dict[str, DagsterCost], name: str) -> Iterator[None]:
        """Add the cost of the block under a name."""
        before, started = self.processor_seconds(), time.perf_counter()
        yield
        seconds = time.perf_counter() - started
        costs[name] = DagsterCost(seconds, self.processor_seconds() - before)
        sys.stderr.write(f"{name}: {costs[name]}\n")


@contextmanager
def running_ui(workspace: Workspace, costs: dict[str, DagsterCost]) -> Iterator[DagsterUi]:
    """A `citeloom ui` over the data root, once its code location is loaded; adds what that cost."""
    settings, port = workspace.settings, free_ports(1)[0]
    environment = {
        **os.environ,
        "CITELOOM_DATA": str(workspace.root.path),
        "CITELOOM_DUMP_DIR": str(settings.dump_dir),
        "CITELOOM_METADATA_SNAPSHOT": str(settings.metadata_snapshot),
        "CITELOOM_ARXIV_API": "false",
    }
    process = subprocess.Popen(
        [*COMMAND, "ui", "--port", str(port)],
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    ui = DagsterUi(f"http://127.0.0.1:{port}", psutil.Process(process.pid))
    try:
        with ui.measured(costs, "start"):
            wait_until(lambda: _is_loaded(ui))
        yield ui
    finally:
        process.terminate()
        process.wait(PATIENCE)  # the daemon lets runs in progress end


def _is_loaded(ui: DagsterUi) -> bool:
    query = (
        f"{{ workspaceOrError {{ {ERROR_FIELDS} ... on Workspace"
        " { locationEntries { locationOrLoadError { __typename } } } } }"
    )
    try:
        entries = ui.ask(query)["workspaceOrError"]["locationEntries"]
    except (httpx2.HTTPError, ValueError):
        return False
    types = [(entry["locationOrLoadError"] or {}).get("__typename") for entry in entries]
    return bool(types) and all(name == "RepositoryLocation" for name in types)


def wait_until(condition: Callable[[], T], interval_seconds: float = 0.1) -> T:
    """Poll a condition, and return its first true value. Raises TimeoutError."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        value = condition()
        if value:
            return value
        time.sleep(interval_seconds)
    raise TimeoutError("Dagster did not get there")


def measure(
    ui: DagsterUi, months: Sequence[str], folder: Path, costs: dict[str, DagsterCost]
) -> list[float]:
    """Add the cost of each operation. Returns the overheads of the steps of the backfill's first
    runs.
    """
    with ui.measured(costs, "code location"):
        ui.ask(
            "mutation ($name: String!) { reloadRepositoryLocation(repositoryLocationName: $name)"
            f" {{ {ERROR_FIELDS} }} }}",
            name=LOCATION["repositoryLocationName"],
        )
    if shutil.which("chromium") and shutil.which("chromedriver"):
        for name, path, words in (
            ("asset page", "/assets/papers?view=partitions", (f"Materialized ({len(months)})",)),
            ("asset graph", "/asset-groups", ("related_work", "Materialize all")),
        ):
            # A browser of its own for each, since a person opens a page with an empty cache.
            with _browser(folder) as browser, ui.measured(costs, name):
                browser.get(f"{ui.url}{path}")
                wait_until(lambda: _shows(browser, words))  # noqa: B023 - waited for in the loop
    for sensor in ("dump_folder", "computed_months"):
        with ui.measured(costs, f"sensor {sensor}"):
            ui.ask(
                "mutation ($sensor: SensorSelector!)"
                f' {{ sensorDryRun(selectorData: $sensor, cursor: "") {{ {ERROR_FIELDS} }} }}',
                sensor={**LOCATION, "sensorName": sensor},
            )
    with ui.measured(costs, "idle"):
        time.sleep(IDLE_SECONDS)
    with ui.measured(costs, "hourly check"):
        check = _launch_check(ui)
        wait_until(lambda: _run(ui, check)["endTime"], POLL_SECONDS)
    return _backfill(ui, months, costs)


@contextmanager
def _browser(folder: Path) -> Iterator[Any]:
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    with tempfile.TemporaryDirectory(dir=folder) as profile:
        options = webdriver.ChromeOptions()
        for flag in (*BROWSER, f"--user-data-dir={profile}"):
            options.add_argument(flag)
        driver = webdriver.Chrome(options=options, service=Service(shutil.which("chromedriver")))
        try:
            yield driver
        finally:
            driver.quit()


def _shows(browser: Any, words: Sequence[str]) -> bool:
    text = str(browser.execute_script("return document.body.innerText"))
    return all(word in text for word in words)


def _launch_check(ui: DagsterUi) -> str:
    """Launch the job of the hourly check; returns its run."""
    answer = ui.ask(
        "mutation ($parameters: ExecutionParams!) { launchRun(executionParams: $parameters)"
        f" {{ {ERROR_FIELDS} ... on LaunchRunSuccess {{ run {{ runId }} }} }} }}",
        parameters={"selector": {**LOCATION, "jobName": "check_months"}, "mode": "default"},
    )["launchRun"]
    return str(answer["run"]["runId"])


def _run(ui: DagsterUi, run: str) -> dict[str, Any]:
    """Status and times of a run and of its steps."""
    query = (
        f"query ($run: ID!) {{ runOrError(runId: $run) {{ {ERROR_FIELDS} ... on Run"
        " { status startTime endTime stepStats { startTime endTime materializations"
        " { metadataEntries { label ... on FloatMetadataEntry { floatValue } } } } } } }"
    )
    state: dict[str, Any] = ui.ask(query, run=run)["runOrError"]
    return state


def _backfill(ui: DagsterUi, months: Sequence[str], costs: dict[str, DagsterCost]) -> list[float]:
    """Launch a backfill of all months, wait for its first runs, cancel it. Returns the overhead of
    each step.
    """
    with ui.measured(costs, "backfill, submitted"):
        backfill = ui.ask(
            "mutation ($parameters: LaunchBackfillParams!)"
            f" {{ launchPartitionBackfill(backfillParams: $parameters) {{ {ERROR_FIELDS}"
            " ... on LaunchBackfillSuccess { backfillId } } }",
            parameters={
                "assetSelection": [{"path": [BACKFILL_ASSET]}],
                "partitionNames": list(months),
            },
        )["launchPartitionBackfill"]["backfillId"]
    with ui.measured(costs, "backfill, first step begun"):
        wait_until(lambda: _begun_runs(ui, backfill), POLL_SECONDS)
    with ui.measured(costs, "backfill, its progress"):
        _progress(ui, backfill)
    with ui.measured(costs, f"backfill, first {FIRST_RUNS} runs ended"):
        runs = wait_until(lambda: _ended_runs(ui, backfill), POLL_SECONDS)
    # Else its queued runs would start with the next `citeloom ui` over a folder that is kept.
    with ui.measured(costs, "backfill, cancelled"):
        ui.ask(
            "mutation ($backfill: String!) { cancelPartitionBackfill(backfillId: $backfill)"
            f" {{ {ERROR_FIELDS} }} }}",
            backfill=backfill,
        )
        wait_until(lambda: _progress(ui, backfill)["status"] == "CANCELED", POLL_SECONDS)
    return [_overhead(step) for run in runs for step in _run(ui, run)["stepStats"]]


def _progress(ui: DagsterUi, backfill: str) -> dict[str, Any]:
    """Status of a backfill and of its partitions, as its page asks for them."""
    query = (
        "query ($backfill: String!) { partitionBackfillOrError(backfillId: $backfill)"
        f" {{ {ERROR_FIELDS} ... on PartitionBackfill {{ status numPartitions assetBackfillData"
        " { assetBackfillStatuses { __typename } } } } }"
    )
    progress: dict[str, Any] = ui.ask(query, backfill=backfill)["partitionBackfillOrError"]
    return progress


def _runs_of(ui: DagsterUi, backfill: str, statuses: Sequence[str]) -> list[str]:
    query = (
        "query ($filter: RunsFilter!) { runsOrError(filter: $filter, limit: 50)"
        f" {{ {ERROR_FIELDS} ... on Runs {{ results {{ runId stepStats {{ startTime }} }} }} }} }}"
    )
    tags = [{"key": "dagster/backfill", "value": backfill}]
    runs = ui.ask(query, filter={"tags": tags, "statuses": list(statuses)})["runsOrError"]
    return [run["runId"] for run in runs["results"] if run["stepStats"]]


def _begun_runs(ui: DagsterUi, backfill: str) -> list[str]:
    return _runs_of(ui, backfill, ("STARTED", "SUCCESS"))


def _ended_runs(ui: DagsterUi, backfill: str) -> list[str]:
    runs = _runs_of(ui, backfill, ("SUCCESS",))
    return runs if len(runs) >= FIRST_RUNS else []


def _overhead(step: Mapping[str, Any]) -> float:
    """Seconds of a step, less those that its stage took."""
    stage_seconds = sum(
        entry["floatValue"]
        for event in step["materializations"]
        for entry in event["metadataEntries"]
        if entry["label"] == "seconds"
    )
    return float(step["endTime"] - step["startTime"] - stage_seconds)


if __name__ == "__main__":
    main()
