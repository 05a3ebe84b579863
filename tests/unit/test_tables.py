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
from pipeline.storage.provenance import Provenance, read_provenance
from pipeline.storage.read_cache import read_cache
from pipeline.storage.writing import MonthWriter
from pipeline.tables import EMBEDDINGS, LEDGER, ROWS_PER_GROUP, TABLES, Table

PROVENANCE = Provenance("ledger", "2024-03", 1, 1, "0", "f", {"a": 1}, {"b": "c"})


def entry(number):
    return {"subject": str(number), "stage": "papers", "reason": "withdrawn", "detail": ""}


def write(root, count, provenance=PROVENANCE, table=LEDGER):
    with MonthWriter(table, root.file(table, "2024-03")) as writer:
        for number in range(count):
            writer.add(entry(number))
        return writer.commit(provenance)


@pytest.mark.parametrize("count", [0, 1, ROWS_PER_GROUP, ROWS_PER_GROUP + 1])
def test_what_is_written_is_read(tmp_path, count):
    root = DataRoot(tmp_path)
    written = write(root, count)
    assert [row["subject"] for row in root.iterate(LEDGER, "2024-03")] == [
        str(number) for number in range(count)
    ]
    assert root.rows(LEDGER, "2024-03") == [entry(number) for number in range(count)]
    assert written.rows == count
    assert root.provenance(LEDGER, "2024-03") == written


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
    expected, file = tmp_path / "expected.parquet", tmp_path / "batched.parquet"
    with MonthWriter(NESTED, expected) as writer:
        for number in range(57):
            writer.add(nested_row(number))
        writer.commit(PROVENANCE)
    rows = iter([nested_row(number) for number in range(57)])
    with MonthWriter(NESTED, file) as writer:
        for turn, size in enumerate(sizes):
            part = list(itertools.islice(rows, size))
            if as_rows and turn % 2:
                for row in part:
                    writer.add(row)
            else:
                writer.add_batch(pa.RecordBatch.from_pylist(part, schema=NESTED.schema))
        written = writer.commit(PROVENANCE)
    assert written.rows == 57
    assert file.read_bytes() == expected.read_bytes()
    assert pq.read_metadata(file).num_row_groups == 6


def test_smaller_row_groups_hold_the_same_rows_with_the_same_digest(tmp_path):
    files, digests = (tmp_path / "whole.parquet", tmp_path / "parts.parquet"), set()
    for table, file in zip((NESTED, replace(NESTED, rows_per_read=4)), files, strict=True):
        with MonthWriter(table, file) as writer:
            for number in range(25):
                writer.add(nested_row(number))
            digests.add(writer.commit(PROVENANCE).rows_sha256)
    assert len(digests) == 1
    assert pq.read_metadata(files[1]).num_row_groups == 8
    assert pq.read_table(files[0]).equals(pq.read_table(files[1]))


def test_a_batch_of_other_columns_is_refused(tmp_path):
    with (
        MonthWriter(LEDGER, tmp_path / "x.parquet") as writer,
        pytest.raises(ValueError, match="other columns"),
    ):
        writer.add_batch(pa.RecordBatch.from_pydict({"colour": ["blue"]}))


def test_the_digest_is_of_the_rows_alone(tmp_path):
    one = write(DataRoot(tmp_path / "one"), 5)
    by_another = replace(
        PROVENANCE, stage_version=2, code_version="9", fingerprint="g", settings={}, inputs={}
    )
    other = write(DataRoot(tmp_path / "two"), 5, by_another)
    assert one.rows_sha256 == other.rows_sha256
    assert write(DataRoot(tmp_path / "three"), 6).rows_sha256 != one.rows_sha256


def test_a_writer_that_fails_leaves_what_was_there(tmp_path):
    root = DataRoot(tmp_path)
    write(root, 2)
    with (
        pytest.raises(KeyError, match="colour"),
        MonthWriter(LEDGER, root.file(LEDGER, "2024-03")) as writer,
    ):
        writer.add({"colour": "blue"})
    assert len(root.rows(LEDGER, "2024-03")) == 2
    folder = root.file(LEDGER, "2024-03").parent
    assert [file.name for file in folder.iterdir()] == ["2024-03.parquet"]


def test_what_a_killed_writer_left_is_swept(tmp_path):
    orphan = DataRoot(tmp_path).file(LEDGER, "2024-03").with_name(".2024-03.parquet.999.tmp")
    orphan.parent.mkdir(parents=True)
    orphan.write_bytes(b"half")
    write(DataRoot(tmp_path), 1)
    assert not orphan.exists()


def test_an_absent_month_names_the_command_that_makes_it(tmp_path):
    with pytest.raises(MissingInput, match="citeloom run --months 2024-03 --until ledger"):
        DataRoot(tmp_path).read(LEDGER, "2024-03")


def test_another_schema_version_is_refused(tmp_path):
    write(DataRoot(tmp_path), 1, replace(PROVENANCE, schema_version=7))
    with pytest.raises(PermanentFailure, match="schema version 7"):
        DataRoot(tmp_path).read(LEDGER, "2024-03")


@pytest.mark.parametrize("content", [b"", b"not parquet", b"PAR1" + b"\0" * 60 + b"PAR1"])
def test_a_file_that_is_no_table_is_refused_by_name(tmp_path, content):
    file = DataRoot(tmp_path).file(LEDGER, "2024-03")
    file.parent.mkdir(parents=True)
    file.write_bytes(content)
    with pytest.raises(PermanentFailure, match=r"2024-03\.parquet"):
        DataRoot(tmp_path).read(LEDGER, "2024-03")
    pq.write_table(pa.table({"a": [1]}), file)
    with pytest.raises(PermanentFailure, match="not a table that citeloom wrote"):
        read_provenance(file)


