"""Writes that fail: each one of a small run, once; and a disk that is full, then larger.

A run that says that all went well must have made what an undisturbed one makes; whatever else it
says, the next run makes it.
"""

import errno
import itertools
import os
import random
import shutil
import subprocess
from collections import Counter

import pytest

from tests.faults.accounts import Watch, count_wrong
from tests.faults.zygote import Fault
from tests.small_disk import small_disk_in

MONTH = "2024-03"
STAGES = ["dump_members", "metadata", "papers", "passages", "references"]
# Some 470 changing calls, for the index of the dump, two tables and their ledgers, times and locks.
# All five stages make 880, and need worker processes.
SMALL_RUN = STAGES[:2]
# Of every stage, whose stores make thousands of calls (SQLite, Qdrant Edge): so many, drawn.
DRAWN = int(os.environ.get("CITELOOM_FAULTS_DRAWN", "30"))
ERRORS = (errno.EIO, errno.ENOSPC)


@pytest.fixture(scope="module")
def undisturbed(zygote, make, tmp_path_factory):
    """The month's corpus, undisturbed."""
    place = make(tmp_path_factory.mktemp("undisturbed") / "data")
    assert zygote.run(place, [MONTH], STAGES).done
    return place


def run_bare(zygote, place, fault=None):
    """The small run without Dagster, whose own databases are none of this test's matter."""
    return zygote.run(place, [MONTH], SMALL_RUN, fault, door="bare")


def test_each_write_of_a_small_run_may_fail(zygote, make, tmp_path, tell):
    calm = make(tmp_path / "calm")
    whole = run_bare(zygote, calm)
    assert whole.done, whole
    wrong, told = Counter(), 0
    for at in range(1, whole.calls + 1):
        place = make(tmp_path / "struck")
        watch = Watch(place.root)
        first = run_bare(zygote, place, Fault(at=at, error=ERRORS[at % 2]))
        watch.look()
        is_same = not any(count_wrong(calm, watch).values())
        told += not first.done
        wrong["silent"] += first.done and not is_same
        again = run_bare(zygote, place)
        assert again.done, again
        wrong.update(count_wrong(calm, watch))
        shutil.rmtree(place.root)
    tell(writes=whole.calls, told=told, **wrong)
    assert whole.calls > 100
    assert not any(wrong.values())


def test_writes_of_every_stage_may_fail(zygote, calm, make, tmp_path, seed, tell):
    """To the report, with the stores of answers, of the index and of Dagster; each run goes on
    where the last one failed, and where one is done the next begins anew.
    """
    chance, wrong, failures, struck = random.Random(seed), Counter(), 0, 0
    for number in itertools.count():
        place = make(tmp_path / f"round-{number}")
        watch, done = Watch(place.root), False
        while not done:
            at = round(10 ** chance.uniform(0, 3.3)) if struck < DRAWN else 0
            fault = Fault(at=at, error=chance.choice(ERRORS)) if at else None
            end = zygote.run(place, [MONTH], fault=fault)
            struck += bool(at)
            failures += not end.done
            done = end.done
            assert done or at, end
            watch.look()
        wrong.update(count_wrong(calm, watch, MONTH))
        shutil.rmtree(place.root)
        if struck >= DRAWN:
            break
    tell(struck=struck, failures=failures, **wrong)
    assert failures > 0
    assert not any(wrong.values())


def resize(disk, kilobytes):
    """Give a mounted disk another size."""
    subprocess.run(["mount", "-o", f"remount,size={kilobytes}k", str(disk)], check=True)


def test_a_full_disk_is_told_of_and_more_room_mends_it(zygote, undisturbed, make, tmp_path, tell):
    refused = 0
    with small_disk_in(tmp_path, megabytes=0.25) as disk:
        place = make(disk / "data")
        watch = Watch(place.root)
        for kilobytes in (256, 512, 768, 1_024, 65_536):
            resize(disk, kilobytes)
            end = zygote.run(place, [MONTH], STAGES)
            watch.look()
            if end.done:
                break
            refused += 1
            message = " ".join([*(text for failure in end.failures for text in failure), end.error])
            named = ("No space left", "is full", "disk I/O error")
            assert any(words in message for words in named), end
        resize(disk, 65_536)  # SQLite needs room to read a store
        wrong = count_wrong(undisturbed, watch)
        tell(refused=refused, **wrong)
        assert end.done, end
        assert refused > 0
        assert not any(wrong.values())
