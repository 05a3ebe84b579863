"""The dump's zips: what lies in them by month, and the bytes of one member read in place.

A zip's central directory is read once, whole, in one pass, and kept as it is on disk with the positions of each
month's entries: the largest zip names 1.3 M members (some 120 MB of directory) and is asked for 400 months. Layout:
https://pkware.cachefly.net/webdocs/casestudies/APPNOTE.TXT, sections 4.3.7 to 4.3.16. Not here: which members become
papers.
"""

from __future__ import annotations

import os
import re
import stat
import struct
import zlib
from array import array
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from types import TracebackType

from pipeline.corpus.identifiers import NotAPage, read_member_name
from pipeline.errors import MissingInput, SettingError
from pipeline.settings import SUBSETS, Settings

# The largest page of the 04.2024 set is below 100 MB; what claims more would only fill memory.
LARGEST_PAGE = 200 * 1024 * 1024
# No zip is that long; what says so lies, and would not fit a table's int64 or a file position once the base is added.
_BEYOND_ANY_ZIP = 1 << 62
_IN_ZIP64_FIELD = 0xFFFFFFFF

_END = struct.Struct("<4s4H2LH")
_END_LOCATOR_64 = struct.Struct("<4sLQL")
_END_64 = struct.Struct("<4sQ2H2L4Q")
_ENTRY = struct.Struct("<4s6H3L5H2L")
_LOCAL = struct.Struct("<4s5H3L2H")
_LONGEST_END = _END.size + 0xFFFF
_SUBSET_NAMES = (
    (re.compile(r"no[-_ ]?problems?", re.IGNORECASE), "no_problem"),
    (re.compile(r"warnings?", re.IGNORECASE), "warning"),
    (re.compile(r"errors?", re.IGNORECASE), "error"),
)


class MemberError(Exception):
    """A member that cannot be read. `reason` is one of the ledger's: encrypted, unsupported_compression, too_large,
    corrupt_member."""

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(f"{reason}: {detail}")
        self.reason, self.detail = reason, detail


@dataclass(frozen=True, slots=True)
class Member:
    """One page in a zip. `offset` is that of its local header; sizes are in bytes."""

    arxiv_id: str
    subset: str
    zip: str
    member: str
    offset: int
    bytes: int
    compressed_bytes: int
    crc32: int


@dataclass(frozen=True, slots=True)
class Stray:
    """An entry of a zip that is no readable page, and the month that it claims.

    `reason` is the ledger's: not_an_arxiv_page, or corrupt_member where the directory's entry of a page lies.
    """

    zip: str
    name: str
    reason: str
    detail: str
    month: str | None


@dataclass(frozen=True, slots=True)
class Directory:
    """A zip's central directory: its bytes, and where in them the entries of each month begin."""

    file: Path
    content: bytes
    base: int
    """Bytes before the zip proper: what a member's stated offset is short of."""
    places: Mapping[str, array[int]]
    strays: tuple[Stray, ...]

    def members(self, month: str) -> Iterator[Member]:
        """The members of a month, in the directory's order."""
        for place in self.places.get(month, ()):
            yield self._member(place)

    def _member(self, place: int) -> Member:
        fields = _ENTRY.unpack_from(self.content, place)
        name = _name(self.content, place, fields)
        compressed, size, offset = _sizes(self.content, place, fields)
        said = read_member_name(name)
        if isinstance(said, NotAPage):
            raise MissingInput(f"{self.file} has changed while it was read: run again")
        subset = _subset(said.folder or "") or _subset(self.file.stem)
        return Member(
            said.arxiv_id, subset or "", self.file.name, name, offset + self.base, size, compressed, fields[7]
        )


