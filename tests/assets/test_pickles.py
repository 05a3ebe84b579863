"""No stored data is unpickled: what every stage and every table left, and what was unpickled while they were made.

The audit hook sees the process that runs Dagster and every stage. Workers, which parse pages and make passages in
processes of their own, are not seen: of our sources only the pipe to them may unpickle
(`tests/unit/test_no_foreign_code.py`).
"""

from __future__ import annotations

import pickle
from pathlib import Path

import pebble.pool.channel

from pipeline.engine import process_pool
from tests.assets.conftest import Finished
from tests.unpacked import contents
from tests.unpickled import unpickled


def test_a_whole_run_unpickles_nothing_that_is_stored(finished: Finished) -> None:
    assert {who for _, who in finished.unpickled} <= {process_pool.__file__, pebble.pool.channel.__file__}, (
        "answers of our own workers, over their pipes"
    )
    classes = {what for what, _ in finished.unpickled if not what.startswith("pebble.")}
    assert classes <= {"pipeline.corpus.pages.ParsedChunk"}


def test_nothing_that_a_run_leaves_is_a_pickle(finished: Finished) -> None:
    """From protocol 2 on, a pickle begins with its number and ends with a full stop."""
    found = [place for place, content in contents(finished.place.root) if is_pickle(content)]
    assert found == []


def is_pickle(content: bytes) -> bool:
    return content[:1] == b"\x80" and content[1:2] in (b"\2", b"\3", b"\4", b"\5") and content[-1:] == b"."


def test_a_pickle_would_be_noticed(tmp_path: Path) -> None:
    (tmp_path / "stored").write_bytes(pickle.dumps(tmp_path))
    assert [place for place, content in contents(tmp_path) if is_pickle(content)] == ["stored"]
    with unpickled() as found:
        pickle.loads((tmp_path / "stored").read_bytes())
    assert ("pathlib.PosixPath", __file__) in found
