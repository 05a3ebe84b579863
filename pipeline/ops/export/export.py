"""An export of tables to a folder, whole or not at all."""

from __future__ import annotations

import json
import os
import shutil
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

from pipeline.engine.locks import file_lock
from pipeline.engine.stage import Workspace
from pipeline.errors import PermanentFailure, SettingError
from pipeline.ops.export.card import CARD, Contents, render_card
from pipeline.ops.export.croissant import CROISSANT, check_mlcroissant, render_croissant
from pipeline.ops.export.data_files import (
    MANIFEST,
    DataFile,
    ExportedTable,
    choose_tables,
    count_left_out,
    find_mismatches,
    find_months,
    write_manifest,
    write_month,
)
from pipeline.ops.export.rights import Texts, licences_of
from pipeline.settings import SAMPLE_DUMP
from pipeline.storage.writing import write_whole
from pipeline.tables import LEDGER, METADATA, PAPERS

Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class ExportRequest:
    """The options of an export. to: a folder."""

    to: str
    months: str
    tables: str
    texts: Texts


def export(
    workspace: Workspace, request: ExportRequest, progress: Progress = lambda step: None
) -> Contents:
    """Write the requested tables with their card and their description in Croissant.

    progress: called with each step. Raises SettingError where this cannot be exported there,
    MissingInput where there is nothing to export, and what reading tables raises.
    """
    if "://" in request.to:
        raise SettingError(
            f"--to {request.to} is not a folder: export into one; to publish it, run "
            "hf upload OWNER/NAME FOLDER --repo-type dataset"
        )
    check_mlcroissant()
    folder = Path(request.to).expanduser().resolve()
    with folder_lock(folder, workspace.cache("locks")):
        _check_folder(folder, workspace)
        return _export_to_folder(workspace, request, folder, progress)


def _export_to_folder(
    workspace: Workspace, request: ExportRequest, folder: Path, progress: Progress
) -> Contents:
    root = workspace.root
    with _replacing(folder) as staged:
        months = find_months(root, choose_tables(request.tables), request.months)
        tables = {month.table.name: ExportedTable(month.table, request.texts) for month in months}
        files, licences = _write_files(workspace, months, tables, staged, progress)
        contents = Contents(
            to=str(folder),
            texts=request.texts,
            sample=workspace.settings.dump_dir == SAMPLE_DUMP,
            tables=list(tables.values()),
            files=files,
            left_out=count_left_out(root, sorted({month.month for month in months})),
            licences=licences,
            settings=_settings_of(months),
            notes=find_mismatches(root, months),
        )
        write_manifest(files, request.texts, staged)
        write_whole(staged / CARD, render_card(contents))
        write_whole(staged / CROISSANT, render_croissant(contents))
    return contents


def _write_files(
    workspace: Workspace,
    months: Sequence[DataFile],
    tables: Mapping[str, ExportedTable],
    folder: Path,
    progress: Progress,
) -> tuple[list[DataFile], dict[str, int]]:
    """Write the months; returns the files, and papers by licence ("" if unknown).

    Licences are counted only where text of papers is exported.
    """
    root = workspace.root
    with_text = any(table.paper_columns for table in tables.values())
    files, papers = [], Counter[str]()
    # Month by month, to hold the licences of one month only: those of two million papers would be
    # hundreds of MB.
    for month, sources in groupby(
        sorted(months, key=lambda source: source.month), key=lambda source: source.month
    ):
        licences = licences_of(workspace, month) if with_text else {}
        if with_text:
            table = PAPERS if month in root.months(PAPERS) else METADATA
            rows = root.iterate(table, month, ["arxiv_id"])
            papers.update(licences.get(row["arxiv_id"], "") for row in rows)
        for source in sources:
            progress(f"{source.table.name} of {month}")
            files.append(write_month(root, source, tables[source.table.name], licences, folder))
    return files, dict(sorted(papers.items(), key=lambda item: (-item[1], item[0])))


def _settings_of(months: Sequence[DataFile]) -> dict[str, Any]:
    """The settings that the months were made with, by name; a list where months differ."""
    values: dict[str, dict[str, Any]] = {}
    for month in months:
        # The ledger has the settings of every stage, also of stages whose tables are not exported.
        if month.table == LEDGER:
            continue
        for name, value in month.provenances[0].settings.items():
            values.setdefault(name, {})[repr(value)] = value
    return {
        name: next(iter(distinct.values())) if len(distinct) == 1 else [*distinct.values()]
        for name, distinct in sorted(values.items())
    }


def _check_folder(folder: Path, workspace: Workspace) -> None:
    """Raise SettingError for a target that is a file, holds other files, or is in the data root."""
    if any(
        folder == place or place in folder.parents
        for place in (workspace.root.path, workspace.local)
    ):
        raise SettingError(
            f"--to {folder} is in the data root, where tables are: name a folder elsewhere"
        )
    if not folder.exists():
        return
    if not folder.is_dir():
        raise SettingError(f"--to {folder} is a file: name a folder")
    try:
        exported = {
            CARD,
            CROISSANT,
            MANIFEST,
            *json.loads((folder / MANIFEST).read_text())["files"],
        }
    except (OSError, ValueError, KeyError, TypeError):
        exported = set()
    for file in sorted(folder.rglob("*")):
        name = str(file.relative_to(folder))
        if name not in exported and (file.is_symlink() or not file.is_dir()):
            raise SettingError(
                f"--to {folder} holds a file that is not part of an export ({name}), and an export"
                " replaces the whole folder: name another folder, or an empty one"
            )


@contextmanager
def folder_lock(folder: Path, locks: Path) -> Iterator[None]:
    """Lock a folder against other exports. locks: the folder of lock files.

    Raises TransientFailure where another export is writing to it.
    """
    lock = locks / f"export{str(folder).replace(os.sep, '_')[-150:]}.lock"
    busy = f"another export is writing to {folder}: wait until it has ended"
    with file_lock(lock, f"--to {folder}", if_busy=busy):
        yield


@contextmanager
def _replacing(folder: Path) -> Iterator[Path]:
    """A new folder that replaces `folder` when the block ends, and is removed if the block raises.

    The caller holds the folder's lock. Raises PermanentFailure where it cannot be written.
    """
    staged, old = (folder.with_name(f".{folder.name}.citeloom-{kind}") for kind in ("new", "old"))
    try:
        if old.exists() and not folder.exists():
            os.replace(old, folder)  # an export was killed between the two moves below
        shutil.rmtree(staged, ignore_errors=True)
        shutil.rmtree(old, ignore_errors=True)
        staged.mkdir(parents=True)
        yield staged
        if folder.exists():
            os.replace(folder, old)
        os.replace(staged, folder)
        shutil.rmtree(old, ignore_errors=True)
    except OSError as error:
        raise PermanentFailure(
            f"--to {folder} cannot be written ({error}): make room there, or name another folder"
        ) from error
    finally:
        # Never `old`: if the second move failed, it is the only export.
        shutil.rmtree(staged, ignore_errors=True)
