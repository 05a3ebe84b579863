"""Settings, models' files, and Dagster's home."""

import pytest

from pipeline.errors import SettingError, TransientFailure
from pipeline.ops.doctor.checks import (
    embedder_for_gpu,
    embedding_model,
    gpu,
    refused_settings,
)
from resources.dagster_home import InstanceState, dagster_home, describe_state, probe_instance
from tests.unit.doctor.conftest import OK, PROBLEM, WARNING, one


def test_a_folder_that_lacks_files_of_bge_m3_is_refused_and_a_hub_name_is_not_fetched(
    workspace, tmp_path
):
    with pytest.raises(SettingError, match=r"lacks config\.json"):
        list(embedding_model(workspace(embedder="bge-m3", embedder_path=str(tmp_path))))
    absent = one(embedding_model(workspace(embedder="bge-m3", embedder_path="nobody/none")))
    assert (absent.state, "hub's cache lacks all files" in absent.seen) == (WARNING, True)
    with pytest.raises(SettingError, match="no folder /nowhere"):
        list(embedding_model(workspace(embedder="/nowhere")))
    assert one(embedding_model(workspace())).state is OK


def test_a_device_that_torch_cannot_use_is_refused(workspace):
    with pytest.raises(SettingError, match="CITELOOM_EMBEDDER_DEVICE"):
        list(gpu(workspace(embedder_device="cuda:99")))


def test_on_a_gpu_bge_m3_is_what_to_choose(workspace):
    finding = one(embedder_for_gpu(workspace().settings))
    assert (finding.state, "CITELOOM_EMBEDDER=bge-m3" in finding.way_out) == (WARNING, True)
    assert list(embedder_for_gpu(workspace(embedder="bge-m3").settings)) == []


def test_a_home_that_does_not_exist_yet_is_not_opened(workspace, tmp_path):
    assert one(probe_instance(workspace())).state is OK
    assert not (tmp_path / "data" / "dagster").exists()


def test_a_storage_that_sqlite_cannot_use_is_named(workspace, monkeypatch):
    monkeypatch.setenv("DAGSTER_HOME", "")  # which `dagster_home` sets
    home = dagster_home(workspace())
    (home / "history").mkdir()
    (home / "history" / "runs.db").write_bytes(b"no database at all" * 100)
    with pytest.raises(TransientFailure, match=rf"{home} cannot be used .*: end the process"):
        list(probe_instance(workspace()))


@pytest.mark.parametrize(
    ("state", "states", "named"),
    [
        (InstanceState((), (), {}, ()), [OK], "0 active runs"),
        (InstanceState(("a-run",), (), {"gpu": ("a-run",)}, ()), [OK], "gpu by a-run"),
        (InstanceState(("a-run",), ("dead-run",), {}, ()), [OK, OK], "dead-run"),
        (InstanceState((), (), {}, ("runs",)), [PROBLEM], "runs"),
    ],
)
def test_ended_runs_held_pools_and_outdated_databases_are_reported(tmp_path, state, states, named):
    findings = list(describe_state(tmp_path, state))
    assert [finding.state for finding in findings] == states
    assert named in findings[0].seen


def test_what_a_stage_would_refuse_is_told_once(workspace):
    found = list(refused_settings(workspace(systems="chatcite,nobody", llm_budget_money=5.0)))
    assert all(each.state is PROBLEM for each in found)
    assert ["nobody" in found[0].seen, "PRICE" in found[-1].seen, len(found)] == [True, True, 2]
