"""Where a member lies in a zip, by the standard library."""

from __future__ import annotations

import zipfile
from pathlib import Path


def offset_of(file: Path, name: str) -> tuple[int, int]:
    """(position of the member's local header, its packed size)."""
    with zipfile.ZipFile(file) as archive:
        found = archive.getinfo(name)
    return found.header_offset, found.compress_size
