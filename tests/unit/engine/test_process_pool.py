"""Process pool: order, limits, what a dead worker costs, and that no worker outlives its parent."""

import os
import signal
import subprocess
import time

import pytest

from pipeline.engine import process_pool
from pipeline.engine.process_pool import LostItem, map_chunks
from tests.processes import is_alive, start_python, wait_until
from tests.unit.engine import pool_tasks

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module", autouse=True)
def _stop_workers():
    yield
    process_pool.stop_idle_workers()


def wait_for(file):
    """The content of a file, once it exists."""
    wait_until(file.exists, file.name)
    return file.read_text()


def process_of_worker():
    """The process id of the worker that runs the next chunk."""
    ((_, answer),) = map_chunks(pool_tasks.describe_worker, [[1]], 1)
    return answer[0]


@pytest.mark.parametrize("count", [1, 2, 7])
def test_answers_come_in_the_order_of_the_chunks(count):
    chunks = [[number, number + 100] for number in range(20)]
    answers = list(map_chunks(pool_tasks.double_slowly, chunks, count))
    assert answers == [(chunk, pool_tasks.double(chunk)) for chunk in chunks]


def test_a_worker_has_one_thread_and_does_not_import_the_main_module():
    ((_, answer),) = map_chunks(pool_tasks.describe_worker, [[1]], 1)
    assert answer[1:] == ("1", False)


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGALRM])
def test_a_worker_that_ended_while_idle_is_replaced(end):
    first = process_of_worker()
    os.kill(first, end)
    wait_until(lambda: not is_alive(first))
    assert process_of_worker() != first


def test_only_the_item_that_crashes_its_worker_is_lost():
    answers = list(map_chunks(pool_tasks.segfault_on_13, [[1, 2], [3, 13, 4], [5]], 2))
    crash = LostItem("crashed", "the worker ended with SIGSEGV")
    assert answers == [([1, 2], [2, 4]), ([3], [6]), ([13], crash), ([4], [8]), ([5], [10])]


def test_only_the_item_over_its_time_is_lost():
    (_, first), (_, second) = map_chunks(pool_tasks.loop_on_13, [[13, 4]], 1)
    assert (first.reason, second) == ("too_slow", [8])


def test_a_time_limit_has_no_effect_outside_a_worker():
    with process_pool.time_limit(0.001):
        end = time.process_time() + 0.05
        while time.process_time() < end:
            pass
    assert time.process_time() >= end


def test_an_item_whose_worker_was_killed_is_tried_again(tmp_path):
    item = str(tmp_path / "killed")
    assert list(map_chunks(pool_tasks.kill_self_once, [[item]], 1)) == [([item], "done")]


def test_a_worker_killed_while_it_answers_does_not_block_the_others():
    answers = list(map_chunks(pool_tasks.kill_self_while_answering, [[13], [1], [2], [3]], 2))
    (_, killed), *others = answers
    assert killed.reason == "out_of_memory"
    assert [len(answer) for _, answer in others] == [pool_tasks.ANSWER_BYTES] * 3


def test_a_worker_cannot_take_all_memory():
    assert list(map_chunks(pool_tasks.allocate_4_gb, [[1]], 1)) == [([1], 0)]


@pytest.mark.parametrize(
    ("work", "error", "message"),
    [
        (pool_tasks.fail, KeyError, "no 13"),
        (pool_tasks.fail_unpicklably, RuntimeError, "Unpicklable: something"),
    ],
)
def test_an_exception_is_raised_in_the_caller_with_its_traceback_as_a_note(work, error, message):
    with pytest.raises(error, match=message) as raised:
        list(map_chunks(work, [[13]], 1))
    assert "pool_tasks.py" in raised.value.__notes__[0]


def test_chunks_are_taken_only_a_few_ahead():
    taken = []

    def chunks():
        for number in range(1000):
            taken.append(number)
            yield [number]

    answers = map_chunks(pool_tasks.double, chunks(), 2)
    next(answers)
    assert len(taken) < 20
    answers.close()


def test_leaving_the_iteration_kills_busy_workers(tmp_path):
    workers = []

    def interrupted_chunks():
        yield [str(tmp_path / "process")]
        workers.append(int(wait_for(tmp_path / "process")))
        raise InterruptedError("no more chunks")

    with pytest.raises(InterruptedError):
        list(map_chunks(pool_tasks.work_forever, interrupted_chunks(), 1))
    wait_until(lambda: not is_alive(workers[0]))


def run_apart(code):
    """Run code that maps chunks in a process and process group of its own."""
    imports = (
        "import os, resource, sys; from pipeline.engine.process_pool import map_chunks; "
        "from tests.unit.engine import pool_tasks; "
    )
    return start_python(imports + code, stderr=subprocess.PIPE, process_group=0)


def start_busy_parent(file):
    """A process whose one worker never ends its work, and the worker's process id."""
    parent = run_apart(f"list(map_chunks(pool_tasks.work_forever, [[{str(file)!r}]], 1))")
    worker = int(wait_for(file))
    assert is_alive(worker)
    return parent, worker


def test_a_busy_worker_dies_with_its_parent(tmp_path):
    parent, worker = start_busy_parent(tmp_path / "process")
    parent.kill()
    parent.communicate()
    wait_until(lambda: not is_alive(worker))


def test_ctrl_c_ends_parent_and_worker_with_one_traceback(tmp_path):
    parent, worker = start_busy_parent(tmp_path / "process")
    os.killpg(parent.pid, signal.SIGINT)  # as a terminal does: to the whole group in the foreground
    _, stderr = parent.communicate()
    wait_until(lambda: not is_alive(worker))
    assert stderr.count("Traceback (most recent call last)") == 1
    assert stderr.strip().endswith("KeyboardInterrupt")


@pytest.mark.parametrize(
    "fault", ["sys.executable = '/bin/false'", "resource.setrlimit(resource.RLIMIT_NOFILE, (8, 8))"]
)
def test_where_no_worker_can_be_started_the_failure_is_transient(fault):
    parent = run_apart(f"{fault}; list(map_chunks(pool_tasks.double, [[1]], 1))")
    try:
        _, stderr = parent.communicate()
    finally:
        parent.kill()
    assert parent.returncode == 1
    assert "pipeline.errors.TransientFailure" in stderr.strip().splitlines()[-1]


def test_a_process_ends_silently_with_idle_workers():
    parent = run_apart("list(map_chunks(pool_tasks.double, [[1], [2]], 2))")
    assert parent.communicate() == ("", "")
    assert parent.returncode == 0
