"""A place on an object store, with the few methods of `pathlib.Path` that a data root needs.

Each takes one request where the store can do with one (a path of universal-pathlib takes two to five for the same), an
upload is whole or absent, and every error of a store's library is told alike.
"""

from __future__ import annotations

import contextlib
import fnmatch
import hashlib
import os
from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from pipeline.errors import SettingError, TransientFailure

_S3 = ("s3", "s3a")
# Their uploads are seen once they are complete, and not before. Any other file system gets a name for the time being.
_WHOLE_UPLOADS = (*_S3, "gs", "gcs", "az", "abfs", "abfss", "adl")
# Of a file that goes up in parts: s3fs would hold ten parts of 50 MB in memory.
_PARTS_OF_S3: Mapping[str, int] = {"chunksize": 8 << 20, "max_concurrency": 4}
# Under which names stores tell what stands for a file's content, and when it was written (S3, GCS, Azure, fsspec).
_MARKS = ("ETag", "etag", "md5Hash", "content_md5", "mtime", "LastModified", "last_modified", "created")
_MOMENTS = ("LastModified", "last_modified", "mtime", "updated", "created")
_CREDENTIALS = "give credentials as the store's own library reads them, for S3 AWS_ACCESS_KEY_ID and the like"
# What libraries of stores raise where there are no credentials; none of them is an error of Python's own.
_WITHOUT_CREDENTIALS = (
    "NoCredentialsError",
    "PartialCredentialsError",
    "DefaultCredentialsError",
    "TokenRetrievalError",
)

Info = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Status:
    """What a store tells of a file. st_size: bytes. st_mtime: seconds. mark: another one whenever it was changed."""

    st_size: int
    st_mtime: float
    mark: str


