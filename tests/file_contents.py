"""What the files of a folder hold, unpacked: for tests that look for something in all that a run
leaves behind.

SQLite comes value by value, Parquet column by column, zips member by member, and whatever of all
these is zlib, gzip or
Zstandard comes once more as what it packs. Not unpacked: the LZ4 blocks of Qdrant Edge's payloads,
in which a text that does not repeat stands as it is.
"""

import gzip
import io
import sqlite3
import tempfile
import zipfile
import zlib
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

# Below a file's own bytes: a database's value that is zlib, or a member of a zip that is gzip.
_DEEPEST = 3


def contents(folder):
    """(place, bytes) of every file below a folder: its name, itself, and what it holds."""
    for file in sorted(folder.rglob("*")):
        if file.is_file() and not file.is_symlink():
            place = str(file.relative_to(folder))
            yield place, file.name.encode()
            for inside, content in _of_file(file):
                yield f"{place}{inside}", content


def _of_file(file):
    content = file.read_bytes()
    yield "", content
    if content.startswith(b"SQLite format 3\0"):
        yield from _of_database(file)
    elif content.startswith(b"PAR1") and content[4:].endswith(b"PAR1"):
        yield from _of_table(content)
    else:
        yield from (("", each) for each in unpacked(content))


def _of_database(file):
    """Every value with its table, from a copy: reading must not change what tests share."""
    with tempfile.TemporaryDirectory() as folder:
        for part in ("", "-wal", "-shm"):
            beside = file.with_name(file.name + part)
            if beside.exists():
                (Path(folder) / f"copy{part}").write_bytes(beside.read_bytes())
        connection = sqlite3.connect(Path(folder) / "copy")
        names = [
            row[0]
            for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        ]
        for name in names:
            for row in connection.execute(f'SELECT * FROM "{name}"'):
                values = [value.encode() if isinstance(value, str) else value for value in row]
                for value in values:
                    if isinstance(value, bytes):
                        yield from ((f": {name}", each) for each in (value, *unpacked(value)))
        connection.close()


def _of_table(content):
    """The file's own notes, and the texts of each column as one; vectors hold none."""
    with pq.ParquetFile(io.BytesIO(content)) as table:
        yield from ((": metadata", value) for value in (table.schema_arrow.metadata or {}).values())
        for column in table.schema_arrow:
            if "string" in str(column.type) or "binary" in str(column.type):
                yield (
                    f": {column.name}",
                    "\n".join(map(str, table.read([column.name])[0].to_pylist())).encode(),
                )


def unpacked(content, depth=0):
    """What the bytes pack, and what that packs."""
    for made in _once(content) if depth < _DEEPEST else ():
        yield made
        yield from unpacked(made, depth + 1)


def _once(content):
    if content.startswith(b"PK\3\4"):
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            yield from (archive.read(name) for name in archive.namelist())
    elif content.startswith(b"\x1f\x8b"):
        yield gzip.decompress(content)
    elif content.startswith(b"\x28\xb5\x2f\xfd"):
        yield pa.CompressedInputStream(io.BytesIO(content), "zstd").read()
    elif content.startswith(b"\x78"):
        try:
            yield zlib.decompress(content)
        except zlib.error:
            return
