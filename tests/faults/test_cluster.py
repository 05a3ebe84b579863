"""Dagster runs on a Ray cluster of two nodes: the same tables, also if a node is lost or a run's
own process is killed.

Both nodes are processes on this machine, which stand for two machines that share a folder.
"""

import os
import signal
import subprocess
import sys
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import dagster as dg
import pytest

from benchmarks.ray_cluster import base_environment, cluster
from pipeline.storage.provenance import read_provenance
from resources.dagster_home import dagster_home, open_instance
from tests.assets.conftest import MONTHS
from tests.faults.accounts import Watch, audited
from tests.postgres import PASSWORD, postgres
from tests.processes import wait_until
from tests.sentinels import Search, sentinel
from tests.server.conftest import KEY, MortalServer, qdrant_binary  # noqa: F401

pytest.importorskip(
    "dagster_ray",
    reason="Ray is not installed: pip install --constraint constraints.txt --editable '.[ray]'",
)

CORPUS = ("dump_members", "metadata", "papers", "passages", "references", "embeddings")
WRITTEN = ("questions", "related_work_tasks", "key_elements", "summaries")
TASKS_OF = "2024-05"
SECRET = "CITELOOM_LLM_API_KEY"
pytestmark = [pytest.mark.server]


@pytest.fixture(scope="module")
def store():
    """The address of a Postgres for this module, as Dagster reads it from a node's environment."""
    with postgres() as url:
        yield url.replace("postgresql://", "postgresql+psycopg2://")


@pytest.fixture(scope="module")
def qdrant(qdrant_binary, tmp_path_factory):  # noqa: F811
    """A Qdrant server for this module."""
    server = MortalServer(qdrant_binary, tmp_path_factory.mktemp("qdrant"))
    server.start()
    yield server
    server.kill()


@pytest.fixture(scope="module")
def ray(store):
    """Two nodes. Secrets are in their own environment, since none travels with a step."""
    secrets = {
        "CITELOOM_DAGSTER_PG_URL": store,
        "CITELOOM_QDRANT_API_KEY": KEY,
        SECRET: sentinel(SECRET),
    }
    with cluster(2, {**secrets, "OMP_NUM_THREADS": "1"}) as started:
        yield started


@pytest.fixture
def place(make, ray, qdrant, store, tmp_path, request):
    """An empty data root whose Dagster runs have their steps on the cluster, with a collection of
    its own.
    """
    made = make(
        tmp_path / "data",
        executor="ray",
        ray_address=ray.address,
        dagster_pg_url=store,
        llm_api_key=sentinel(SECRET),
        qdrant_url=qdrant.at.url,
        qdrant_api_key=KEY,
        qdrant_grpc_port=qdrant.at.grpc_port,
        qdrant_collection=request.node.name[:40],
    )
    return replace(made, variables={**made.variables, **ray.environment})


def digest(place, stage, month):
    """The digest of the rows of a month of a table; None where it is absent."""
    written = read_provenance(place.root / stage / f"{month}.parquet")
    return written.rows_sha256 if written else None


def differing(place, calm, stages, months=MONTHS):
    """Months of tables whose rows are not those of the undisturbed place."""
    return [
        f"{stage} {month}"
        for stage in stages
        for month in months
        if digest(place, stage, month) != digest(calm, stage, month)
    ]


