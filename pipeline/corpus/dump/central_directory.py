"""A zip's central directory, read in one pass: where each entry lies, or why the zip cannot be used.

Layout: https://pkware.cachefly.net/webdocs/casestudies/APPNOTE.TXT, sections 4.3.7 to 4.3.16. The largest zip of the
dump names 1.3 M entries in some 120 MB, hence columns of numpy and no object for an entry.
"""

from __future__ import annotations

import contextlib
import struct
from array import array
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pipeline.errors import MissingInput

Read = Callable[[int, int], bytes]
"""(first byte, how many) to bytes, fewer only where the file ends; raises OSError."""
Numbers = NDArray[np.int64]

_END = struct.Struct("<4s4H2LH")
_END_LOCATOR_64 = struct.Struct("<4sLQL")
_END_64 = struct.Struct("<4sQ2H2L4Q")
_LONGEST_END = _END.size + 0xFFFF
_LONGEST_TAIL = _END_64.size + _END_LOCATOR_64.size + _LONGEST_END
_LOCAL_HEADER = 30

_SIGNATURE = b"PK\1\2"
_ENTRY = np.dtype(
    [
        ("signature", "S4"), ("made_by", "<u2"), ("needed", "<u2"), ("flags", "<u2"), ("method", "<u2"),
        ("time", "<u2"), ("date", "<u2"), ("crc32", "<u4"), ("compressed_bytes", "<u4"), ("bytes", "<u4"),
        ("name_length", "<u2"), ("extra_length", "<u2"), ("comment_length", "<u2"), ("disk", "<u2"),
        ("internal", "<u2"), ("external", "<u4"), ("offset", "<u4"),
    ]
)  # fmt: skip
_OFFSET_64 = np.dtype([("kind", "<u2"), ("length", "<u2"), ("offset", "<u8")])
_LENGTHS = struct.Struct("<3H")
_LENGTHS_AT = 28
_UTF8 = 0x800
_IN_ZIP64_FIELD = 0xFFFFFFFF
# No zip is that long; what says so lies, and would not fit an int64 once the base is added.
_BEYOND_ANY_ZIP = 1 << 62
_END_RECORDS_TRIED = 1000
# Local headers of entries that share bytes; a zip of more such entries is a bomb, and not worth 30 ms each.
_HEADERS_READ = 1000
# Ten times the largest zip's; what says more is no dump, and would fill memory.
_LONGEST_DIRECTORY = 1 << 30
# Entries gathered at once: their 3 MB of fixed fields go through an index of 24 MB.
_CHUNK = 1 << 16


@dataclass(frozen=True, slots=True)
class Entries:
    """All entries of a zip, in the directory's order: one item of each column per entry, sizes and positions in bytes.

    `faults` says why an entry cannot be used, by its place in the columns.
    """

    content: bytes
    names_at: Numbers
    name_lengths: Numbers
    is_utf8: NDArray[np.bool_]
    offset: Numbers
    bytes: Numbers
    compressed_bytes: Numbers
    crc32: NDArray[np.uint32]
    faults: Mapping[int, str]

    def __len__(self) -> int:
        return len(self.offset)

    def names(self, first: int, last: int) -> list[str]:
        """Names of the entries from `first` up to `last`, which is not among them.

        Bit 11 of an entry's flags says UTF-8; names without it are in code page 437 by the standard.
        """
        starts, lengths = self.names_at[first:last].tolist(), self.name_lengths[first:last].tolist()
        return [
            self.content[start : start + length].decode("utf-8" if is_utf8 else "cp437", "replace")
            for start, length, is_utf8 in zip(starts, lengths, self.is_utf8[first:last].tolist(), strict=True)
        ]


def read_directory(file: str, size: int, read: Read) -> Entries:
    """The entries of a zip of `size` bytes; `file` names it in messages.

    Raises MissingInput where the file is no zip, is cut off, or holds nothing; OSError where it cannot be read.
    """
    tail_start = max(0, size - _LONGEST_TAIL)
    tail = read(tail_start, size - tail_start)
    count, length, stated_start, end = _find_end(file, size, tail, read)
    start = end - length
    base = start - stated_start  # bytes before the zip proper: what a member's stated offset is short of
    if base < 0 or start < 0 or length > _LONGEST_DIRECTORY:
        raise MissingInput(f"{file} is cut off or broken: its directory lies outside of it; fetch it again")
    content = read(start, length)
    places = _walk(file, content, length)
    # A 16-bit count wraps round where a zip of more entries was written without zip64.
    if len(places) != count and (len(places) - count) % 0x10000:
        raise MissingInput(f"{file} is broken: it names {count:,} entries and holds {len(places):,}; fetch it again")
    if not len(places):
        raise MissingInput(f"{file} is an empty zip: fetch it again, or move it out of CITELOOM_DUMP_DIR")
    return _gather(content, places, base, start, read)


