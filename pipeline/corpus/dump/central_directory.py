"""A zip's central directory, read in one pass: where each entry lies, or why the zip is unusable.

Layout: https://pkware.cachefly.net/webdocs/casestudies/APPNOTE.TXT, sections 4.3.7 to 4.3.16. The
largest zip of the dump names 1.3 M entries in some 120 MB, hence columns of numbers instead of an
object for each entry.
"""

from __future__ import annotations

import struct
from array import array
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from pipeline.errors import MissingInput

Read = Callable[[int, int], bytes]
"""(first byte, how many) to bytes, fewer only where the file ends; raises OSError."""
Numbers = NDArray[np.int64]

LOCAL_SIGNATURE, _ENTRY_SIGNATURE = b"PK\3\4", b"PK\1\2"
LOCAL_HEADER = struct.Struct("<4s5H3L2H")
_ENTRY = np.dtype(
    {
        "names": [
            "flags",
            "crc32",
            "compressed_bytes",
            "bytes",
            "name_length",
            "extra_length",
            "offset",
        ],
        "formats": ["<u2", "<u4", "<u4", "<u4", "<u2", "<u2", "<u4"],
        "offsets": [8, 16, 20, 24, 28, 30, 42],
        "itemsize": 46,
    }
)
# Lengths of an entry's name, extra fields and comment.
_ENTRY_LENGTHS, _ENTRY_LENGTHS_AT = struct.Struct("<3H"), 28
_END = struct.Struct("<4s4H2LH")
_END_LOCATOR_64 = struct.Struct("<4sLQL")
_END_64 = struct.Struct("<4sQ2H2L4Q")
_LONGEST_TAIL = _END_64.size + _END_LOCATOR_64.size + _END.size + 0xFFFF

_UTF8_FLAG = 0x800
_IN_ZIP64_FIELD = 0xFFFFFFFF
# No zip is that long; a larger number is wrong, and would not fit an int64 once the base is added.
_ABOVE_ANY_ZIP = 1 << 62
_MOST_END_RECORDS = 1000
# Local headers to read of entries that share bytes: 30 ms each on an object store. A zip with more
# of them is a bomb.
_MOST_LOCAL_HEADERS = 1000
# Eight times that of the largest zip; a longer directory is not the dump's, and would fill memory.
_LONGEST_DIRECTORY = 1 << 30


@dataclass(frozen=True, slots=True)
class Entries:
    """All entries of a zip, in order: an item of each column per entry, sizes in bytes.

    faults: why an entry cannot be used, by its place in the columns.
    """

    directory: bytes
    names_at: Numbers
    name_length: Numbers
    flags: Numbers
    offset: Numbers
    bytes: Numbers
    compressed_bytes: Numbers
    crc32: Numbers
    faults: Mapping[int, str]

    def __len__(self) -> int:
        return len(self.offset)

    def names(self, first: int, last: int) -> list[str]:
        """Names of the entries from `first` up to but not including `last`.

        A flag of each entry says whether its name is UTF-8; if not, it is code page 437 by the
        standard.
        """
        columns = (self.names_at, self.name_length, self.flags)
        starts, lengths, flags = (column[first:last].tolist() for column in columns)
        return [
            self.directory[start : start + length].decode(
                "utf-8" if flag & _UTF8_FLAG else "cp437", "replace"
            )
            for start, length, flag in zip(starts, lengths, flags, strict=True)
        ]


