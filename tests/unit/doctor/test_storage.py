"""The data root, its disk, the dump and the snapshot."""

import shutil
from pathlib import Path

from pipeline.ops.doctor import checks
from pipeline.ops.doctor.findings import Probe, run_probes
from pipeline.settings import SAMPLE_DUMP
from tests.cases import cases_beside
from tests.unit.doctor.conftest import OK, PROBLEM, WARNING, one


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