def list_zips(folder: Path) -> list[Path]:
    """The zips of the dump folder, by name; hidden files (a download under way) and folders are none.

    Raises SettingError where there is no such folder, it cannot be listed, or no zip is in it.
    """
    try:
        if not folder.is_dir():
            raise SettingError(
                f"CITELOOM_DUMP_DIR: there is no folder {folder}: set it to the folder of the ar5iv zips"
            )
        named = [file for file in folder.iterdir() if file.suffix.lower() == ".zip" and not file.name.startswith(".")]
        found = sorted(file for file in named if not file.is_dir())
    except OSError as error:
        raise SettingError(
            f"CITELOOM_DUMP_DIR: {folder} cannot be listed ({error.strerror}): let it be read, or set another folder"
        ) from error
    if not found:
        raise SettingError(f"CITELOOM_DUMP_DIR: no .zip file is in {folder}: set it to the folder of the ar5iv zips")
    return found


def months_in_dump(settings: Settings) -> list[str]:
    """Months `YYYY-MM` that have pages in the chosen subsets, oldest first.

    Raises SettingError as `list_zips` does and where there is not one page, MissingInput for a file that is no zip, an
    empty one, or one that cannot be read.
    """
    found = directories(settings)
    months = sorted({month for directory in found for month in directory.places})
    if not months:
        raise SettingError(_describe_no_page(settings, [stray for directory in found for stray in directory.strays]))
    return months


def _describe_no_page(settings: Settings, strays: list[Stray]) -> str:
    every = (read_directory(file) for file in list_zips(settings.dump_dir))
    others = sum(len(places) for directory in every for places in directory.places.values())
    example = next((f", for example {one.zip}:{one.name} ({one.detail})" for one in strays), "")
    return (
        f"CITELOOM_DUMP_DIR: no arXiv page is in the zips of {settings.dump_dir}: they hold {others:,} pages of "
        f"subsets that are not chosen, and {len(strays):,} names that are no page{example}; a page is "
        "<subset>/<yymm>/<id>.html, or <yymm>/<id>.html in a zip named after its subset; "
        f"CITELOOM_SUBSETS is {','.join(settings.subsets)}"
    )


def directories(settings: Settings) -> list[Directory]:
    """The central directories of the dump's zips. Raises as `months_in_dump` does."""
    chosen = frozenset(settings.subsets)
    return [_of_subsets(read_directory(file), chosen) for file in list_zips(settings.dump_dir)]


_cache: dict[Path, tuple[tuple[int, int], Directory]] = {}
_chosen: dict[tuple[Path, frozenset[str]], tuple[Directory, Directory]] = {}


def read_directory(file: Path) -> Directory:
    """A zip's central directory; from memory while the file's size and time are the same.

    Raises MissingInput where the file cannot be read, is no zip, is cut off, or holds nothing.
    """
    try:
        status = file.stat()
        if not stat.S_ISREG(status.st_mode):  # opening a pipe would wait for ever
            raise MissingInput(f"{file} is no regular file: put a zip there, or move it out of CITELOOM_DUMP_DIR")
        stamp = (status.st_size, status.st_mtime_ns)
        known = _cache.get(file)
        if known is None or known[0] != stamp:
            known = _cache[file] = (stamp, _read(file))
    except OSError as error:
        raise MissingInput(
            f"{file} cannot be read ({error.strerror}): put it in place and let it be read, or move it out of "
            "CITELOOM_DUMP_DIR"
        ) from error
    return known[1]


def _of_subsets(directory: Directory, chosen: frozenset[str]) -> Directory:
    """The directory with the members of the chosen subsets alone."""
    if chosen.issuperset(SUBSETS):
        return directory
    key = (directory.file, chosen)
    known = _chosen.get(key)
    if known is None or known[0] is not directory:
        places = {}
        for month, found in directory.places.items():
            kept = array("Q", (place for place in found if directory._member(place).subset in chosen))
            if kept:
                places[month] = kept
        of_chosen = Directory(directory.file, directory.content, directory.base, places, directory.strays)
        known = _chosen[key] = (directory, of_chosen)
    return known[1]


