"""Zips that lie or break, each with what is to come of it."""

import io
import struct
import zipfile
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import pytest

from pipeline.corpus.dump.member import LARGEST_PAGE
from tests.unit.corpus.building import write_zip

GOOD = {
    f"error/2403/2403.0000{number}.html": f"<html>{number}</html>".encode() * 500
    for number in range(1, 6)
}
FIRST, SECOND, THIRD = list(GOOD)[:3]
_ENTRY = struct.Struct("<4s6H3L5H2L")
_END = struct.Struct("<4s4H2LH")


@dataclass
class Hostile:
    """How to write a zip, and the ledger's reason for each name that is not to be had.

    `broken` is what the message about the whole zip says, where none of it can be used.
    """

    write: Callable[[Path], object]
    lost: Mapping[str, str]
    broken: str = ""
    read: Sequence[str] = tuple(GOOD)


def change_entry(file, name, at, form, *values):
    """Overwrite a field of a member's entry in the directory, at a place of the entry."""
    content = bytearray(file.read_bytes())
    struct.pack_into(form, content, content.rindex(name.encode()) - _ENTRY.size + at, *values)
    file.write_bytes(content)


def change_header(file, name, at, form, *values):
    """Overwrite a field of a member's local header."""
    content = bytearray(file.read_bytes())
    struct.pack_into(form, content, content.index(name.encode()) - 30 + at, *values)
    file.write_bytes(content)


def _with_bomb(states, holds):
    def write(file):
        write_zip(file, {**GOOD, FIRST: bytes(holds)})
        change_entry(file, FIRST, 24, "<L", states)

    return write


def _with_field(at, form, *values):
    return lambda file: change_entry(write_zip(file, GOOD), FIRST, at, form, *values)


def _with_flags(flags):
    return lambda file: change_header(write_zip(file, GOOD), FIRST, 6, "<H", flags)


def _with_method(method):
    return lambda file: change_header(write_zip(file, GOOD), FIRST, 8, "<H", method)


def _spanning(file):
    """The first entry claims the bytes of all pages."""
    start = write_zip(file, GOOD).read_bytes().index(b"PK\1\2")
    change_entry(file, FIRST, 20, "<L", start - 30 - len(FIRST))


def _kernel(page, names):
    """One page's bytes under many names: all entries lead to one place (D. Fifield, "A better zip
    bomb", 2019).
    """

    def write(file):
        packed, count = _deflate(page), len(names)
        local = _local(FIRST, packed, page) + packed
        entries = b"".join(_entry(name, packed, page, 0) for name in names)
        file.write_bytes(
            local + entries + _END.pack(b"PK\5\6", 0, 0, count, count, len(entries), len(local), 0)
        )

    return write


def _names(count):
    return [f"error/2403/2403.{number:05d}.html" for number in range(1, count + 1)]


def _deflate(page):
    packer = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS)
    return packer.compress(page) + packer.flush()


@lru_cache(maxsize=1)
def _checksum(page):
    return zlib.crc32(page)


def _local(name, packed, page):
    sizes = (_checksum(page), len(packed), len(page), len(name), 0)
    return struct.pack("<4s5H3L2H", b"PK\3\4", 20, 0, 8, 0, 0, *sizes) + name.encode()


