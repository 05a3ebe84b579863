"""The catalogue of all months up to one, kept below the data root so that no month is read for every later one.

Months are numbered and kept in blocks of 1, 2, 4, … of them, as the bits of a number: the 400 months up to 2024-04 are
nine blocks at most. A month reads its own metadata and joins it with blocks that earlier months left; each block is
one file, mapped and not loaded, and named by the digests of its months, so that a month made anew leaves no stale one
behind.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
from filelock import FileLock

from pipeline import tables
from pipeline.engine.stage import Workspace
from pipeline.metadata.resolution import Catalogue
from pipeline.metadata.segment import Segment
from pipeline.storage.provenance import read_provenance

# Raised when a segment's file or its keys change: old files are then made again.
VERSION = 2
_COLUMNS = ["arxiv_id", "title", "authors", "doi", "published"]


@dataclass(frozen=True, slots=True)
class _Block:
    """`size` months from number `start` on; those that the data root holds, with the digests of their rows."""

    start: int
    size: int
    digests: Mapping[str, str]

    def halves(self) -> tuple[_Block, _Block]:
        half = self.size // 2
        return _block(self.start, half, self.digests), _block(self.start + half, half, self.digests)

    @property
    def span(self) -> str:
        months = sorted(self.digests)
        return f"{months[0]}_{months[-1]}"

    @property
    def name(self) -> str:
        basis = json.dumps([VERSION, sorted(self.digests.items())]).encode()
        return f"{self.span}-{hashlib.sha256(basis).hexdigest()[:16]}.arrow"


def month_digests(workspace: Workspace, month: str) -> dict[str, str]:
    """The digests of the rows of metadata of every month up to and with this one, oldest first."""
    digests = {}
    for other in workspace.root.months(tables.METADATA):
        provenance = read_provenance(workspace.root.file(tables.METADATA, other)) if other <= month else None
        if provenance is not None:
            digests[other] = provenance.rows_sha256
    return digests


def open_catalogue(workspace: Workspace, month: str) -> Catalogue:
    """The catalogue of this month's and all earlier metadata.

    Raises as `DataRoot.read` does where a month that is not yet in a block cannot be read.
    """
    digests = month_digests(workspace, month)
    catalogue = Catalogue(_opened(workspace, block) for block in _blocks_until(_number(month), digests))
    _forget_dead(workspace.cache("catalogue"), month, digests)
    return catalogue


def _number(month: str) -> int:
    return int(month[:4]) * 12 + int(month[5:]) - 1


def _block(start: int, size: int, digests: Mapping[str, str]) -> _Block:
    inside = {month: digest for month, digest in digests.items() if start <= _number(month) < start + size}
    return _Block(start, size, inside)


def _blocks_until(last: int, digests: Mapping[str, str]) -> Iterator[_Block]:
    """The blocks that make up the months 0 to `last`: one for each bit of their number."""
    start, end = 0, last + 1
    for bit in range(end.bit_length() - 1, -1, -1):
        if end & (1 << bit):
            block = _block(start, 1 << bit, digests)
            start += 1 << bit
            if block.digests:
                yield block


def _opened(workspace: Workspace, block: _Block) -> Segment:
    folder = workspace.cache("catalogue")
    file = folder / block.name
    with FileLock(folder / f"{block.span}.lock"):
        found = _if_whole(file)
        if found is None:
            made = Segment.merged(list(_parts(workspace, block)))
            made.write(file)
            found = _if_whole(file) or made  # a run that sees other metadata may have dropped it meanwhile
    return found


def _if_whole(file: Path) -> Segment | None:
    try:
        return Segment.open(file)
    except (OSError, pa.ArrowInvalid):
        return None


def _parts(workspace: Workspace, block: _Block) -> Iterator[Segment]:
    """The largest blocks within this one that are there, and the months that are in none."""
    if not block.digests:
        return
    found = _if_whole(workspace.cache("catalogue") / block.name)
    if found is not None:
        yield found
    elif len(block.digests) == 1:
        month = next(iter(block.digests))
        yield Segment.from_rows(workspace.root.iterate(tables.METADATA, month, _COLUMNS), month)
    else:
        for half in block.halves():
            yield from _parts(workspace, half)


def _forget_dead(folder: Path, month: str, digests: Mapping[str, str]) -> None:
    """Drop the blocks up to a month of months as they no longer are; who has one open keeps it until done."""
    sizes = [1 << bit for bit in range(_number(month).bit_length())]
    starts = {(_number(one) // size * size, size) for one in digests for size in sizes}
    alive = {_block(start, size, digests).name for start, size in starts}
    for file in folder.glob("*.arrow"):
        if file.name not in alive and _last_month(file) <= month:
            file.unlink(missing_ok=True)


def _last_month(file: Path) -> str:
    return file.name[len("YYYY-MM_") : len("YYYY-MM_YYYY-MM")]
