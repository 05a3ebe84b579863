"""A Dagster backfill on a Ray cluster: two nodes of one processor each against one such node; and
the same months by two processes of `citeloom run --part`.

    python -m benchmarks.cluster [--quick] [--months N] [--pages N] [--rounds N]

Months of pages from `benchmarks.corpus`, through papers, passages, references and embeddings
(MiniLM, one thread), by `dagster job backfill` and Dagster's daemon: a run for each month, two at
once, each step a Ray job. The zips are indexed before. Each node is bound to a processor of its
own; the daemon, the runs' own processes, Postgres and the cluster's services share both, as they
would on the head. Every backfill has a data root and a cluster of its own, started before the
clock. Both nodes are this machine: no network is between them. Each part has a processor of its
own too; the seconds of the parts hold their start. All three must give the same rows.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import dagster as dg

from benchmarks import postgres_server
from benchmarks.cluster_job import JOB, STAGES
from benchmarks.corpus import ZIPS, ZipOut, mixed
from benchmarks.harness import Claim, argument_parser, report
from benchmarks.ray_cluster import base_environment, cluster
from pipeline.engine.stage import Workspace
from pipeline.settings import load_settings
from pipeline.storage.provenance import read_provenance
from resources.dagster_home import dagster_home


@dataclass(frozen=True, slots=True)
class Measured:
    """wall: seconds from the start of the first run to the end of the last. passages: their number.
    tables: the digest of each. work: seconds within stages, which parts do not report.
    """

    wall: float
    passages: int
    tables: Mapping[str, str]
    work: float = 0.0


def build(folder: Path, months: int, pages: int) -> None:
    """Write zips and a snapshot of so many months with so many pages each."""
    (folder / "dump").mkdir(parents=True)
    zips: dict[str, ZipOut] = {}
    with (folder / "snapshot.jsonl").open("w") as snapshot:
        for number, (_, page) in enumerate(mixed(months * pages)):
            yymm = f"24{number // pages + 1:02}"
            arxiv_id = f"{yymm}.{number + 1:05}"
            if page.subset not in zips:
                zips[page.subset] = ZipOut(folder / "dump" / ZIPS[page.subset])
            zips[page.subset].add(f"{page.subset}/{yymm}/{arxiv_id}.html", page)
            # The title is embedded with each passage: a different one, so that no vector is reused
            # from another paper.
            record = {
                "id": arxiv_id,
                "title": f"Paper {number}",
                "abstract": "Of words.",
                "categories": "cs.CL cs.IR",
            }
            snapshot.write(json.dumps({**record, "authors": "A. Author", "versions": []}) + "\n")
    for written in zips.values():
        written.close()


def settings(folder: Path, data: Path) -> dict[str, str]:
    """The environment of a command on the corpus in `folder`."""
    return {
        **base_environment(),
        "OMP_NUM_THREADS": "1",
        "CITELOOM_DUMP_DIR": str(folder / "dump"),
        "CITELOOM_METADATA_SNAPSHOT": str(folder / "snapshot.jsonl"),
        "CITELOOM_DATA": str(data),
        "CITELOOM_ARXIV_API": "false",
        "CITELOOM_WORKERS": "1",
    }


def run(
    program: str, arguments: Sequence[str], environment: Mapping[str, str], folder: Path
) -> None:
    """Run a command of this environment to its end. Exits if it fails."""
    command = [str(Path(sys.executable).with_name(program)), *arguments]
    done = subprocess.run(
        command,
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=1800,
    )
    if done.returncode:
        raise SystemExit(f"{' '.join(command)} failed:\n{done.stdout}")


@contextlib.contextmanager
def daemon(environment: Mapping[str, str], folder: Path) -> Iterator[None]:
    """Dagster's daemon, which starts queued runs."""
    with (folder / "daemon.log").open("w") as log:
        process = subprocess.Popen(
            [
                str(Path(sys.executable).with_name("dagster-daemon")),
                "run",
                "-m",
                "benchmarks.cluster_job",
            ],
            cwd=folder,
            env=environment,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
        try:
            yield
        finally:
            process.terminate()
            process.wait(60)
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)  # its code server may outlive it


def backfill(
    months: Sequence[str], environment: Mapping[str, str], folder: Path
) -> list[dg.RunRecord]:
    """Backfill the months as a user does from a shell; the finished runs. Exits if one fails."""
    chosen = [
        "--job",
        JOB,
        "-m",
        "benchmarks.cluster_job",
        "--partitions",
        ",".join(months),
        "--noprompt",
    ]
    with (
        dg.DagsterInstance.from_config(environment["DAGSTER_HOME"]) as instance,
        daemon(environment, folder),
    ):
        run("dagster", ["job", "backfill", *chosen], environment, folder)
        end = time.monotonic() + 1800
        records: Sequence[dg.RunRecord] = []
        while len(records) < len(months) or not all(
            record.dagster_run.is_finished for record in records
        ):
            if time.monotonic() > end:
                raise SystemExit(
                    f"the backfill did not end:\n{(folder / 'daemon.log').read_text()}"
                )
            time.sleep(1)
            records = instance.get_run_records(dg.RunsFilter(job_name=JOB), limit=len(months))
        if not all(record.dagster_run.is_success for record in records):
            raise SystemExit(f"a run failed:\n{(folder / 'daemon.log').read_text()}")
        return list(records)


def indexed_root(folder: Path) -> Path:
    """A new data root whose zips are indexed."""
    data = folder / "data"
    shutil.rmtree(data, ignore_errors=True)
    shutil.copytree(folder / "indexed", data)
    return data


