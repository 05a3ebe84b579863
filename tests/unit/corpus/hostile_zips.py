"""Zips that lie or break, each with what is to come of it."""

from __future__ import annotations

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


@dataclass(frozen=True, slots=True)
class Hostile:
    """How to write a zip, and the ledger's reason for each name that is not to be had.

    `broken` is what the message about the whole zip says, where none of it can be used.
    """

    write: Callable[[Path], object]
    lost: Mapping[str, str]
    broken: str = ""
    read: Sequence[str] = tuple(GOOD)


def change_entry(file: Path, name: str, at: int, form: str, *values: int) -> None:
    """Overwrite a field of a member's entry in the directory, at a place of the entry."""
    content = bytearray(file.read_bytes())
    struct.pack_into(form, content, content.rindex(name.encode()) - _ENTRY.size + at, *values)
    file.write_bytes(content)


def change_header(file: Path, name: str, at: int, form: str, *values: int) -> None:
    """Overwrite a field of a member's local header."""
    content = bytearray(file.read_bytes())
    struct.pack_into(form, content, content.index(name.encode()) - 30 + at, *values)
    file.write_bytes(content)


def _with_bomb(states: int, holds: int) -> Callable[[Path], None]:
    def write(file: Path) -> None:
        write_zip(file, {**GOOD, FIRST: bytes(holds)})
        change_entry(file, FIRST, 24, "<L", states)

    return write


def _with_field(at: int, form: str, *values: int) -> Callable[[Path], None]:
    return lambda file: change_entry(write_zip(file, GOOD), FIRST, at, form, *values)


def _with_flags(flags: int) -> Callable[[Path], None]:
    return lambda file: change_header(write_zip(file, GOOD), FIRST, 6, "<H", flags)


def _with_method(method: int) -> Callable[[Path], None]:
    return lambda file: change_header(write_zip(file, GOOD), FIRST, 8, "<H", method)


def _spanning(file: Path) -> None:
    """The first entry claims the bytes of all pages."""
    start = write_zip(file, GOOD).read_bytes().index(b"PK\1\2")
    change_entry(file, FIRST, 20, "<L", start - 30 - len(FIRST))


def _kernel(page: bytes, names: Sequence[str]) -> Callable[[Path], object]:
    """One page's bytes under many names: all entries lead to one place (D. Fifield, "A better zip
    bomb", 2019).
    """

    def write(file: Path) -> None:
        packed, count = _deflate(page), len(names)
        local = _local(FIRST, packed, page) + packed
        entries = b"".join(_entry(name, packed, page, 0) for name in names)
        file.write_bytes(
            local + entries + _END.pack(b"PK\5\6", 0, 0, count, count, len(entries), len(local), 0)
        )

    return write


def _names(count: int) -> list[str]:
    return [f"error/2403/2403.{number:05d}.html" for number in range(1, count + 1)]


def _deflate(page: bytes) -> bytes:
    packer = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS)
    return packer.compress(page) + packer.flush()


@lru_cache(maxsize=1)
def _checksum(page: bytes) -> int:
    return zlib.crc32(page)


def _local(name: str, packed: bytes, page: bytes) -> bytes:
    sizes = (_checksum(page), len(packed), len(page), len(name), 0)
    return struct.pack("<4s5H3L2H", b"PK\3\4", 20, 0, 8, 0, 0, *sizes) + name.encode()


def _entry(name: str, packed: bytes, page: bytes, offset: int) -> bytes:
    sizes = (_checksum(page), len(packed), len(page), len(name), 0, 0, 0, 0, 0, offset)
    return _ENTRY.pack(b"PK\1\2", 20, 20, 0, 8, 0, 0, *sizes) + name.encode()


def _with_names(*names: str) -> Callable[[Path], object]:
    return lambda file: write_zip(file, {**GOOD, **dict.fromkeys(names, b"<html>bad</html>")})


def _with_raw_name(file: Path) -> None:
    """A name that says it is UTF-8, and is not."""
    write_zip(file, {**GOOD, "errör/2403/2403.00009.html": b"<html>9</html>"})
    file.write_bytes(file.read_bytes().replace("errör".encode(), b"err\xff\xffr"))


def _with_duplicate(file: Path) -> None:
    write_zip(file, GOOD)
    with (
        zipfile.ZipFile(file, "a", zipfile.ZIP_DEFLATED) as archive,
        pytest.warns(UserWarning, match="Duplicate"),
    ):
        archive.writestr(FIRST, b"<html>newer</html>")


class Pipe(io.BytesIO):
    """A file that cannot be sought: sizes and checksums follow the pages."""

    def tell(self) -> int:
        """Refuse, as a pipe does."""
        raise io.UnsupportedOperation


