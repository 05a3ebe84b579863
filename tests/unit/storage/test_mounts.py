"""Which file system a folder lies on."""

from __future__ import annotations

from pathlib import Path

from pipeline.storage.mounts import mount_of


def test_the_mount_of_a_folder_is_the_deepest_above_it(tmp_path: Path) -> None:
    assert mount_of(Path("/proc/self")) == ("proc", "proc")
    assert mount_of(tmp_path)[1] not in ("", "proc")
