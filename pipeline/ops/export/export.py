"""An export from tables to a folder or a repository: what is chosen, written, counted and told."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any

from pipeline.engine.stage import Workspace
from pipeline.errors import SettingError
from pipeline.ops.export.card import Contents, card
from pipeline.ops.export.files import DataFile, write_manifest, write_month
from pipeline.ops.export.folder import CARD, check_folder, holding, replacing
from pipeline.ops.export.hub import check_repository, repository_of, upload
from pipeline.ops.export.licences import licences_of
from pipeline.ops.export.months import Month, choose_tables, find_months, losses, mismatches
from pipeline.ops.export.rights import Texts
from pipeline.ops.export.shaping import Shape
from pipeline.ops.export.terms import terms
from pipeline.settings import SAMPLE_DUMP
from pipeline.storage.data_root import DataRoot
from pipeline.storage.writing import write_whole
from pipeline.tables import LEDGER, METADATA, PAPERS
from pipeline.wikipedia.root import held_snapshot

Told = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Asked:
    """What an export was asked for. to: a folder, or hf://datasets/OWNER/NAME."""

    to: str
    months: str
    tables: str
    texts: Texts


@dataclass(frozen=True, slots=True)
class Exported:
    """What came of an export."""

    contents: Contents
    folder: Path | None
    """Where it lies; None where it went to a hub."""
    commit: str | None = None
    terms: Sequence[str] = field(default_factory=list)

    def as_json(self) -> dict[str, Any]:
        """All of it as JSON has it."""
        found = self.contents
        return {
            "to": self.commit or str(self.folder),
            "texts": found.texts,
            "files": [
                {"path": file.path, "rows": file.rows, "bytes": file.bytes, "sha256": file.sha256}
                for file in found.files
            ],
            "columns_left_out": {shape.table.name: shape.held for shape in found.shapes},
            "licences": found.licences,
            "left_out": [
                {"stage": stage, "reason": reason, "count": count} for (stage, reason), count in found.losses.items()
            ],
            "notes": found.notes,
            "terms": self.terms,
        }


def export(workspace: Workspace, asked: Asked, told: Told = lambda step: None) -> Exported:
    """Write the tables that were asked for, with their card, and upload them where a hub was named.

    told: is given each step. Raises SettingError where this cannot be exported there, MissingInput where there is
    nothing to export, and what reading tables and the hub raise.
    """
    if held_snapshot(workspace.root) is not None:
        raise SettingError(
            f"{workspace.root.path} holds Wikipedia: an export knows the licences of arXiv's papers alone"
        )
    if "://" in asked.to:
        return _to_hub(workspace, asked, told)
    folder = Path(asked.to).expanduser().resolve()
    with holding(folder, workspace.cache("locks")):
        check_folder(folder, workspace.root.path, workspace.local)
        return _to_folder(workspace, asked, folder, None, told)


def _to_hub(workspace: Workspace, asked: Asked, told: Told) -> Exported:
    if asked.texts is Texts.ALL:
        raise SettingError(
            "--texts all is for a folder: a hub may be given words of those papers alone whose licence lets anyone "
            "pass them on (--texts open), or none"
        )
    repository = repository_of(asked.to)
    check_repository(repository)
    # Kept where the upload fails, so that it need not be made again to be looked at; the next export replaces it.
    folder = workspace.cache("export") / repository.replace("/", "--")
    with holding(folder, workspace.cache("locks")):
        made = _to_folder(workspace, asked, folder, repository, told)
        told(f"uploading {len(made.contents.files)} files to {asked.to}")
        commit = upload(folder, repository)
        shutil.rmtree(folder)
    return Exported(made.contents, None, commit, made.terms)


def _to_folder(workspace: Workspace, asked: Asked, folder: Path, repository: str | None, told: Told) -> Exported:
    root = workspace.root
    with replacing(folder) as staged:
        months = find_months(root, choose_tables(asked.tables), asked.months)
        shapes = {month.table.name: Shape(month.table, asked.texts) for month in months}
        files, licences = _write_files(workspace, months, shapes, staged, told)
        contents = Contents(
            texts=asked.texts,
            sample=workspace.settings.dump_dir == SAMPLE_DUMP,
            repository=repository,
            shapes=list(shapes.values()),
            files=files,
            losses=losses(root, sorted({month.month for month in months})),
            licences=licences,
            settings=_settings(months),
            notes=mismatches(root, months),
        )
        write_manifest(files, asked.texts, staged)
        write_whole(staged / CARD, card(contents))
    return Exported(contents, folder, terms=terms(asked.texts, sample=contents.sample))


def _write_files(
    workspace: Workspace, months: Sequence[Month], shapes: Mapping[str, Shape], folder: Path, told: Told
) -> tuple[list[DataFile], dict[str, int]]:
    """Write the months; the files, and by licence ("" where unknown) how many papers there are, the most first.

    No licences are counted where no words are exported.
    """
    with_words = any(shape.of_papers for shape in shapes.values())
    files, papers = [], Counter[str]()
    # Month by month: the licences of one are held at a time; of two million papers they would be hundreds of MB.
    for name, tables in groupby(sorted(months, key=lambda month: month.month), key=lambda month: month.month):
        licences = licences_of(workspace, name) if with_words else {}
        if with_words:
            papers.update(licences.get(arxiv_id, "") for arxiv_id in _papers(workspace.root, name))
        for month in tables:
            told(f"{month.table.name} of {name}")
            files.append(write_month(workspace.root, month, shapes[month.table.name], licences, folder))
    return files, dict(sorted(papers.items(), key=lambda item: (-item[1], item[0])))


def _papers(root: DataRoot, month: str) -> list[str]:
    """The ids of the month's parsed papers; of its metadata where there are none."""
    table = PAPERS if month in root.months(PAPERS) else METADATA
    return [str(row["arxiv_id"]) for row in root.iterate(table, month, ["arxiv_id"])]


def _settings(months: Sequence[Month]) -> dict[str, Any]:
    """Settings that the months were made under, by name; of several values all."""
    values: dict[str, dict[str, Any]] = {}
    for month in months:
        # The ledger is of every stage, also of those whose tables are not exported.
        for name, value in month.made[0].settings.items() if month.table != LEDGER else ():
            values.setdefault(name, {})[repr(value)] = value
    return {
        name: next(iter(found.values())) if len(found) == 1 else [*found.values()]
        for name, found in sorted(values.items())
    }
