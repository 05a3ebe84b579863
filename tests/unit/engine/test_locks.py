"""Locks between processes: a month of a stage has one writer, and what a machine has once has one
user.
"""

import json
import signal
import subprocess
from contextlib import ExitStack, contextmanager

import pytest

from pipeline.engine.locks import month_lock, pool_lock
from pipeline.errors import PermanentFailure
from tests.cases import cases_beside
from tests.processes import PATIENCE, start_python
from tests.workspaces import make_workspace

pytestmark = pytest.mark.slow

MONTH = "2024-03"
PAPERS = {"month": ["papers", MONTH]}
# Takes a lock, says so, and holds it until its input ends; a signal does not interrupt it. What it is
# told while it waits goes to stderr.
TAKE = """
import json, sys
from pipeline.engine import shutdown
from pipeline.engine.progress import Notice, listening
from pipeline.engine.locks import month_lock, pool_lock
from pipeline.engine.stage import Workspace
from pipeline.settings import load_settings

def print_notice(event):
    if isinstance(event, Notice):
        print(event.message, file=sys.stderr, flush=True)

shutdown.DRAIN_SECONDS = 1e6
order = json.loads(sys.argv[1])
workspace = Workspace(load_settings(_env_file=None, **order["settings"]))
lock = month_lock(workspace, *order["month"]) if "month" in order else pool_lock(workspace, order["pool"])
try:
    with listening(print_notice), shutdown.draining():
        with lock:
            print("taken", flush=True)
            sys.stdin.read()
except shutdown.Interrupted:
    sys.exit(130)
"""


@pytest.fixture
def workspace(tmp_path):
    return make_workspace(tmp_path)


@contextmanager
def taking(folder, **order):
    """A process that takes a lock; ended afterwards."""
    settings = {"data": str(folder), **order.pop("settings", {})}
    order = json.dumps({"settings": settings, **order})
    process = start_python(TAKE, order, stderr=subprocess.PIPE)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def is_free(folder, **order):
    """Whether a process of its own gets a lock at once, and not after a wait."""
    with taking(folder, **order) as process:
        out, noted = process.communicate("")
        return out == "taken\n" and not noted


def waits(folder, **order):
    """Whether a process of its own says that it waits for a lock."""
    with taking(folder, **order) as process:
        return "in use by another process" in process.stderr.readline()


def test_a_month_of_a_stage_has_one_writer_and_other_months_are_free(workspace, tmp_path):
    with month_lock(workspace, "papers", MONTH):
        assert waits(tmp_path, **PAPERS)
        assert is_free(tmp_path, month=["papers", "2024-04"])
        assert is_free(tmp_path, month=["passages", MONTH])
    assert is_free(tmp_path, **PAPERS)


@pytest.mark.parametrize("pool", ["qdrant", "llm", "gpu"])
def test_what_a_machine_has_once_is_used_by_one_process_at_a_time(workspace, tmp_path, pool):
    with pool_lock(workspace, pool):
        assert waits(tmp_path, pool=pool)
    assert is_free(tmp_path, pool=pool)


@cases_beside("pool", "settings")
def test_a_server_is_used_by_many_at_once(tmp_path, pool, settings):
    with pool_lock(make_workspace(tmp_path, **settings), pool):
        assert is_free(tmp_path, pool=pool, settings=settings)


def test_a_lock_that_the_file_system_refuses_is_named(workspace):
    file = workspace.cache("locks") / f"papers-{MONTH}.lock"
    file.mkdir()
    with (
        pytest.raises(PermanentFailure, match=rf"papers of {MONTH} cannot be locked by {file}"),
        month_lock(workspace, "papers", MONTH),
    ):
        pass


def test_a_process_that_waits_gets_the_lock_once_it_is_free(workspace, tmp_path):
    with ExitStack() as stack:
        with pool_lock(workspace, "qdrant"):
            waiting = stack.enter_context(taking(tmp_path, pool="qdrant"))
            assert waiting.stderr.readline()
        assert waiting.stdout.readline() == "taken\n"


def test_a_process_that_waits_ends_when_it_is_asked_to(workspace, tmp_path):
    with (
        month_lock(workspace, "papers", MONTH),
        taking(tmp_path, **PAPERS) as waiting,
    ):
        assert waiting.stderr.readline()
        waiting.send_signal(signal.SIGTERM)
        assert waiting.wait(PATIENCE) == 130