@pytest.mark.parametrize("make", [Path.mkdir, os.mkfifo])
def test_a_folder_or_pipe_in_a_table_s_place_is_refused_at_once(tmp_path, make):
    file = DataRoot(tmp_path).file(LEDGER, "2024-03")
    file.parent.mkdir(parents=True)
    make(file)
    with pytest.raises(PermanentFailure, match="not a table that citeloom wrote"):
        DataRoot(tmp_path).read(LEDGER, "2024-03")
    with pytest.raises(PermanentFailure, match="not a table that citeloom wrote"):
        read_provenance(file)


def test_every_table_is_listed():
    defined = {table.name for table in vars(tables).values() if isinstance(table, Table)}
    assert defined == set(TABLES)


def test_every_column_of_every_table_is_described():
    assert all(text for table in TABLES.values() for _, _, text in table.describe_columns())


@pytest.mark.parametrize("way", ["read", "iterate"])
def test_damaged_pages_under_a_whole_footer_are_named(tmp_path, way):
    root = DataRoot(tmp_path)
    write(root, 50)
    file = root.file(LEDGER, "2024-03")
    content = bytearray(file.read_bytes())
    content[4:200] = b"\xff" * 196
    file.write_bytes(content)
    with pytest.raises(
        PermanentFailure, match=r"2024-03\.parquet is damaged.*--select ledger --force"
    ):
        list(root.iterate(LEDGER, "2024-03") if way == "iterate" else root.rows(LEDGER, "2024-03"))


def test_a_changed_bit_of_the_rows_is_noticed_by_whoever_reads_them(tmp_path):
    root = DataRoot(tmp_path)
    write(root, 500)
    file = root.file(LEDGER, "2024-03")
    whole, rows = file.read_bytes(), root.read(LEDGER, "2024-03")
    pages = len(whole) - int.from_bytes(whole[-8:-4], "little") - 8
    noticed = 0
    for place in range(4, pages, max(pages // 100, 1)):
        file.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        try:
            assert root.read(LEDGER, "2024-03").equals(rows)
        except PermanentFailure:
            noticed += 1
    assert noticed > 50


@pytest.mark.parametrize("table", [LEDGER, tables.HUMAN_RATINGS], ids=lambda table: table.name)
def test_rows_that_are_not_those_that_were_written_are_named(tmp_path, table):
    root = DataRoot(tmp_path)
    row = dict.fromkeys(table.schema.names)
    file = root.file(table, "2024-03")
    with MonthWriter(table, file) as writer:
        writer.add(row)
        writer.commit(replace(PROVENANCE, table=table.name, schema_version=table.version))
    facts = tmp_path / "facts"
    with read_cache(facts):  # which keeps what was compared
        root.check_rows(table, "2024-03")
    changed = pa.Table.from_pylist([row, row], table.schema)
    with pq.ParquetWriter(file.with_name("other"), table.schema) as other:
        other.write_table(changed)
        other.add_key_value_metadata(pq.read_metadata(file).metadata)
    file.with_name("other").replace(file)
    way_out = "--select ledger --force" if table == LEDGER else "import the sheets again"
    failure = f"not those that were written.*{way_out}"
    with read_cache(facts), pytest.raises(PermanentFailure, match=failure):
        root.check_rows(table, "2024-03")
    root.check_rows(replace(table, version=table.version + 1), "2024-03")


def test_texts_have_a_dictionary_and_vectors_none(tmp_path):
    """Down to the innermost columns, as Parquet names them."""
    row = {
        "passage_id": "p",
        "dense": [0.5, 0.25],
        "sparse_ids": [1],
        "sparse_weights": [0.5],
        "colbert": [[0.5]],
    }
    file = tmp_path / "2024-03.parquet"
    with MonthWriter(EMBEDDINGS, file) as writer:
        writer.add(row)
        writer.commit(PROVENANCE)
    group = pq.read_metadata(file).row_group(0)
    columns = [group.column(number) for number in range(group.num_columns)]
    named = {
        column.path_in_schema for column in columns if column.dictionary_page_offset is not None
    }
    assert {"passage_id", "sparse_ids.list.element"} <= named
    assert not named & {
        "dense.list.element",
        "sparse_weights.list.element",
        "colbert.list.element.list.element",
    }


def test_reading_a_month_by_batches_does_not_hold_the_month(tmp_path):
    """It did, at 400 MB for a month of 400 MB, as long as pyarrow read ahead."""
    root, random = DataRoot(tmp_path), np.random.default_rng(0)
    with MonthWriter(EMBEDDINGS, root.file(EMBEDDINGS, "2024-03")) as writer:
        for _ in range(20):
            vectors = list(
                random.standard_normal((EMBEDDINGS.rows_per_group, 512)).astype(np.float16)
            )
            nothing = {
                name: pa.nulls(len(vectors), EMBEDDINGS.schema.field(name).type)
                for name in EMBEDDINGS.schema.names
            }
            columns = nothing | {"dense": pa.array(vectors, EMBEDDINGS.schema.field("dense").type)}
            writer.add_batch(
                pa.RecordBatch.from_arrays([*columns.values()], schema=EMBEDDINGS.schema)
            )
        writer.commit(PROVENANCE)
    before = pa.total_allocated_bytes()
    held = max(pa.total_allocated_bytes() - before for _ in root.batches(EMBEDDINGS, "2024-03"))
    assert held < root.file(EMBEDDINGS, "2024-03").stat().st_size / 2