def measure(folder: Path, months: Sequence[str], nodes: int, store: str) -> Measured:
    """One backfill on a cluster of so many nodes."""
    data = indexed_root(folder)
    home = dagster_home(Workspace(load_settings(data=data, dagster_pg_url=store)))
    secrets = {"CITELOOM_DAGSTER_PG_URL": store}
    with cluster(nodes, {**secrets, "OMP_NUM_THREADS": "1"}, bound=True) as started:
        on_cluster = {
            "CITELOOM_EXECUTOR": "ray",
            "CITELOOM_RAY_ADDRESS": started.address,
            # Required, and used by none of these stages
            "CITELOOM_QDRANT_URL": "http://127.0.0.1:9",
            "DAGSTER_HOME": str(home),
        }
        environment = {**settings(folder, data), **secrets, **on_cluster, **started.environment}
        records = backfill(months, environment, folder)
    with dg.DagsterInstance.from_config(str(home)) as instance:
        work = sum(stage_seconds(instance, record.dagster_run.run_id) for record in records)
    tables, passages = written_tables(data, months)
    return Measured(
        wall=max(record.end_time or 0.0 for record in records)
        - min(record.start_time or 0.0 for record in records),
        work=work,
        passages=passages,
        tables=tables,
    )


def measure_parts(folder: Path, months: Sequence[str], processes: int) -> Measured:
    """The months by so many processes at once, each its part. Exits if one fails."""
    data = indexed_root(folder)
    citeloom = str(Path(sys.executable).with_name("citeloom"))
    start = time.monotonic()
    running = []
    for number in range(processes):
        bound = ["taskset", "--cpu-list", str(number), citeloom]
        part = ["run", "--months", "all", "--part", f"{number + 1}/{processes}"]
        command = [*bound, *part, "--until", "embeddings"]
        running.append(subprocess.Popen(command, cwd=folder, env=settings(folder, data)))
    codes = [process.wait(1800) for process in running]
    if any(codes):
        raise SystemExit(f"parts ended with {codes}")
    wall = time.monotonic() - start
    tables, passages = written_tables(data, months)
    return Measured(wall=wall, passages=passages, tables=tables)


def written_tables(data: Path, months: Sequence[str]) -> tuple[dict[str, str], int]:
    """(table and month → digest of its rows, number of passages)."""
    written = {
        f"{stage} {month}": read_provenance(data / stage / f"{month}.parquet")
        for stage in STAGES
        for month in months
    }
    passages = sum(
        table.rows for name, table in written.items() if table and name.startswith("passages ")
    )
    return {name: table.rows_sha256 if table else "" for name, table in written.items()}, passages


def stage_seconds(instance: dg.DagsterInstance, run_id: str) -> float:
    """Seconds within the stages of a run, as its materializations report them."""
    events = instance.all_logs(run_id, of_type=dg.DagsterEventType.ASSET_MATERIALIZATION)
    materializations = [event.asset_materialization for event in events]
    return sum(
        float(str(materialization.metadata["seconds"].value))
        for materialization in materializations
        if materialization
    )


def main() -> None:
    """Measure and report."""
    parser = argument_parser(__doc__, "five pages a month: whether it runs at all")
    parser.add_argument("--months", type=int, default=2)
    parser.add_argument("--pages", type=int, default=40, help="of each month")
    parser.add_argument("--rounds", type=int, default=1)
    arguments = parser.parse_args()
    pages = 5 if arguments.quick else arguments.pages
    programs = postgres_server.programs()
    if programs is None:
        raise SystemExit("PostgreSQL is not installed: take Debian's package postgresql")
    months = [f"2024-{number + 1:02}" for number in range(arguments.months)]
    with (
        tempfile.TemporaryDirectory() as name,
        postgres_server.running(programs, "a-password-of-the-benchmark") as url,
    ):
        folder = Path(name)
        build(folder, arguments.months, pages)
        before = ["run", "--months", "all", "--select", "dump_members,metadata", "--json"]
        run("citeloom", before, settings(folder, folder / "indexed"), folder)
        shutil.rmtree(folder / "indexed" / "dagster", ignore_errors=True)
        # As Dagster reads it on a node.
        store = url.replace("postgresql://", "postgresql+psycopg2://")
        rounds = [
            [
                *(measure(folder, months, nodes, store) for nodes in (1, 2)),
                measure_parts(folder, months, 2),
            ]
            for _ in range(arguments.rounds)
        ]
    if any(measured.tables != rounds[0][0].tables for every in rounds for measured in every):
        raise SystemExit("the runs did not give the same tables")
    figures: dict[str, object] = {
        "months": arguments.months,
        "pages of each": pages,
        "rounds": arguments.rounds,
    }
    figures |= {"passages": rounds[0][0].passages}
    for number, nodes in enumerate(("one node", "two nodes")):
        figures[f"{nodes}, s"] = round(statistics.median(every[number].wall for every in rounds), 1)
        work = statistics.median(every[number].work for every in rounds)
        figures[f"{nodes}, of these within stages, s"] = round(work, 1)
    figures["two parts, s"] = round(statistics.median(every[2].wall for every in rounds), 1)
    nodes = statistics.median(one.wall / two.wall for one, two, _ in rounds)
    parts = statistics.median(two.wall / parts.wall for _, two, parts in rounds)
    report(
        "cluster",
        figures,
        [
            Claim("times as fast on two nodes as on one", round(nodes, 2), 1.7),
            Claim("times as fast by two parts as on two nodes", round(parts, 2), 1.0),
        ],
    )


if __name__ == "__main__":
    main()
