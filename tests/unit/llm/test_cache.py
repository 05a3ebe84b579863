"""The cache of calls: what it keeps, and who may pay."""

import contextlib
import os
import socket
import sqlite3
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import psutil
import pytest

from pipeline.errors import PermanentFailure, TransientFailure
from pipeline.llm.cache import CLAIM_SECONDS, CallCache, call_key
from pipeline.llm.messages import Spent
from tests.processes import wait_until

REQUEST = {
    "model": "m",
    "messages": [{"role": "user", "content": "é"}],
    "temperature": 0.7,
    "max_tokens": 5,
}
KEY = call_key(REQUEST)
ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def cache(tmp_path):
    opened = CallCache(tmp_path / "calls.sqlite")
    yield opened
    opened.close()


def test_answers_come_back_by_sample_number_and_are_never_replaced(cache, tmp_path):
    cache.write(KEY, REQUEST, {0: {"text": "a"}, 2: {"text": "c"}}, Spent(2), 0.1)
    cache.write(KEY, REQUEST, {0: {"text": "another"}, 1: {"text": "b"}}, Spent(2), 0.1)
    assert cache.read(KEY, [0, 1, 3]) == {0: {"text": "a"}, 1: {"text": "b"}}
    cache.close()
    with contextlib.closing(sqlite3.connect(tmp_path / "calls.sqlite")) as file:
        bodies = file.execute("SELECT body FROM answers ORDER BY body").fetchall()
    plain_json = [('{"text":"a"}',), ('{"text":"b"}',), ('{"text":"c"}',)]
    assert bodies == plain_json, "no pickle"


def test_a_key_depends_on_every_part_of_a_request_and_not_on_the_order_of_its_fields():
    other = {"messages": [{"role": "system", "content": "é"}]}
    parts = ({"model": "n"}, {"temperature": 0.8}, {"max_tokens": 6}, other)
    changed = [REQUEST | part for part in parts]
    assert len({call_key(request) for request in [REQUEST, *changed]}) == 5
    assert call_key(dict(reversed(REQUEST.items()))) == KEY


def test_a_claim_holds_while_its_process_lives(cache, tmp_path):
    assert cache.claim(KEY, 0)
    other = CallCache(tmp_path / "calls.sqlite")
    assert not other.claim(KEY, 0)
    assert other.claim(KEY, 1)
    cache.release(KEY, 0)
    assert other.claim(KEY, 0)
    other.close()


def test_the_claim_of_a_dead_process_is_taken_over(cache, tmp_path):
    script = (
        "import os, sys; from pathlib import Path; from pipeline.llm.cache import CallCache\n"
        "CallCache(Path(sys.argv[1])).claim(sys.argv[2], 0); os.kill(os.getpid(), 9)"
    )
    command = [sys.executable, "-c", script, str(tmp_path / "calls.sqlite"), KEY]
    subprocess.run(command, cwd=ROOT)
    assert cache.claim(KEY, 0)


def claim_as(file, pid, since, host=None):
    with sqlite3.connect(file) as sql:
        sql.execute(
            "INSERT INTO claims VALUES (?, 0, ?, ?, ?)",
            (KEY, host or socket.gethostname(), pid, since),
        )


def test_the_claim_of_a_zombie_is_taken_over(cache, tmp_path):
    with subprocess.Popen([sys.executable, "-c", ""]) as child:
        wait_until(lambda: psutil.Process(child.pid).status() == psutil.STATUS_ZOMBIE)
        claim_as(tmp_path / "calls.sqlite", child.pid, time.time())
        assert cache.claim(KEY, 0)


def test_a_living_process_of_this_machine_keeps_its_claim_for_as_long_as_it_takes(cache, tmp_path):
    first_process = psutil.Process(1)  # began hours ago, on most machines
    claim_as(tmp_path / "calls.sqlite", 1, first_process.create_time() + 60)
    assert not cache.claim(KEY, 0)


@pytest.mark.parametrize(
    ("pid", "age", "host", "is_free"),
    [
        # A container that is started anew gives its first process the same id.
        (os.getpid(), 86_400 * 365, None, True),
        (1, CLAIM_SECONDS / 2, "elsewhere", False),
        (1, CLAIM_SECONDS * 3 / 2, "elsewhere", True),
    ],
    ids=["its process is gone", "another machine has an hour", "the hour is over"],
)
def test_a_claim_that_nobody_can_hold_is_taken_over(cache, tmp_path, pid, age, host, is_free):
    claim_as(tmp_path / "calls.sqlite", pid, time.time() - age, host)
    assert cache.claim(KEY, 0) is is_free


def test_a_file_that_is_no_cache_is_named(tmp_path):
    file = tmp_path / "calls.sqlite"
    file.write_bytes(b"not a database, and long enough to be read as one" * 100)
    with pytest.raises(PermanentFailure, match=r"calls\.sqlite, cannot be read .* move it away"):
        CallCache(file)


def test_a_file_changes_between_one_machine_and_several_and_keeps_its_answers(tmp_path):
    file = tmp_path / "calls.sqlite"
    for number, shared in enumerate((False, True, False)):
        with contextlib.closing(CallCache(file, shared=shared)) as cache:
            cache.write(KEY, REQUEST, {number: {"text": str(number)}}, Spent(1), 0.1)
            assert file.with_name("calls.sqlite-shm").exists() is not shared
            written = {each: {"text": str(each)} for each in range(number + 1)}
            assert cache.read(KEY, range(3)) == written


@pytest.mark.parametrize("moment", ["before it is opened", "after"])
def test_a_file_that_stays_locked_is_named(moment, tmp_path, monkeypatch):
    monkeypatch.setattr("pipeline.llm.cache.LOCK_SECONDS", 0.1)
    file = tmp_path / "calls.sqlite"

    def use():
        return partial(CallCache(file).write, "key", {"model": "m"}, {0: {}}, Spent(1), 1.0)

    again = use() if moment == "after" else lambda: use()()
    with contextlib.closing(sqlite3.connect(file, isolation_level=None)) as holder:
        holder.execute("BEGIN EXCLUSIVE")
        with pytest.raises(TransientFailure, match=r"calls\.sqlite.*locked.*end the process"):
            again()
    again()
