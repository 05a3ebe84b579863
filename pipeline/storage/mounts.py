"""The file system that a folder is on."""

from __future__ import annotations

from pathlib import Path

# Those that other machines may write too. The first hold the locks of every machine that has them
# mounted; Lustre and BeeGFS do so only where they are set to.
LOCKING = frozenset(("nfs4", "ceph", "fuse.ceph", "gpfs"))
NETWORK = LOCKING | frozenset(
    (
        "nfs",
        "lustre",
        "beegfs",
        "cifs",
        "smb3",
        "9p",
        "virtiofs",
        "glusterfs",
        "fuse.glusterfs",
        "fuse.juicefs",
        "fuse.sshfs",
        "fuse.s3fs",
        "fuse.gcsfuse",
    )
)


def mount_of(folder: Path) -> tuple[str, str]:
    """Device and type of a folder's file system; empty where the system lists no mounts."""
    import psutil

    try:
        partitions = psutil.disk_partitions(all=True)
    except OSError:  # such as a sandbox without /proc
        return "", ""
    resolved = folder.resolve()
    mounts = [mount for mount in partitions if resolved.is_relative_to(mount.mountpoint)]
    deepest = max(mounts, key=lambda mount: len(mount.mountpoint), default=None)
    return ("", "") if deepest is None else (deepest.device, deepest.fstype)
