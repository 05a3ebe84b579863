"""A real PostgreSQL on loopback, of Debian's package, with a password and data that go with it."""

from contextlib import contextmanager

from benchmarks.postgres_server import programs, running
from tests.required_tools import missing_tool

PASSWORD = "a-password-of-the-tests"


@contextmanager
def postgres():
    """The URL of a database on a server of its own, password included."""
    found = programs()
    if found is None:
        missing_tool("PostgreSQL is not installed (Debian's package postgresql)")
    with running(found, PASSWORD) as url:
        yield url
