"""The bytes of one page, read in place, unpacked and checked.

libdeflate (package deflate) unpacks the real pages at 2,800 MB/s of one core and sums them at
50,000; ISA-L makes 1,800, zlib-ng 1,700, zlib 850 and 6,800.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import closing
from functools import lru_cache
from pathlib import Path

from deflate import DeflateError, crc32, deflate_decompress

from pipeline.corpus.dump.central_directory import LOCAL_HEADER, LOCAL_SIGNATURE
from pipeline.corpus.dump.folder import DumpFile, open_folder
from pipeline.corpus.dump.member import LARGEST_PAGE, Member, MemberError
from pipeline.errors import MissingInput, TransientFailure

_STORED, _DEFLATED = 0, 8
# The format's own limit: 258 bytes for a 2-bit code, and a few more for a block's head.
_HIGHEST_RATIO = 1032
# Room for the extra fields of a local header, whose length the directory does not say: time stamps
# take 28 bytes, zip64 20.
_EXTRA_FIELDS_ROOM = 64
_ENCRYPTED_FLAGS = 0x41


class MemberReader:
    """Reads pages in place: each zip is opened once, and nothing is unpacked to disk.

    A context manager. Every process needs one of its own.
    """

    def __init__(self, dump_dir: Path | str) -> None:
        keep_freed_memory()
        self._folder = open_folder(dump_dir)
        self._is_store = not isinstance(dump_dir, Path)
        self._zips: dict[str, DumpFile] = {}
        self.bytes_read = 0
        """Packed bytes of the pages read."""

    def __enter__(self) -> MemberReader:
        return self

    def __exit__(self, *_: object) -> None:
        for file in self._zips.values():
            file.close()
        self._zips.clear()

    def plan(self, members: Iterable[Member]) -> None:
        """Announce the members to read: an object store gives neighbours in one request.

        Raises MissingInput where a zip is gone.
        """
        ranges: dict[str, list[tuple[int, int]]] = {}
        for member in members:
            if member.zip:
                end = member.offset + _expected_length(member)
                ranges.setdefault(member.zip, []).append((member.offset, end))
        for name, ranges_of_zip in ranges.items():
            self._open_zip(name).plan(ranges_of_zip)

    def read(self, member: Member) -> bytes:
        """The bytes of a page.

        Raises MemberError where they cannot be read or are not those that were listed, MissingInput
        where the zip is gone, TransientFailure where a store does not answer.
        """
        _check_size(member)
        packed: bytes | memoryview
        if member.zip:
            method, packed = self._read_zipped(member)
        else:
            method, packed = _STORED, self._read_loose(member)
        self.bytes_read += len(packed)
        return unpack(member, method, packed)

    def _open_zip(self, name: str) -> DumpFile:
        if name not in self._zips:
            try:
                self._zips[name] = self._folder.open(name)
            except OSError as error:
                raise MissingInput(
                    f"{self._folder.address}/{name} cannot be opened ({error.strerror or error}):"
                    " put it back, or run citeloom run --select dump --force"
                ) from error
        return self._zips[name]

    def _read_zipped(self, member: Member) -> tuple[int, memoryview]:
        """(compression method, packed bytes) of a page in a zip."""
        length = _expected_length(member)
        content = self._read_range(member, member.offset, length)
        method, start = _parse_local_header(member, content)
        packed = memoryview(content)[start : start + member.compressed_bytes]
        if len(packed) < member.compressed_bytes and len(content) == length:
            # The local header's extra fields are longer than the room for them.
            rest = self._read_range(member, member.offset + start, member.compressed_bytes)
            packed = memoryview(rest)
        if len(packed) < member.compressed_bytes:
            raise MemberError("corrupt_member", f"{member.zip} ends within {member.member}")
        return method, packed

    def _read_range(self, member: Member, start: int, length: int) -> bytes:
        try:
            return self._open_zip(member.zip).read(start, length)
        except (OSError, OverflowError) as error:  # OverflowError: a position that no file can have
            raise self._read_failure(
                f"{member.zip} cannot be read at byte {start}", error
            ) from error

    def _read_loose(self, member: Member) -> bytes:
        try:
            with closing(self._folder.open(member.member)) as file:
                return file.read(0, member.bytes + 1)  # it may have grown since it was listed
        except OSError as error:
            raise self._read_failure(f"{member.member} cannot be read", error) from error

    def _read_failure(
        self, problem: str, error: OSError | OverflowError
    ) -> MemberError | TransientFailure:
        """A failing disk affects one page; an unreachable store or expired token affects all."""
        message = f"{problem} ({getattr(error, 'strerror', None) or error})"
        if self._is_store and not isinstance(error, FileNotFoundError):
            return TransientFailure(
                f"{self._folder.address}: {message}: run again once the store answers"
            )
        return MemberError("unreadable", message)


def _expected_length(member: Member) -> int:
    """Bytes from the local header's start to the page's end, as far as the directory tells."""
    return (
        LOCAL_HEADER.size
        + len(member.member.encode())
        + _EXTRA_FIELDS_ROOM
        + member.compressed_bytes
    )


def _parse_local_header(member: Member, content: bytes) -> tuple[int, int]:
    """(compression method, start of the packed bytes in `content`) by the member's local header."""
    if len(content) < LOCAL_HEADER.size or not content.startswith(LOCAL_SIGNATURE):
        raise MemberError(
            "corrupt_member", f"no local header at byte {member.offset} of {member.zip}"
        )
    _, _, flags, method, _, _, _, _, _, name_length, extra_length = LOCAL_HEADER.unpack_from(
        content
    )
    if flags & _ENCRYPTED_FLAGS:
        raise MemberError("encrypted", f"{member.member} in {member.zip} is encrypted")
    return method, LOCAL_HEADER.size + name_length + extra_length