def read_directory(file: str, size: int, read: Read) -> Entries:
    """The entries of a zip of `size` bytes; `file` names it in messages.

    Raises MissingInput where the file is no zip, is cut off, or holds nothing; OSError where it
    cannot be read.
    """
    tail_start = max(0, size - _LONGEST_TAIL)
    tail = read(tail_start, size - tail_start)
    count, length, stated_start, end = _find_directory(file, size, tail, read)
    start = end - length
    # Bytes before the zip proper, which are missing from the stated offsets.
    base = start - stated_start
    if base < 0 or start < 0 or length > _LONGEST_DIRECTORY:
        raise MissingInput(
            f"{file} is cut off or broken: its directory lies outside of it; fetch it again"
        )
    entries = _parse_entries(file, read(start, length), length, base)
    # A 16-bit count wraps round where a zip of more entries was written without zip64.
    if len(entries) != count and (len(entries) - count) % 0x10000:
        raise MissingInput(
            f"{file} is broken: it names {count:,} entries and holds {len(entries):,}; fetch it"
            " again"
        )
    if not len(entries):
        raise MissingInput(
            f"{file} is an empty zip: fetch it again, or move it out of CITELOOM_DUMP_DIR"
        )
    return _with_byte_faults(entries, start, read)


def _find_directory(file: str, size: int, tail: bytes, read: Read) -> tuple[int, int, int, int]:
    """(entries, bytes of the directory, its stated start, its end) of a zip."""
    place = _find_end_record(tail)
    if place is None:
        raise MissingInput(
            f"{file} is no zip, or is cut off: fetch it again, or move it out of CITELOOM_DUMP_DIR"
        )
    _, _, _, _, count, length, start, _ = _END.unpack_from(tail, place)
    end = size - len(tail) + place
    locator = place - _END_LOCATOR_64.size
    if locator < 0 or tail[locator : locator + 4] != b"PK\6\7":
        return count, length, start, end
    stated = _END_LOCATOR_64.unpack_from(tail, locator)[2]
    # Also right before its locator: where bytes lie before the zip proper, the stated place is
    # short of them.
    for at in (stated, end - _END_LOCATOR_64.size - _END_64.size):
        record = read(at, _END_64.size) if 0 <= at < size else b""
        if len(record) == _END_64.size and record[:4] == b"PK\6\6":
            *_, count, length, start = _END_64.unpack(record)
            return count, length, start, at
    raise MissingInput(f"{file} is broken: its zip64 record is not where it says; fetch it again")


def _find_end_record(tail: bytes) -> int | None:
    """Start of the last end record whose comment ends with the file, else of the last.

    A comment may hold what looks like an end record.
    """
    places: list[int] = []
    place = tail.rfind(b"PK\5\6")
    while place >= 0 and len(places) < _MOST_END_RECORDS:
        if len(tail) - place >= _END.size:
            places.append(place)
        place = tail.rfind(b"PK\5\6", 0, place)
    complete = (at for at in places if at + _END.size + _END.unpack_from(tail, at)[7] == len(tail))
    return next(complete, next(iter(places), None))


def _parse_entries(file: str, directory: bytes, length: int, base: int) -> Entries:
    """The entries of a directory, in 0.3 s for 300,000; `zipfile` takes 2.4 s."""
    places = _entry_places(file, directory, length)
    content = np.frombuffer(directory.ljust(_ENTRY.itemsize), np.uint8)  # it may be empty
    fields = sliding_window_view(content, _ENTRY.itemsize)[places].view(_ENTRY)[:, 0]
    columns = {name: fields[name].astype(np.int64) for name in _ENTRY.names or ()}
    extra_length = columns.pop("extra_length")
    names_at = places + _ENTRY.itemsize
    extra_at = names_at + columns["name_length"]
    faults = _widen(directory, columns, extra_at, extra_length)
    columns["offset"] += base
    return Entries(directory, names_at, **columns, faults=faults)


def _widen(
    directory: bytes, columns: dict[str, Numbers], extra_at: Numbers, extra_length: Numbers
) -> dict[int, str]:
    """Replace numbers that do not fit by those of the zip64 fields; faults where these lack."""
    names = ("bytes", "compressed_bytes", "offset")  # the order of the zip64 field
    full = {name: columns[name] == _IN_ZIP64_FIELD for name in names}
    faults: dict[int, str] = {}
    for place in np.flatnonzero(np.any(list(full.values()), axis=0)).tolist():
        wide_names = [name for name in names if full[name][place]]
        start = int(extra_at[place])
        extra = directory[start : start + int(extra_length[place])]
        wide = _zip64_numbers(extra)[: len(wide_names)]
        if len(wide) < len(wide_names):
            faults[place] = "its zip64 field is missing or cut off"
        elif max(wide) >= _ABOVE_ANY_ZIP:
            faults[place] = f"its zip64 field says {max(wide):,}, more than a zip can hold"
        else:
            for name, number in zip(wide_names, wide, strict=True):
                columns[name][place] = number
    return faults


