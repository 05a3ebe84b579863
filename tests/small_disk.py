"""A small file system in memory, for tests of a full disk; root alone can mount one."""

import subprocess
from contextlib import contextmanager

import pytest


@contextmanager
def small_disk_in(folder, megabytes):
    """A disk of so many megabytes below a folder; the test skips where none can be mounted."""
    disk = folder / "disk"
    disk.mkdir()
    size = f"size={round(megabytes * 1024)}k"
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", size, "tmpfs", str(disk)], capture_output=True
    )
    if mounted.returncode != 0:
        pytest.skip(f"no small disk can be mounted here: {mounted.stderr.decode().strip()}")
    try:
        yield disk
    finally:
        subprocess.run(["umount", "-l", str(disk)], check=True)
