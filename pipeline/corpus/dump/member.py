"""What the dump's modules say of one page, and why one cannot be had. Only records; nothing here reads."""

from __future__ import annotations

from dataclasses import dataclass

# The largest page of the 04.2024 set is below 100 MB; one takes twice its size while it is unpacked.
LARGEST_PAGE = 128 * 1024 * 1024


class MemberError(Exception):
    """A page that cannot be had.

    `reason` is one of the ledger's: encrypted, unsupported_compression, too_large, corrupt_member, unreadable.
    """

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(f"{reason}: {detail}")
        self.reason, self.detail = reason, detail


@dataclass(frozen=True, slots=True)
class Member:
    """One page of the dump; sizes and positions are in bytes.

    In a zip `offset` is that of the member's local header. A loose page has no zip (`zip` is empty), and `member` is
    its path below the dump folder.
    """

    arxiv_id: str
    subset: str
    zip: str
    member: str
    offset: int
    bytes: int
    compressed_bytes: int
    crc32: int

    @property
    def place(self) -> str:
        """Where the page lies, as the ledger tells it."""
        return place_of(self.zip, self.member)


def place_of(zip_name: str, name: str) -> str:
    """A page's place in words: the zip and the name in it, or the path of a loose page."""
    return f"{zip_name}:{name}" if zip_name else name


def as_text(name: str) -> str:
    """A file's name with `?` for each byte that is no UTF-8: no table takes it as the system gives it."""
    return name.encode("utf-8", "replace").decode()