def _entry_places(file: str, directory: bytes, length: int) -> Numbers:
    """Where each entry begins, by the lengths of the entries before it."""
    places, place = array("q"), 0
    while directory.startswith(_ENTRY_SIGNATURE, place) and place + _ENTRY.itemsize <= length:
        places.append(place)
        place += _ENTRY.itemsize + sum(
            _ENTRY_LENGTHS.unpack_from(directory, place + _ENTRY_LENGTHS_AT)
        )
    if place != length:
        raise MissingInput(f"{file} is broken: its directory ends early; fetch it again")
    return np.frombuffer(places, np.int64)


def _zip64_numbers(extra: bytes) -> Sequence[int]:
    """The numbers of the zip64 field among an entry's extra fields; none without a whole one."""
    at = 0
    while at + 4 <= len(extra):
        kind, length = struct.unpack_from("<2H", extra, at)
        at += 4 + length
        if kind == 1 and at <= len(extra):
            return struct.unpack_from(f"<{length // 8}Q", extra, at - length)
    return ()


def _with_byte_faults(entries: Entries, limit: int, read: Read) -> Entries:
    """The entries, with a fault for each that reaches past `limit` or shares bytes with another.

    Entries that share bytes are how a small zip unpacks to petabytes (D. Fifield, "A better zip
    bomb", WOOT 2019).
    """
    faults = dict(entries.faults)
    # Where the page ends if its local header has no extra fields: it cannot end earlier.
    end = entries.offset + LOCAL_HEADER.size + entries.name_length + entries.compressed_bytes
    for place in np.flatnonzero(end > limit).tolist():
        faults.setdefault(place, "it reaches past the zip's pages")
    usable = np.delete(np.arange(len(entries)), list(faults))
    overlapping = _overlapping(usable, entries.offset, end)
    shared: set[int] = set()
    if len(overlapping) <= _MOST_LOCAL_HEADERS:
        shared |= {
            place for place in overlapping.tolist() if not _has_local_header(entries, place, read)
        }
    rest = np.setdiff1d(overlapping, list(shared))
    # Of entries with one start, the last in this order is kept: the directory's first.
    in_order = rest[np.lexsort((-rest, entries.offset[rest]))]
    # An entry that contains the start of the next claims bytes that are not its own.
    shared |= set(in_order[:-1][end[in_order[:-1]] > entries.offset[in_order[1:]]].tolist())
    faults |= dict.fromkeys(shared, "it shares bytes with another page of the zip")
    return replace(entries, faults=faults)


def _overlapping(places: Numbers, start: Numbers, end: Numbers) -> Numbers:
    """Those of some entries, by position, that overlap another."""
    order = places[np.argsort(start[places], kind="stable")]
    first, reached = start[order], np.maximum.accumulate(end[order])
    overlaps_earlier = np.concatenate([[False], first[1:] < reached[:-1]])[: len(order)]
    overlaps_later = np.concatenate([end[order][:-1] > first[1:], [False]])[: len(order)]
    overlapping: Numbers = order[overlaps_earlier | overlaps_later]
    return overlapping


def _has_local_header(entries: Entries, place: int, read: Read) -> bool:
    """Whether the local header at an entry's offset has the entry's name."""
    start = int(entries.names_at[place])
    name = entries.directory[start : start + int(entries.name_length[place])]
    header = read(int(entries.offset[place]), LOCAL_HEADER.size + len(name))
    return header.startswith(LOCAL_SIGNATURE) and header[LOCAL_HEADER.size :] == name
