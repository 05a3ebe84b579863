"""A backfill on a Ray cluster of two nodes: the same tables, also where a node is lost or the run's own process is.

Both nodes are processes on this machine, which stand for two machines that share a folder.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import dagster as dg
import pytest

from benchmarks.ray_cluster import Cluster, Node, cluster
from pipeline.ops.run_months import dagster_home
from pipeline.storage.provenance import read_provenance
from tests.assets.conftest import MONTHS, Place
from tests.assets.processes import start, wait_until
from tests.faults.accounts import Watch, audited
from tests.faults.conftest import Tell
from tests.postgres import PASSWORD, postgres
from tests.sentinels import Search, sentinel
from tests.server.conftest import KEY, qdrant_binary  # noqa: F401 - a fixture
from tests.server.faulty import MortalServer

pytest.importorskip("dagster_ray", reason="Ray is not installed: pip install 'citeloom[ray]'")

CORPUS = ("dump_members", "metadata", "papers", "passages", "references", "embeddings")
WRITTEN = ("questions", "related_work_tasks", "key_elements", "summaries_zero_shot")
TASKS_OF = "2024-05"
STEP = "pipeline.running.step_on_node"
SECRET = "CITELOOM_LLM_API_KEY"
pytestmark = [pytest.mark.server, pytest.mark.timeout(2400)]


@pytest.fixture(scope="module")
def store() -> Iterator[str]:
    """The address of a Postgres of this module's own."""
    with postgres() as url:
        yield url


