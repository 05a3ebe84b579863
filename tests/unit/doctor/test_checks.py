"""The data root, its disk, the dump and the snapshot; settings, models' files, Dagster's home, and a
Ray cluster.
"""

import shutil
from pathlib import Path

import pytest

from pipeline.errors import SettingError, TransientFailure
from pipeline.ops.doctor import checks
from pipeline.ops.doctor.checks import embedding_model, gpu, refused_settings, snapshot
from pipeline.ops.doctor.findings import Probe, run_probes
from pipeline.settings import SAMPLE_DUMP
from resources.dagster_home import InstanceState, dagster_home, describe_state, probe_instance
from tests.cases import cases_beside
from tests.unit.doctor.conftest import OK, PROBLEM, WARNING, one
from tests.unit.doctor.test_servers import nobody_listens
from tests.unit.test_cluster_settings import VALID


@cases_beside("kind", "executor", "state")
def test_a_disk_of_another_machine_is_for_clusters_and_needs_locks(
    workspace, monkeypatch, kind, executor, state
):
    monkeypatch.setattr(checks, "mount_of", lambda folder: ("server:/x", kind))
    found = one(checks.data_root(workspace(executor=executor)))
    assert (found.state, kind in found.seen) == (state, True)


def test_a_disk_with_hardly_any_space_is_a_problem(workspace):
    full, enough = (
        one(checks.space(workspace(), lambda path, free=free: free << 20)) for free in (255, 257)
    )
    assert (full.state, enough.state) == (PROBLEM, OK)


def test_a_data_root_that_cannot_be_written_is_refused(workspace, tmp_path):
    (tmp_path / "file").write_text("a file")
    (found,) = run_probes(
        [Probe("data root", "Can it be written?", checks.data_root, "set another")],
        workspace(data=tmp_path / "file" / "data"),
    )
    assert (found.state, found.way_out) == (PROBLEM, "set another")
    assert "CITELOOM_DATA" in found.seen


def test_a_broken_zip_is_told_beside_what_is_whole(workspace, tmp_path):
    dump = Path(shutil.copytree(SAMPLE_DUMP, tmp_path / "dump"))
    (dump / "torn.zip").write_bytes(b"PK\x03\x04 and no end")
    broken, whole = checks.dump(workspace(dump_dir=dump))
    assert (broken.state, "torn.zip" in broken.seen, whole.state) == (PROBLEM, True, OK)
    assert "28 pages of 3 months (2024-03 to 2024-05)" in whole.seen


def test_a_snapshot_older_than_the_dump_asks_for_a_harvest(workspace, tmp_path):
    old = tmp_path / "old.jsonl"
    old.write_text('{"id": "2403.1", "update_date": "2024-03-05"}\n')
    found = one(checks.snapshot(workspace(metadata_snapshot=old)))
    assert (found.state, "citeloom harvest" in found.way_out) == (WARNING, True)


@cases_beside("content", "name", "told")
def test_what_a_snapshot_is_shows_in_its_first_line(workspace, tmp_path, content, name, told):
    (tmp_path / name).write_text(content)
    found = one(checks.snapshot(workspace(metadata_snapshot=tmp_path / name)))
    assert told in found.seen


def test_a_folder_that_lacks_files_of_bge_m3_is_refused(workspace, tmp_path):
    with pytest.raises(SettingError, match=r"lacks config\.json"):
        list(embedding_model(workspace(embedder="bge-m3", embedder_path=str(tmp_path))))


def test_a_device_that_torch_cannot_use_is_refused(workspace):
    with pytest.raises(SettingError, match="CITELOOM_EMBEDDER_DEVICE"):
        list(gpu(workspace(embedder_device="cuda:99")))


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


@pytest.fixture
def findings(workspace):
    """Runs the probe of the cluster under the given settings."""
    probe = Probe("cluster", "Does it answer?", checks.cluster, "see the head")
    return lambda **settings: run_probes([probe], workspace(**settings))


def test_settings_that_a_cluster_needs_are_problems_and_those_of_models_warnings(
    findings, monkeypatch
):
    monkeypatch.setattr(checks, "job_client", lambda settings: None)
    reported = findings(executor="ray")
    assert [finding.state for finding in reported] == [PROBLEM, PROBLEM, WARNING, OK]
    names = ("CITELOOM_QDRANT_URL", "CITELOOM_DAGSTER_PG_URL", "CITELOOM_LLM_URL", "answers")
    assert all(name in finding.seen for name, finding in zip(names, reported, strict=True))


def test_an_address_where_nobody_listens_is_a_problem_with_a_way_out(findings):
    pytest.importorskip(
        "dagster_ray",
        reason="Ray is not installed: pip install --constraint constraints.txt --editable '.[ray]'",
    )
    address = nobody_listens()
    (finding,) = findings(**VALID, ray_address=address)
    assert finding.state is PROBLEM
    assert f"CITELOOM_RAY_ADDRESS: no Ray job server at {address}" in finding.seen
    assert finding.way_out == "see the head"
