"""Rows of a table task by task."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipeline import tables
from pipeline.errors import PermanentFailure
from pipeline.report.rows_by_key import RowsByKey
from pipeline.storage.data_root import DataRoot
from tests.unit.evaluation.made_up import write_table

MONTH = "2024-03"


def written(folder: Path, ids: list[str]) -> DataRoot:
    root = DataRoot(folder)
    rows = [{"task_id": name, "number": place, "model": "m"} for place, name in enumerate(ids)]
    write_table(root, tables.KEY_ELEMENTS, MONTH, rows)
    return root


def numbers(grouped: RowsByKey, task_id: str) -> list[int]:
    return [row["number"] for row in grouped.of(task_id)]


@pytest.mark.parametrize(
    ("ids", "expected"),
    [
        (["a", "a", "c", "d"], [[0, 1], [], [2], [3], []]),
        (["c", "a", "c", "a"], [[1, 3], [], [0, 2], [], []]),
    ],
)
def test_each_task_has_its_own_rows_in_whatever_order(
    tmp_path: Path, ids: list[str], expected: list[list[int]]
) -> None:
    grouped = RowsByKey(written(tmp_path, ids), MONTH, tables.KEY_ELEMENTS)
    assert [numbers(grouped, name) for name in "abcde"] == expected


def test_more_rows_than_are_held_at_once_stay_together(tmp_path: Path) -> None:
    grouped = RowsByKey(written(tmp_path, ["a"] * 100 + ["b"]), MONTH, tables.KEY_ELEMENTS, ["task_id", "number"])
    assert numbers(grouped, "a") == list(range(100))
    assert numbers(grouped, "b") == [100]


def test_rows_go_by_another_key_where_one_is_named(tmp_path: Path) -> None:
    root = DataRoot(tmp_path)
    write_table(root, tables.QUESTIONS, MONTH, [{"question_id": name, "question": name} for name in ("b", "a")])
    grouped = RowsByKey(root, MONTH, tables.QUESTIONS, key="question_id")
    assert [[row["question"] for row in grouped.of(name)] for name in ("a", "b")] == [["a"], ["b"]]


def test_a_table_that_is_not_there_has_no_rows(tmp_path: Path) -> None:
    assert RowsByKey(DataRoot(tmp_path), MONTH, tables.KEY_ELEMENTS).of("a") == []


def test_a_damaged_table_is_named(tmp_path: Path) -> None:
    root = written(tmp_path, ["a"])
    root.file(tables.KEY_ELEMENTS, MONTH).write_bytes(b"torn")
    with pytest.raises(PermanentFailure, match="key_elements"):
        RowsByKey(root, MONTH, tables.KEY_ELEMENTS)
