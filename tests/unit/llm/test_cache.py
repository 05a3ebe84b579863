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
from pipeline.llm.budget import Budget, Limits
from pipeline.llm.cache import CLAIM_SECONDS, CallCache, call_key
from pipeline.llm.messages import Prices, Spent
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
    assert cache.read(KEY, range(4)) == {0: {"text": "a"}, 2: {"text": "c"}}
    assert cache.read(KEY, [1]) == {}
    cache.write(KEY, REQUEST, {0: {"text": "another"}, 1: {"text": "b"}}, Spent(2), 0.1)
    assert cache.read(KEY, range(2)) == {0: {"text": "a"}, 1: {"text": "b"}}
    cache.close()
    with contextlib.closing(sqlite3.connect(tmp_path / "calls.sqlite")) as file:
        bodies = {body for (body,) in file.execute("SELECT body FROM answers")}
    assert bodies == {'{"text":"a"}', '{"text":"b"}', '{"text":"c"}'}, "plain JSON, and no pickle"


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


def test_a_process_that_began_after_the_claim_is_not_who_made_it(cache, tmp_path):
    """A container that is started anew gives its first process the same id."""
    claim_as(tmp_path / "calls.sqlite", os.getpid(), time.time() - 86_400 * 365)
    assert cache.claim(KEY, 0)


def test_the_claim_of_a_zombie_is_taken_over(cache, tmp_path):
    with subprocess.Popen([sys.executable, "-c", ""]) as child:
        wait_until(lambda: psutil.Process(child.pid).status() == psutil.STATUS_ZOMBIE)
        claim_as(tmp_path / "calls.sqlite", child.pid, time.time())
        assert cache.claim(KEY, 0)


def test_a_living_process_of_this_machine_keeps_its_claim_for_as_long_as_it_takes(cache, tmp_path):
    first_process = psutil.Process(1)
    claim_as(
        tmp_path / "calls.sqlite", 1, first_process.create_time() + 60
    )  # hours ago, on most machines
    assert not cache.claim(KEY, 0)


def test_another_machines_claim_is_given_an_hour(cache, tmp_path):
    claim_as(tmp_path / "calls.sqlite", 1, time.time() - CLAIM_SECONDS / 2, "elsewhere")
    assert not cache.claim(KEY, 0)
    with sqlite3.connect(tmp_path / "calls.sqlite") as sql:
        sql.execute("UPDATE claims SET since = since - ?", (CLAIM_SECONDS,))
    assert cache.claim(KEY, 0)


def test_two_processes_write_at_once_without_loss(cache, tmp_path):
    script = (
        "import sys; from pathlib import Path; from pipeline.llm.cache import CallCache, Spent\n"
        "cache = CallCache(Path(sys.argv[1]))\nfor i in range(200):\n"
        "    answers = {0: {'text': sys.argv[2]}}\n"
        "    cache.write(f'{sys.argv[2]}{i}', {'model': 'm'}, answers, Spent(1), 0.1)"
    )
    command = [sys.executable, "-c", script, str(tmp_path / "calls.sqlite")]
    writers = [subprocess.Popen([*command, name], cwd=ROOT) for name in "ab"]
    assert [writer.wait() for writer in writers] == [0, 0]
    for name in "ab":
        assert all(cache.read(f"{name}{i}", [0]) == {0: {"text": name}} for i in range(200))


def test_a_file_that_is_no_cache_is_named(tmp_path):
    file = tmp_path / "calls.sqlite"
    file.write_bytes(b"not a database, and long enough to be read as one" * 100)
    with pytest.raises(PermanentFailure, match=r"calls\.sqlite, cannot be read .* move it away"):
        CallCache(file)


def test_a_lock_that_cannot_be_opened_is_named(tmp_path):
    (tmp_path / "calls.sqlite.lock").mkdir()
    with pytest.raises(
        PermanentFailure, match=r"calls\.sqlite cannot be locked .*calls\.sqlite\.lock"
    ):
        CallCache(tmp_path / "calls.sqlite")


def test_a_file_changes_between_one_machine_and_several_and_keeps_its_answers(tmp_path):
    file = tmp_path / "calls.sqlite"
    for shared in (False, True, False):
        with contextlib.closing(CallCache(file, shared=shared)) as cache:
            answers = {0: {"text": "first"}, 1 + shared: {"text": str(shared)}}
            cache.write(KEY, REQUEST, answers, Spent(2), 0.1)
            assert file.with_name("calls.sqlite-shm").exists() is not shared
    with contextlib.closing(CallCache(file)) as cache:
        texts = [cache.read(KEY, range(3))[sample]["text"] for sample in range(3)]
    assert texts == ["first", "False", "True"]


OPEN_AT_ONCE = """
import multiprocessing, sys
from pathlib import Path
from pipeline.llm.cache import CallCache

def open_each(folder, barrier):
    for number in range(40):
        barrier.wait()
        CallCache(Path(folder) / str(number) / "calls.sqlite").close()

fork = multiprocessing.get_context("fork")
barrier = fork.Barrier(4)
processes = [fork.Process(target=open_each, args=(sys.argv[1], barrier)) for _ in range(4)]
for process in processes:
    process.start()
for process in processes:
    process.join()
sys.exit(sum(process.exitcode != 0 for process in processes))
"""


def test_processes_that_make_the_file_at_the_same_moment_wait_for_each_other(tmp_path):
    assert subprocess.run([sys.executable, "-c", OPEN_AT_ONCE, str(tmp_path)]).returncode == 0


@pytest.mark.parametrize("name", ["calls.sqlite", "budgets.sqlite"])
@pytest.mark.parametrize("moment", ["before it is opened", "after"])
def test_a_file_that_stays_locked_is_named(name, moment, tmp_path, monkeypatch):
    monkeypatch.setattr("pipeline.llm.cache.LOCK_SECONDS", 0.1)
    monkeypatch.setattr("pipeline.llm.budget.LOCK_SECONDS", 0.1)
    file = tmp_path / name

    def use():
        if name == "budgets.sqlite":
            return partial(Budget(Limits(calls=9), "shared", file).reserve, Spent(1), Prices())
        cache = CallCache(file)
        return partial(cache.write, "key", {"model": "m"}, {0: {}}, Spent(1), 1.0)

    again = use() if moment == "after" else lambda: use()()
    with contextlib.closing(sqlite3.connect(file, isolation_level=None)) as holder:
        holder.execute("BEGIN EXCLUSIVE")
        with pytest.raises(TransientFailure, match=rf"{name}.*locked.*end the process"):
            again()
    again()
