"""Loose pages beside the zips, of months that are in no zip yet: `<yymm>/<id>.html` and `<subset>/<yymm>/<id>.html`."""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from deflate import crc32

from pipeline.arxiv.identifiers import MemberName, folder_month, read_member_name
from pipeline.corpus.dump.folder import DumpFolder
from pipeline.corpus.dump.listing import Fault, Listing, build_listing
from pipeline.corpus.dump.member import LARGEST_PAGE, as_text, is_subset_folder, subset_of
from pipeline.storage.writing import write_whole

FileFacts = Mapping[str, tuple[int, str, int]]
"""Size, mark and checksum of each page by its name."""


@dataclass(frozen=True, slots=True)
class LooseFolder:
    """One folder of a month's loose pages. `path` is below the dump folder."""

    path: str
    month: str
    subset: str

    def list_pages(self, folder: DumpFolder, cache: Path) -> Listing:
        """Its present contents. Checksums are cached: only new pages, and those that have changed, are read for them.

        Raises OSError where the folder cannot be listed.
        """
        cache_file = cache / (hashlib.sha256(f"{folder.address}/{self.path}".encode()).hexdigest()[:32] + ".json")
        cached = _read_facts(cache_file)
        facts: dict[str, tuple[int, str, int]] = {}
        faults: dict[int, Fault] = {}
        names = sorted(name for name, _ in folder.names(self.path) if not name.startswith("."))
        for place, name in enumerate(names):
            try:
                facts[name] = self._examine(folder, name, cached)
            except OSError as error:
                faults[place] = ("unreadable", f"it cannot be read ({error.strerror or error})")
        if facts != cached:
            with contextlib.suppress(OSError):  # if it cannot be written, checksums are computed again next time
                write_whole(cache_file, json.dumps(facts).encode())
        sizes, _, checksums = zip(*(facts.get(name, (0, "", 0)) for name in names), strict=True) if names else ((),) * 3
        numbers = {"offset": [0] * len(names), "bytes": sizes, "compressed_bytes": sizes, "crc32": checksums}
        return build_listing("", [([f"{self.path}/{as_text(name)}" for name in names], numbers, faults)])

    def _examine(self, folder: DumpFolder, name: str, cached: FileFacts) -> tuple[int, str, int]:
        path = f"{self.path}/{name}"
        state = folder.state(path)
        if name in cached and cached[name][:2] == (state.bytes, state.mark):
            return cached[name]
        if state.bytes > LARGEST_PAGE or not _is_page(path):
            return state.bytes, state.mark, 0  # never read as a page
        with contextlib.closing(folder.open(path)) as file:
            return state.bytes, state.mark, crc32(file.read(0, state.bytes))


def find_loose_folders(folder: DumpFolder, top: list[tuple[str, bool]]) -> list[LooseFolder]:
    """The folders of a dump folder that hold loose pages; `top` are the names directly in it, sorted.

    Raises OSError where one cannot be listed.
    """
    paths = [name for name, is_folder in top if is_folder and folder_month(name)]
    for name, is_folder in top:
        if is_folder and is_subset_folder(name):
            inside = sorted(folder.names(name))
            paths += [f"{name}/{yymm}" for yymm, is_below in inside if is_below and folder_month(yymm)]
    with_pages = [path for path in paths if any(_is_page(f"{path}/{name}") for name, _ in folder.names(path))]
    return [_loose_folder(path) for path in with_pages]


def _loose_folder(path: str) -> LooseFolder:
    parent, _, yymm = path.rpartition("/")
    return LooseFolder(path, folder_month(yymm) or "", subset_of(parent, ""))


def _is_page(path: str) -> bool:
    return isinstance(read_member_name(path), MemberName)


def _read_facts(file: Path) -> FileFacts:
    try:
        facts = json.loads(file.read_bytes())
        return {name: (int(size), str(mark), int(checksum)) for name, (size, mark, checksum) in facts.items()}
    except (OSError, ValueError, TypeError, AttributeError):
        return {}
