"""What a cluster demands of settings, what travels to its nodes, and what assets ask of it; nothing is started here."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from assets import placement
from pipeline.errors import SettingError, TransientFailure
from pipeline.running.ray_jobs import step_client
from pipeline.settings import Settings, load_settings
from resources.cluster import check_cluster, node_environment
from tests.sentinels import is_secret, sentinel

FIT = {
    "executor": "ray", "qdrant_url": "http://127.0.0.1:6333", "dagster_pg_url": "postgresql://u:p@127.0.0.1/runs",
    "llm_url": "http://127.0.0.1:8000/v1", "llm_model": "some",
}  # fmt: skip


@pytest.fixture(autouse=True)
def _no_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No setting of the machine's environment, and no `.env` beside the checkout."""
    for name in [name for name in os.environ if name.startswith("CITELOOM_")]:
        monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)


def without(*names: str, **others: object) -> Settings:
    return load_settings(**{name: value for name, value in {**FIT, **others}.items() if name not in names})


@pytest.mark.parametrize("name", ["qdrant_url", "dagster_pg_url", "llm_url"])
def test_what_belongs_to_one_machine_is_refused_by_the_name_of_the_setting(name: str) -> None:
    with pytest.raises(SettingError, match=f"^CITELOOM_EXECUTOR=ray needs CITELOOM_{name.upper()}: .*one machine$"):
        check_cluster(without(name), ["papers", "key_elements"])


def test_everything_that_is_wrong_is_told_at_once() -> None:
    with pytest.raises(SettingError) as refused:
        check_cluster(load_settings(executor="ray"), ["key_elements"])
    assert [line.split()[2].rstrip(":") for line in str(refused.value).splitlines()] == [
        "CITELOOM_QDRANT_URL", "CITELOOM_DAGSTER_PG_URL", "CITELOOM_LLM_URL",
    ]  # fmt: skip


def test_stages_that_ask_no_model_need_none() -> None:
    check_cluster(without("llm_url", llm_budget_calls=10), ["papers", "embeddings", "index_receipts"])


def test_a_budget_that_steps_could_not_share_is_refused() -> None:
    spent = without(llm_budget_tokens=1000)
    with pytest.raises(SettingError, match="CITELOOM_LLM_BUDGET_TOKENS need CITELOOM_LLM_BUDGET_NAME"):
        check_cluster(spent, ["key_elements"])
    check_cluster(without(llm_budget_tokens=1000, llm_budget_name="march"), ["key_elements"])


def test_nothing_is_demanded_where_steps_work_in_the_runs_own_process() -> None:
    check_cluster(load_settings(), ["papers", "key_elements"])


def test_a_command_has_no_steps_as_pods() -> None:
    with pytest.raises(SettingError, match="CITELOOM_EXECUTOR=k8s is for runs that Dagster starts"):
        check_cluster(without(executor="k8s"), ["papers"])


def test_a_node_reads_the_same_settings_but_for_its_share_of_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    given = load_settings(
        **FIT, subsets="warning,error", metadata_snapshot="", workers=3, temperature=0.25,
        arxiv_api=False, questions="questions.yaml", draft_papers="2403.00001",
    )  # fmt: skip
    told = node_environment(given)
    for name, value in {**told, "CITELOOM_DAGSTER_PG_URL": FIT["dagster_pg_url"]}.items():
        monkeypatch.setenv(name, value)
    there = load_settings()
    own = {"data", "local", "workers"}
    differing = [name for name in Settings.model_fields if getattr(there, name) != getattr(given, name)]
    assert set(differing) <= own
    assert (there.data_root, there.local_root, there.workers) == (given.data_root, given.local_root, 3)


def test_no_secret_travels(monkeypatch: pytest.MonkeyPatch) -> None:
    secrets = [f"CITELOOM_{name.upper()}" for name in Settings.model_fields if is_secret(name)]
    for name in secrets:
        monkeypatch.setenv(name, sentinel(name))
    told = node_environment(load_settings())
    assert not set(secrets) & told.keys()
    assert not any(sentinel(name) in value for name in secrets for value in told.values())


def test_a_cluster_that_does_not_answer_is_named() -> None:
    pytest.importorskip("dagster_ray")
    with pytest.raises(TransientFailure, match=r"CITELOOM_RAY_ADDRESS: no Ray job server at http://127.0.0.1:9"):
        step_client(without(ray_address="http://127.0.0.1:9"))


def test_a_lost_step_is_begun_again_and_the_one_that_embeds_alone_asks_for_a_gpu() -> None:
    """In a process of its own: assets are defined when the code location is loaded."""
    told = _defined({"CITELOOM_EXECUTOR": "ray", "CITELOOM_EMBEDDING_GPUS": "1", "CITELOOM_WORKERS": "2"})
    assert told["executor"] == "ray"
    assert {name: json.loads(asked["dagster-ray/config"]) for name, asked in told["asked"].items()} == {
        "embeddings": {"num_gpus": 1.0}
    }
    limits = json.loads(told["asked"]["embeddings"]["dagster-k8s/config"])["container_config"]["resources"]["limits"]
    assert limits == {"nvidia.com/gpu": "1"}
    assert "gpu" not in told["pools"]
    assert told["retries"] == [placement.LOST_STEPS]


def test_without_a_cluster_nothing_is_asked_for_and_the_gpu_is_shared_by_a_pool() -> None:
    told = _defined({"CITELOOM_EMBEDDING_GPUS": "1"})
    assert (told["executor"], told["asked"], told["retries"]) == ("in_process", {}, [0])
    assert tuple(told["pools"]) == placement.POOLS


_TELL = """
import json
from pipeline.definitions import defs
job = defs.resolve_job_def("refresh_corpus")
ops = list(job.graph.iterate_op_defs())
asked = {op.name: {name: tag for name, tag in op.tags.items() if name.endswith("/config")} for op in ops}
print(json.dumps({
    "executor": job.executor_def.name,
    "asked": {name: tags for name, tags in asked.items() if tags},
    "pools": sorted({op.pool for op in ops if op.pool}),
    "retries": sorted({op.retry_policy.max_retries if op.retry_policy else 0 for op in ops}),
}))
"""


def _defined(variables: Mapping[str, str]) -> dict[str, Any]:
    """How the job and its steps are defined under these variables."""
    done = subprocess.run(
        [sys.executable, "-c", _TELL], env={**os.environ, **variables}, capture_output=True, text=True, timeout=240
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found