@dataclass(frozen=True, slots=True)
class StorePath:
    """A file on an object store, or the name that several begin with: a store has no folders.

    address: as fsspec reads it (`s3://bucket/corpus/papers/2024-03.parquet`). local: the folder on this machine's disk
    for what goes with the data root and need not be seen from other machines.

    Its methods raise SettingError where the store refuses us, TransientFailure where it does not answer.
    """

    address: str
    local: Path

    def __str__(self) -> str:
        return self.address

    def __truediv__(self, name: str) -> StorePath:
        return StorePath(f"{self.address}/{name}", self.local)

    @property
    def name(self) -> str:
        return self.address.rpartition("/")[2]

    @property
    def stem(self) -> str:
        return self.name.rpartition(".")[0] or self.name

    @property
    def parent(self) -> StorePath:
        return StorePath(self.address.rpartition("/")[0], self.local)

    def as_uri(self) -> str:
        """Its address."""
        return self.address

    @property
    def _protocol(self) -> str:
        return self.address.partition("://")[0]

    def _reached(self) -> tuple[Any, str]:
        """The store as fsspec has it, and the file's name there.

        It caches no listing, for another machine may have changed what it listed. Raises SettingError where no library
        here knows such addresses.
        """
        from fsspec.core import url_to_fs

        try:
            system, key = url_to_fs(self.address, use_listings_cache=False)
        except (ImportError, ValueError) as error:
            way_out = ": pip install 'citeloom[s3]'" if self._protocol in _S3 else ""
            raise SettingError(f"CITELOOM_DATA: {self} cannot be reached ({error}){way_out}") from error
        return system, str(key)

    def stat(self) -> Status:
        """What the store tells of a file. Raises FileNotFoundError where it is not there."""
        info = self._info()
        if info is None:
            raise FileNotFoundError(None, "it is not there", str(self))
        return Status(int(info["size"]), _seconds(info), mark_of(info))

    def is_file(self) -> bool:
        """Whether there is such a file."""
        return self._info() is not None

    exists = is_file

    def _info(self) -> Info | None:
        looked = _looked.get()
        if looked is not None:
            return self.parent._looked_at(looked).get(self.name)
        with self._told():
            system, key = self._reached()
            try:
                info: Info = system.info(key)
            except FileNotFoundError:
                return None
        return info if info["type"] == "file" else None

    def _looked_at(self, looked: _Looked) -> Mapping[str, Info]:
        """What lies directly in this folder, by name, as it was when it was first looked at."""
        if self not in looked:
            looked[self] = self._list()
        return looked[self]

    def _list(self) -> dict[str, Info]:
        with self._told():
            system, key = self._reached()
            try:
                found = system.ls(key, detail=True)
            except FileNotFoundError:
                return {}
        return {str(info["name"]).rpartition("/")[2]: info for info in found if info["type"] == "file"}

    def glob(self, pattern: str) -> Iterator[StorePath]:
        """The files below whose names match, sorted; `/` in a pattern stands for itself, as in `*/key.json`."""
        if "/" not in pattern:
            looked = _looked.get()
            names = self._list() if looked is None else self._looked_at(looked)
        else:
            names = {name: {} for name in self._names_below()}
        depth = pattern.count("/")
        return (
            self / name for name in sorted(names) if name.count("/") == depth and fnmatch.fnmatchcase(name, pattern)
        )

    def _names_below(self) -> list[str]:
        with self._told():
            system, key = self._reached()
            return [str(name)[len(key) + 1 :] for name in system.find(key)]

    def read_bytes(self) -> bytes:
        """The file's content. Raises FileNotFoundError where it is not there."""
        if _looked.get() is not None and self._info() is None:
            raise FileNotFoundError(None, "it is not there", str(self))
        with self._told():
            system, key = self._reached()
            # From its first byte on, not whole: for that s3fs asks for the size first. Nothing that is read is empty.
            return bytes(system.cat_file(key, start=0))

    def read_text(self) -> str:
        """The file's content, as UTF-8. Raises FileNotFoundError where it is not there."""
        return self.read_bytes().decode()

    def read_end(self, length: int) -> bytes:
        """The last bytes of a file, fewer where it is shorter. Raises FileNotFoundError where it is not there."""
        with self._told():
            system, key = self._reached()
            return bytes(system.cat_file(key, start=-length))

    @contextlib.contextmanager
    def opened(self, block: int) -> Iterator[Any]:
        """The file, open for reading at any place; `block` bytes more are fetched than asked for.

        A file that is written anew meanwhile is read to its old end or not at all. Raises FileNotFoundError where it is
        not there.
        """
        with self._told():
            system, key = self._reached()
            file = system.open(key, "rb", cache_type="readahead", block_size=block)
        with contextlib.closing(file):
            yield _Told(file, self._told)

    def write_bytes(self, content: bytes) -> None:
        """Put a small file there, whole or not at all."""
        self._put(lambda system, key: system.pipe_file(key, content))

    def upload(self, file: Path) -> None:
        """Put a file of this machine's disk there, whole or not at all."""
        parts = _PARTS_OF_S3 if self._protocol in _S3 else {}
        self._put(lambda system, key: system.put_file(str(file), key, **parts))

    def _put(self, put: Callable[[Any, str], object]) -> None:
        with self._told(), self._forgotten():
            try:
                self._put_whole(put)
            except FileNotFoundError as error:
                raise SettingError(
                    f"CITELOOM_DATA: {self} cannot be written ({error}): make the bucket first"
                ) from error

    def _put_whole(self, put: Callable[[Any, str], object]) -> None:
        system, key = self._reached()
        if self._protocol in _WHOLE_UPLOADS:
            put(system, key)
            return
        folder = key.rpartition("/")[0]
        system.makedirs(folder, exist_ok=True)
        for orphan in self.parent.glob(f".{self.name}.*.tmp"):
            orphan.unlink(missing_ok=True)  # of a run that was killed; the caller holds the file
        staged = f"{folder}/.{self.name}.{os.getpid()}.tmp"
        put(system, staged)
        system.mv(staged, key)

    def unlink(self, missing_ok: bool = False) -> None:
        """Remove the file. Raises FileNotFoundError where it is not there, unless `missing_ok`; S3 never tells."""
        looked = _looked.get()
        if looked is not None and missing_ok and self._info() is None:
            return
        with self._told(), self._forgotten(), contextlib.suppress(*([FileNotFoundError] if missing_ok else [])):
            system, key = self._reached()
            system.rm_file(key)

    def staged(self) -> Path:
        """Where this process makes the file before it goes up; what killed ones left of it is removed."""
        name = f"{hashlib.sha256(str(self).encode()).hexdigest()[:16]}.{self.name}"
        staging = self.local / "staging"
        staging.mkdir(parents=True, exist_ok=True)
        for orphan in staging.glob(f".{name}.*.tmp"):
            orphan.unlink(missing_ok=True)
        return staging / f".{name}.{os.getpid()}.tmp"

    @contextlib.contextmanager
    def _forgotten(self) -> Iterator[None]:
        """What is changed within, this process looks at again."""
        try:
            yield
        finally:
            (_looked.get() or {}).pop(self.parent, None)

    @contextlib.contextmanager
    def _told(self) -> Iterator[None]:
        """What the store's library raises, as an error of ours; that something is absent is no error of the store."""
        try:
            yield
        except (FileNotFoundError, SettingError, TransientFailure):
            raise
        except PermissionError as error:
            raise SettingError(f"CITELOOM_DATA: the store refuses us {self} ({error}): {_CREDENTIALS}") from error
        except NotImplementedError as error:
            raise SettingError(f"CITELOOM_DATA: {self} cannot be written by its library: take another store") from error
        except Exception as error:
            if type(error).__name__ in _WITHOUT_CREDENTIALS:
                raise SettingError(f"CITELOOM_DATA: {self}: {error}: {_CREDENTIALS}") from error
            reason = " ".join(str(error).split())
            raise TransientFailure(
                f"CITELOOM_DATA: {self} cannot be reached ({type(error).__name__}: {reason}): run again once the store "
                "answers; what was done stays"
            ) from error


