"""The bytes of one page, read where it lies."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType

from upath import UPath

from pipeline.corpus.dump.folder import open_folder
from pipeline.corpus.dump.inflate import STORED, check_size, keep_freed_memory, unpack
from pipeline.corpus.dump.member import Member, MemberError
from pipeline.corpus.dump.ranges import Range
from pipeline.errors import MissingInput, TransientFailure

_LOCAL = struct.Struct("<4s5H3L2H")
# Room for the extra fields of a local header, which the directory does not tell: time stamps take 28 bytes, zip64 20.
_SLACK = 64
_ENCRYPTED = 0x41


class MemberReader:
    """Reads pages in place: each zip is opened once, one read a page, and nothing is unpacked to disk.

    A context manager. Every process needs one of its own.
    """

    def __init__(self, dump_dir: Path | UPath) -> None:
        keep_freed_memory()
        self._folder = open_folder(dump_dir)
        self._is_store = not isinstance(dump_dir, Path)
        self._opened: set[str] = set()
        self.bytes_read = 0
        """Packed bytes of the pages read."""

    def __enter__(self) -> MemberReader:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._folder.close()
        self._opened.clear()

    def plan(self, members: Iterable[Member]) -> None:
        """Say which members will be read, so that an object store is asked for neighbours together.

        Raises MissingInput where a zip is gone.
        """
        ranges: dict[str, list[Range]] = {}
        for member in members:
            if member.zip:
                ranges.setdefault(member.zip, []).append((member.offset, member.offset + _reach(member)))
        for name, wanted in ranges.items():
            self._open(name)
            self._folder.plan(name, wanted)

    def read(self, member: Member) -> bytes:
        """The bytes of a page.

        Raises MemberError where they cannot be had, MissingInput where the zip is gone, TransientFailure where a store
        does not answer.
        """
        check_size(member.member, member.bytes, member.compressed_bytes)
        if not member.zip:
            return self._read_loose(member)
        self._open(member.zip)
        head = self._fetch(member, member.offset, _reach(member))
        method, start = _read_local_header(member, head)
        packed = memoryview(head)[start : start + member.compressed_bytes]
        if len(packed) < member.compressed_bytes and len(head) == _reach(member):
            packed = memoryview(self._fetch(member, member.offset + start, member.compressed_bytes))
        if len(packed) < member.compressed_bytes:
            raise MemberError("corrupt_member", f"{member.zip} ends within {member.member}")
        self.bytes_read += len(packed)
        return unpack(member.member, method, packed, member.bytes, member.crc32)

    def _open(self, name: str) -> None:
        if name in self._opened:
            return
        try:
            self._folder.open(name)
        except OSError as error:
            raise MissingInput(
                f"{self._folder.address}/{name} cannot be opened ({error.strerror or error}): put it back, or run "
                "citeloom run --select dump_members --force"
            ) from error
        self._opened.add(name)

    def _fetch(self, member: Member, start: int, length: int) -> bytes:
        try:
            return self._folder.read(member.zip, start, length)
        except (OSError, OverflowError) as error:  # a position that no file can have
            raise self._unreadable(f"{member.zip} cannot be read at byte {start}", error) from error

    def _read_loose(self, member: Member) -> bytes:
        try:
            page = self._folder.read_head(member.member, member.bytes + 1)  # it may have grown since it was listed
        except OSError as error:
            raise self._unreadable(f"{member.member} cannot be read", error) from error
        self.bytes_read += len(page)
        return unpack(member.member, STORED, page, member.bytes, member.crc32)

    def _unreadable(self, what: str, error: OSError | OverflowError) -> MemberError | TransientFailure:
        """A disk fails at one page; a store that does not answer, or whose token has expired, fails at them all."""
        told = f"{what} ({getattr(error, 'strerror', None) or error})"
        if self._is_store and not isinstance(error, FileNotFoundError):
            return TransientFailure(f"{self._folder.address}: {told}: run again once the store answers")
        return MemberError("unreadable", told)


def _reach(member: Member) -> int:
    """Bytes from the local header's start to the page's end, as far as the directory tells."""
    return _LOCAL.size + len(member.member.encode()) + _SLACK + member.compressed_bytes


def _read_local_header(member: Member, head: bytes) -> tuple[int, int]:
    """(method, where the packed bytes begin in `head`) as the member's local header says."""
    if len(head) < _LOCAL.size or head[:4] != b"PK\3\4":
        raise MemberError("corrupt_member", f"no local header at byte {member.offset} of {member.zip}")
    _, _, flags, method, _, _, _, _, _, name_length, extra_length = _LOCAL.unpack_from(head)
    if flags & _ENCRYPTED:
        raise MemberError("encrypted", f"{member.member} in {member.zip} is encrypted")
    return method, _LOCAL.size + name_length + extra_length
