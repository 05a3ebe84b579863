"""The collections of one alias on Qdrant Edge: a folder each, and a file that names the live one."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import threading
from pathlib import Path
from typing import Literal

from pipeline.errors import PermanentFailure, SettingError
from pipeline.index.edge import LAYOUT_FILE, EdgeIndex
from pipeline.index.edge_folder import PATIENCE, cannot_be_used
from pipeline.index.passage_index import none_of_ours
from pipeline.storage.writing import write_whole

_LIVE_FILE = "live.json"


class EdgeCollections:
    """The collections in the folder of an alias, each in a folder of its own name."""

    engine: Literal["edge"] = "edge"

    def __init__(self, folder: Path, alias: str, *, on_disk: bool = False, patience: float = PATIENCE) -> None:
        """folder: the alias's own. on_disk and patience: as EdgeIndex has them."""
        self.folder, self.alias = folder, alias
        self._on_disk, self._patience = on_disk, patience
        self._indexes: dict[str, EdgeIndex] = {}
        self._finding = threading.Lock()

    def live(self) -> str | None:
        """As the protocol says. None too where the live collection's folder was deleted, which is how one begins anew;
        nothing is opened for it. Raises PermanentFailure for a file that names none."""
        file = self.folder / _LIVE_FILE
        try:
            name = json.loads(file.read_bytes())["collection"]
            return name if self._is_ours(Path(name).name) else None
        except FileNotFoundError:
            return None
        except OSError as error:
            raise PermanentFailure(cannot_be_used(self.folder, error)) from error
        except (KeyError, TypeError, ValueError) as error:
            raise PermanentFailure(
                f"{file} does not name the collection that searches ask ({type(error).__name__}: {error}): delete it "
                f"and run citeloom run --months all"
            ) from error

    def names(self) -> list[str]:
        """As the protocol says: folders that citeloom made."""
        try:
            folders = [each.name for each in self.folder.iterdir()]
        except FileNotFoundError:
            return []
        except OSError as error:
            raise PermanentFailure(cannot_be_used(self.folder, error)) from error
        return sorted(name for name in folders if self._is_ours(name))

    def collection(self, name: str) -> EdgeIndex:
        """As the protocol says. Raises SettingError for what cannot name a folder here."""
        _insist_on_name(name)
        with self._finding:
            if name not in self._indexes:
                self._indexes[name] = EdgeIndex(self.folder / name, on_disk=self._on_disk, patience=self._patience)
            return self._indexes[name]

    def make_live(self, name: str) -> None:
        """As the protocol says. Raises PermanentFailure where there is no such collection."""
        if not self._is_ours(name):
            raise PermanentFailure(f"there is no collection {name} in {self.folder}: run citeloom reindex")
        try:
            write_whole(self.folder / _LIVE_FILE, json.dumps({"collection": name}).encode())
        except OSError as error:
            raise PermanentFailure(cannot_be_used(self.folder, error)) from error

    def drop(self, name: str) -> None:
        """As the protocol says; nothing where it is gone already. Raises TransientFailure where another process holds
        it, PermanentFailure where citeloom did not make it."""
        _insist_on_name(name)
        if name == self.live():
            raise SettingError(f"searches ask the collection {name}: make another live before you drop it")
        folder = self.folder / name
        if folder.exists():
            if not self._is_ours(name):
                raise PermanentFailure(none_of_ours(name, str(self.folder)))
            self._take(name)
        self._clear_away()

    def close(self) -> None:
        with self._finding:
            for index in self._indexes.values():
                index.close()

    def _take(self, name: str) -> None:
        """Give a collection's folder a name that no one looks for: a killed process leaves no half of it."""
        index = self.collection(name)
        with contextlib.suppress(PermanentFailure):  # a broken one can be dropped too
            index.hold()
        index.close()
        gone = index.folder.with_name(f".{name}.{os.getpid()}.gone")
        try:
            index.folder.rename(gone)
        except OSError as error:
            raise PermanentFailure(cannot_be_used(index.folder, error)) from error

    def _clear_away(self) -> None:
        """Delete what has been taken out of use, also by a process that was killed meanwhile."""
        try:
            for gone in self.folder.glob(".*.gone"):
                with contextlib.suppress(FileNotFoundError):  # another process clears it away too
                    shutil.rmtree(gone)
        except OSError as error:
            raise PermanentFailure(cannot_be_used(self.folder, error)) from error

    def _is_ours(self, name: str) -> bool:
        return not name.startswith(".") and (self.folder / name / LAYOUT_FILE).is_file()


def _insist_on_name(name: str) -> None:
    if not name or name.startswith(".") or Path(name).name != name:
        raise SettingError(f"{name!r} cannot name a collection")
