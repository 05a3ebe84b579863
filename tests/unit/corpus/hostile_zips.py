"""Zips that lie or break, each with what is to come of it: those of `hostile_zips.toml`, and more."""

import io
import struct
import tomllib
import zipfile
import zlib
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from pipeline.corpus.dump.member import LARGEST_PAGE
from tests.unit.corpus.building import write_zip

GOOD = {
    f"error/2403/2403.0000{number}.html": f"<html>{number}</html>".encode() * 500
    for number in range(1, 6)
}
FIRST = next(iter(GOOD))
# Place and form of the fields of each record.
_FIELDS = {
    "entry": {
        "checksum": (16, "<L"),
        "packed_size": (20, "<L"),
        "size": (24, "<L"),
        "offset": (42, "<L"),
    },
    "header": {"flags": (6, "<H"), "method": (8, "<H")},
    "end": {"count": (10, "<H"), "directory_size": (12, "<L"), "directory_start": (16, "<L")},
}
_ENTRY_BYTES, _HEADER_BYTES = 46, 30


@dataclass
class Hostile:
    """How to write a zip, and the ledger's reason for each name that is not to be had.

    `broken` is what the message about the whole zip says, where none of it can be used.
    """

    write: Callable[[Path], object]
    lost: Mapping[str, str]
    broken: str = ""
    read: Collection[str] = tuple(GOOD)


def _hostile(write, lost="", broken=""):
    """A zip whose first page is lost, of which nothing can be read, or that is read whole."""
    reasons = {FIRST: lost} if lost else {}
    return Hostile(write, reasons, broken, () if broken else GOOD.keys() - reasons)


def _of_table(
    holds=0, strays=(), lost="", broken="", before="", after="", comment="", cut=0, **records
):
    """A zip of `hostile_zips.toml`."""

    def write(file):
        first = {FIRST: bytes(holds)} if holds else {}
        write_zip(file, GOOD | first | dict.fromkeys(strays, b"<html>bad</html>"))
        with zipfile.ZipFile(file, "a") as archive:
            archive.comment = comment.encode()
        content = bytearray(file.read_bytes())
        starts = {
            "entry": content.rindex(FIRST.encode()) - _ENTRY_BYTES,
            "header": content.index(FIRST.encode()) - _HEADER_BYTES,
            "end": content.rindex(b"PK\5\6"),
        }
        for record, fields in records.items():
            for name, value in fields.items():
                at, form = _FIELDS[record][name]
                struct.pack_into(form, content, starts[record] + at, value)
        content = content[: len(content) - cut]
        file.write_bytes(before.encode() + content + after.encode())

    zipped = _hostile(write, lost, broken)
    zipped.lost |= dict.fromkeys(strays, "not_an_arxiv_page")
    return zipped


def _spanning(file):
    """The first entry claims the bytes of all pages."""
    start = write_zip(file, GOOD).read_bytes().index(b"PK\1\2")
    _of_table(entry={"packed_size": start - _HEADER_BYTES - len(FIRST)}).write(file)


def _names(count):
    return [f"error/2403/2403.{number:05d}.html" for number in range(1, count + 1)]


def _kernel(page, count):
    """One page's bytes under many names: all entries lead to one place (D. Fifield, "A better zip
    bomb", 2019).
    """

    def write(file):
        content = write_zip(file, {FIRST: page}).read_bytes()
        start, end = content.index(b"PK\1\2"), content.rindex(b"PK\5\6")
        entry, closing = content[start:end], bytearray(content[end:])
        entries = b"".join(entry.replace(FIRST.encode(), name.encode()) for name in names)
        struct.pack_into("<2HL", closing, 8, count, count, len(entries))
        file.write_bytes(content[:start] + entries + closing)

    names = _names(count)
    return Hostile(write, dict.fromkeys(names[1:], "corrupt_member"), read=names[:1])


def _with_raw_name(file):
    """A name that says it is UTF-8, and is not."""
    write_zip(file, {**GOOD, "errör/2403/2403.00009.html": b"<html>9</html>"})
    file.write_bytes(file.read_bytes().replace("errör".encode(), b"err\xff\xffr"))


def _with_duplicate(file):
    write_zip(file, GOOD)
    with (
        zipfile.ZipFile(file, "a", zipfile.ZIP_DEFLATED) as archive,
        pytest.warns(UserWarning, match="Duplicate"),
    ):
        archive.writestr(FIRST, b"<html>newer</html>")


class Pipe(io.BytesIO):
    """A file that cannot be sought: sizes and checksums follow the pages."""

    def tell(self):
        """Refuse, as a pipe does."""
        raise io.UnsupportedOperation


def _streamed(file):
    pipe = Pipe()
    write_zip(pipe, GOOD)
    file.write_bytes(pipe.getvalue())


