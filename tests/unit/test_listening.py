"""Finding out where a process listens: the tests that say "on loopback alone" rest on it."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.listening import family, listening

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="/proc tells where a process listens")


def test_what_a_child_listens_on_is_found() -> None:
    command = "import socket, sys; s = socket.create_server(('0.0.0.0', 0)); print(flush=True); sys.stdin.read()"
    with subprocess.Popen([sys.executable, "-c", command], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.readline()
        assert child.pid in family(os.getpid())
        assert listening(family(child.pid)) == ["0.0.0.0"]
        child.communicate()
