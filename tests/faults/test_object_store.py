"""Kills in the middle of uploads to an object store: whole or absent, and the next run exact.

The process is killed by the store itself, at the request that is drawn: before a part of a file,
between parts, before its upload is completed, or while the store completes it for a client that is
gone.
"""

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.assets.conftest import digests
from tests.object_store import BUCKET, ObjectStore
from tests.uploads import MONTHS

KILLS = 24
KILLS_OF_RUNS = 12
CHANGING = ("PUT", "POST", "DELETE")
# Of one pass of tests/uploads.py: begun, three parts, completed and a small file, for each month.
CHANGES = 6 * len(MONTHS)
PROJECT = Path(__file__).resolve().parents[2]


@pytest.fixture
def store():
    """A store with nothing in it."""
    with ObjectStore() as found:
        yield found


class Killer:
    """Kills a process when the store is asked for the n-th change since; counts what was then about
    to happen.
    """

    def __init__(self, store):
        self.counts = Counter()
        self._left, self._process = 0, 0
        store.before = self._look

    def aim(self, process, at):
        """Kill this process at its `at`-th change from now on; 0: never."""
        self._process, self._left = process, at

    def _look(self, method, path, query):
        if method not in CHANGING or not self._left:
            return
        self._left -= 1
        if not self._left:
            self.counts[_kind(method, query)] += 1
            with suppress(ProcessLookupError):
                os.kill(self._process, signal.SIGKILL)


def _kind(method, query):
    if "partNumber=" in query:
        return f"part {query.partition('partNumber=')[2].partition('&')[0]}"
    if method == "POST":
        return "completed" if "uploadId=" in query else "begun"
    return {"PUT": "small file", "DELETE": "removal"}[method]


def test_a_kill_in_the_middle_of_an_upload_leaves_whole_files_alone(store, tmp_path, seed, tell):
    chance, killer, torn = random.Random(seed), Killer(store), 0
    expected = {}
    for version in ("old", "new"):
        assert _write(store, tmp_path, version).wait() == 0
        expected[version] = _contents(store)
    assert all(
        len(content) > 16 << 20
        for name, content in expected["new"].items()
        if name.endswith("parquet")
    )
    kills, version = 0, "old"
    while kills < KILLS:
        # Mostly in the large files, where there is more to tear.
        process = _write(store, tmp_path, version)
        killer.aim(process.pid, chance.randint(1, CHANGES))
        code = process.wait()
        killer.aim(0, 0)
        kills += code == -signal.SIGKILL
        _settle(store)
        for name, content in _contents(store).items():
            torn += content not in (expected["old"][name], expected["new"][name])
        if code == 0:
            assert _contents(store) == expected[version]
            version = "new" if version == "old" else "old"
    assert _write(store, tmp_path, version).wait() == 0
    assert _contents(store) == expected[version]
    assert not list((tmp_path / "staging").iterdir())
    tell(
        kills=kills,
        torn=torn,
        unfinished_uploads=store.unfinished(),
        at=dict(sorted(killer.counts.items())),
    )
    assert torn == 0


def _contents(store):
    return {name: each.content for name, each in store.objects("root/").items()}


def _write(store, local, version):
    command = [sys.executable, "-m", "tests.uploads", f"s3://{BUCKET}/root", str(local), version]
    return subprocess.Popen(command, cwd=PROJECT, env={**os.environ, **store.variables})


def _settle(store):
    """Wait until the store has answered what a process asked for that is gone."""
    asked = -1
    while asked != len(store.asked):
        asked = len(store.asked)
        time.sleep(0.5)  # a large part takes as long on a busy machine


def test_a_run_that_is_killed_at_the_store_is_gone_on_with(
    store, zygote, calm, make, tmp_path, seed, tell
):
    chance, killer, kills, torn = random.Random(seed), Killer(store), 0, 0
    months = ["2024-03"]
    place = make(tmp_path / "local")
    place = place.with_settings(data=f"s3://{BUCKET}/root", local=place.root)
    place = replace(place, variables={**place.variables, **store.variables})
    made = Counter()
    while True:
        process = zygote.start(place, months)
        # A month of all stages makes some 150 changes: a few stages to each kill.
        killer.aim(process, chance.randint(1, 30) if kills < KILLS_OF_RUNS else 0)
        end = zygote.end()
        killer.aim(0, 0)
        made.update(end.made)
        _settle(store)
        torn += sum(not _is_whole(*file) for file in _contents(store).items())
        if end.code != -signal.SIGKILL:
            break
        kills += 1
    assert end.done, end
    fetched = tmp_path / "fetched"
    for name, content in _contents(store).items():
        (fetched / name).parent.mkdir(parents=True, exist_ok=True)
        (fetched / name).write_bytes(content)
    found, undisturbed = digests(fetched), digests(calm.root)
    # The overall page tells of all months that there are, and the other root has more of them.
    differing = [
        name
        for name, content in found.items()
        if undisturbed.get(name) != content and months[0] in name
    ]
    redone = sum(count - 1 for count in made.values())
    tell(
        kills=kills,
        torn=torn,
        differing=differing,
        redone=redone,
        at=dict(sorted(killer.counts.items())),
    )
    assert kills >= 1
    assert not torn
    assert {name.partition("/")[0] for name in undisturbed if months[0] in name} == {
        name.partition("/")[0] for name in found if months[0] in name
    }
    assert differing == []
    assert redone == 0


def _is_whole(name, content):
    if name.endswith(".parquet"):
        pq.read_table(pa.BufferReader(content))
    return name == ".writable" or bool(content)