def _with_zip64_fields(file):
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, page in GOOD.items():
            with archive.open(name, "w", force_zip64=True) as stream:
                stream.write(page)


def _with_zip64_field(extra, full=(42,)):
    """Some fields of the first entry, by default its offset, lie in `extra`, whatever that
    holds.
    """

    def write(file):
        content = bytearray(write_zip(file, GOOD).read_bytes())
        named, end = content.rindex(FIRST.encode()), content.rindex(b"PK\5\6")
        entry = named - _ENTRY_BYTES
        struct.pack_into("<H", content, entry + 30, len(extra))
        for at in full:
            struct.pack_into("<L", content, entry + at, 0xFFFFFFFF)
        (size,) = struct.unpack_from("<L", content, end + 12)
        struct.pack_into("<L", content, end + 12, size + len(extra))
        after = named + len(FIRST)
        file.write_bytes(content[:after] + extra + content[after:])

    return write


def _zip64(record_at=None, signature=b"PK\6\6", before=b""):
    """As a zip above 4 GB is written: the plain fields of the end full, the true ones in a zip64
    record.
    """

    def write(file):
        content = write_zip(file, GOOD).read_bytes()
        end = content.rindex(b"PK\5\6")
        size, start = struct.unpack_from("<2L", content, end + 12)
        count = len(GOOD)
        record = struct.pack("<4sQ2H2L4Q", signature, 44, 45, 45, 0, 0, count, count, size, start)
        locator = struct.pack("<4sLQL", b"PK\6\7", 0, end if record_at is None else record_at, 1)
        closing = struct.pack("<4s2H", b"PK\5\6", 0, 0) + b"\xff" * 12 + bytes(2)
        file.write_bytes(before + content[:end] + record + locator + closing)

    return write


def _changed(change):
    return lambda file: file.write_bytes(change(write_zip(file, GOOD).read_bytes()))


_PACKED_FIRST = zlib.compress(GOOD[FIRST], wbits=-zlib.MAX_WBITS)
_TABLES = tomllib.loads(Path(__file__).with_suffix(".toml").read_text())

HOSTILE = {
    **{name: _of_table(**table) for name, table in _TABLES.items()},
    "a page that claims the bytes of all": _hostile(_spanning, "corrupt_member"),
    # 130 KB that declare 107 GB.
    "the largest page under 800 names": _kernel(bytes(LARGEST_PAGE), 800),
    # More than have their local headers read.
    "one page's bytes under 1,200 names": _kernel(GOOD[FIRST], 1_200),
    "names of 65,000 characters": _of_table(
        strays=[f"error/2403/{letter * 65_000}.html" for letter in "abcdefgh"]
    ),
    "a name that is not the UTF-8 it says": Hostile(
        _with_raw_name, {}, read=(*GOOD, "err\ufffd\ufffdr/2403/2403.00009.html")
    ),
    "one name twice": _hostile(_with_duplicate),
    "sizes after the pages": _hostile(_streamed),
    "stored pages": _hostile(lambda file: write_zip(file, GOOD, zipfile.ZIP_STORED)),
    "zip64 fields": _hostile(_with_zip64_fields),
    "a zip64 field": _hostile(
        _with_zip64_field(
            struct.pack("<2H3Q", 1, 24, len(GOOD[FIRST]), len(_PACKED_FIRST), 0), full=(20, 24, 42)
        )
    ),
    "a zip64 record": _hostile(_zip64()),
    "a zip64 record after other bytes": _hostile(_zip64(before=b"#!/bin/sh\n" * 10)),
    **{
        f"a zip64 field {name}": _hostile(_with_zip64_field(extra), "corrupt_member")
        for name, extra in {
            "past any file": struct.pack("<2HQ", 1, 8, 2**64 - 1),
            "longer than its room": struct.pack("<2HQ", 1, 0xFFF0, 0),
            "too short": struct.pack("<2HL", 1, 4, 0),
            "of another kind": struct.pack("<2HQ", 9, 8, 0),
            "that is missing": b"",
        }.items()
    },
    **{
        f"a zip64 record at {at}": _hostile(
            _zip64(at, b"PKxx"), broken="its zip64 record is not where"
        )
        for at in (10**6, 2**63, 2**64 - 1)
    },
    "a directory with rubbish": _hostile(
        _changed(lambda content: content.replace(b"PK\1\2", b"xxxx", 1)),
        broken="its directory ends early",
    ),
    "its second half": _hostile(
        _changed(lambda content: content[len(content) // 2 :]), broken="its directory"
    ),
    "zeros": _hostile(lambda file: file.write_bytes(bytes(1_000_000)), broken="is no zip"),
}
