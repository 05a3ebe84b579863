"""The report's files below the data root: `reports/index.html` and `reports/<month>/`. Not here: what a page shows."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from filelock import FileLock

from pipeline import tables
from pipeline.evaluation.gather import index_view, ledger_digests, month_view, notes_digests, task_views
from pipeline.evaluation.report import index_page, month_page, task_page, templates_digest
from pipeline.stages import Job, Workspace
from pipeline.tables import DataRoot, Provenance, Row, write_whole

FOLDER = "reports"


def publish(job: Job) -> Iterator[Row]:
    """Write the overall index, then the month's pages, and yield a row of `report` for each of the month's files.

    The overall index goes first: the month's table is what says that the month is done, so whatever is killed before
    it is written again, index and all. It is no row, for the next month changes it.
    """
    root = job.workspace.root
    _write_overall_index(job.workspace)
    folder = root.path / FOLDER / job.month
    rows = [_write(root, folder / name, content) for name, content in _pages(root, job.month)]
    _remove_others(folder, {Path(row["path"]).name for row in rows})
    yield from sorted(rows, key=lambda row: str(row["path"]))


def _write_overall_index(workspace: Workspace) -> None:
    # Two months may be published at once: whoever holds the lock last has read what the other's tables say.
    with FileLock(workspace.cache("locks") / "overall-index.lock", timeout=600):
        write_whole(workspace.root.path / FOLDER / "index.html", index_page(index_view(workspace.root)))


def _pages(root: DataRoot, month: str) -> Iterator[tuple[str, bytes]]:
    yield "index.html", month_page(month_view(root, month))
    for name, view in task_views(root, month):
        yield name, task_page(view)


def _write(root: DataRoot, file: Path, content: bytes) -> dict[str, Any]:
    write_whole(file, content)
    path = file.relative_to(root.path).as_posix()
    return {"path": path, "bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}


def _remove_others(folder: Path, names: set[str]) -> None:
    """Remove pages of tasks that are no more, and what a killed run left half written."""
    for pattern in ("task-*.html", ".*.tmp"):
        for file in folder.glob(pattern):
            if file.name not in names:
                file.unlink(missing_ok=True)


def inputs(workspace: Workspace, month: str) -> Mapping[str, str]:
    """What the pages show besides the rows of tables: the ledgers, why some are empty; and the templates."""
    root = workspace.root
    return {"templates": templates_digest(), **ledger_digests(root, month), **notes_digests(root, month)}


def still_holds(workspace: Workspace, month: str, written: Provenance) -> bool:
    """Whether every file of the month is there, byte for byte, and the overall index at all."""
    root = workspace.root
    if not (root.path / FOLDER / "index.html").is_file():
        return False
    return all(_is_whole(root.path / row["path"], row["sha256"]) for row in root.rows(tables.REPORT, month))


def _is_whole(file: Path, sha256: str) -> bool:
    return file.is_file() and hashlib.sha256(file.read_bytes()).hexdigest() == sha256
