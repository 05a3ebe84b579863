"""Files on an object store, with the few methods of `pathlib.Path` that a data root needs.

Each method takes one request where possible, an upload is whole or absent, and every error of a
store's library becomes one of ours. Neither pyarrow.fs nor universal-pathlib keeps this
(docs/contributing/upstream.md).
"""

from __future__ import annotations

import contextlib
import fnmatch
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from pipeline.errors import SettingError, TransientFailure, require_packages
from pipeline.storage.read_cache import forget, is_active, once
from pipeline.text import one_line, text_digest

_S3 = ("s3", "s3a")
# Stores on which an upload is visible only once it is complete. Elsewhere it gets a temporary name
# until then.
_ATOMIC_UPLOADS = (*_S3, "gs", "gcs", "az", "abfs", "abfss", "adl")
# For multipart uploads; by default s3fs holds ten parts of 50 MB in memory.
_S3_UPLOAD: Mapping[str, int] = {"chunksize": 8 << 20, "max_concurrency": 4}
# Where the listings of S3, GCS, Azure and fsspec say what version a file has, and when it was
# written.
_ETAG_KEYS = (
    "ETag",
    "etag",
    "md5Hash",
    "content_md5",
    "mtime",
    "LastModified",
    "last_modified",
    "created",
)
_TIME_KEYS = ("LastModified", "last_modified", "mtime", "updated", "created")
_CREDENTIALS = (
    "give credentials as the store's own library reads them, for S3 AWS_ACCESS_KEY_ID and the like"
)
# Exceptions for missing credentials, of libraries that may not be installed; none derives from
# PermissionError.
_CREDENTIAL_ERRORS = (
    "NoCredentialsError",
    "PartialCredentialsError",
    "DefaultCredentialsError",
    "TokenRetrievalError",
)

Info = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class FileStat:
    """Size in bytes, time of writing in seconds, and a tag that changes with the content."""

    st_size: int
    st_mtime: float
    etag: str


@dataclass(frozen=True, slots=True)
class StorePath:
    """A file on an object store, or the prefix of several: a store has no folders.

    address: for fsspec (`s3://bucket/corpus/papers/2024-03.parquet`). local: the folder on this
    machine's disk for caches, locks and files that are about to be uploaded.

    Its methods raise SettingError where the store refuses access, TransientFailure where it does
    not answer.
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

    @property
    def _protocol(self) -> str:
        return self.address.partition("://")[0]

    def _connect(self) -> tuple[Any, str]:
        """The fsspec file system and the file's key in it. Raises SettingError where no installed
        library fits.

        fsspec caches no listings here: another machine may have changed them.
        """
        from fsspec.core import url_to_fs

        require_s3fs("CITELOOM_DATA", self.address)
        try:
            system, key = url_to_fs(self.address, use_listings_cache=False)
        except (ImportError, ValueError) as error:
            raise SettingError(f"CITELOOM_DATA: {self} cannot be reached ({error})") from error
        return system, str(key)

    def stat(self) -> FileStat:
        """Raises FileNotFoundError where it does not exist."""
        info = self._info()
        if info is None:
            raise FileNotFoundError(None, "does not exist", str(self))
        return FileStat(int(info["size"]), _time_of(info), etag_of(info))

    def is_file(self) -> bool:
        return self._info() is not None

    exists = is_file

    def _info(self) -> Info | None:
        if is_active():
            return self.parent._list().get(self.name)
        with self._store_errors():
            system, key = self._connect()
            try:
                info: Info = system.info(key)
            except FileNotFoundError:
                return None
        return info if info["type"] == "file" else None

    def _list(self) -> Mapping[str, Info]:
        """The files directly in this folder, by name; listed once within `read_cache`."""
        return once("listing", self._request_listing, self)

    def _request_listing(self) -> Mapping[str, Info]:
        with self._store_errors():
            system, key = self._connect()
            try:
                entries = system.ls(key, detail=True)
            except FileNotFoundError:
                entries = []
        return {
            str(info["name"]).rpartition("/")[2]: info for info in entries if info["type"] == "file"
        }

    def glob(self, pattern: str) -> Iterator[StorePath]:
        """The files below whose names match, sorted. `*` does not match `/`."""
        if "/" not in pattern:
            names = list(self._list())
        else:
            with self._store_errors():
                system, key = self._connect()
                names = [str(name)[len(key) + 1 :] for name in system.find(key)]
        depth = pattern.count("/")
        return (
            self / name
            for name in sorted(names)
            if name.count("/") == depth and fnmatch.fnmatchcase(name, pattern)
        )

    def read_bytes(self) -> bytes:
        """The content. Raises FileNotFoundError where it does not exist."""
        if is_active() and self._info() is None:
            raise FileNotFoundError(None, "does not exist", str(self))
        with self._store_errors():
            system, key = self._connect()
            # With an explicit start, since s3fs asks for the size first otherwise. No file that is
            # read is empty.
            return bytes(system.cat_file(key, start=0))

    def read_text(self) -> str:
        """The content, as UTF-8. Raises FileNotFoundError where it does not exist."""
        return self.read_bytes().decode()

    def read_end(self, length: int) -> bytes:
        """The last bytes, fewer where the file is shorter. Raises FileNotFoundError where it does
        not exist.
        """
        with self._store_errors():
            system, key = self._connect()
            return bytes(system.cat_file(key, start=-length))

    @contextlib.contextmanager
    def open(self, read_ahead: int) -> Iterator[Any]:
        """The file, open for random reads, each of which fetches `read_ahead` bytes more.

        A file that is replaced meanwhile is read to its old end or not at all. Raises
        FileNotFoundError where it does not exist.
        """
        with self._store_errors():
            system, key = self._connect()
            file = system.open(key, "rb", cache_type="readahead", block_size=read_ahead)
        with contextlib.closing(file):
            yield _OpenFile(file, self._store_errors)

    def write_bytes(self, content: bytes) -> None:
        """Write a small file, whole or not at all."""
        self._put(lambda system, key: system.pipe_file(key, content))

    def upload(self, file: Path) -> None:
        """Upload a local file, whole or not at all."""
        options = _S3_UPLOAD if self._protocol in _S3 else {}
        self._put(lambda system, key: system.put_file(str(file), key, **options))

    def _put(self, put: Callable[[Any, str], object]) -> None:
        with self._store_errors(), self._changing():
            try:
                system, key = self._connect()
                if self._protocol in _ATOMIC_UPLOADS:
                    put(system, key)
                    return
                folder = key.rpartition("/")[0]
                system.makedirs(folder, exist_ok=True)
                # Orphans of killed runs; the caller holds the lock.
                for orphan in self.parent.glob(f".{self.name}.*.tmp"):
                    orphan.unlink(missing_ok=True)
                staged = f"{folder}/.{self.name}.{os.getpid()}.tmp"
                put(system, staged)
                system.mv(staged, key)
            except FileNotFoundError as error:
                message = (
                    f"CITELOOM_DATA: {self} cannot be written ({error}): make the bucket first"
                )
                raise SettingError(message) from error

    def unlink(self, missing_ok: bool = False) -> None:
        """Remove the file. Raises FileNotFoundError where it does not exist, unless `missing_ok`;
        on S3 never.
        """
        if missing_ok and is_active() and self._info() is None:
            return
        ignored = (FileNotFoundError,) if missing_ok else ()
        with self._store_errors(), self._changing(), contextlib.suppress(*ignored):
            system, key = self._connect()
            system.rm_file(key)

    def local_staging_file(self) -> Path:
        """Where this process writes the file before its upload; removes leftovers of others."""
        name = f"{text_digest(str(self))[:16]}.{self.name}"
        return staging_file(self.local / "staging" / name)

    @contextlib.contextmanager
    def _changing(self) -> Iterator[None]:
        """Drop the file from `read_cache` after the block: the block changes it."""
        try:
            yield
        finally:
            forget(self)

    @contextlib.contextmanager
    def _store_errors(self) -> Iterator[None]:
        """Turn errors of the store's library into ours. An absent file stays FileNotFoundError."""
        try:
            yield
        except (FileNotFoundError, SettingError, TransientFailure):
            raise
        except PermissionError as error:
            raise SettingError(
                f"CITELOOM_DATA: the store denies access to {self} ({error}): {_CREDENTIALS}"
            ) from error
        except NotImplementedError as error:
            message = f"CITELOOM_DATA: the store's library cannot write {self}: use another store"
            raise SettingError(message) from error
        except Exception as error:
            if type(error).__name__ in _CREDENTIAL_ERRORS:
                raise SettingError(f"CITELOOM_DATA: {self}: {error}: {_CREDENTIALS}") from error
            reason = one_line(str(error))
            raise TransientFailure(
                f"CITELOOM_DATA: {self} cannot be reached ({type(error).__name__}: {reason}): run"
                " again once the store answers; finished months are kept"
            ) from error


