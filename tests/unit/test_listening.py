"""Finding out where a process listens: the tests that say "on loopback alone" rest on it."""

from __future__ import annotations

import os
import socket
import subprocess
import sys

import pytest

from tests.listening import family, listening

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="/proc tells where a process listens")


@pytest.mark.parametrize(("kind", "address"), [(socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")])
def test_a_listening_socket_is_found_and_one_that_only_is_bound_is_not(kind: int, address: str) -> None:
    before = listening([os.getpid()])
    with socket.socket(kind) as server:
        server.bind((address, 0))
        assert listening([os.getpid()]) == before
        server.listen()
        assert listening([os.getpid()]) == sorted([*before, address])


def test_what_a_child_listens_on_is_found() -> None:
    command = "import socket, sys; s = socket.create_server(('0.0.0.0', 0)); print(flush=True); sys.stdin.read()"
    with subprocess.Popen([sys.executable, "-c", command], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.readline()
        assert child.pid in family(os.getpid())
        assert listening(family(child.pid)) == ["0.0.0.0"]
        child.communicate()