Place = Path | StorePath


@dataclass(frozen=True, slots=True)
class _Told:
    """A file of a store's library, open for reading, whose errors are told as those of its path."""

    file: Any
    told: Callable[[], contextlib.AbstractContextManager[None]]

    def read(self, length: int = -1) -> bytes:
        with self.told():
            return bytes(self.file.read(length))

    def seek(self, place: int, whence: int = 0) -> int:
        return int(self.file.seek(place, whence))

    def tell(self) -> int:
        return int(self.file.tell())

    @property
    def closed(self) -> bool:
        return bool(self.file.closed)

    def close(self) -> None:
        """Nothing: whoever opened it closes it."""


_Looked = dict[StorePath, Mapping[str, Info]]
_looked: ContextVar[_Looked | None] = ContextVar("looked", default=None)


@contextlib.contextmanager
def looking_once() -> Iterator[None]:
    """Within it, a folder of a store is listed once, and what is not in the listing is not asked for.

    For whoever looks at many files and changes few: 24 months of 40 tables are 40 requests in place of 960. What
    others change meanwhile is not seen.
    """
    if _looked.get() is not None:
        yield
        return
    token = _looked.set({})
    try:
        yield
    finally:
        _looked.reset(token)


def is_looking() -> bool:
    """Whether this is within `looking_once`, where what a store tells of a file costs no request of its own."""
    return _looked.get() is not None


def identity_of(file: Place) -> tuple[object, ...]:
    """What differs after a file was written anew. Raises FileNotFoundError where it is not there."""
    if isinstance(file, StorePath):
        return (file.stat().mark,)
    status = file.stat()
    return status.st_mtime_ns, status.st_ino, status.st_size


def mark_of(info: Info) -> str:
    """What of a store's words on a file is another one whenever the file was changed; empty where nothing is."""
    return next((str(info[key]) for key in _MARKS if info.get(key)), "")


def _seconds(info: Info) -> float:
    told = next((info[key] for key in _MOMENTS if info.get(key)), 0.0)
    if isinstance(told, str):
        told = datetime.fromisoformat(told)
    return told.timestamp() if isinstance(told, datetime) else float(told)