def _check_size(member: Member) -> None:
    """Raise MemberError for a page that is too large or states an impossible size."""
    name, size, packed_size = member.member, member.bytes, member.compressed_bytes
    if max(size, packed_size) > LARGEST_PAGE:
        raise MemberError(
            "too_large", f"{name} has {size:,} bytes; pages above {LARGEST_PAGE:,} are left out"
        )
    if size > packed_size * _HIGHEST_RATIO:
        raise MemberError(
            "corrupt_member", f"{name} cannot unpack from {packed_size:,} to {size:,} bytes"
        )


def unpack(member: Member, method: int, packed: bytes | memoryview) -> bytes:
    """The page that a zip's method packed, of the member's size and with its CRC-32.

    Raises MemberError where it cannot be unpacked, or is not the page that was listed. Unpacking
    stops at the stated size.
    """
    name, size = member.member, member.bytes
    if method == _STORED:
        page: bytes | bytearray = bytes(packed)
    elif method == _DEFLATED:
        try:
            # With room for no byte at all it checks nothing.
            page = deflate_decompress(packed, max(size, 1))
        except DeflateError as error:
            raise MemberError(
                "corrupt_member", f"{name} is damaged, or unpacks to more than {size:,} bytes"
            ) from error
    else:
        raise MemberError("unsupported_compression", f"{name} is packed by method {method}")
    if len(page) != size:
        raise MemberError(
            "corrupt_member", f"{name} unpacks to {len(page):,} bytes instead of {size:,}"
        )
    if crc32(page) != member.crc32:
        raise MemberError("corrupt_member", f"{name} does not match its checksum")
    return bytes(page)


@lru_cache(maxsize=1)
def keep_freed_memory() -> None:
    """Make glibc keep the memory of a page for the next page; without effect elsewhere.

    It returns freed memory to the system above twice the size of the largest block that was mapped
    and freed, up to 32 MB (mallopt(3), M_MMAP_THRESHOLD). Until such a block was seen, every page
    above 128 KB may be made of memory fresh from the system: that cost a quarter of the time to
    unpack a page. The block here is never touched.
    """
    import numpy as np

    np.empty(31 << 20, np.uint8)
