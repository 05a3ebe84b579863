"""A cluster as the doctor sees it: settings, an address where nobody answers, nodes that are too small."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipeline.ops.doctor import cluster
from pipeline.ops.doctor.findings import Check, Finding, State, examine
from pipeline.running.ray_jobs import RayNode
from pipeline.settings import Settings
from tests.unit.doctor.test_servers import nobody_listens, workspace

FIT = {
    "executor": "ray", "qdrant_url": "http://127.0.0.1:6333", "dagster_pg_url": "postgresql://u:p@127.0.0.1/d",
    "llm_url": "http://127.0.0.1:9999/v1", "llm_model": "some-model",
}  # fmt: skip


def found(folder: Path, **settings: object) -> list[Finding]:
    return examine([Check(cluster.NAME, cluster.steps, "see the head", seconds=60.0)], workspace(folder, **settings))


@pytest.fixture
def nodes(monkeypatch: pytest.MonkeyPatch) -> list[RayNode]:
    """The nodes that the job server names."""
    there: list[RayNode] = []

    def named(settings: Settings) -> list[RayNode]:
        return there

    monkeypatch.setattr(cluster, "nodes_of", named)
    return there


@pytest.mark.parametrize("executor", ["in_process", "k8s"])
def test_nothing_is_asked_where_no_ray_cluster_is_set(tmp_path: Path, executor: str) -> None:
    (finding,) = found(tmp_path, executor=executor)
    assert finding.state is State.NOT_ASKED
    assert executor in finding.seen


def test_settings_that_a_cluster_demands_are_told_with_what_only_models_need_as_a_warning(
    tmp_path: Path, nodes: list[RayNode]
) -> None:
    nodes.append(RayNode(4, 0))
    told = found(tmp_path, executor="ray")
    assert [each.state for each in told] == [State.PROBLEM, State.PROBLEM, State.WARNING, State.OK]
    names = ("CITELOOM_QDRANT_URL", "CITELOOM_DAGSTER_PG_URL", "CITELOOM_LLM_URL", "nodes 1, processors 4, GPUs 0")
    assert all(name in each.seen for name, each in zip(names, told, strict=True))


@pytest.mark.parametrize(
    ("had", "settings", "state", "words"),
    [
        ([RayNode(4, 0), RayNode(8, 1)], {"embedding_gpus": 1}, State.OK, "nodes 2, processors 12, GPUs 1"),
        ([RayNode(2, 0), RayNode(2, 0)], {"workers": 3}, State.PROBLEM, "no node has the 3 processors"),
        ([RayNode(8, 0), RayNode(1, 1)], {"workers": 2, "embedding_gpus": 1}, State.PROBLEM, "and 1 GPUs"),
        ([RayNode(8, 2)], {}, State.WARNING, "embeddings asks for none"),
        ([], {}, State.PROBLEM, "nodes 0"),
    ],
)
def test_a_step_that_no_node_could_take_is_told_of(
    tmp_path: Path, nodes: list[RayNode], had: list[RayNode], settings: dict[str, float], state: State, words: str
) -> None:
    nodes += had
    (finding,) = found(tmp_path, **FIT, **settings)
    assert finding.state is state
    assert words in finding.seen


def test_an_address_where_nobody_answers_is_a_problem_with_a_way_out(tmp_path: Path) -> None:
    pytest.importorskip("dagster_ray", reason="Ray is not installed: pip install 'citeloom[ray]'")
    address = nobody_listens()
    (finding,) = found(tmp_path, **FIT, ray_address=address)
    assert finding.state is State.PROBLEM
    assert address in finding.seen
    assert finding.way_out == "see the head"
