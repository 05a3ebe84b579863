"""Tables: whole or absent, with what made them."""

import itertools
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipeline import tables
from pipeline.errors import MissingInput, PermanentFailure
from pipeline.storage.data_root import DataRoot
from pipeline.storage.provenance import read_provenance
from pipeline.storage.read_cache import read_cache
from pipeline.storage.writing import MonthWriter
from pipeline.tables import EMBEDDINGS, LEDGER, ROWS_PER_GROUP, TABLES, Table
from tests.month_tables import write_table

MONTH = "2024-03"


def entries(count):
    """Rows of a ledger."""
    return [
        {"subject": str(number), "stage": "papers", "reason": "withdrawn", "detail": ""}
        for number in range(count)
    ]


def write(folder, count, **about):
    """A data root with a month of a ledger."""
    root = DataRoot(folder)
    write_table(root, LEDGER, MONTH, entries(count), **about)
    return root


@pytest.mark.parametrize("count", [0, 1, ROWS_PER_GROUP, ROWS_PER_GROUP + 1])
def test_what_is_written_is_read(tmp_path, count):
    root = write(tmp_path, count)
    assert [row["subject"] for row in root.iterate(LEDGER, MONTH)] == [
        str(number) for number in range(count)
    ]
    assert root.rows(LEDGER, MONTH) == entries(count)
    assert root.provenance(LEDGER, MONTH).rows == count


PART = pa.struct([("name", pa.string()), ("number", pa.int32()), ("all", pa.list_(pa.int64()))])
NESTED = Table(
    "nested",
    "one row of every kind of column",
    pa.schema(
        [
            ("word", pa.string()),
            ("words", pa.list_(pa.string())),
            ("parts", pa.list_(PART)),
            ("counts", pa.map_(pa.string(), pa.int64())),
            ("half", pa.float16()),
            ("flag", pa.bool_()),
        ]
    ),
    rows_per_group=10,
)


def nested_row(number):
    some = number % 3
    return {
        "word": None if some == 1 else f"w{number}",
        "words": None if some == 2 else ["a"] * (number % 5),
        "parts": [{"name": None, "number": number, "all": [1, None]}] * some,
        "counts": [("seen", number)] * some,
        "half": None if some else np.float16(number / 7),
        "flag": None if number % 4 == 0 else number % 2 == 0,
    }


@pytest.mark.parametrize("sizes", [[57], [1] * 57, [10] * 5 + [7], [3, 20, 0, 33, 1]])
@pytest.mark.parametrize("as_rows", [False, True])
def test_rows_give_the_same_bytes_in_whatever_batches_they_come(tmp_path, sizes, as_rows):
    root, file = DataRoot(tmp_path), tmp_path / "batched.parquet"
    write_table(root, NESTED, MONTH, map(nested_row, range(57)))
    written = root.provenance(NESTED, MONTH)
    rows = map(nested_row, range(57))
    with MonthWriter(NESTED, file) as writer:
        for turn, size in enumerate(sizes):
            part = list(itertools.islice(rows, size))
            if as_rows and turn % 2:
                for row in part:
                    writer.add(row)
            else:
                writer.add_batch(pa.RecordBatch.from_pylist(part, schema=NESTED.schema))
        assert writer.commit(written) == written
    assert written.rows == 57
    assert file.read_bytes() == root.file(NESTED, MONTH).read_bytes()
    assert pq.read_metadata(file).num_row_groups == 6


def test_a_batch_of_other_columns_is_refused(tmp_path):
    with (
        MonthWriter(LEDGER, tmp_path / "x.parquet") as writer,
        pytest.raises(ValueError, match="other columns"),
    ):
        writer.add_batch(pa.RecordBatch.from_pydict({"colour": ["blue"]}))


def test_the_digest_is_of_the_rows_alone(tmp_path):
    made = {"stage_version": 2, "code_version": "9", "fingerprint": "g", "inputs": {"b": "c"}}
    roots = (
        write(tmp_path / "one", 5),
        write(tmp_path / "two", 5, settings={"a": 1}, **made),
        write(tmp_path / "three", 6),
    )
    one, two, three = (root.provenance(LEDGER, MONTH).rows_sha256 for root in roots)
    assert one == two != three


