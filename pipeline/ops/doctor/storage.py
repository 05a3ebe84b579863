"""The data root and its disk, the dump and the metadata snapshot."""

from __future__ import annotations

import gzip
import json
import os
import re
import shutil
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

from pipeline.corpus.dump.catalogue import Dump, read_dump
from pipeline.engine.stage import Workspace
from pipeline.metadata.harvested import STORE, HarvestStore
from pipeline.ops.doctor.findings import Finding, ok, problem, warning
from pipeline.ops.preflight import check_data_root
from pipeline.settings import Settings
from pipeline.storage.mounts import LOCKING, NETWORK, mount_of
from pipeline.storage.store import StorePath
from pipeline.tables import EMBEDDINGS

_OF_MEMORY = ("tmpfs", "ramfs")
# What a new embedded collection and a log need: below it the next write may fail.
_LEAST_FREE = 256 << 20
# Of a snapshot: a line of 3,000 authors has 60 KB.
_LONGEST_LINE = 1 << 20
# For each page 34 passages (12.5 million of the 366,232 pages of no_problem); for each passage the text in two tables
# and its sparse vector, compressed; float16 in `embeddings`; and of the index (docs/experiments/scale.md, int8)
# 5 bytes a dimension and 660 beside them, twice, as segments are written anew beside the old ones.
_PASSAGES_PER_PAGE = 34
_TABLE_BYTES, _POINT_BYTES = 1_500, 660
_DIMENSIONS = {"minilm": 384, "bge-m3": 1024}


def data_root(workspace: Workspace) -> Iterator[Finding]:
    """Whether the data root can be written, and on what it lies."""
    check_data_root(workspace)
    root, local = workspace.root.path, workspace.local
    if isinstance(root, StorePath):
        yield ok(
            "data root",
            f"{root} can be written; a rule of the bucket ends unfinished uploads (docs/how-to/object-store.md)",
        )
    device, kind = mount_of(local)
    seen = f"{local} can be written; {kind or 'a file system'} on {device or 'a disk that nothing is told of'}"
    if kind in LOCKING and workspace.settings.on_cluster:
        yield ok("data root", f"{seen}, which holds the locks of all nodes")
    elif kind in NETWORK:
        yield warning("data root", seen, "locks and SQLite are not safe there: name a folder on this machine's disk")
    elif kind in _OF_MEMORY:
        yield warning("data root", seen, "it is gone with the next start: set CITELOOM_DATA to a folder on a disk")
    else:
        yield ok("data root", seen)


def space(
    workspace: Workspace, free_of: Callable[[Path], int] = lambda path: shutil.disk_usage(path).free
) -> Iterator[Finding]:
    """Free space on the data root's disk against what the months that are not embedded yet may need, from above.

    Where the data root is on a store, on the disk of what goes with it; the figure then counts tables that go up."""
    local, settings = workspace.local, workspace.settings
    # A data root that cannot be made is what the check of the data root reports.
    free = free_of(next(folder for folder in (local, *local.parents) if folder.exists()))
    if free < _LEAST_FREE:
        yield problem("disk space", f"{_size(free)} free on the disk of {local}", "make room on it before any run")
        return
    dump = read_dump(settings)
    done = set(workspace.root.months(EMBEDDINGS))
    pages = sum(dump.count_pages(month) for month in dump.months if month not in done)
    needed = pages * bytes_per_page(settings)
    seen = f"{_size(free)} free; {pages:,} pages not embedded yet need {_size(needed)} at most, were all kept"
    if needed > free:
        way_out = "make room, run fewer months at a time, or set CITELOOM_DATA to a larger disk; CITELOOM_QDRANT_URL "
        yield warning("disk space", seen, f"{way_out}puts the index on another machine")
    else:
        yield ok("disk space", seen)


