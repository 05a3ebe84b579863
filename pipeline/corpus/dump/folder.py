"""Where the dump lies: a folder on a disk, or an address on an object store that fsspec knows.

Both list names, tell a file's size and state, and read byte ranges.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from upath import UPath

from pipeline.corpus.dump.ranges import Range, ReadAhead
from pipeline.errors import SettingError
from pipeline.storage.store import etag_of

# A month's state is asked for 400 times in one `citeloom status`; a listing costs an object store some 50 ms.
_LISTING_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class FileState:
    """A file's size in bytes, and a mark that is another one whenever the file has changed."""

    bytes: int
    mark: str


class DumpFolder(Protocol):
    """A place that holds files. Names are paths below it, with `/` between folders; every method raises OSError."""

    address: str

    def names(self, below: str = "") -> list[tuple[str, bool]]:
        """(last part of the name, whether it is a folder) of everything directly in a folder, sorted by name."""

    def state(self, name: str) -> FileState:
        """A file's state now."""

    def folder_mark(self, below: str) -> str:
        """Another one whenever a name came into the folder or went; empty where that cannot be told."""

    def open(self, name: str) -> None:
        """Make ready to read ranges of a file; it stays open until `close`."""

    def read(self, name: str, start: int, length: int) -> bytes:
        """A range of an open file; fewer bytes only where the file ends."""

    def read_head(self, name: str, length: int) -> bytes:
        """The first bytes of a file, which need not be open; fewer only where it is shorter."""

    def plan(self, name: str, ranges: Iterable[Range]) -> None:
        """Say which ranges of a file will be read, so that neighbours can be fetched together."""

    def close(self) -> None:
        """Close what was opened."""


def open_folder(place: Path | UPath) -> DumpFolder:
    """The dump folder at a path or an address. Raises SettingError where no library here reads such addresses."""
    return LocalFolder(place) if isinstance(place, Path) else RemoteFolder(place)


class LocalFolder:
    """A folder on a disk."""

    def __init__(self, path: Path) -> None:
        self._path = path.absolute()
        self.address = str(self._path)
        self._open: dict[str, int] = {}

    def names(self, below: str = "") -> list[tuple[str, bool]]:
        """See DumpFolder."""
        with os.scandir(self._path / below) as entries:
            return sorted((entry.name, entry.is_dir()) for entry in entries)

    def state(self, name: str) -> FileState:
        """See DumpFolder. What is no regular file is refused: opening a pipe would wait for ever."""
        status = (self._path / name).stat()
        if not stat.S_ISREG(status.st_mode):
            raise OSError(None, "it is no regular file")
        return FileState(status.st_size, str(status.st_mtime_ns))

    def folder_mark(self, below: str) -> str:
        """See DumpFolder."""
        return str((self._path / below).stat().st_mtime_ns)

    def open(self, name: str) -> None:
        """See DumpFolder."""
        if name not in self._open:
            self._open[name] = os.open(self._path / name, os.O_RDONLY)

    def read(self, name: str, start: int, length: int) -> bytes:
        """See DumpFolder."""
        self.open(name)
        return _read_range(self._open[name], start, length)

    def read_head(self, name: str, length: int) -> bytes:
        """See DumpFolder."""
        with (self._path / name).open("rb", buffering=0) as file:
            return _read_range(file.fileno(), 0, length)

    def plan(self, name: str, ranges: Iterable[Range]) -> None:
        """Nothing to do: the operating system reads ahead."""

    def close(self) -> None:
        """See DumpFolder."""
        for descriptor in self._open.values():
            os.close(descriptor)
        self._open.clear()


def _read_range(descriptor: int, start: int, length: int) -> bytes:
    found = os.pread(descriptor, length, start)
    if len(found) == length:
        return found
    parts = [found]
    while parts[-1] and (missing := length - sum(map(len, parts))):  # Linux reads at most 2 GiB in one call
        parts.append(os.pread(descriptor, missing, start + length - missing))
    return b"".join(parts)


class RemoteFolder:
    """A folder on an object store. A listing counts for `listing_seconds`."""

    def __init__(self, address: UPath, listing_seconds: float = _LISTING_SECONDS) -> None:
        self.address = str(address)
        self._path, self._listing_seconds = address.path.rstrip("/"), listing_seconds
        try:
            self._system: Any = address.fs
        except (ImportError, ValueError, OSError) as error:
            raise SettingError(f"CITELOOM_DUMP_DIR: {self.address} cannot be reached: {error}") from error
        self._listings: dict[str, tuple[float, dict[str, Any]]] = {}
        self._ahead: dict[str, tuple[int, ReadAhead]] = {}
        """Of each open file its size, and what reads it."""

    def names(self, below: str = "") -> list[tuple[str, bool]]:
        """See DumpFolder."""
        listing = self._list(below)
        return sorted((name, info["type"] == "directory") for name, info in listing.items())

    def state(self, name: str) -> FileState:
        """See DumpFolder."""
        below, _, last = name.rpartition("/")
        info = self._list(below).get(last)
        if info is None:
            raise FileNotFoundError(None, "it is not there")
        return FileState(int(info["size"]), etag_of(info))

    def _list(self, below: str) -> dict[str, Any]:
        known = self._listings.get(below)
        if known is None or time.monotonic() - known[0] >= self._listing_seconds:
            with _as_os_errors():
                path = f"{self._path}/{below}".rstrip("/")
                self._system.invalidate_cache(path)
                found = self._system.ls(path, detail=True)
            # Some stores list the folder itself too.
            inside = [info for info in found if str(info["name"]).strip("/") != path.strip("/")]
            listing = {str(info["name"]).rstrip("/").rpartition("/")[2]: info for info in inside}
            known = self._listings[below] = (time.monotonic(), listing)
        return known[1]

    def folder_mark(self, below: str) -> str:
        """See DumpFolder: a store has no folders."""
        return ""

    def open(self, name: str) -> None:
        """Nothing to open; raises FileNotFoundError where there is no such file."""
        if name not in self._ahead:
            self._ahead[name] = (self.state(name).bytes, ReadAhead(self._fetcher(name)))

    def _fetcher(self, name: str) -> Callable[[int, int], bytes]:
        def fetch(start: int, end: int) -> bytes:
            with _as_os_errors():
                return bytes(self._system.cat_file(f"{self._path}/{name}", start=start, end=end))

        return fetch

    def read(self, name: str, start: int, length: int) -> bytes:
        """See DumpFolder."""
        self.open(name)
        size, ahead = self._ahead[name]
        # A store answers a range that begins past the end with an error.
        return ahead.read(start, min(start + length, size)) if 0 <= start < size else b""

    def read_head(self, name: str, length: int) -> bytes:
        """See DumpFolder."""
        size = self.state(name).bytes
        return self._fetcher(name)(0, min(length, size)) if size else b""

    def plan(self, name: str, ranges: Iterable[Range]) -> None:
        """See DumpFolder."""
        self.open(name)
        size, ahead = self._ahead[name]
        ahead.plan((start, min(end, size)) for start, end in ranges if 0 <= start < size)

    def close(self) -> None:
        """See DumpFolder."""
        self._ahead.clear()


@contextmanager
def _as_os_errors() -> Iterator[None]:
    """What a store's library raises, as OSError: botocore's and aiohttp's errors are none."""
    try:
        yield
    except OSError:
        raise
    except Exception as error:
        raise OSError(None, f"{type(error).__name__}: {error}") from error
