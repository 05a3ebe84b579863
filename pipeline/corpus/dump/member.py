"""One page of the dump: its record, its faults, and its severity by name."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

# The largest page of the 04.2024 set is below 100 MB; one takes twice its size while it is
# unpacked.
LARGEST_PAGE = 128 * 1024 * 1024

UNRATED = "unrated"
_SUBSETS = (
    (re.compile(r"no[-_ ]?problems?", re.IGNORECASE), "no_problem"),
    (re.compile(r"warnings?", re.IGNORECASE), "warning"),
    (re.compile(r"errors?", re.IGNORECASE), "error"),
    (re.compile(UNRATED, re.IGNORECASE), UNRATED),
)


class MemberError(Exception):
    """A page that cannot be read.

    `reason` is one of the ledger's: encrypted, unsupported_compression, too_large, corrupt_member,
    unreadable.
    """

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(f"{reason}: {detail}")
        self.reason, self.detail = reason, detail


@dataclass(frozen=True, slots=True)
class Member:
    """One page of the dump; sizes and positions are in bytes.

    In a zip `offset` is that of the member's local header. A loose page has no zip (`zip` is
    empty), and `member` is its path below the dump folder.
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
        """The page's place as the ledger writes it."""
        return place_of(self.zip, self.member)


def place_of(zip_name: str, name: str) -> str:
    """The zip and the name of a page in it, or the path of a loose page."""
    return f"{zip_name}:{name}" if zip_name else name


def as_text(name: str) -> str:
    """A file's name with `?` for each byte that is not UTF-8, which a table could not hold."""
    return name.encode("utf-8", "replace").decode()


@lru_cache(maxsize=1024)
def subset_of(folder: str | None, zip_name: str) -> str:
    """The subset that a page's folder names, else the one that its zip names, else `unrated`."""
    for name in (folder or "", zip_name):
        for pattern, subset in _SUBSETS:
            if pattern.search(name):
                return subset
    return UNRATED


def is_subset_folder(name: str) -> bool:
    """Whether a folder beside the zips is named after a subset and nothing else."""
    return any(pattern.fullmatch(name) for pattern, _ in _SUBSETS)
