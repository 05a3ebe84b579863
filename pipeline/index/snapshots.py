"""A collection as one file: taken from a Qdrant server whole, and given back to one.

Over HTTP, as Qdrant has it.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import os
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from pipeline.errors import MissingInput, PermanentFailure, SettingError
from pipeline.index.connection import result_of
from pipeline.index.server_requests import mark_of
from pipeline.storage.writing import move_into_place

if TYPE_CHECKING:
    import httpx

    from pipeline.index.server_collections import ServerCollections

# Seconds that the server may be silent, since it says nothing while it packs or unpacks hundreds of gigabytes.
_TIMEOUT = 6 * 3600.0
_CHUNK = 1 << 20

_log = logging.getLogger(__name__)


def take(collections: ServerCollections, folder: Path) -> Path:
    """Put a snapshot of the live collection into a folder, whole or not at all; returns its file.

    The server's own copy is deleted afterwards. Raises MissingInput where nothing is live, PermanentFailure where the
    collection is spread over several nodes, or what came differs from the server's checksum, and what a connection
    may raise.
    """
    name = collections.live()
    if name is None or collections.collection(name).layout() is None:
        raise MissingInput(
            f"there is no index {collections.alias} to take a snapshot of: "
            f"run citeloom run --months all --until index_receipts"
        )
    with collections.connection.files(_TIMEOUT) as client, _written(folder):
        folder.mkdir(parents=True, exist_ok=True)  # before the server packs for hours
        _insist_on_one_node(client, name)
        made = result_of(client.post(f"{_path(name)}/snapshots", params={"wait": "true"}))
        path = f"{_path(name)}/snapshots/{quote(made['name'])}"
        try:
            return _download(client, path, made, folder)
        finally:
            _forget(client, path)


def restore(collections: ServerCollections, file: Path) -> str:
    """Make the collection that a snapshot was taken of, over the one of its name where there is one; returns its name.

    It is not made live. Raises SettingError for a file that is not there or is of another alias, PermanentFailure for
    one that is no snapshot of ours, and what a connection may raise.
    """
    name = _name_within(file, collections.alias)
    collections.collection(name).layout()  # raises where somebody else's has the name
    checksum = _sha256(file)
    with collections.connection.files(_TIMEOUT) as client, file.open("rb") as content:
        asked = {"priority": "snapshot", "checksum": checksum, "wait": "true"}
        result_of(
            client.post(f"{_path(name)}/snapshots/upload", params=asked, files={"snapshot": (file.name, content)})
        )
    return name


def _path(name: str) -> str:
    return f"collections/{quote(name, safe='')}"


def _insist_on_one_node(client: httpx.Client, name: str) -> None:
    elsewhere = result_of(client.get(f"{_path(name)}/cluster")).get("remote_shards")
    if elsewhere:
        raise PermanentFailure(
            f"{len(elsewhere)} shards of {name} lie on other nodes of the cluster, and a snapshot holds one node's "
            f"alone: take one of each node by its own URL with Qdrant's tools, or make the index again from the tables"
        )


def _download(client: httpx.Client, path: str, made: dict[str, Any], folder: Path) -> Path:
    """Raises PermanentFailure where the file is not what the server says it made."""
    file = folder / Path(made["name"]).name
    staged = file.with_name(f".{file.name}.{os.getpid()}.tmp")
    digest = hashlib.sha256()
    try:
        # Else the server gzips what it sends.
        with client.stream("GET", path, headers={"accept-encoding": "identity"}) as response, staged.open("wb") as out:
            if response.status_code != 200:
                response.read()
                result_of(response)
            for chunk in response.iter_bytes(_CHUNK):
                digest.update(chunk)
                out.write(chunk)
        if made.get("checksum") not in (None, digest.hexdigest()):
            raise PermanentFailure(f"the snapshot {file.name} did not come as the server made it: take it again")
        move_into_place(staged, file)
    finally:
        staged.unlink(missing_ok=True)
    return file


def _forget(client: httpx.Client, path: str) -> None:
    """Delete the server's own copy; where that fails, the snapshot is whole all the same."""
    import httpx

    try:
        status: object = client.delete(path, params={"wait": "true"}).status_code
    except httpx.TransportError as error:
        status = str(error)
    if status != 200:
        _log.warning("the server keeps its own copy of the snapshot (%s): delete %s there", status, path)


def _name_within(file: Path, alias: str) -> str:
    """The name of the collection that a snapshot holds, as its own configuration tells it."""
    try:
        with tarfile.open(file) as archive:
            content = archive.extractfile("config.json")
            metadata = json.loads(content.read() if content is not None else b"{}").get("metadata")
    except FileNotFoundError:
        raise SettingError(f"there is no file {file}") from None
    except (OSError, KeyError, ValueError, AttributeError, tarfile.TarError) as error:
        raise PermanentFailure(f"{file} is no snapshot of a Qdrant collection ({error}): give another file") from error
    mark = mark_of(metadata)
    if mark is None:
        raise PermanentFailure(f"{file} is a snapshot of a collection that citeloom did not make: give another file")
    if mark[0] != alias:
        raise SettingError(f"{file} is a snapshot of the index {mark[0]}: set CITELOOM_QDRANT_COLLECTION to that")
    return mark[1].collection(alias)


def _sha256(file: Path) -> str:
    with file.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()


@contextlib.contextmanager
def _written(folder: Path) -> Iterator[None]:
    """Names the folder that cannot be written."""
    try:
        yield
    except OSError as error:
        raise PermanentFailure(
            f"the snapshot cannot be written to {folder} ({error}): make room or give another"
        ) from error
