"""The table index_receipts: a month loaded into the index, then audited by its ids.

Not here: what a point holds (`points`), how it is sent (`load`), and searching (`search`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from pipeline import tables
from pipeline.errors import CiteloomError, PermanentFailure, TransientFailure
from pipeline.index.load import Audit, audit_month, digest_of, load_month
from pipeline.index.opening import close_indexes, open_index
from pipeline.index.passage_index import Layout
from pipeline.index.points import points_of
from pipeline.stages import Job, Stage, Workspace
from pipeline.tables import Provenance, read_provenance

if TYPE_CHECKING:
    from pipeline.tables import Row


def build_index_receipts(job: Job) -> Iterator[Row]:
    """Load the month and yield its one receipt.

    A receipt is written only where the audit found every point and no other, and depends on nothing but the month's
    tables: how many points were sent and taken out differs between a run that was killed and one that was not, so
    that goes to `job.measured`, and `stale` counts what is still there after the load and should not be: 0.
    Raises TransientFailure where the audit fails, PermanentFailure where the collection has another layout.
    """
    model, layout = _vectors_of(job)
    try:
        index = open_index(job.workspace)
        index.ensure_collection(layout)
        load = load_month(index, job.month, points_of(job))
        job.measured.update(sent=load.sent, removed=load.removed)
        audit = audit_month(index, job.month, load.expected)
    finally:
        close_indexes()  # the stages below this one may take hours, and other processes want Edge meanwhile
    _insist(audit, job)
    job.notes["points"] = len(load.expected)
    yield {
        "collection": job.settings.qdrant_collection,
        "engine": index.engine,
        "model": model,
        "expected": len(load.expected),
        "present": audit.present,
        "missing": len(audit.missing),
        "stale": len(audit.stale),
        "ids_sha256": digest_of(load.expected),
    }


def _vectors_of(job: Job) -> tuple[str, Layout]:
    """Model and layout as the embeddings file states them: a month may have no row to tell."""
    written = read_provenance(job.workspace.root.file(tables.EMBEDDINGS, job.month))
    notes = written.notes if written is not None else {}
    try:
        return notes["model"], Layout(notes["dimensions"], notes["sparse_idf"])
    except KeyError as error:
        raise PermanentFailure(
            f"embeddings of {job.month} do not say what made them (no {error}): "
            f"run citeloom run --months {job.month} --select embeddings --force"
        ) from error


def _insist(audit: Audit, job: Job) -> None:
    if not audit.missing and not audit.stale:
        return
    some = ", ".join((audit.missing + audit.stale)[:5])
    raise TransientFailure(
        f"after loading {job.month} into {job.settings.qdrant_collection}, {len(audit.missing)} points are missing "
        f"and {len(audit.stale)} are there that should not be ({some}): run again"
    )


def _still_indexed(workspace: Workspace, month: str, receipt: Provenance) -> bool:
    """Whether the index still holds as many points of the month as its receipt says.

    A count, since it is asked for every month by `citeloom status`; `citeloom audit` is for ids. A server that does
    not answer holds nothing that one could rely on. An Edge folder that another process holds is being used, hence
    there: its receipt is believed. Raises nothing: of a wrong key or a broken folder, the next run says what to do.
    """
    try:
        return open_index(workspace).count(month, wait=False) == receipt.notes.get("points")
    except TransientFailure:
        return workspace.settings.qdrant_url is None
    except CiteloomError:
        return False


INDEX_RECEIPTS = Stage(
    table=tables.INDEX_RECEIPTS,
    build=build_index_receipts,
    upstream=(tables.EMBEDDINGS, tables.PASSAGES, tables.PAPERS),
    settings=("qdrant_collection", "qdrant_url"),
    still_holds=_still_indexed,
)