@pytest.fixture(scope="module")
def qdrant(qdrant_binary: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[MortalServer]:  # noqa: F811
    """A Qdrant server of this module's own."""
    server = MortalServer(qdrant_binary, tmp_path_factory.mktemp("qdrant"))
    server.start()
    yield server
    server.kill()


@pytest.fixture(scope="module")
def ray(store: str) -> Iterator[Cluster]:
    """Two nodes. Secrets are in their own environment, since none travels with a step."""
    own = {"CITELOOM_DAGSTER_PG_URL": store, "CITELOOM_QDRANT_API_KEY": KEY, SECRET: sentinel(SECRET)}
    with cluster(2, {**own, "OMP_NUM_THREADS": "1"}) as made:
        yield made


@pytest.fixture
def place(
    make: Callable[..., Place],
    ray: Cluster,
    qdrant: MortalServer,
    store: str,
    tmp_path: Path,
    request: pytest.FixtureRequest,
) -> Place:
    """An empty data root whose runs have their steps on the cluster, with a collection of its own."""
    made = make(
        tmp_path / "data", executor="ray", ray_address=ray.address, dagster_pg_url=store, llm_api_key=sentinel(SECRET),
        qdrant_url=qdrant.at.url, qdrant_api_key=KEY, qdrant_grpc_port=qdrant.at.grpc_port,
        qdrant_collection=request.node.name[:40],
    )  # fmt: skip
    return replace(made, variables={**made.variables, **ray.environment})


def rows(place: Place, stages: tuple[str, ...], months: tuple[str, ...] = MONTHS) -> dict[str, str | None]:
    """The digest of the rows of each month of each table."""
    written = {
        f"{stage} {month}": read_provenance(place.root / stage / f"{month}.parquet")
        for stage in stages
        for month in months
    }
    return {name: each.rows_sha256 if each else None for name, each in written.items()}


def backfill(place: Place, *months: str, stages: tuple[str, ...] = CORPUS) -> list[str]:
    """The arguments of a run of several months at once."""
    return ["run", "--months", ",".join(months), "--select", ",".join(stages), "--parallel", str(len(months)), "--json"]


def has_step(node: Node) -> bool:
    """Whether a step works on a node."""
    return any(STEP in command for command in node.processes().values())


def finish(process: subprocess.Popen[str]) -> tuple[int, str]:
    """The exit code of a command, and what it said on its way."""
    said = process.communicate(timeout=1800)[1]
    return process.returncode, said


def test_two_nodes_give_the_same_tables_and_keep_no_secret(ray: Cluster, place: Place, calm: Place, tell: Tell) -> None:
    code, said = finish(start(place, *backfill(place, *MONTHS, stages=(*CORPUS, "index_receipts"))))
    assert code == 0, said
    code, said = finish(start(place, *backfill(place, TASKS_OF, stages=WRITTEN)))
    assert code == 0, said
    ours = {**rows(place, CORPUS), **rows(place, WRITTEN, (TASKS_OF,))}
    theirs = {**rows(calm, CORPUS), **rows(calm, WRITTEN, (TASKS_OF,))}
    differing = [name for name in theirs if ours[name] != theirs[name]]
    found = audited(place)
    search = Search([SECRET])
    leaks = [*search.in_folder(ray.folder), *search.in_folder(place.root), *search.in_text(*_told_by_jobs(ray), said)]
    passwords = [file for file in ray.folder.rglob("*") if file.is_file() and PASSWORD.encode() in file.read_bytes()]
    tell(nodes=2, months=len(MONTHS), tables=len(theirs), differing=len(differing), leaks=len(leaks), **found)
    assert differing == []
    assert found == {"points_wrong": 0, "audit_code": 0}
    assert (leaks, passwords) == ([], [])
    assert PASSWORD not in "".join(_told_by_jobs(ray))


def test_the_doctor_sees_the_cluster(ray: Cluster, place: Place) -> None:
    told = json.loads(place.citeloom("doctor", "--json").stdout)["findings"]
    seen = [(each["state"], each["seen"]) for each in told if each["name"] == "cluster"]
    assert seen == [("ok", f"{ray.address}: nodes 2, processors 2, GPUs 0")]


def _told_by_jobs(ray: Cluster) -> list[str]:
    """All that Ray's job server keeps of its jobs."""
    code = (
        "import sys; from ray.job_submission import JobSubmissionClient\n"
        "for job in JobSubmissionClient(sys.argv[1]).list_jobs(): print(job)"
    )
    # In a process of its own: Ray reads its token once.
    told = subprocess.run(
        [sys.executable, "-c", code, ray.address], env={**os.environ, **ray.environment}, capture_output=True,
        text=True, timeout=300, check=True,
    )  # fmt: skip
    jobs = told.stdout.splitlines()
    assert len(jobs) > len(MONTHS)
    return jobs


def test_a_node_that_is_lost_in_the_middle_costs_a_retry(ray: Cluster, place: Place, calm: Place, tell: Tell) -> None:
    stages = CORPUS[:4]
    lost = ray.nodes[-1]
    run = start(place, *backfill(place, *MONTHS, stages=stages))
    try:
        wait_until(lambda: has_step(lost) or run.poll() is not None, 600)
        assert run.poll() is None, finish(run)
        lost.kill()
        ray.add_node()
        code, said = finish(run)
    finally:
        run.kill()
    watch = Watch(place.root)
    watch.look()
    ours, theirs = rows(place, stages), rows(calm, stages)
    differing = [name for name in theirs if ours[name] != theirs[name]]
    again = said.count("is begun again")
    tell(nodes_killed=1, begun_again=again, code=code, differing=len(differing), torn=watch.torn)
    assert (code, differing, watch.torn) == (0, [], 0), said
    assert again >= 1, said


def test_steps_whose_run_is_dead_are_stopped_and_the_next_run_goes_on(
    ray: Cluster, place: Place, calm: Place, tell: Tell
) -> None:
    month, stages = MONTHS[0], CORPUS[:4]
    run = start(place, *backfill(place, month, stages=stages))
    try:
        wait_until(lambda: any(map(has_step, ray.nodes)) or run.poll() is not None, 600)
        assert run.poll() is None, finish(run)
    finally:
        os.kill(run.pid, signal.SIGKILL)
        run.wait()
    code, said = finish(start(place, *backfill(place, month, stages=stages)))
    statuses = sorted(each.status.value for each in _runs(place))
    ours, theirs = rows(place, stages, (month,)), rows(calm, stages, (month,))
    left = [node.name for node in ray.nodes if has_step(node)]
    tell(killed=1, code=code, differing=sum(ours[name] != theirs[name] for name in theirs), steps_left=len(left))
    assert code == 0, said
    assert ours == theirs
    assert statuses == ["FAILURE", "SUCCESS"]
    assert left == []


def _runs(place: Place) -> list[dg.DagsterRun]:
    """The runs of a place's instance; the store holds those of the other tests as well."""
    with place.entered(), dg.DagsterInstance.from_config(str(dagster_home(place.workspace()))) as instance:
        return list(instance.get_runs(limit=2))