def materialize(place, month, stages):
    """A Dagster run of some stages on a month, whose process is the command's."""
    with place.entered():
        home = dagster_home(place.workspace())
        with open_instance(home):  # as `citeloom ui` does: the pools' limits are in Postgres then
            pass
    command = [
        str(Path(sys.executable).with_name("dagster")),
        "asset",
        "materialize",
        "-m",
        "pipeline.definitions",
    ]
    return subprocess.Popen(
        [*command, "--select", ",".join(stages), "--partition", month],
        env={**base_environment(), **place.variables, "DAGSTER_HOME": str(home)},
        cwd=place.root,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


def finish(run):
    """The output of a run, which must have succeeded."""
    output = run.communicate()[0]
    assert run.returncode == 0, output
    return output


@contextmanager
def dagster_of(place):
    """The Dagster instance of a place."""
    with (
        place.entered(),
        dg.DagsterInstance.from_config(str(dagster_home(place.workspace()))) as instance,
    ):
        yield instance


def test_two_nodes_give_the_same_tables_and_keep_no_secret(ray, place, calm, tell):
    output = [
        finish(run)
        for run in [materialize(place, month, (*CORPUS, "index_receipts")) for month in MONTHS]
    ]
    output.append(finish(materialize(place, TASKS_OF, WRITTEN)))
    other = [*differing(place, calm, CORPUS), *differing(place, calm, WRITTEN, (TASKS_OF,))]
    found = audited(place)
    search, jobs = Search([SECRET]), _jobs(ray)
    leaks = [
        *search.in_folder(ray.folder),
        *search.in_folder(place.root),
        *search.in_text(*jobs, *output),
    ]
    passwords = [
        file
        for file in ray.folder.rglob("*")
        if file.is_file() and PASSWORD.encode() in file.read_bytes()
    ]
    tell(
        nodes=2,
        months=len(MONTHS),
        differing=len(other),
        leaks=len(leaks),
        **found,
    )
    assert other == []
    assert found == {"points_wrong": 0, "audit_code": 0}
    assert len(jobs) > len(MONTHS)
    assert (leaks, passwords) == ([], [])
    assert PASSWORD not in "".join([*jobs, *output])


def test_the_doctor_sees_the_cluster(ray, place):
    doctor = place.citeloom("doctor", "--json")
    assert f"{ray.address} answers" in doctor.stdout, doctor.stderr


def _jobs(ray):
    """All that Ray's job server keeps of its jobs."""
    code = (
        "import sys; from ray.job_submission import JobSubmissionClient\n"
        "for job in JobSubmissionClient(sys.argv[1]).list_jobs(): print(job)"
    )
    # In a process of its own: Ray reads its token once.
    done = subprocess.run(
        [sys.executable, "-c", code, ray.address],
        env={**os.environ, **ray.environment},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.splitlines()


def test_a_node_lost_while_a_step_runs_costs_one_retry(ray, place, calm, tell):
    stages, lost = CORPUS[:4], ray.nodes[-1]
    runs = [materialize(place, month, stages) for month in MONTHS]
    try:
        wait_until(lambda: lost.steps() or all(run.poll() is not None for run in runs))
        assert any(run.poll() is None for run in runs)
        lost.kill()
        ray.add_node()
        for run in runs:
            finish(run)
    finally:
        for run in runs:
            run.kill()
    watch = Watch(place.root)
    watch.look()
    other = differing(place, calm, stages)
    with dagster_of(place) as instance:
        retries = [
            event.dagster_event.step_key
            for run in instance.get_runs(limit=len(MONTHS))
            for event in instance.all_logs(
                run.run_id, of_type=dg.DagsterEventType.STEP_UP_FOR_RETRY
            )
            if event.dagster_event is not None
        ]
    tell(nodes_killed=1, retries=len(retries), differing=len(other), torn=watch.torn)
    assert (other, watch.torn) == ([], 0)
    assert retries


def test_steps_of_a_dead_run_are_stopped_by_the_next_run(ray, place, calm, tell):
    month, stages = MONTHS[0], CORPUS[:4]
    first = materialize(place, month, stages)
    wait_until(lambda: any(node.steps() for node in ray.nodes) or first.poll() is not None)
    assert first.poll() is None, first.communicate()
    orphans = [process for node in ray.nodes for process in node.steps()]
    for process in [first.pid, *orphans]:
        os.kill(
            process, signal.SIGKILL if process == first.pid else signal.SIGSTOP
        )  # so that the step is still there
    first.wait()
    with dagster_of(place) as instance:  # as run monitoring does
        dead = instance.get_runs(limit=1)[0]
        instance.report_run_failed(dead, "its process was killed")
        instance.event_log_storage.free_concurrency_slots_for_run(dead.run_id)
    finish(materialize(place, month, stages))
    with dagster_of(place) as instance:
        statuses = [run.status.value for run in instance.get_runs(limit=2)]
    other = differing(place, calm, stages, (month,))
    left = [process for node in ray.nodes for process in node.steps()]
    tell(killed=1, orphans=len(orphans), differing=len(other))
    assert other == []
    assert statuses == ["SUCCESS", "FAILURE"]
    assert left == []
