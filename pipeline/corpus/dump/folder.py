"""The folder of the dump, on a disk or an object store, and byte ranges of its files."""

from __future__ import annotations

import os
import stat
import time
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pipeline.errors import SettingError
from pipeline.storage.store import etag_of, require_s3fs

Range = tuple[int, int]
"""(first byte, first byte after it)"""

# `citeloom status` asks for a month's state 400 times; a listing costs an object store some 50 ms.
_LISTING_SECONDS = 10.0
# A request to an object store costs 10 to 50 ms and then brings some 50 to 100 MB a second, so a
# gap of 1 MB costs no more than a second request would.
WIDEST_GAP = 1024 * 1024
# Held in memory for every zip that is read; eight times as much would save one request in a hundred
# pages.
LONGEST_SPAN = 16 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class FileState:
    """A file's size in bytes, and a mark that changes whenever the file does."""

    bytes: int
    mark: str


class LocalFolder:
    """A folder on a disk; names are paths below it, with `/`. Methods raise OSError."""

    def __init__(self, path: Path) -> None:
        self._path = path.absolute()
        self.address = str(self._path)

    def names(self, below: str = "") -> Iterator[tuple[str, bool]]:
        """(name, whether it is a folder) of everything directly in a folder, in any order."""
        with os.scandir(self._path / below) as entries:
            yield from ((entry.name, entry.is_dir()) for entry in entries)

    def state(self, name: str) -> FileState:
        """The present state of a file."""
        status = (self._path / name).stat()
        if not stat.S_ISREG(status.st_mode):  # to open a pipe would block
            raise OSError(None, "it is no regular file")
        return FileState(status.st_size, str(status.st_mtime_ns))

    def open(self, name: str) -> LocalFile:
        """Open a file."""
        return LocalFile(self._path / name)


class LocalFile:
    """A file on a disk; the operating system reads ahead."""

    def __init__(self, path: Path) -> None:
        self._descriptor = os.open(path, os.O_RDONLY)

    def plan(self, ranges: Iterable[Range]) -> None:
        """Announce the ranges that will be read, so that neighbours can be fetched together."""

    def read(self, start: int, length: int) -> bytes:
        """A range of the file; fewer bytes only where the file ends. Raises OSError."""
        content = os.pread(self._descriptor, length, start)
        while len(content) < length:  # Linux reads at most 2 GiB in one call
            more = os.pread(self._descriptor, length - len(content), start + len(content))
            if not more:
                break
            content += more
        return content

    def close(self) -> None:
        os.close(self._descriptor)


class RemoteFolder:
    """A LocalFolder on an object store. A listing is used for `listing_seconds`."""

    def __init__(self, address: str, listing_seconds: float = _LISTING_SECONDS) -> None:
        from fsspec.core import url_to_fs

        require_s3fs("CITELOOM_DUMP_DIR", address)
        self.address, self._listing_seconds = address, listing_seconds
        self._system: Any
        try:
            self._system, path = url_to_fs(address)
        except (ImportError, ValueError, OSError) as error:
            raise SettingError(
                f"CITELOOM_DUMP_DIR: {self.address} cannot be reached: {error}"
            ) from error
        self._path = str(path).rstrip("/")
        self._listings: dict[str, tuple[float, dict[str, Any]]] = {}

    def names(self, below: str = "") -> Iterator[tuple[str, bool]]:
        yield from ((name, info["type"] == "directory") for name, info in self._list(below).items())

    def state(self, name: str) -> FileState:
        below, _, last = name.rpartition("/")
        info = self._list(below).get(last)
        if info is None:
            raise FileNotFoundError(None, "it is not there")
        return FileState(int(info["size"]), etag_of(info))

    def open(self, name: str) -> RemoteFile:
        def fetch(start: int, end: int) -> bytes:
            with _as_os_errors():
                return bytes(self._system.cat_file(f"{self._path}/{name}", start=start, end=end))

        return RemoteFile(self.state(name).bytes, fetch)

    def _list(self, below: str) -> dict[str, Any]:
        listed_at, listing = self._listings.get(below, (float("-inf"), {}))
        if time.monotonic() - listed_at >= self._listing_seconds:
            path = f"{self._path}/{below}".rstrip("/")
            with _as_os_errors():
                self._system.invalidate_cache(path)
                infos = self._system.ls(path, detail=True)
            # Some stores list the folder itself too.
            inside = [info for info in infos if str(info["name"]).strip("/") != path.strip("/")]
            listing = {str(info["name"]).rstrip("/").rpartition("/")[2]: info for info in inside}
            self._listings[below] = (time.monotonic(), listing)
        return listing


class RemoteFile:
    """A file on an object store; it holds the last span that `fetch(start, end)` brought."""

    def __init__(self, size: int, fetch: Callable[[int, int], bytes]) -> None:
        self._size, self._fetch = size, fetch
        self._planned: list[Range] = []
        self._span_start, self._span = 0, b""

    def plan(self, ranges: Iterable[Range]) -> None:
        from fsspec.utils import merge_offset_ranges

        within = [(start, min(end, self._size)) for start, end in ranges if 0 <= start < self._size]
        starts, ends = [start for start, _ in within], [end for _, end in within]
        _, starts, ends = merge_offset_ranges(
            [""] * len(within), starts, ends, WIDEST_GAP, LONGEST_SPAN
        )
        self._planned = list(zip(starts, ends, strict=True))

    def read(self, start: int, length: int) -> bytes:
        if not 0 <= start < self._size:  # a store answers such a range with an error
            return b""
        end = min(start + length, self._size)
        if not self._span_start <= start <= end <= self._span_start + len(self._span):
            span = self._span_around(start, end)
            self._span_start, self._span = span[0], self._fetch(*span)
        return self._span[start - self._span_start : end - self._span_start]

    def close(self) -> None:
        self._span = b""

    def _span_around(self, start: int, end: int) -> Range:
        place = bisect_right(self._planned, start, key=lambda span: span[0]) - 1
        if place >= 0 and end <= self._planned[place][1]:
            return self._planned[place]
        return start, end


@contextmanager
def _as_os_errors() -> Iterator[None]:
    """Raise errors of a store's library as OSError: those of botocore and aiohttp are not."""
    try:
        yield
    except OSError:
        raise
    except Exception as error:
        raise OSError(None, f"{type(error).__name__}: {error}") from error


DumpFolder = LocalFolder | RemoteFolder
DumpFile = LocalFile | RemoteFile


def open_folder(place: Path | str) -> DumpFolder:
    """The dump folder at a path or address. Raises SettingError for an unknown scheme."""
    return LocalFolder(place) if isinstance(place, Path) else RemoteFolder(place)
