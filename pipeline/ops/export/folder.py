"""The folder of an export: made beside its place and moved there whole, and never over what is not an export's."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from pipeline.errors import PermanentFailure, SettingError, TransientFailure
from pipeline.storage.store import Place

CARD = "README.md"
MANIFEST = "citeloom-export.json"
"""Lists the data files of an export; what a folder or a repository has besides is not ours to replace."""


def check_folder(folder: Path, *own: Place) -> None:
    """Raise SettingError where an export may not be put: a file, a folder of other things, or what is citeloom's own.

    own: the data root, and the folder of what goes with it.
    """
    if any(folder == place or place in folder.parents for place in own):
        raise SettingError(f"--to {folder} lies in the data root, where tables are: name a folder elsewhere")
    if folder.exists() and not folder.is_dir():
        raise SettingError(f"--to {folder} is a file: name a folder")
    stray = _stray(folder)
    if stray is not None:
        raise SettingError(
            f"--to {folder} holds what no export has put there ({stray}), and an export replaces the whole folder: "
            "name another one, or an empty one"
        )


def _stray(folder: Path) -> str | None:
    """A file in the folder that an export did not write; None where there is none."""
    if not folder.is_dir():
        return None
    files = sorted(
        str(file.relative_to(folder)) for file in folder.rglob("*") if not file.is_dir() or file.is_symlink()
    )
    try:
        ours = {CARD, MANIFEST, *json.loads((folder / MANIFEST).read_text())["files"]}
    except (OSError, ValueError, KeyError, TypeError):
        ours = set()
    return next((file for file in files if file not in ours), None)


@contextmanager
def holding(folder: Path, locks: Path) -> Iterator[None]:
    """Keep other exports away from a folder. locks: where locks are kept.

    Raises TransientFailure where another export is at work on it.
    """
    lock = FileLock(locks / f"export{str(folder).replace(os.sep, '_')[-150:]}.lock", timeout=0)
    try:
        lock.acquire()
    except Timeout as error:
        raise TransientFailure(f"another export to {folder} is at work: wait until it has ended") from error
    try:
        yield
    finally:
        lock.release()


@contextmanager
def replacing(folder: Path) -> Iterator[Path]:
    """A new folder, which takes the place of `folder` when the block ends, and is removed where it raises.

    To be used while the folder is held. Raises PermanentFailure where it cannot be written.
    """
    staged, before = (folder.with_name(f".{folder.name}.citeloom-{kind}") for kind in ("new", "old"))
    try:
        if before.exists() and not folder.exists():
            os.replace(before, folder)  # a kill came between the two moves below
        _remove(staged, before)
        staged.mkdir(parents=True)
        yield staged
        if folder.exists():
            os.replace(folder, before)
        os.replace(staged, folder)
        _remove(before)
    except OSError as error:
        raise PermanentFailure(
            f"--to {folder} cannot be written ({error}): make room there, or name another folder"
        ) from error
    finally:
        _remove(staged)  # never `before`: where the second move failed, it is the only export there is


def _remove(*folders: Path) -> None:
    for folder in folders:
        shutil.rmtree(folder, ignore_errors=True)
