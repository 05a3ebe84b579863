"""Worker processes: order, what is lost when one dies, and that none outlives its parent."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from pipeline.engine import process_pool
from pipeline.engine.process_pool import LostItem, count_workers, map_chunks
from tests.unit import chores

PROJECT = Path(__file__).resolve().parents[3]
PATIENCE = 30


@pytest.fixture(scope="module", autouse=True)
def _no_worker_left() -> Iterator[None]:
    yield
    process_pool.stop_idle_workers()


def is_alive(process: int) -> bool:
    """Whether a process runs; one that has ended and waits to be collected does not."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def wait_until_ended(process: int) -> bool:
    """Whether a process ends within the tests' patience."""
    end = time.monotonic() + PATIENCE
    while is_alive(process) and time.monotonic() < end:
        time.sleep(0.02)
    return not is_alive(process)


def wait_for(file: Path) -> str:
    """What a file holds as soon as it is there."""
    end = time.monotonic() + PATIENCE
    while not file.exists() and time.monotonic() < end:
        time.sleep(0.02)
    return file.read_text()


@pytest.mark.parametrize("count", [1, 2, 7])
def test_answers_come_in_the_order_of_the_chunks(count: int) -> None:
    chunks = [[number, number + 100] for number in range(20)]
    answers = list(map_chunks(chores.double_slowly, chunks, count))
    assert answers == [(chunk, chores.double(chunk)) for chunk in chunks]


def test_workers_are_taken_over_by_the_next_mapping() -> None:
    first = {answer for _, answer in map_chunks(chores.tell_process, [[1]], 1)}
    second = {answer for _, answer in map_chunks(chores.tell_process, [[1]], 1)}
    assert first == second
    assert {threads for _, threads in first} == {"1"}  # type: ignore[misc]


def test_a_worker_that_ended_while_it_waited_is_replaced() -> None:
    ((_, (first, _)),) = map_chunks(chores.tell_process, [[1]], 1)  # type: ignore[misc]
    os.kill(first, signal.SIGKILL)
    wait_until_ended(first)
    ((_, (second, _)),) = map_chunks(chores.tell_process, [[1]], 1)  # type: ignore[misc]
    assert second != first


def test_only_the_item_that_kills_its_worker_is_lost() -> None:
    answers = list(map_chunks(chores.double_unless_deadly, [[1, 2], [3, 13, 4], [5]], 2))
    crash = LostItem("crashed", "the worker ended with SIGSEGV")
    assert answers == [([1, 2], [2, 4]), ([3], [6]), ([13], crash), ([4], [8]), ([5], [10])]


def test_an_item_over_its_time_is_ended_by_the_kernel_and_its_neighbours_are_done() -> None:
    (_, first), (_, second) = map_chunks(chores.double_within_a_limit, [[13, 4]], 1)
    assert isinstance(first, LostItem)
    assert (first.reason, second) == ("too_slow", [8])


def test_a_time_limit_does_nothing_outside_of_a_worker() -> None:
    with chores.time_limit(0.001):
        end = time.process_time() + 0.05
        while time.process_time() < end:
            pass
    assert time.process_time() >= end


def test_a_worker_killed_for_memory_is_told_so() -> None:
    ((_, answer),) = map_chunks(chores.be_killed, [[1]], 1)
    assert isinstance(answer, LostItem)
    assert answer.reason == "out_of_memory"


def test_an_item_whose_worker_was_killed_once_is_done_all_the_same(tmp_path: Path) -> None:
    item = str(tmp_path / "killed")
    assert list(map_chunks(chores.be_killed_once, [[item]], 1)) == [([item], "done")]


def test_one_item_cannot_take_all_memory() -> None:
    assert list(map_chunks(chores.fill_memory, [[1]], 1)) == [([1], 0)]


def test_an_exception_comes_back_as_it_was_with_the_place_where_it_arose() -> None:
    with pytest.raises(KeyError, match="no 7") as raised:
        list(map_chunks(chores.fail, [[7]], 1))
    assert "chores.py" in raised.value.__notes__[0]


def test_an_exception_that_cannot_travel_is_told_in_words() -> None:
    with pytest.raises(RuntimeError, match="Unpicklable: something"):
        list(map_chunks(chores.fail_unpicklably, [[7]], 1))


def test_a_worker_that_failed_goes_on_working() -> None:
    ((_, before),) = map_chunks(chores.tell_process, [[1]], 1)
    with pytest.raises(KeyError):
        list(map_chunks(chores.fail, [[7]], 1))
    assert [answer for _, answer in map_chunks(chores.tell_process, [[1]], 1)] == [before]


def test_chunks_are_taken_only_a_few_ahead() -> None:
    taken = []

    def chunks() -> Iterator[list[int]]:
        for number in range(1000):
            taken.append(number)
            yield [number]

    answers = map_chunks(chores.double, chunks(), 2)
    next(answers)
    assert len(taken) < 20
    answers.close()  # type: ignore[attr-defined]


def test_a_mapping_that_is_left_kills_what_is_under_way(tmp_path: Path) -> None:
    seen = []

    def endless_chunks() -> Iterator[list[str]]:
        yield [str(tmp_path / "process")]
        seen.append(int(wait_for(tmp_path / "process")))
        raise InterruptedError("no more chunks")

    with pytest.raises(InterruptedError):
        list(map_chunks(chores.work_for_ever, endless_chunks(), 1))
    assert wait_until_ended(seen[0])


def start_a_parent(file: Path) -> subprocess.Popen[bytes]:
    """A process of its own whose one worker never ends; returns once it works."""
    code = (
        "from pipeline.engine.process_pool import map_chunks; from tests.unit import chores; "
        f"list(map_chunks(chores.work_for_ever, [[{str(file)!r}]], 1))"
    )
    parent = subprocess.Popen(
        [sys.executable, "-c", code], cwd=PROJECT, stderr=subprocess.PIPE, stdout=subprocess.PIPE, process_group=0
    )
    wait_for(file)
    return parent


def test_a_busy_worker_dies_with_its_parent(tmp_path: Path) -> None:
    parent = start_a_parent(tmp_path / "process")
    worker = int((tmp_path / "process").read_text())
    assert is_alive(worker)
    parent.kill()
    parent.communicate()
    assert wait_until_ended(worker)


def test_ctrl_c_ends_parent_and_worker_and_only_the_parent_tells(tmp_path: Path) -> None:
    parent = start_a_parent(tmp_path / "process")
    worker = int((tmp_path / "process").read_text())
    os.killpg(parent.pid, signal.SIGINT)  # as a terminal does: to the whole group in the foreground
    _, told = parent.communicate(timeout=PATIENCE)
    assert wait_until_ended(worker)
    assert told.decode().count("Traceback (most recent call last)") == 1
    assert told.decode().strip().endswith("KeyboardInterrupt")


def test_a_number_of_workers_is_taken_at_its_word_and_none_means_all_cores() -> None:
    assert count_workers(3) == 3
    assert 1 <= count_workers(0) <= len(os.sched_getaffinity(0))