def _gather(content: bytes, places: Numbers, base: int, limit: int, read: Read) -> Entries:
    """The entries at `places`; none may reach past `limit`, nor share a byte with another."""
    fixed = _fixed_fields(content, places)
    columns = {name: fixed[name].astype(np.int64) for name in ("bytes", "compressed_bytes", "offset")}
    faults = _widen(content, places, fixed, columns)
    columns["offset"] += base
    # Where the page ends if its local header has no extra fields: it cannot end earlier.
    end = columns["offset"] + _LOCAL_HEADER + fixed["name_length"] + columns["compressed_bytes"]
    for place in np.flatnonzero(end > limit).tolist():
        faults.setdefault(place, "it reaches past the zip's pages")
    entries = Entries(
        content,
        names_at=places + _ENTRY.itemsize,
        name_lengths=fixed["name_length"].astype(np.int64),
        is_utf8=(fixed["flags"] & _UTF8) != 0,
        crc32=fixed["crc32"].astype(np.uint32),
        faults=faults,
        **columns,
    )
    for place in _find_shared(entries, end, read):
        faults[place] = "it shares bytes with another page of the zip"
    return entries


def _find_shared(entries: Entries, end: Numbers, read: Read) -> list[int]:
    """The entries to leave out so that no two share a byte: those that are not where they say, then as few as can be.

    Entries that share bytes are how a small zip unpacks to petabytes (D. Fifield, "A better zip bomb", WOOT 2019).
    """
    usable = np.delete(np.arange(len(entries)), list(entries.faults))
    clashing = usable[find_clashing(entries.offset[usable], end[usable])]
    misplaced: list[int] = []
    if len(clashing) <= _HEADERS_READ:
        misplaced = [place for place in clashing.tolist() if not _is_in_place(entries, place, read)]
    rest = np.setdiff1d(clashing, misplaced)
    return [*misplaced, *rest[find_overlapping(entries.offset[rest], end[rest])].tolist()]


def _is_in_place(entries: Entries, place: int, read: Read) -> bool:
    """Whether the local header that an entry leads to has its name."""
    first, length = int(entries.names_at[place]), int(entries.name_lengths[place])
    head = read(int(entries.offset[place]), _LOCAL_HEADER + length)
    return head.startswith(b"PK\3\4") and head[_LOCAL_HEADER:] == entries.content[first : first + length]


def _find_end(file: str, size: int, tail: bytes, read: Read) -> tuple[int, int, int, int]:
    """(entries, bytes of the directory, its stated start, where it ends) of a zip."""
    place = _find_end_record(tail)
    if place is None:
        raise MissingInput(f"{file} is no zip, or is cut off: fetch it again, or move it out of CITELOOM_DUMP_DIR")
    _, _, _, _, count, length, start, _ = _END.unpack_from(tail, place)
    end = size - len(tail) + place
    locator = place - _END_LOCATOR_64.size
    if locator < 0 or tail[locator : locator + 4] != b"PK\6\7":
        return count, length, start, end
    stated = _END_LOCATOR_64.unpack_from(tail, locator)[2]
    # Right before its locator too: where bytes lie before the zip proper, the stated place is short of them.
    for at in (stated, end - _END_LOCATOR_64.size - _END_64.size):
        record = read(at, _END_64.size) if 0 <= at < size else b""
        if len(record) == _END_64.size and record[:4] == b"PK\6\6":
            _, _, _, _, _, _, _, count, length, start = _END_64.unpack(record)
            return count, length, start, at
    raise MissingInput(f"{file} is broken: its zip64 record is not where it says; fetch it again")


def _find_end_record(tail: bytes) -> int | None:
    """Where in a zip's last bytes its end record begins: the last whose comment ends with the file, or else the last.

    A comment may hold what looks like one.
    """
    found: list[int] = []
    place = tail.rfind(b"PK\5\6")
    while place >= 0 and len(found) < _END_RECORDS_TRIED:
        if len(tail) - place >= _END.size:
            found.append(place)
        place = tail.rfind(b"PK\5\6", 0, place)
    whole = (at for at in found if at + _END.size + _END.unpack_from(tail, at)[7] == len(tail))
    return next(whole, next(iter(found), None))