def _entry(name, packed, page, offset):
    sizes = (_checksum(page), len(packed), len(page), len(name), 0, 0, 0, 0, 0, offset)
    return _ENTRY.pack(b"PK\1\2", 20, 20, 0, 8, 0, 0, *sizes) + name.encode()


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
    with zipfile.ZipFile(pipe, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, page in GOOD.items():
            archive.writestr(name, page)
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
        content = write_zip(file, GOOD).read_bytes()
        named, end = content.rindex(FIRST.encode()), content.rindex(b"PK\5\6")
        entry = bytearray(content[named - _ENTRY.size : named])
        struct.pack_into("<H", entry, 30, len(extra))
        for at in full:
            struct.pack_into("<L", entry, at, 0xFFFFFFFF)
        closing = bytearray(content[end:])
        struct.pack_into("<L", closing, 12, struct.unpack_from("<L", closing, 12)[0] + len(extra))
        after = named + len(FIRST)
        parts = (
            content[: named - _ENTRY.size],
            entry,
            content[named:after],
            extra,
            content[after:end],
            closing,
        )
        file.write_bytes(b"".join(parts))

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
        closing = _END.pack(b"PK\5\6", 0, 0, 0xFFFF, 0xFFFF, 0xFFFFFFFF, 0xFFFFFFFF, 0)
        file.write_bytes(before + content[:end] + record + locator + closing)

    return write


def _with_comment(comment):
    def write(file):
        with zipfile.ZipFile(write_zip(file, GOOD), "a") as archive:
            archive.comment = comment

    return write


def _with_end_field(at, form, value):
    def write(file):
        content = bytearray(write_zip(file, GOOD).read_bytes())
        struct.pack_into(form, content, content.rindex(b"PK\5\6") + at, value)
        file.write_bytes(content)

    return write


def _changed(change):
    return lambda file: file.write_bytes(change(write_zip(file, GOOD).read_bytes()))


def _loses_first(write, reason="corrupt_member"):
    """The first page is lost for this reason, and all others are read."""
    return Hostile(write, {FIRST: reason}, read=_OTHERS)


def _adds_strays(*names):
    """Names that are no pages stand beside the good ones."""
    return Hostile(
        lambda file: write_zip(file, {**GOOD, **dict.fromkeys(names, b"<html>bad</html>")}),
        dict.fromkeys(names, "not_an_arxiv_page"),
    )


def _is_refused(write, why):
    """None of the zip can be used; the message says why."""
    return Hostile(write, {}, broken=why, read=())


def _is_whole(write):
    """Unusual, and read like any other."""
    return Hostile(write, {})


_OTHERS = tuple(GOOD)[1:]

HOSTILE = {
    "a page that unpacks to more than it states": _loses_first(_with_bomb(100_000, 300_000_000)),
    "a page above the limit": _loses_first(
        _with_bomb(LARGEST_PAGE + 1, LARGEST_PAGE + 1), "too_large"
    ),
    "a page at the limit": _is_whole(_with_bomb(LARGEST_PAGE, LARGEST_PAGE)),
    "a page that states more than its bytes can hold": _loses_first(
        _with_field(24, "<L", LARGEST_PAGE)
    ),
    "a page that states less than it unpacks to": _loses_first(_with_field(24, "<L", 0)),
    "a wrong checksum": _loses_first(_with_field(16, "<L", 1)),
    "an offset into another page": _loses_first(_with_field(42, "<L", 100)),
    "an offset past the file": _loses_first(_with_field(42, "<L", 0x7FFFFFFF)),
    "packed bytes past the file": _loses_first(_with_field(20, "<L", 0x7FFFFFFF)),
    "a page that claims the bytes of all": _loses_first(_spanning),
    # 190 KB that declare 107 GB.
    "largest_page_under_800_names": Hostile(
        lambda file: _kernel(bytes(LARGEST_PAGE), _names(800))(file),
        dict.fromkeys(_names(800)[1:], "corrupt_member"),
        read=_names(1),
    ),
    # More than have their local headers read.
    "one page's bytes under 1,200 names": Hostile(
        _kernel(GOOD[FIRST], _names(1_200)),
        dict.fromkeys(_names(1_200)[1:], "corrupt_member"),
        read=_names(1),
    ),
    "an encrypted page": _loses_first(_with_flags(0x1), "encrypted"),
    "a strongly encrypted page": _loses_first(_with_flags(0x40), "encrypted"),
    "a page packed by LZMA": _loses_first(_with_method(14), "unsupported_compression"),
    "a page packed by no method": _loses_first(_with_method(0xFFFF), "unsupported_compression"),
    "an absolute name": _adds_strays("/2403/2403.00009.html"),
    "a name that goes up": _adds_strays("../../2403/2403.00009.html"),
    "a name of Windows": _adds_strays("error\\2403\\2403.00009.html"),
    "digits of another script": _adds_strays("error/24\u0660\u0663/2403.00009.html"),
    "names of 65,000 characters": _adds_strays(
        *(f"error/2403/{letter * 65_000}.html" for letter in "abcdefgh")
    ),
    "a name that is not the UTF-8 it says": Hostile(
        _with_raw_name, {}, read=(*GOOD, "err\ufffd\ufffdr/2403/2403.00009.html")
    ),
    "one name twice": _is_whole(_with_duplicate),
    "sizes after the pages": _is_whole(_streamed),
    "an end record within the comment": _is_whole(_with_comment(b"PK\5\6" + bytes(18) + b"more")),
    "stored pages": _is_whole(lambda file: write_zip(file, GOOD, zipfile.ZIP_STORED)),
    "bytes before the zip": _is_whole(_changed(lambda content: b"#!/bin/sh\n" * 10 + content)),
    "bytes after the zip": _is_whole(_changed(lambda content: content + b"trailing")),
    "zip64 fields": _is_whole(_with_zip64_fields),
    "a zip64 field": _is_whole(
        _with_zip64_field(
            struct.pack(
                "<2H3Q",
                1,
                24,
                len(GOOD[FIRST]),
                len(zlib.compress(GOOD[FIRST], wbits=-zlib.MAX_WBITS)),
                0,
            ),
            full=(20, 24, 42),
        )
    ),
    "a zip64 record": _is_whole(_zip64()),
    "a zip64 record after other bytes": _is_whole(_zip64(before=b"#!/bin/sh\n" * 10)),
    **{
        f"a zip64 field {name}": _loses_first(_with_zip64_field(extra))
        for name, extra in {
            "past any file": struct.pack("<2HQ", 1, 8, 2**64 - 1),
            "longer than its room": struct.pack("<2HQ", 1, 0xFFF0, 0),
            "too short": struct.pack("<2HL", 1, 4, 0),
            "of another kind": struct.pack("<2HQ", 9, 8, 0),
            "that is missing": b"",
        }.items()
    },
    **{
        f"a zip64 record at {at}": _is_refused(_zip64(at, b"PKxx"), "its zip64 record is not where")
        for at in (10**6, 2**63, 2**64 - 1)
    },
    "a count that is too small": _is_refused(
        _with_end_field(10, "<H", 2), "names 2 entries and holds 5"
    ),
    "a directory longer than the file": _is_refused(
        _with_end_field(12, "<L", 0x7FFFFFFF), "its directory lies outside"
    ),
    "a directory that starts past the file": _is_refused(
        _with_end_field(16, "<L", 0x7FFFFFFF), "its directory lies outside"
    ),
    "a directory that is shorter than it is": _is_refused(
        _with_end_field(12, "<L", 100), "its directory ends early"
    ),
    "a directory with rubbish": _is_refused(
        _changed(lambda content: content.replace(b"PK\1\2", b"xxxx", 1)), "its directory ends early"
    ),
    "no end": _is_refused(_changed(lambda content: content[:-30]), "is no zip, or is cut off"),
    "its second half": _is_refused(
        _changed(lambda content: content[len(content) // 2 :]), "its directory"
    ),
    "zeros": _is_refused(lambda file: file.write_bytes(bytes(1_000_000)), "is no zip"),
}