def _read(file: Path) -> Directory:
    with file.open("rb") as stream:
        size = stream.seek(0, os.SEEK_END)
        stream.seek(max(0, size - _LONGEST_END - _END_LOCATOR_64.size))
        tail = stream.read()
        count, length, start, end = _find_end(file, stream.fileno(), tail, size)
        base = end - length - start
        if base < 0:
            raise MissingInput(f"{file} is cut off or broken: its directory lies outside of it; fetch it again")
        stream.seek(start + base)
        content = stream.read(length)
    if count == 0:
        raise MissingInput(f"{file} is an empty zip: fetch it again, or move it out of CITELOOM_DUMP_DIR")
    places, strays = _sort(file, content, count)
    return Directory(file, content, base, places, tuple(strays))


def _find_end(file: Path, descriptor: int, tail: bytes, size: int) -> tuple[int, int, int, int]:
    """(entries, bytes of the directory, its stated start, where it ends) of a zip."""
    place = tail.rfind(b"PK\5\6")
    if place < 0 or len(tail) - place < _END.size:
        raise MissingInput(f"{file} is no zip, or is cut off: fetch it again, or move it out of CITELOOM_DUMP_DIR")
    _, _, _, _, count, length, start, _ = _END.unpack_from(tail, place)
    end = size - len(tail) + place
    locator = place - _END_LOCATOR_64.size
    if locator < 0 or tail[locator : locator + 4] != b"PK\6\7":
        return count, length, start, end
    at = _END_LOCATOR_64.unpack_from(tail, locator)[2]
    # One past the file's end may be past what a file position can be, which pread refuses with an OverflowError.
    record = os.pread(descriptor, _END_64.size, at) if at < size else b""
    if len(record) < _END_64.size or record[:4] != b"PK\6\6":
        raise MissingInput(f"{file} is broken: its zip64 record is not where it says; fetch it again")
    _, _, _, _, _, _, _, count, length, start = _END_64.unpack(record)
    return count, length, start, at


def _sort(file: Path, content: bytes, count: int) -> tuple[dict[str, array[int]], list[Stray]]:
    """One pass over the directory: where the entries of each month begin, and the names that are no pages."""
    places: dict[str, array[int]] = {}
    strays: list[Stray] = []
    place = 0
    of_zip = _subset(file.stem)
    for _ in range(count):
        if content[place : place + 4] != b"PK\1\2" or place + _ENTRY.size > len(content):
            raise MissingInput(f"{file} is broken: its directory ends early; fetch it again")
        fields = _ENTRY.unpack_from(content, place)
        name = _name(content, place, fields)
        if not name.endswith("/"):
            said = read_member_name(name)
            if isinstance(said, NotAPage):
                strays.append(Stray(file.name, name, "not_an_arxiv_page", said.reason, said.month))
            elif fault := _fault(_subset(said.folder or "") or of_zip, content, place, fields):
                strays.append(Stray(file.name, name, *fault, said.month))
            else:
                places.setdefault(said.month, array("Q")).append(place)
        place += _ENTRY.size + fields[10] + fields[11] + fields[12]
    return places, strays


def _fault(subset: str | None, content: bytes, place: int, fields: tuple[int, ...]) -> tuple[str, str] | None:
    """Why a page's entry cannot be used, as the ledger's reason and detail; None where it can."""
    if subset is None:
        detail = "neither its folder nor its zip is named after a subset (no_problem, warning, error)"
        return "not_an_arxiv_page", detail
    try:
        _sizes(content, place, fields)
    except MemberError as error:
        return error.reason, error.detail
    return None


@lru_cache(maxsize=1024)
def _subset(name: str) -> str | None:
    return next((subset for pattern, subset in _SUBSET_NAMES if pattern.search(name)), None)


def _name(content: bytes, place: int, fields: tuple[int, ...]) -> str:
    start = place + _ENTRY.size
    # Bit 11 of the flags says UTF-8; names without it are in code page 437 by the standard.
    return content[start : start + fields[10]].decode("utf-8" if fields[3] & 0x800 else "cp437", "replace")


