"""What the doctor says of a Ray cluster: settings, an address where nobody listens, nodes that are too small."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from pipeline.ops.doctor import cluster
from pipeline.ops.doctor.findings import Finding, FindingState, Probe, run_probes
from pipeline.ops.ray_cluster import RayNode
from pipeline.settings import Settings
from tests.unit.doctor.conftest import NOT_CHECKED, OK, PROBLEM, WARNING, MakeWorkspace
from tests.unit.doctor.test_servers import nobody_listens

Findings = Callable[..., list[Finding]]
VALID = {
    "executor": "ray", "qdrant_url": "http://127.0.0.1:6333", "dagster_pg_url": "postgresql://u:p@127.0.0.1/d",
    "llm_url": "http://127.0.0.1:9999/v1", "llm_model": "some-model",
}  # fmt: skip


@pytest.fixture
def findings(workspace: MakeWorkspace) -> Findings:
    """Runs the probe of the cluster under the given settings."""
    probe = Probe(cluster.NAME, cluster.steps, "see the head", seconds=60.0)
    return lambda **settings: run_probes([probe], workspace(**settings))


@pytest.fixture
def nodes(monkeypatch: pytest.MonkeyPatch) -> list[RayNode]:
    """The nodes that the job server lists."""
    listed: list[RayNode] = []

    def live_nodes(settings: Settings) -> list[RayNode]:
        return listed

    monkeypatch.setattr(cluster, "live_nodes", live_nodes)
    return listed


@pytest.mark.parametrize("executor", ["in_process", "k8s"])
def test_nothing_is_checked_without_a_ray_cluster(findings: Findings, executor: str) -> None:
    (finding,) = findings(executor=executor)
    assert finding.state is NOT_CHECKED
    assert executor in finding.seen


def test_settings_that_a_cluster_needs_are_problems_and_those_of_models_warnings(
    findings: Findings, nodes: list[RayNode]
) -> None:
    nodes.append(RayNode(4, 0))
    reported = findings(executor="ray")
    assert [finding.state for finding in reported] == [PROBLEM, PROBLEM, WARNING, OK]
    names = ("CITELOOM_QDRANT_URL", "CITELOOM_DAGSTER_PG_URL", "CITELOOM_LLM_URL", "nodes 1, processors 4, GPUs 0")
    assert all(name in finding.seen for name, finding in zip(names, reported, strict=True))


@pytest.mark.parametrize(
    ("present", "settings", "state", "words"),
    [
        ([RayNode(4, 0), RayNode(8, 1)], {"embedding_gpus": 1}, OK, "nodes 2, processors 12, GPUs 1"),
        ([RayNode(2, 0), RayNode(2, 0)], {"workers": 3}, PROBLEM, "the 3 processors"),
        ([RayNode(8, 0), RayNode(1, 1)], {"workers": 2, "embedding_gpus": 1}, PROBLEM, "and 1 GPUs"),
        ([RayNode(8, 2)], {}, WARNING, "embeddings"),
        ([], {}, PROBLEM, "nodes 0"),
    ],
)
def test_a_step_that_fits_no_node_is_a_problem(
    findings: Findings,
    nodes: list[RayNode],
    present: list[RayNode],
    settings: dict[str, float],
    state: FindingState,
    words: str,
) -> None:
    nodes += present
    (finding,) = findings(**VALID, **settings)
    assert finding.state is state
    assert words in finding.seen


def test_an_address_where_nobody_listens_is_a_problem_with_a_way_out(findings: Findings) -> None:
    pytest.importorskip(
        "dagster_ray", reason="Ray is not installed: pip install --constraint constraints.txt --editable '.[ray]'"
    )
    address = nobody_listens()
    (finding,) = findings(**VALID, ray_address=address)
    assert finding.state is PROBLEM
    assert address in finding.seen
    assert finding.way_out == "see the head"
