"""Settings, models' files, and Dagster's home."""

import pytest

from pipeline.errors import SettingError, TransientFailure
from pipeline.ops.doctor.checks import (
    embedder_for_gpu,
    embedding_model,
    gpu,
    refused_settings,
    snapshot,
)
from resources.dagster_home import InstanceState, dagster_home, describe_state, probe_instance
from tests.cases import cases_beside
from tests.unit.doctor.conftest import OK, WARNING, one


def test_a_folder_that_lacks_files_of_bge_m3_is_refused(workspace, tmp_path):
    with pytest.raises(SettingError, match=r"lacks config\.json"):
        list(embedding_model(workspace(embedder="bge-m3", embedder_path=str(tmp_path))))
    with pytest.raises(SettingError, match="no folder /nowhere"):
        list(embedding_model(workspace(embedder="/nowhere")))


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


@cases_beside("state", "states", "named")
def test_ended_runs_held_pools_and_outdated_databases_are_reported(tmp_path, state, states, named):
    findings = list(describe_state(tmp_path, InstanceState(*state)))
    assert [finding.state for finding in findings] == states
    assert named in findings[0].seen


PROBES = {
    "embedding model": embedding_model,
    "refused settings": refused_settings,
    "snapshot": snapshot,
}


@cases_beside("probe", "settings", "findings")
def test_settings_are_checked(workspace, probe, settings, findings):
    """A hub's name is not fetched, and what a stage would refuse is told once."""
    found = list(PROBES[probe](workspace(**settings)))
    assert [finding.state for finding in found] == [state for state, _ in findings]
    assert all(words in finding.seen for finding, (_, words) in zip(found, findings, strict=True))
