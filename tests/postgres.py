"""A real PostgreSQL on loopback, of Debian's package, with a password and data that go with it.

Where it is not installed, tests skip with the reason, or fail where CITELOOM_REQUIRE_TOOLS=1. Not here: what is kept
in it.
"""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

PASSWORD = "a-password-of-the-tests"


def _programs() -> Path:
    """The folder of initdb and postgres, the newest version's."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda file: int(file.parts[-3]))
    if found:
        return found[-1].parent
    if os.environ.get("CITELOOM_REQUIRE_TOOLS") == "1":
        pytest.fail("PostgreSQL is not installed (Debian's package postgresql), and CITELOOM_REQUIRE_TOOLS=1")
    pytest.skip("PostgreSQL is not installed (Debian's package postgresql)")


def _as_user(folder: Path) -> dict[str, Any]:
    """How to start a program that refuses to run as root: as the package's own user, whose the folder becomes."""
    if os.getuid() != 0:
        return {}
    user = pwd.getpwnam("postgres")
    os.chown(folder, user.pw_uid, user.pw_gid)
    return {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}


@contextmanager
def postgres() -> Iterator[str]:
    """The URL of a database on a server of its own, password included."""
    programs = _programs()
    folder = Path(tempfile.mkdtemp(prefix="citeloom-postgres-"))
    user = _as_user(folder)
    secret = folder / "password"
    secret.write_text(PASSWORD)
    secret.chmod(0o644)
    initialise = [programs / "initdb", "-D", folder / "data", "-U", "citeloom", "-A", "scram-sha-256"]
    subprocess.run(
        [*initialise, f"--pwfile={secret}", "-E", "UTF8", "--no-sync"], check=True, capture_output=True, cwd="/", **user
    )
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    options = {"listen_addresses": "127.0.0.1", "port": port, "unix_socket_directories": folder, "fsync": "off"}
    settings = [part for name, value in options.items() for part in ("-c", f"{name}={value}")]
    server = subprocess.Popen(
        [programs / "postgres", "-D", folder / "data", *settings], cwd="/",
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **user,
    )  # fmt: skip
    try:
        _wait_until_ready(programs, port, server)
        yield f"postgresql://citeloom:{PASSWORD}@127.0.0.1:{port}/postgres"
    finally:
        server.send_signal(signal.SIGINT)  # ends its connections, and then itself
        server.wait(60)
        shutil.rmtree(folder, ignore_errors=True)


def _wait_until_ready(programs: Path, port: int, server: subprocess.Popen[bytes]) -> None:
    end = time.monotonic() + 120
    while subprocess.run([programs / "pg_isready", "-q", "-h", "127.0.0.1", "-p", str(port)]).returncode != 0:
        assert server.poll() is None, "PostgreSQL ended by itself"
        assert time.monotonic() < end, "PostgreSQL did not come up"
        time.sleep(0.1)