def test_what_a_killed_writer_left_is_swept(tmp_path):
    orphan = DataRoot(tmp_path).file(LEDGER, MONTH).with_name(".2024-03.parquet.999.tmp")
    orphan.parent.mkdir(parents=True)
    orphan.write_bytes(b"half")
    write(tmp_path, 1)
    assert not orphan.exists()


def test_an_absent_month_names_the_command_that_makes_it(tmp_path):
    with pytest.raises(MissingInput, match="citeloom run --months 2024-03 --until ledger"):
        DataRoot(tmp_path).read(LEDGER, MONTH)


def test_another_schema_version_is_refused(tmp_path):
    with pytest.raises(PermanentFailure, match="schema version 7"):
        write(tmp_path, 1, schema_version=7).read(LEDGER, MONTH)


@pytest.mark.parametrize(
    "make",
    [
        lambda file: file.write_bytes(b""),
        lambda file: file.write_bytes(b"not parquet"),
        lambda file: file.write_bytes(b"PAR1" + b"\0" * 60 + b"PAR1"),
        lambda file: pq.write_table(pa.table({"a": [1]}), file),
        Path.mkdir,
        os.mkfifo,
    ],
)
def test_what_is_no_table_is_refused_by_name_and_at_once(tmp_path, make):
    root = DataRoot(tmp_path)
    file = root.file(LEDGER, MONTH)
    file.parent.mkdir()
    make(file)
    for read in (lambda: root.read(LEDGER, MONTH), lambda: read_provenance(file)):
        with pytest.raises(
            PermanentFailure, match=r"2024-03\.parquet is not a table that citeloom"
        ):
            read()


def test_every_table_is_listed():
    defined = {table.name for table in vars(tables).values() if isinstance(table, Table)}
    assert defined == set(TABLES)


def test_every_column_of_every_table_is_described():
    assert all(text for table in TABLES.values() for _, _, text in table.describe_columns())


def test_a_changed_bit_of_the_rows_is_noticed_by_whoever_reads_them(tmp_path):
    root = write(tmp_path, 500)
    file = root.file(LEDGER, MONTH)
    whole, rows = file.read_bytes(), root.read(LEDGER, MONTH)
    pages = len(whole) - int.from_bytes(whole[-8:-4], "little") - 8
    noticed = []
    for place in range(4, pages, max(pages // 100, 1)):
        file.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        try:
            assert root.read(LEDGER, MONTH).equals(rows)
        except PermanentFailure as error:
            noticed.append("--select ledger --force" in str(error))
    assert all(noticed)
    assert len(noticed) > 50


@pytest.mark.parametrize("table", [LEDGER, tables.HUMAN_RATINGS], ids=lambda table: table.name)
def test_rows_that_are_not_those_that_were_written_are_named(tmp_path, table):
    root = DataRoot(tmp_path)
    row = dict.fromkeys(table.schema.names)
    file = root.file(table, MONTH)
    write_table(root, table, MONTH, [row])
    facts = tmp_path / "facts"
    with read_cache(facts):  # which keeps what was compared
        root.check_rows(table, MONTH)
    changed = pa.Table.from_pylist([row, row], table.schema)
    with pq.ParquetWriter(file.with_name("other"), table.schema) as other:
        other.write_table(changed)
        other.add_key_value_metadata(pq.read_metadata(file).metadata)
    file.with_name("other").replace(file)
    way_out = "--select ledger --force" if table == LEDGER else "import the sheets again"
    failure = f"not those that were written.*{way_out}"
    with read_cache(facts), pytest.raises(PermanentFailure, match=failure):
        root.check_rows(table, MONTH)
    root.check_rows(replace(table, version=table.version + 1), MONTH)


def test_reading_a_month_by_batches_does_not_hold_the_month(tmp_path):
    """It did, at 400 MB for a month of 400 MB, as long as pyarrow read ahead."""
    root, random = DataRoot(tmp_path), np.random.default_rng(0)
    vectors = random.standard_normal((20 * EMBEDDINGS.rows_per_group, 512)).astype(np.float16)
    write_table(root, EMBEDDINGS, MONTH, ({"dense": vector} for vector in vectors))
    before = pa.total_allocated_bytes()
    held = max(pa.total_allocated_bytes() - before for _ in root.batches(EMBEDDINGS, MONTH))
    assert held < root.file(EMBEDDINGS, MONTH).stat().st_size / 2
