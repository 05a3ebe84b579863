"""What file system a folder lies on, where Linux tells."""

from __future__ import annotations

from pathlib import Path

# Those that other machines may write too. The first hold the locks of every machine that has them mounted.
LOCKING = frozenset(("nfs4", "ceph", "fuse.ceph", "lustre", "beegfs", "gpfs"))
NETWORK = LOCKING | frozenset((
    "nfs", "cifs", "smb3", "9p", "virtiofs", "glusterfs", "fuse.glusterfs", "fuse.juicefs", "fuse.sshfs", "fuse.s3fs",
    "fuse.gcsfuse",
))  # fmt: skip
_MOUNTS = Path("/proc/self/mounts")


def mount_of(folder: Path, table: Path = _MOUNTS) -> tuple[str, str]:
    """Device and type of the file system that a folder lies on; empty where the system does not tell.

    table: Linux's list of mounts, `device folder type …` a line (proc(5)).
    """
    try:
        lines = [line.split() for line in table.read_text().splitlines()]
    except OSError:
        return "", ""
    resolved = folder.resolve()
    mounts = [line for line in lines if len(line) >= 3 and resolved.is_relative_to(line[1].replace(r"\040", " "))]
    device, _, kind, *_ = max(mounts, key=lambda line: len(line[1]), default=["", "", ""])
    return device, kind
