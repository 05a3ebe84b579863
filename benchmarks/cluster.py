"""A backfill on a Ray cluster: two nodes of one processor each against one such node.

    python -m benchmarks.cluster [--quick] [--months N] [--pages N] [--rounds N]

Months of pages from `benchmarks.corpus`, through papers, passages and embeddings (MiniLM, one thread), all months at
once by `citeloom run --parallel`; the zips are indexed before. Each node is bound to a processor of its own; the
command, Postgres and the cluster's own services share what there is, as they would on the head. Every run has a data
root and a cluster of its own, started before the clock. Never a network between machines: both nodes are this one.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.corpus import ZIPS, ZipOut, mixed
from benchmarks.harness import Claim, report
from benchmarks.postgres_server import programs, running
from benchmarks.ray_cluster import cluster

STAGES = ("papers", "passages", "embeddings")
BEFORE = ("dump_members", "metadata")


@dataclass(frozen=True, slots=True)
class Measured:
    """One run: wall seconds of the command, seconds of each stage over its months, and the digests of its tables."""

    wall: float
    stages: Mapping[str, float]
    rows: Mapping[str, int]
    tables: Mapping[str, str]


def build(folder: Path, months: int, pages: int) -> None:
    """Zips and a snapshot for so many months of so many pages each."""
    (folder / "dump").mkdir(parents=True)
    zips: dict[str, ZipOut] = {}
    with (folder / "snapshot.jsonl").open("w") as snapshot:
        for number, (_, page) in enumerate(mixed(months * pages)):
            yymm = f"24{number // pages + 1:02}"
            arxiv_id = f"{yymm}.{number + 1:05}"
            if page.subset not in zips:
                zips[page.subset] = ZipOut(folder / "dump" / ZIPS[page.subset])
            zips[page.subset].add(f"{page.subset}/{yymm}/{arxiv_id}.html", page)
            # A title of its own is embedded with each passage, so that no vector is taken over from another paper.
            record = {"id": arxiv_id, "title": f"Paper {number}", "abstract": "Of words.", "categories": "cs.CL cs.IR"}
            snapshot.write(json.dumps({**record, "authors": "A. Author", "versions": []}) + "\n")
    for written in zips.values():
        written.close()


def settings(folder: Path, data: Path) -> dict[str, str]:
    """The environment of a run on the corpus in `folder`."""
    others = {name: value for name, value in os.environ.items() if not name.startswith(("CITELOOM_", "RAY_"))}
    return {
        **others,
        "OMP_NUM_THREADS": "1",
        "CITELOOM_DUMP_DIR": str(folder / "dump"),
        "CITELOOM_METADATA_SNAPSHOT": str(folder / "snapshot.jsonl"),
        "CITELOOM_DATA": str(data),
        "CITELOOM_ARXIV_API": "false",
        "CITELOOM_WORKERS": "1",
    }


def run(stages: tuple[str, ...], months: int, environment: Mapping[str, str], folder: Path) -> dict[str, Any]:
    """Run some stages of all months at once; what the command told of it. Exits where it failed."""
    citeloom = str(Path(sys.executable).with_name("citeloom"))
    chosen = ["--months", "all", "--select", ",".join(stages), "--parallel", str(months), "--json"]
    done = subprocess.run(
        [citeloom, "run", *chosen], cwd=folder, env=environment, stdout=subprocess.PIPE, text=True, timeout=1800
    )
    if done.returncode:
        raise SystemExit(f"the run failed:\n{done.stdout}")
    told: dict[str, Any] = json.loads(done.stdout)
    return told


def measure(folder: Path, months: int, nodes: int, store: str) -> Measured:
    """One backfill on a cluster of so many nodes."""
    from pipeline.storage.provenance import read_provenance

    data = folder / "data"
    shutil.rmtree(data, ignore_errors=True)
    shutil.copytree(folder / "indexed", data)
    secrets = {"CITELOOM_DAGSTER_PG_URL": store}
    with cluster(nodes, {**secrets, "OMP_NUM_THREADS": "1"}, bound=True) as there:
        steps = {
            "CITELOOM_EXECUTOR": "ray",
            "CITELOOM_RAY_ADDRESS": there.address,
            "CITELOOM_QDRANT_URL": "http://127.0.0.1:9",  # no stage of these asks it
        }
        started = time.perf_counter()
        told = run(STAGES, months, {**settings(folder, data), **secrets, **steps, **there.environment}, folder)
        wall = time.perf_counter() - started
    seconds = dict.fromkeys(STAGES, 0.0)
    rows = dict.fromkeys(STAGES, 0)
    for outcome in told["outcomes"]:
        seconds[outcome["stage"]] += outcome["seconds"]
        rows[outcome["stage"]] += outcome["rows"]
    files = [file for stage in STAGES for file in sorted((data / stage).glob("*.parquet"))]
    written = {str(file.relative_to(data)): read_provenance(file) for file in files}
    return Measured(wall, seconds, rows, {name: each.rows_sha256 if each else "" for name, each in written.items()})


def main() -> None:
    """Measure and report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--months", type=int, default=2)
    parser.add_argument("--pages", type=int, default=40, help="of each month")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--quick", action="store_true", help="five pages a month: whether it runs at all")
    parser.add_argument("--json", action="store_true", help="accepted, as by all: the last line is JSON in any case")
    asked = parser.parse_args()
    pages = 5 if asked.quick else asked.pages
    found = programs()
    if found is None:
        raise SystemExit("PostgreSQL is not installed: take Debian's package postgresql")
    with tempfile.TemporaryDirectory() as name, running(found, "a-password-of-the-benchmark") as store:
        folder = Path(name)
        build(folder, asked.months, pages)
        run(BEFORE, 1, settings(folder, folder / "indexed"), folder)
        shutil.rmtree(folder / "indexed" / "dagster")
        one, two = [], []
        for _ in range(asked.rounds):
            one.append(measure(folder, asked.months, 1, store))
            two.append(measure(folder, asked.months, 2, store))
    if any(each.tables != one[0].tables for each in [*one, *two]):
        raise SystemExit("the runs did not give the same tables")
    ratio = statistics.median(slow.wall / fast.wall for slow, fast in zip(one, two, strict=True))
    figures: dict[str, object] = {"months": asked.months, "pages of each": pages, "rounds": asked.rounds}
    figures |= {"passages": one[0].rows["passages"]}
    for nodes, runs in (("one node", one), ("two nodes", two)):
        figures[f"{nodes}, s"] = round(statistics.median(each.wall for each in runs), 1)
        work = statistics.median(sum(each.stages.values()) for each in runs)
        figures[f"{nodes}, of these within stages, s"] = round(work, 1)
    report("cluster", figures, [Claim("times as fast on two nodes as on one", round(ratio, 2), 1.7)])


if __name__ == "__main__":
    main()
