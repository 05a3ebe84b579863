"""On what a folder lies."""

from __future__ import annotations

from pathlib import Path

from pipeline.storage.mounts import mount_of


def test_the_mount_of_a_folder_is_the_deepest_above_it(tmp_path: Path) -> None:
    table = tmp_path / "mounts"
    table.write_text(f"/dev/a / ext4 rw 0 0\nserver:/x {tmp_path} nfs4 rw 0 0\n/dev/b {tmp_path}other xfs rw 0 0\n")
    assert mount_of(tmp_path / "below", table) == ("server:/x", "nfs4")
    assert mount_of(tmp_path, tmp_path / "none") == ("", "")
