"""Which file system a folder lies on."""

from pathlib import Path
from types import SimpleNamespace

from pipeline.storage.mounts import mount_of


def test_the_mount_of_a_folder_is_the_deepest_above_it(tmp_path, monkeypatch):
    assert mount_of(Path("/proc/self")) == ("proc", "proc")
    assert mount_of(tmp_path)[1] not in ("", "proc")
    mounts = [
        ("/dev/a", "/", "ext4"),
        ("server:/x", str(tmp_path), "nfs4"),
        ("/dev/b", f"{tmp_path}other", "xfs"),
    ]
    listed = [
        SimpleNamespace(device=device, mountpoint=place, fstype=kind)
        for device, place, kind in mounts
    ]
    monkeypatch.setattr("psutil.disk_partitions", lambda all: listed)
    assert mount_of(tmp_path / "below") == ("server:/x", "nfs4")
    assert mount_of(tmp_path.parent) == ("/dev/a", "ext4")


def test_a_system_that_does_not_list_its_mounts_has_none(tmp_path, monkeypatch):
    def fail(all):
        raise FileNotFoundError("/proc/filesystems")

    monkeypatch.setattr("psutil.disk_partitions", fail)
    assert mount_of(tmp_path) == ("", "")