def _walk(file: str, content: bytes, length: int) -> Numbers:
    """Where each entry begins: an entry's length is known from its own three lengths alone."""
    places, place, lengths_at = array("q"), 0, _LENGTHS.unpack_from
    with contextlib.suppress(struct.error):  # the last entry is cut off
        while content.startswith(_SIGNATURE, place):
            name, extra, comment = lengths_at(content, place + _LENGTHS_AT)
            places.append(place)
            place += _ENTRY.itemsize + name + extra + comment
    if place != length:
        raise MissingInput(f"{file} is broken: its directory ends early; fetch it again")
    return np.array(places, np.int64)


def _fixed_fields(content: bytes, places: Numbers) -> NDArray[np.void]:
    raw, fixed = np.frombuffer(content, np.uint8), np.empty(len(places), _ENTRY)
    for first in range(0, len(places), _CHUNK):
        chunk = places[first : first + _CHUNK]
        fixed[first : first + _CHUNK] = raw[chunk[:, None] + np.arange(_ENTRY.itemsize)].view(_ENTRY)[:, 0]
    return fixed


def _widen(content: bytes, places: Numbers, fixed: NDArray[np.void], columns: dict[str, Numbers]) -> dict[int, str]:
    """Put the numbers of zip64 fields where the plain ones are full; what is wrong with those that lie."""
    order = ("bytes", "compressed_bytes", "offset")  # that of the zip64 field
    full = {name: columns[name] == _IN_ZIP64_FIELD for name in order}
    in_full = full["bytes"] | full["compressed_bytes"]
    in_full |= full["offset"] & ~_widen_offsets(content, places, fixed, columns["offset"], full["offset"] & ~in_full)
    faults: dict[int, str] = {}
    for place in np.flatnonzero(in_full).tolist():
        names = [name for name in order if full[name][place]]
        extra = int(places[place]) + _ENTRY.itemsize + int(fixed["name_length"][place])
        wide = _zip64_values(content, extra, int(fixed["extra_length"][place]))[: len(names)]
        if len(wide) < len(names):
            faults[place] = "its zip64 field is missing or cut off"
        elif max(wide) >= _BEYOND_ANY_ZIP:
            faults[place] = f"its zip64 field says {max(wide):,}, more than a zip can hold"
        else:
            for name, value in zip(names, wide, strict=True):
                columns[name][place] = value
    return faults


def _widen_offsets(
    content: bytes, places: Numbers, fixed: NDArray[np.void], offset: Numbers, wanted: NDArray[np.bool_]
) -> NDArray[np.bool_]:
    """Put the wide offsets where an entry's extra fields begin with one of that alone; of which entries it was done.

    So it is with nearly all of a zip above 4 GB, and entry by entry it took a third of the time to read a directory.
    """
    done, extra = np.zeros(len(places), bool), places + _ENTRY.itemsize + fixed["name_length"]
    likely = np.flatnonzero(wanted & (fixed["extra_length"] >= _OFFSET_64.itemsize))
    raw = np.frombuffer(content, np.uint8)
    for first in range(0, len(likely), _CHUNK):
        chunk = likely[first : first + _CHUNK]
        found = raw[extra[chunk][:, None] + np.arange(_OFFSET_64.itemsize)].view(_OFFSET_64)[:, 0]
        usable = (found["kind"] == 1) & (found["length"] == 8) & (found["offset"] < _BEYOND_ANY_ZIP)
        offset[chunk[usable]] = found["offset"][usable].astype(np.int64)
        done[chunk[usable]] = True
    return done


def _zip64_values(content: bytes, at: int, length: int) -> Sequence[int]:
    """The numbers of an entry's zip64 field; none where it has no such field, or one longer than its room."""
    end = min(at + length, len(content))
    while at + 4 <= end:
        kind, size = struct.unpack_from("<2H", content, at)
        at += 4
        if kind == 1:
            return struct.unpack_from(f"<{size // 8}Q", content, at) if at + size <= end else ()
        at += size
    return ()


def find_clashing(start: Numbers, end: Numbers) -> Numbers:
    """Which of some ranges overlap another, by their places, ascending."""
    order = np.lexsort((end, start))
    first, last = start[order], end[order]
    reached = np.maximum.accumulate(last)
    with_earlier = np.concatenate([[False], first[1:] < reached[:-1]])
    with_later = np.concatenate([first[1:] < last[:-1], [False]])
    return np.sort(order[(with_earlier | with_later)[: len(order)]])


def find_overlapping(start: Numbers, end: Numbers) -> list[int]:
    """Which of some ranges to leave out so that no two overlap and as many as can be stay; by their places."""
    left_out, taken_to = [], -1
    for place in np.lexsort((-start, end)).tolist():  # what ends first never bars more than another would
        if start[place] >= taken_to:
            taken_to = int(end[place])
        else:
            left_out.append(place)
    return left_out
