"""Loose pages beside the zips: `<yymm>/<id>.html` and `<subset>/<yymm>/<id>.html`, months that no zip has yet.

A page's checksum is that of its content; it is kept by the file's size and time, so that a page is read for it once.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pipeline.arxiv.identifiers import MemberName, folder_month, read_member_name
from pipeline.corpus.dump.cache import ListingCache
from pipeline.corpus.dump.folder import DumpFolder
from pipeline.corpus.dump.inflate import checksum_of
from pipeline.corpus.dump.listing import Fault, Listing, ListingBuilder
from pipeline.corpus.dump.member import LARGEST_PAGE, as_text
from pipeline.corpus.dump.subsets import is_subset_folder, subset_of
from pipeline.storage.writing import write_whole

Known = Mapping[str, tuple[int, str, int]]
"""Of each page by name: its size, its mark, its checksum."""

_has_pages: dict[tuple[str, str], tuple[str, bool]] = {}


@dataclass(frozen=True, slots=True)
class LooseFolder:
    """One folder of a month's loose pages. `path` is below the dump folder."""

    path: str
    month: str
    subset: str

    def list_pages(self, folder: DumpFolder, cache: ListingCache) -> Listing:
        """What is in it now. Pages that are new or have changed are read for their checksum.

        Raises OSError where it cannot be listed.
        """
        kept = cache.file(f"{folder.address}/{self.path}", ".json")
        known = _read_known(kept)
        now: dict[str, tuple[int, str, int]] = {}
        faults: dict[int, Fault] = {}
        names = [name for name, _ in folder.names(self.path) if not name.startswith(".")]
        for place, name in enumerate(names):
            try:
                now[name] = self._examine(folder, name, known)
            except OSError as error:
                faults[place] = ("unreadable", f"it cannot be read ({error.strerror or error})")
        if now != known:
            _keep(kept, now)
        return self._build(names, now, faults)

    def _examine(self, folder: DumpFolder, name: str, known: Known) -> tuple[int, str, int]:
        path = f"{self.path}/{name}"
        state = folder.state(path)
        before = known.get(name)
        if before is not None and before[:2] == (state.bytes, state.mark):
            return before
        if state.bytes > LARGEST_PAGE or not isinstance(read_member_name(path), MemberName):
            return state.bytes, state.mark, 0  # never read as a page
        return state.bytes, state.mark, checksum_of(folder.read_head(path, state.bytes))

    def _build(self, names: list[str], now: Known, faults: Mapping[int, Fault]) -> Listing:
        absent = (0, "", 0)
        sizes = [now.get(name, absent)[0] for name in names]
        numbers = {
            "offset": [0] * len(names),
            "bytes": sizes,
            "compressed_bytes": sizes,
            "crc32": [now.get(name, absent)[2] for name in names],
        }
        builder = ListingBuilder("")
        builder.add([f"{self.path}/{as_text(name)}" for name in names], numbers, faults)
        return builder.build()


def find_loose_folders(folder: DumpFolder, top: list[tuple[str, bool]]) -> list[LooseFolder]:
    """The folders of loose pages in a dump folder, given the names directly in it; those that hold no page are none.

    Raises OSError where one cannot be listed.
    """
    paths = [name for name, is_folder in top if is_folder and folder_month(name)]
    for name, is_folder in top:
        if is_folder and is_subset_folder(name):
            paths += [f"{name}/{below}" for below, is_one in folder.names(name) if is_one and folder_month(below)]
    return [_loose_folder(path) for path in paths if _holds_a_page(folder, path)]


def _loose_folder(path: str) -> LooseFolder:
    above, _, yymm = path.rpartition("/")
    return LooseFolder(path, folder_month(yymm) or "", subset_of(above, ""))


def _holds_a_page(folder: DumpFolder, path: str) -> bool:
    """Whether any name in a folder is a page's; remembered while the folder's own time is the same."""
    mark, key = folder.folder_mark(path), (folder.address, path)
    known = _has_pages.get(key)
    if known is None or not mark or known[0] != mark:
        holds = any(isinstance(read_member_name(f"{path}/{name}"), MemberName) for name, _ in folder.names(path))
        known = _has_pages[key] = (mark, holds)
    return known[1]


def _read_known(file: Path) -> Known:
    try:
        kept = json.loads(file.read_bytes())
        return {name: (int(size), str(mark), int(checksum)) for name, (size, mark, checksum) in kept.items()}
    except (OSError, ValueError, TypeError, AttributeError):
        return {}


def _keep(file: Path, known: Known) -> None:
    with contextlib.suppress(OSError):  # a data root that cannot be written costs the time again, no more
        write_whole(file, json.dumps(known).encode())