def bytes_per_page(settings: Settings) -> int:
    """What a page takes in the data root, from above; the index is there too unless a server holds it."""
    dimensions = _DIMENSIONS[settings.embedder]
    index = 0 if settings.qdrant_url else 2 * (5 * dimensions + _POINT_BYTES)
    return _PASSAGES_PER_PAGE * (_TABLE_BYTES + 2 * dimensions + index)


def dump(workspace: Workspace) -> Iterator[Finding]:
    """Whether the dump can be read, its zips whole, and which months it has."""
    found = read_dump(workspace.settings)
    for broken in found.broken:
        yield problem("dump", broken.message, "fetch the zip again; the others are read meanwhile")
    if not found.months:
        way_out = "see CITELOOM_SUBSETS, and that pages lie at <severity>/<yymm>/<id>.html"
        yield problem("dump", f"{found.folder.address} has no page of the chosen subsets", way_out)
        return
    yield ok("dump", _describe(found))


def _describe(found: Dump) -> str:
    pages = sum(map(found.count_pages, found.months))
    months = f"{found.months[0]} to {found.months[-1]}" if len(found.months) > 1 else found.months[0]
    return f"{found.folder.address}: {len(found.zips)} zips, {pages:,} pages of {len(found.months)} months ({months})"


def snapshot(workspace: Workspace) -> Iterator[Finding]:
    """Whether there is a source of metadata, how old the snapshot is, and how far the harvest came."""
    settings = workspace.settings
    harvested = HarvestStore(workspace.local / "cache" / STORE).state()
    file = settings.metadata_snapshot
    if file is None:
        yield _without_snapshot(settings, harvested=bool(harvested))
        return
    if not file.is_file() or not os.access(file, os.R_OK):
        fault = "cannot be read" if file.exists() else "is not there"
        way_out = "set CITELOOM_METADATA_SNAPSHOT to arXiv's snapshot, or to nothing"
        yield problem("snapshot", f"{file} {fault}", way_out)
        return
    fault = _fault_of(file)
    if fault:
        yield problem("snapshot", f"{file} {fault}", "take arXiv's snapshot again: JSON lines, plain or .gz")
        return
    changed = _last_change(file)
    written = datetime.fromtimestamp(file.stat().st_mtime, UTC).date().isoformat()
    age = f"its last lines are of {changed}" if changed else f"the file is of {written}"
    until = f"; harvested until {harvested['complete']}" if harvested.get("complete") else ""
    seen = f"{file}: {_size(file.stat().st_size)}, {age}{until}"
    newest = max(read_dump(settings).months, default="")
    if changed and not until and newest > changed[:7]:
        seen = f"{seen}; the dump has papers of {newest}"
        yield warning("snapshot", seen, "run citeloom harvest, or take a newer snapshot")
    else:
        yield ok("snapshot", seen)


def _without_snapshot(settings: Settings, *, harvested: bool) -> Finding:
    if harvested or settings.arxiv_api:
        return ok("snapshot", f"none: metadata come from {'the harvest' if harvested else 'the arXiv API alone'}")
    way_out = "set CITELOOM_METADATA_SNAPSHOT, or CITELOOM_ARXIV_API=true, or run citeloom harvest"
    return problem("snapshot", "there is no source of metadata", way_out)


def _fault_of(file: Path) -> str:
    """What is wrong with a snapshot's first line; empty where it is a paper's."""
    try:
        with gzip.open(file, "rb") if file.suffix == ".gz" else file.open("rb") as stream:
            paper = json.loads(stream.readline(_LONGEST_LINE))
    except (OSError, EOFError, ValueError) as error:
        return f"cannot be read ({' '.join(str(error).split())[:200]})"
    return "" if isinstance(paper, dict) and "id" in paper else "does not begin with a paper of arXiv's"


def _last_change(file: Path) -> str:
    """The newest day on which a paper of the last lines changed: they are the newest papers, and all of it would be
    5 GB to read. Empty for a .gz, whose end cannot be read alone."""
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
