"""A PostgreSQL of Debian's package on loopback for as long as a benchmark or a test runs, with data
that go with it.
"""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.harness import free_ports


def programs() -> Path | None:
    """The folder of initdb and postgres, of the newest version; None if not installed."""
    found = sorted(
        Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda file: int(file.parts[-3])
    )
    return found[-1].parent if found else None


@contextlib.contextmanager
def running(folder_of_programs: Path, password: str) -> Iterator[str]:
    """The URL of a database on a server of its own, password included."""
    folder = Path(tempfile.mkdtemp(prefix="citeloom-postgres-"))
    user = _as_user(folder)
    secret = folder / "password"
    secret.write_text(password)
    secret.chmod(0o644)
    initialise = [
        folder_of_programs / "initdb",
        "-D",
        folder / "data",
        "-U",
        "citeloom",
        "-A",
        "scram-sha-256",
    ]
    subprocess.run(
        [*initialise, f"--pwfile={secret}", "-E", "UTF8", "--no-sync"],
        check=True,
        capture_output=True,
        cwd="/",
        **user,
    )
    port = free_ports(1)[0]
    options = {
        "listen_addresses": "127.0.0.1",
        "port": port,
        "unix_socket_directories": folder,
        "fsync": "off",
    }
    settings = [part for name, value in options.items() for part in ("-c", f"{name}={value}")]
    server = subprocess.Popen(
        [folder_of_programs / "postgres", "-D", folder / "data", *settings],
        cwd="/",
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        **user,
    )
    try:
        _wait_until_ready(folder_of_programs, port, server)
        yield f"postgresql://citeloom:{password}@127.0.0.1:{port}/postgres"
    finally:
        server.send_signal(signal.SIGINT)  # ends its connections, and then itself
        server.wait(60)
        shutil.rmtree(folder, ignore_errors=True)


def _as_user(folder: Path) -> dict[str, Any]:
    """How to start a program that refuses root: as the package's user, who gets the folder."""
    if os.getuid() != 0:
        return {}
    user = pwd.getpwnam("postgres")
    os.chown(folder, user.pw_uid, user.pw_gid)
    return {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}


def _wait_until_ready(folder_of_programs: Path, port: int, server: subprocess.Popen[bytes]) -> None:
    end = time.monotonic() + 120
    asked = [folder_of_programs / "pg_isready", "-q", "-h", "127.0.0.1", "-p", str(port)]
    while subprocess.run(asked).returncode != 0:
        if server.poll() is not None or time.monotonic() > end:
            raise RuntimeError("PostgreSQL did not come up")
        time.sleep(0.1)
