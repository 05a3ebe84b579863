"""Probes of the data root and its disk, the dump, and the metadata snapshot."""

from __future__ import annotations

import gzip
import json
import os
import re
import shutil
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

from pipeline.arxiv.harvest_store import STORE, HarvestStore
from pipeline.corpus.dump.catalogue import read_dump
from pipeline.engine.stage import Workspace
from pipeline.ops.doctor.findings import DATA_ROOT, Finding, ok, problem, warning
from pipeline.ops.preflight import check_data_root
from pipeline.storage.mounts import LOCKING, NETWORK, mount_of
from pipeline.storage.store import StorePath

_IN_MEMORY = ("tmpfs", "ramfs")
# A new embedded collection and its log need this much; below it the next write may fail.
_LEAST_FREE = 256 << 20
# Bytes of a snapshot's line; one with 3,000 authors has 60 KB.
_LONGEST_LINE = 1 << 20


def data_root(workspace: Workspace) -> Iterator[Finding]:
    """Whether the data root can be written, and which file system it is on."""
    check_data_root(workspace)
    root, local = workspace.root.path, workspace.local
    if retired := workspace.root.retired_note():
        yield ok(DATA_ROOT, retired)
    if isinstance(root, StorePath):
        message = f"{root} can be written; a rule of the bucket ends unfinished uploads (docs/how-to/object-store.md)"
        yield ok(DATA_ROOT, message)
    device, kind = mount_of(local)
    message = f"{local} can be written; {kind or 'a file system'} on {device or 'an unknown disk'}"
    if kind in LOCKING and workspace.settings.on_cluster:
        yield ok(DATA_ROOT, f"{message}, which holds the locks of all nodes")
    elif kind in NETWORK:
        yield warning(DATA_ROOT, message, "locks and SQLite are not safe there: name a folder on this machine's disk")
    elif kind in _IN_MEMORY:
        yield warning(DATA_ROOT, message, "it is lost at the next start: set CITELOOM_DATA to a folder on a disk")
    else:
        yield ok(DATA_ROOT, message)


def space(
    workspace: Workspace, free_of: Callable[[Path], int] = lambda path: shutil.disk_usage(path).free
) -> Iterator[Finding]:
    """Free space on the data root's disk; of a data root on an object store it is the local folder's."""
    local = workspace.local
    # A data root that cannot be made is what the check of the data root reports.
    free = free_of(next(folder for folder in (local, *local.parents) if folder.exists()))
    message = f"{_size(free)} free on the disk of {local}"
    if free < _LEAST_FREE:
        yield problem("disk space", message, "make room on it before any run")
    else:
        yield ok("disk space", message)


def dump(workspace: Workspace) -> Iterator[Finding]:
    """Whether the dump can be read, which zips are broken, and which months it has."""
    pages = read_dump(workspace.settings)
    for message in pages.broken.values():
        yield problem("dump", message, "download the zip again; the others are read meanwhile")
    months, address = pages.months, pages.folder.address
    if not months:
        way_out = "see CITELOOM_SUBSETS, and check that pages lie at <severity>/<yymm>/<id>.html"
        yield problem("dump", f"{address} has no page of the chosen subsets", way_out)
        return
    count = sum(map(pages.count_pages, months))
    span = f"{months[0]} to {months[-1]}" if len(months) > 1 else months[0]
    yield ok("dump", f"{address}: {len(pages.zips)} zips, {count:,} pages of {len(months)} months ({span})")


def snapshot(workspace: Workspace) -> Iterator[Finding]:
    """Whether there is a source of metadata, how old the snapshot is, and up to when the harvest reaches."""
    settings = workspace.settings
    harvest = HarvestStore(workspace.local / "cache" / STORE).state()
    file = settings.metadata_snapshot
    if file is None:
        if harvest or settings.arxiv_api:
            yield ok("snapshot", f"none: metadata comes from {'the harvest' if harvest else 'the arXiv API alone'}")
        else:
            way_out = "set CITELOOM_METADATA_SNAPSHOT, or CITELOOM_ARXIV_API=true, or run citeloom harvest"
            yield problem("snapshot", "there is no source of metadata", way_out)
        return
    if not file.is_file() or not os.access(file, os.R_OK):
        fault = "cannot be read" if file.exists() else "does not exist"
        yield problem(
            "snapshot", f"{file} {fault}", "set CITELOOM_METADATA_SNAPSHOT to arXiv's snapshot, or to nothing"
        )
        return
    fault = _fault_of(file)
    if fault:
        yield problem("snapshot", f"{file} {fault}", "download arXiv's snapshot again: JSON lines, plain or .gz")
        return
    updated = _last_update(file)
    written = datetime.fromtimestamp(file.stat().st_mtime, UTC).date().isoformat()
    message = f"{file}: {_size(file.stat().st_size)}, "
    message += f"its last lines are of {updated}" if updated else f"the file is of {written}"
    harvested_until = harvest.get("complete")
    if harvested_until:
        message += f"; harvested until {harvested_until}"
    newest_month = max(read_dump(settings).months, default="")
    if updated and not harvested_until and newest_month > updated[:7]:
        message += f"; the dump has papers of {newest_month}"
        yield warning("snapshot", message, "run citeloom harvest, or download a newer snapshot")
    else:
        yield ok("snapshot", message)


def _fault_of(file: Path) -> str:
    """What is wrong with a snapshot's first line; empty if it describes a paper."""
    try:
        with gzip.open(file, "rb") if file.suffix == ".gz" else file.open("rb") as stream:
            paper = json.loads(stream.readline(_LONGEST_LINE))
    except (OSError, EOFError, ValueError) as error:
        return f"cannot be read ({' '.join(str(error).split())[:200]})"
    return "" if isinstance(paper, dict) and "id" in paper else "does not begin with a paper from arXiv"


def _last_update(file: Path) -> str:
    """The newest update date in the last lines, which are the newest papers; all of the file would be 5 GB to read.

    Empty for a .gz, whose end cannot be read alone.
    """
    if file.suffix == ".gz":
        return ""
    with file.open("rb") as stream:
        stream.seek(max(0, file.stat().st_size - _LONGEST_LINE))
        days = re.findall(rb'"update_date"\s*:\s*"(\d{4}-\d\d-\d\d)"', stream.read())
    return max(days, default=b"").decode()


def _size(count: float) -> str:
    for size, unit in ((1 << 40, "TB"), (1 << 30, "GB"), (1 << 20, "MB")):
        if count >= size:
            return f"{count / size:,.1f} {unit}"
    return f"{count / 1024:,.0f} KB"