def _streamed(file: Path) -> None:
    pipe = Pipe()
    with zipfile.ZipFile(pipe, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, page in GOOD.items():
            archive.writestr(name, page)
    file.write_bytes(pipe.getvalue())


def _with_zip64_fields(file: Path) -> None:
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, page in GOOD.items():
            with archive.open(name, "w", force_zip64=True) as stream:
                stream.write(page)


def _with_zip64_field(extra: bytes, full: Sequence[int] = (42,)) -> Callable[[Path], None]:
    """Some fields of the first entry, by default its offset, lie in `extra`, whatever that
    holds.
    """

    def write(file: Path) -> None:
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


def _zip64(
    record_at: int | None = None, signature: bytes = b"PK\6\6", before: bytes = b""
) -> Callable[[Path], None]:
    """As a zip above 4 GB is written: the plain fields of the end full, the true ones in a zip64
    record.
    """

    def write(file: Path) -> None:
        content = write_zip(file, GOOD).read_bytes()
        end = content.rindex(b"PK\5\6")
        size, start = struct.unpack_from("<2L", content, end + 12)
        count = len(GOOD)
        record = struct.pack("<4sQ2H2L4Q", signature, 44, 45, 45, 0, 0, count, count, size, start)
        locator = struct.pack("<4sLQL", b"PK\6\7", 0, end if record_at is None else record_at, 1)
        closing = _END.pack(b"PK\5\6", 0, 0, 0xFFFF, 0xFFFF, 0xFFFFFFFF, 0xFFFFFFFF, 0)
        file.write_bytes(before + content[:end] + record + locator + closing)

    return write


def _with_comment(comment: bytes) -> Callable[[Path], None]:
    def write(file: Path) -> None:
        with zipfile.ZipFile(write_zip(file, GOOD), "a") as archive:
            archive.comment = comment

    return write


def _with_end_field(at: int, form: str, value: int) -> Callable[[Path], None]:
    def write(file: Path) -> None:
        content = bytearray(write_zip(file, GOOD).read_bytes())
        struct.pack_into(form, content, content.rindex(b"PK\5\6") + at, value)
        file.write_bytes(content)

    return write


def _changed(change: Callable[[bytes], bytes]) -> Callable[[Path], object]:
    return lambda file: file.write_bytes(change(write_zip(file, GOOD).read_bytes()))


def _without(*names: str) -> tuple[str, ...]:
    return tuple(name for name in GOOD if name not in names)


_OTHERS = _without(FIRST)
_LONG = ["error/2403/" + letter * 65_000 + ".html" for letter in "abcdefgh"]

HOSTILE: Mapping[str, Hostile] = {
    "a page that unpacks to more than it states": Hostile(
        _with_bomb(100_000, 300_000_000), {FIRST: "corrupt_member"}, read=_OTHERS
    ),
    "a page above the limit": Hostile(
        _with_bomb(LARGEST_PAGE + 1, LARGEST_PAGE + 1), {FIRST: "too_large"}, read=_OTHERS
    ),
    "a page at the limit": Hostile(_with_bomb(LARGEST_PAGE, LARGEST_PAGE), {}),
    "a page that states more than its bytes can hold": Hostile(
        _with_field(24, "<L", LARGEST_PAGE), {FIRST: "corrupt_member"}, read=_OTHERS
    ),
    "a page that states less than it unpacks to": Hostile(
        _with_field(24, "<L", 0), {FIRST: "corrupt_member"}, read=_OTHERS
    ),
    "a wrong checksum": Hostile(_with_field(16, "<L", 1), {FIRST: "corrupt_member"}, read=_OTHERS),
    "an offset into another page": Hostile(
        _with_field(42, "<L", 100), {FIRST: "corrupt_member"}, read=_OTHERS
    ),
    "an offset past the file": Hostile(
        _with_field(42, "<L", 0x7FFFFFFF), {FIRST: "corrupt_member"}, read=_OTHERS
    ),
    "packed bytes past the file": Hostile(
        _with_field(20, "<L", 0x7FFFFFFF), {FIRST: "corrupt_member"}, read=_OTHERS
    ),
    "a page that claims the bytes of all": Hostile(
        _spanning, {FIRST: "corrupt_member"}, read=_OTHERS
    ),
    "one page's bytes under five names": Hostile(
        _kernel(GOOD[FIRST], list(GOOD)), dict.fromkeys(_OTHERS, "corrupt_member"), read=[FIRST]
    ),
    # 190 KB that declare 107 GB.
    "largest_page_under_800_names": Hostile(
        lambda file: _kernel(bytes(LARGEST_PAGE), _names(800))(file),
        dict.fromkeys(_names(800)[1:], "corrupt_member"),
        read=_names(1),
    ),
    "an encrypted page": Hostile(_with_flags(0x1), {FIRST: "encrypted"}, read=_OTHERS),
    "a strongly encrypted page": Hostile(_with_flags(0x40), {FIRST: "encrypted"}, read=_OTHERS),
    "a page packed by LZMA": Hostile(
        _with_method(14), {FIRST: "unsupported_compression"}, read=_OTHERS
    ),
    "a page packed by no method": Hostile(
        _with_method(0xFFFF), {FIRST: "unsupported_compression"}, read=_OTHERS
    ),
    "a local header with rubbish": Hostile(
        _with_field(42, "<L", 7), {FIRST: "corrupt_member"}, read=_OTHERS
    ),
    "an absolute name": Hostile(
        _with_names("/2403/2403.00009.html"), {"/2403/2403.00009.html": "not_an_arxiv_page"}
    ),
    "a name that goes up": Hostile(
        _with_names("../../2403/2403.00009.html"),
        {"../../2403/2403.00009.html": "not_an_arxiv_page"},
    ),
    "a name of Windows": Hostile(
        _with_names("error\\2403\\2403.00009.html"),
        {"error\\2403\\2403.00009.html": "not_an_arxiv_page"},
    ),
    "digits of another script": Hostile(
        _with_names("error/24\u0660\u0663/2403.00009.html"),
        {"error/24\u0660\u0663/2403.00009.html": "not_an_arxiv_page"},
    ),
    "names of 65,000 characters": Hostile(
        _with_names(*_LONG), dict.fromkeys(_LONG, "not_an_arxiv_page")
    ),
    "a name that is not the UTF-8 it says": Hostile(
        _with_raw_name, {}, read=(*GOOD, "err\ufffd\ufffdr/2403/2403.00009.html")
    ),
    "one name twice": Hostile(_with_duplicate, {}),
    "sizes after the pages": Hostile(_streamed, {}),
    "an end record within the comment": Hostile(_with_comment(b"PK\5\6" + bytes(18) + b"more"), {}),
    "stored pages": Hostile(lambda file: write_zip(file, GOOD, zipfile.ZIP_STORED), {}),
    "bytes before the zip": Hostile(_changed(lambda content: b"#!/bin/sh\n" * 10 + content), {}),
    "bytes after the zip": Hostile(_changed(lambda content: content + b"trailing"), {}),
    "zip64 fields": Hostile(_with_zip64_fields, {}),
    "a zip64 field": Hostile(
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
        ),
        {},
    ),
    "a zip64 record": Hostile(_zip64(), {}),
    "a zip64 record after other bytes": Hostile(_zip64(before=b"#!/bin/sh\n" * 10), {}),
    **{
        f"a zip64 field {name}": Hostile(
            _with_zip64_field(extra), {FIRST: "corrupt_member"}, read=_OTHERS
        )
        for name, extra in {
            "past any file": struct.pack("<2HQ", 1, 8, 2**64 - 1),
            "longer than its room": struct.pack("<2HQ", 1, 0xFFF0, 0),
            "too short": struct.pack("<2HL", 1, 4, 0),
            "of another kind": struct.pack("<2HQ", 9, 8, 0),
            "that is missing": b"",
        }.items()
    },
    **{
        f"a zip64 record at {at}": Hostile(
            _zip64(at, b"PKxx"), {}, broken="its zip64 record is not where", read=()
        )
        for at in (10**6, 2**63, 2**64 - 1)
    },
    "a count that is too small": Hostile(
        _with_end_field(10, "<H", 2), {}, broken="names 2 entries and holds 5", read=()
    ),
    "a directory longer than the file": Hostile(
        _with_end_field(12, "<L", 0x7FFFFFFF), {}, broken="its directory lies outside", read=()
    ),
    "a directory that starts past the file": Hostile(
        _with_end_field(16, "<L", 0x7FFFFFFF), {}, broken="its directory lies outside", read=()
    ),
    "a directory that is shorter than it is": Hostile(
        _with_end_field(12, "<L", 100), {}, broken="its directory ends early", read=()
    ),
    "a directory with rubbish": Hostile(
        _changed(lambda content: content.replace(b"PK\1\2", b"xxxx", 1)),
        {},
        broken="its directory ends early",
        read=(),
    ),
    "no end": Hostile(
        _changed(lambda content: content[:-30]), {}, broken="is no zip, or is cut off", read=()
    ),
    "its first half": Hostile(
        _changed(lambda content: content[: len(content) // 2]),
        {},
        broken="is no zip, or is cut off",
        read=(),
    ),
    "its second half": Hostile(
        _changed(lambda content: content[len(content) // 2 :]), {}, broken="its directory", read=()
    ),
    "zeros": Hostile(
        lambda file: file.write_bytes(bytes(1_000_000)), {}, broken="is no zip", read=()
    ),
}