def _sizes(content: bytes, place: int, fields: tuple[int, ...]) -> tuple[int, int, int]:
    """(compressed, uncompressed, offset), from the zip64 field where the plain ones are full.

    Raises MemberError where that field is not there, is cut off, or names what no zip can hold.
    """
    plain = (fields[9], fields[8], fields[16])  # the order of the zip64 field
    if _IN_ZIP64_FIELD not in plain:
        return fields[8], fields[9], fields[16]
    needed = plain.count(_IN_ZIP64_FIELD)
    wide = _zip64_values(content, place + _ENTRY.size + fields[10], fields[11])[:needed]
    if len(wide) < needed:
        raise MemberError("corrupt_member", "its zip64 field is missing or cut off")
    if max(wide) >= _BEYOND_ANY_ZIP:
        raise MemberError("corrupt_member", f"its zip64 field says {max(wide):,}, more than a zip can hold")
    rest = iter(wide)
    size, compressed, offset = (next(rest) if value == _IN_ZIP64_FIELD else value for value in plain)
    return compressed, size, offset


def _zip64_values(content: bytes, at: int, extra_length: int) -> tuple[int, ...]:
    """The numbers of an entry's zip64 field; none where it has no such field, or one longer than its room."""
    end = min(at + extra_length, len(content))
    while at + 4 <= end:
        kind, length = struct.unpack_from("<2H", content, at)
        at += 4
        if kind == 1:
            return struct.unpack_from(f"<{length // 8}Q", content, at) if at + length <= end else ()
        at += length
    return ()


class MemberReader:
    """Reads members in place: each zip is opened once, and nothing is unpacked. A context manager."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._open: dict[str, int] = {}
        self.bytes_read = 0

    def __enter__(self) -> MemberReader:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for descriptor in self._open.values():
            os.close(descriptor)
        self._open.clear()

    def read(self, member: Member) -> bytes:
        """The bytes of a page. Raises MemberError where they cannot be had, MissingInput where the zip is gone."""
        if max(member.bytes, member.compressed_bytes) > LARGEST_PAGE:
            raise MemberError("too_large", f"{member.bytes:,} bytes; pages above {LARGEST_PAGE:,} are left out")
        descriptor = self._descriptor(member.zip)
        header = os.pread(descriptor, _LOCAL.size, member.offset)
        if len(header) < _LOCAL.size or header[:4] != b"PK\3\4":
            raise MemberError("corrupt_member", f"no local header at byte {member.offset} of {member.zip}")
        _, _, flags, method, _, _, _, _, _, name_length, extra_length = _LOCAL.unpack(header)
        if flags & 0x41:
            raise MemberError("encrypted", f"{member.member} in {member.zip} is encrypted")
        start = member.offset + _LOCAL.size + name_length + extra_length
        packed = os.pread(descriptor, member.compressed_bytes, start)
        self.bytes_read += len(packed)
        return _unpack(member, method, packed)

    def _descriptor(self, name: str) -> int:
        if name not in self._open:
            try:
                self._open[name] = os.open(self._folder / name, os.O_RDONLY)
            except OSError as error:
                raise MissingInput(
                    f"{self._folder / name} cannot be opened ({error.strerror}): put it back, or run "
                    "citeloom run --select dump_members --force"
                ) from error
        return self._open[name]


def _unpack(member: Member, method: int, packed: bytes) -> bytes:
    if method == 0:
        page = packed
    elif method == 8:
        page = _inflate(member, packed)
    else:
        raise MemberError("unsupported_compression", f"{member.member} is packed by method {method}")
    if len(page) != member.bytes:
        raise MemberError("corrupt_member", f"{member.member} unpacks to another size than {member.bytes:,} bytes")
    if zlib.crc32(page) != member.crc32:
        raise MemberError("corrupt_member", f"{member.member} does not match its checksum")
    return page


def _inflate(member: Member, packed: bytes) -> bytes:
    try:
        # One byte more than stated, so that a page that unpacks to more is seen without unpacking it all.
        return zlib.decompressobj(-zlib.MAX_WBITS).decompress(packed, member.bytes + 1)
    except zlib.error as error:
        raise MemberError("corrupt_member", f"{member.member} cannot be unpacked ({error})") from error
