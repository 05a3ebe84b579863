"""The external sort: the newest row of each page, in order, whatever is held at once."""

from __future__ import annotations

import random
from pathlib import Path

import pyarrow as pa
import pytest

from pipeline.wikipedia import sorting
from pipeline.wikipedia.sorting import newest_first, with_order

SCHEMA = pa.schema([("arxiv_id", pa.string()), ("blocks", pa.list_(pa.struct([("text", pa.string())])))])
Told = tuple[str, int, int]


def batch(*rows: Told) -> pa.RecordBatch:
    """Rows of (id, revision, place), which say so."""
    made = [
        {"arxiv_id": page, "blocks": [{"text": f"{page} {revision} {place}"}], "revision": revision, "place": place}
        for page, revision, place in rows
    ]
    return pa.RecordBatch.from_pylist(made, with_order(SCHEMA))


def sort(folder: Path, *batches: pa.RecordBatch) -> tuple[list[str], list[tuple[str, int]]]:
    """The texts that come out, and the rows that gave way."""
    repeated: list[tuple[str, int]] = []
    given = list(newest_first(batches, folder, SCHEMA, lambda page, revision: repeated.append((page, revision))))
    assert all(each.schema.equals(SCHEMA) for each in given)
    found = [row["blocks"][0]["text"] for each in given for row in each.to_pylist()]
    assert not folder.exists()
    return found, repeated


@pytest.mark.parametrize("run_bytes", [1, 1_000, 10**9])
def test_the_newest_of_each_page_comes_in_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run_bytes: int
) -> None:
    monkeypatch.setattr(sorting, "RUN_BYTES", run_bytes)
    rows = [(f"enwiki:{number}", revision, number) for number in range(1, 150) for revision in (2, 10)]
    random.Random(3).shuffle(rows)
    found, repeated = sort(tmp_path / "runs", *(batch(*rows[start : start + 7]) for start in range(0, len(rows), 7)))
    assert found == [f"{page} 10 {place}" for page, revision, place in sorted(rows) if revision == 10]
    assert sorted(repeated) == sorted((page, 2) for page, revision, _ in rows if revision == 2)


def test_of_one_revision_twice_the_first_is_kept(tmp_path: Path) -> None:
    found, repeated = sort(tmp_path / "runs", batch(("enwiki:1", 5, 9)), batch(("enwiki:1", 5, 4)))
    assert (found, repeated) == (["enwiki:1 5 4"], [("enwiki:1", 5)])


def test_nothing_in_is_nothing_out(tmp_path: Path) -> None:
    assert sort(tmp_path / "runs", batch()) == ([], [])


def test_the_folder_is_gone_when_reading_ends_early(tmp_path: Path) -> None:
    def fail() -> None:
        rows = newest_first([batch(("enwiki:1", 5, 9))], tmp_path / "runs", SCHEMA, lambda page, revision: None)
        next(rows)
        assert (tmp_path / "runs").exists()
        raise OSError("the disk is full")

    with pytest.raises(OSError, match="full"):
        fail()
    assert list(tmp_path.iterdir()) == []
