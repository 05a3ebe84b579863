"""A real PostgreSQL on loopback, of Debian's package, with a password and data that go with it.

Where it is not installed, tests skip with the reason, or fail where CITELOOM_REQUIRE_TOOLS=1.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from benchmarks.postgres_server import programs, running

PASSWORD = "a-password-of-the-tests"


@contextmanager
def postgres() -> Iterator[str]:
    """The URL of a database on a server of its own, password included."""
    found = programs()
    if found is None:
        if os.environ.get("CITELOOM_REQUIRE_TOOLS") == "1":
            pytest.fail(
                "PostgreSQL is not installed (Debian's package postgresql), and"
                " CITELOOM_REQUIRE_TOOLS=1"
            )
        pytest.skip("PostgreSQL is not installed (Debian's package postgresql)")
    with running(found, PASSWORD) as url:
        yield url