def require_s3fs(setting: str, address: str) -> None:
    """Raise SettingError where the address is one of S3 and s3fs is not installed."""
    protocol = address.partition("://")[0]
    if protocol in _S3:
        require_packages(f"{setting}={protocol}://…", "s3", "s3fs")


DataPath = Path | StorePath


@dataclass(frozen=True, slots=True)
class _OpenFile:
    """A file of a store's library, with its errors turned into ours."""

    file: Any
    store_errors: Callable[[], contextlib.AbstractContextManager[None]]

    def read(self, length: int = -1) -> bytes:
        with self.store_errors():
            return bytes(self.file.read(length))

    def seek(self, offset: int, whence: int = 0) -> int:
        return int(self.file.seek(offset, whence))

    def tell(self) -> int:
        return int(self.file.tell())

    @property
    def closed(self) -> bool:
        return bool(self.file.closed)

    def close(self) -> None:
        """Nothing: `StorePath.open` closes the file."""


def file_version(file: DataPath) -> tuple[object, ...]:
    """A value that differs once the file was rewritten. Raises FileNotFoundError where it does not
    exist.
    """
    status = file_stat(file)
    if isinstance(status, FileStat):
        return (status.etag,)
    return status.st_mtime_ns, status.st_ino, status.st_size


def file_stat(file: DataPath) -> os.stat_result | FileStat:
    """Size, time and identity of a file; within `read_cache` one system call or request. Raises
    FileNotFoundError where it does not exist.
    """

    def read_stat() -> os.stat_result | FileStat:
        return file.stat()

    return once("stat", read_stat, file)


def staging_file(file: Path) -> Path:
    """The temporary name beside a file on a disk, under which this process writes it.

    Leftovers of killed processes are removed; the caller holds the file's lock, so nobody is
    writing them.
    """
    file.parent.mkdir(parents=True, exist_ok=True)
    for orphan in file.parent.glob(f".{file.name}.*.tmp"):
        orphan.unlink(missing_ok=True)
    return file.with_name(f".{file.name}.{os.getpid()}.tmp")


def etag_of(info: Info) -> str:
    """The part of a store's listing that changes with the file; empty if there is none."""
    return next((str(info[key]) for key in _ETAG_KEYS if info.get(key)), "")


def _time_of(info: Info) -> float:
    time_value = next((info[key] for key in _TIME_KEYS if info.get(key)), 0.0)
    if isinstance(time_value, str):
        time_value = datetime.fromisoformat(time_value)
    return time_value.timestamp() if isinstance(time_value, datetime) else float(time_value)
