"""Rows of some tasks of a month."""

import pytest

from pipeline import tables
from pipeline.errors import PermanentFailure
from pipeline.report.frames import rows_by
from pipeline.storage.data_root import DataRoot
from tests.month_tables import write_table

MONTH = "2024-03"


def numbers(root, *ids):
    rows = rows_by(root, MONTH, tables.KEY_ELEMENTS, "task_id", ids)
    return {name: [row["number"] for row in rows[name]] for name in ids}


@pytest.mark.parametrize(
    "ids", [["a", "a", "c", "d"], ["c", "a", "d", "a"], ["a"] * 2500 + ["c"] * 2000]
)
def test_each_task_has_its_own_rows_in_whatever_order(tmp_path, ids):
    root = DataRoot(tmp_path)
    rows = [{"task_id": name, "number": place, "model": "m"} for place, name in enumerate(ids)]
    write_table(root, tables.KEY_ELEMENTS, MONTH, rows)
    for asked in ("a", "c", "z"), ("d",):
        assert numbers(root, *asked) == {
            name: [place for place, other in enumerate(ids) if other == name] for name in asked
        }


def test_a_table_that_is_not_there_has_no_rows(tmp_path):
    assert numbers(DataRoot(tmp_path), "a") == {"a": []}


def test_a_damaged_table_is_named(tmp_path):
    root = DataRoot(tmp_path)
    write_table(root, tables.KEY_ELEMENTS, MONTH, [{"task_id": "a", "number": 1, "model": "m"}])
    root.file(tables.KEY_ELEMENTS, MONTH).write_bytes(b"torn")
    with pytest.raises(PermanentFailure, match="key_elements"):
        numbers(root, "a")
