"""Packed bytes to a page, checked. Only memory is touched here, never a file.

libdeflate (package deflate) unpacks the real pages at 2,800 MB/s of one core and sums them at 50,000; ISA-L makes
1,800, zlib-ng 1,700, zlib 850 and 6,800.
"""

from __future__ import annotations

from functools import lru_cache

from deflate import DeflateError, crc32, deflate_decompress

from pipeline.corpus.dump.member import LARGEST_PAGE, MemberError

STORED, DEFLATED = 0, 8
# The format's own limit: 258 bytes for a 2-bit code, and a few more for a block's head.
_HIGHEST_RATIO = 1032


@lru_cache(maxsize=1)
def keep_freed_memory() -> None:
    """Have glibc keep what a page took for the next page; elsewhere this does nothing.

    It returns freed memory to the system above twice the size of the largest block that was mapped and freed, up to
    32 MB (mallopt(3), M_MMAP_THRESHOLD). Until such a block was seen, every page above 128 KB may be made of memory
    fresh from the system: that cost a quarter of the time to unpack a page. The block here is never touched.
    """
    import numpy as np

    np.empty(31 << 20, np.uint8)


def checksum_of(page: bytes | bytearray) -> int:
    """The page's CRC-32, the checksum of zips."""
    return crc32(page)


def check_size(name: str, size: int, packed: int) -> None:
    """Raise MemberError for a page that is too large, or states a size that its packed bytes cannot hold."""
    if max(size, packed) > LARGEST_PAGE:
        raise MemberError("too_large", f"{name} has {size:,} bytes; pages above {LARGEST_PAGE:,} are left out")
    if size > packed * _HIGHEST_RATIO:
        raise MemberError("corrupt_member", f"{name} cannot unpack from {packed:,} to {size:,} bytes")


def unpack(name: str, method: int, packed: bytes | memoryview, size: int, checksum: int) -> bytes:
    """The page that was packed by a zip's method, of `size` bytes and with this CRC-32.

    Raises MemberError where it cannot be unpacked, or is another one than stated. A page that would unpack to more
    than `size` is not unpacked any further.
    """
    if method == STORED:
        page: bytes | bytearray = bytes(packed)
    elif method == DEFLATED:
        page = _inflate(name, packed, size)
    else:
        raise MemberError("unsupported_compression", f"{name} is packed by method {method}")
    if len(page) != size:
        raise MemberError("corrupt_member", f"{name} unpacks to {len(page):,} bytes instead of {size:,}")
    if checksum_of(page) != checksum:
        raise MemberError("corrupt_member", f"{name} does not match its checksum")
    return bytes(page)


def _inflate(name: str, packed: bytes | memoryview, size: int) -> bytearray:
    try:
        return deflate_decompress(packed, max(size, 1))  # with room for no byte at all it checks nothing
    except DeflateError as error:
        raise MemberError("corrupt_member", f"{name} is damaged, or unpacks to more than {size:,} bytes") from error
