"""The settings a Ray cluster needs, what travels to its nodes, and what assets ask of it; no
cluster is started.
"""

import json
import os
import subprocess
import sys

import pytest

from pipeline.errors import SettingError
from pipeline.ops.ray_cluster import check_cluster, node_environment
from pipeline.settings import Settings, load_settings
from tests.cases import cases
from tests.sentinels import is_secret, sentinel

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("no_settings")]

VALID = {
    "executor": "ray",
    "qdrant_url": "http://127.0.0.1:6333",
    "dagster_pg_url": "postgresql://u:p@127.0.0.1/runs",
    "llm_url": "http://127.0.0.1:8000/v1",
    "llm_model": "some",
}


def without(*names, **others):
    return load_settings(
        **{name: value for name, value in {**VALID, **others}.items() if name not in names}
    )


def problems(settings, *stages):
    """The settings of which the refusal of stages speaks."""
    with pytest.raises(SettingError) as refused:
        check_cluster(settings, stages)
    return [line.partition(" need")[2] for line in str(refused.value).splitlines()]


def test_all_that_the_stages_need_on_a_cluster_is_told_at_once():
    missing = [f"s CITELOOM_{name}" for name in ("QDRANT_URL", "DAGSTER_PG_URL", "LLM_URL")]
    told = problems(load_settings(executor="ray"), "key_elements")
    assert [line.partition(":")[0] for line in told] == missing
    check_cluster(load_settings(executor="in_process"), ["papers", "key_elements"])
    without_model = without("llm_url", llm_budget_calls=10)
    check_cluster(without_model, ["papers", "embeddings", "index_receipts"])
    assert problems(without_model, "papers", "key_elements")


def test_a_budget_that_steps_could_not_share_is_refused():
    (told,) = problems(without(llm_budget_tokens=1000), "key_elements")
    assert told.startswith(" CITELOOM_LLM_BUDGET_NAME")
    check_cluster(without(llm_budget_tokens=1000, llm_budget_name="march"), ["key_elements"])


def test_a_node_reads_the_same_settings_except_its_share_of_the_machine(monkeypatch):
    here = load_settings(
        **VALID,
        subsets="warning,error",
        metadata_snapshot="",
        workers=3,
        temperature=0.25,
        arxiv_api=False,
        questions="questions.yaml",
    )
    monkeypatch.setenv("CITELOOM_DAGSTER_PG_URL", VALID["dagster_pg_url"])
    for name, value in node_environment(here).items():
        monkeypatch.setenv(name, value)
    there = load_settings()
    names = set(Settings.model_fields) - {"data", "local"} | {"data_root", "local_root"}
    assert {name for name in names if getattr(there, name) != getattr(here, name)} == set()


def test_no_secret_travels(monkeypatch):
    secrets = [f"CITELOOM_{name.upper()}" for name in Settings.model_fields if is_secret(name)]
    for name in secrets:
        monkeypatch.setenv(name, sentinel(name))
    environment = node_environment(load_settings())
    assert not set(secrets) & environment.keys()
    assert not any(sentinel(name) in value for name in secrets for value in environment.values())


@cases("unit/cases.toml", "how_steps_are_defined", ("executor", "tags", "pools", "retries"))
def test_on_ray_a_lost_step_is_retried_and_the_embedding_step_alone_takes_a_gpu_else_a_pool(
    executor, tags, pools, retries
):
    """In a process of its own: assets are defined when the code location is loaded."""
    if executor == "ray":
        pytest.importorskip("dagster_ray")
    variables = {"CITELOOM_EXECUTOR": executor, "CITELOOM_EMBEDDING_GPUS": "1"}
    done = subprocess.run(
        [sys.executable, "-c", _PRINT_DEFINITIONS],
        env={**os.environ, **variables, "CITELOOM_WORKERS": "2"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[-1]) == [executor, tags, pools, retries]


_PRINT_DEFINITIONS = """
import json
from pipeline.definitions import defs
job = defs.resolve_job_def("refresh_corpus")
ops = list(job.graph.iterate_op_defs())
tags = {op.name: op.tags.get("dagster-ray/config") for op in ops}
print(json.dumps([
    job.executor_def.name,
    {name: json.loads(tag) for name, tag in tags.items() if tag},
    sorted({op.pool for op in ops if op.pool}),
    sorted({op.retry_policy.max_retries if op.retry_policy else 0 for op in ops}),
]))
"""
