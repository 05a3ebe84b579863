"""The table index_receipts: a month loaded into the index, then audited by its ids."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from pipeline import tables
from pipeline.engine.digests import digest_of as digest_of_table
from pipeline.engine.stage import Job, Stage, Workspace
from pipeline.errors import CiteloomError, MissingInput, PermanentFailure, TransientFailure
from pipeline.index.audit import MonthAudit, audit_month
from pipeline.index.layout import Layout
from pipeline.index.load import NotLoaded, digest_of, load_month
from pipeline.index.opening import close_indexes, collection_of, index_for, open_collections
from pipeline.index.points import points_of
from pipeline.storage.provenance import Provenance, read_provenance
from pipeline.storage.writing import write_whole

if TYPE_CHECKING:
    from pipeline.storage.store import DataPath
    from pipeline.storage.writing import Row


def build_index_receipts(job: Job) -> Iterator[Row]:
    """Load the month and yield its one receipt.

    A receipt is written only where the audit found every point and no other, and depends on nothing but the month's
    tables: how many points were sent and taken out differs between a run that was killed and one that was not, so
    that goes to `job.measured`, and `stale` counts what is still there after the load and should not be: 0.
    Raises TransientFailure where points could not be loaded or the audit fails, and then lists them in a file.
    Raises PermanentFailure where searches ask a collection of another layout.
    """
    layout, rows = layout_of(job.workspace, job.month)
    job.expect(rows)
    try:
        index = index_for(job.workspace, layout)
        points = points_of(job.workspace.root, job.month, layout)
        # A collection beside the live one gets its graph once, at the end, from `reindex`.
        live = open_collections(job.workspace).live() == index.name
        load = load_month(index, job.month, points, expecting=rows, settle=live, told=job.advance)
        job.measured.update(sent=load.sent, removed=load.removed, retries=index.retries)
        audit = audit_month(index, job.month, load.expected)
    except NotLoaded as error:
        raise TransientFailure(f"{error}; run again. {_listed(job, error.ids)}") from error
    finally:
        close_indexes()  # the stages below this one may take hours, and other processes want Edge meanwhile
    _insist(audit, job)
    _list_file(job).unlink(missing_ok=True)  # of a run before this one
    job.notes["points"] = audit.expected
    yield receipt(open_collections(job.workspace).engine, index.name, layout, audit, digest_of(load.expected))


def receipt(engine: str, collection: str, layout: Layout, audit: MonthAudit, ids_sha256: str) -> Row:
    """The row of `index_receipts` that an audit gives."""
    return {
        "collection": collection,
        "engine": engine,
        "model": layout.model,
        "expected": audit.expected,
        "present": audit.present,
        "missing": len(audit.missing),
        "stale": len(audit.surplus),
        "ids_sha256": ids_sha256,
    }


def layout_of(workspace: Workspace, month: str) -> tuple[Layout, int]:
    """The layout that a month's embeddings need, and how many there are.

    As the file states it: a month may have no row to tell. Raises MissingInput where there is no such file, and
    PermanentFailure where it does not state it.
    """
    written = read_provenance(workspace.root.file(tables.EMBEDDINGS, month))
    if written is None:
        raise MissingInput(
            f"embeddings of {month} are not there: run citeloom run --months {month} --until index_receipts"
        )
    notes = written.notes
    try:
        layout = Layout(
            notes["model"],
            notes["dimensions"],
            # Files of before the lexical vectors say whether the index multiplied by IDF: BGE-M3's own needed none.
            notes["sparse"] if "sparse" in notes else not notes["sparse_idf"],
            notes["form"],
            notes["colbert"],
            workspace.settings.qdrant_quantization,
        )
    except KeyError as error:
        raise PermanentFailure(
            f"embeddings of {month} do not say what made them (no {error}): "
            f"run citeloom run --months {month} --select embeddings --force"
        ) from error
    return layout, written.rows


def _insist(audit: MonthAudit, job: Job) -> None:
    if audit.clean:
        return
    wrong = [*audit.missing, *map(str, audit.surplus)]
    raise TransientFailure(
        f"after loading {job.month} into {job.settings.qdrant_collection}, {audit.describe()} "
        f"({', '.join(wrong[:5])}): run again. {_listed(job, wrong)}"
    )


def _listed(job: Job, ids: Sequence[str]) -> str:
    """Put all ids into a file; the sentence that names it."""
    file = _list_file(job)
    write_whole(file, "\n".join([*ids, ""]).encode())
    return f"All {len(ids)} are listed in {file}"


def _list_file(job: Job) -> DataPath:
    return job.workspace.root.path / "failures" / f"{job.stage.name}-{job.month}-points.txt"


def _still_indexed(workspace: Workspace, month: str, written: Provenance) -> bool:
    """Whether the index still holds as many points of the month as its receipt says.

    A count, since it is asked for every month by `citeloom status`; `citeloom audit` is for ids. A server that does
    not answer holds nothing that one could rely on. An Edge folder that another process holds is being used, hence
    there: its receipt is believed. Raises nothing: of a wrong key or a broken folder, the next run says what to do.
    """
    points = written.notes.get("points")
    if points is None:
        return False  # an audit found the month damaged
    try:
        layout, _ = layout_of(workspace, month)
        collections = open_collections(workspace)
        index = collection_of(collections, layout)
        return index.count(month, wait=False) == int(points)
    except TransientFailure:
        return workspace.settings.qdrant_url is None
    except CiteloomError:
        return False


def _inputs(workspace: Workspace, month: str) -> Mapping[str, str]:
    """Into which collection the month goes: a month without passages has the same rows whatever made them; and the
    metadata, of which points have the venue. Wikipedia's articles have none."""
    collection = layout_of(workspace, month)[0].collection(workspace.settings.qdrant_collection)
    return {"collection": collection, "metadata": digest_of_table(workspace, tables.METADATA, [month])}


INDEX_RECEIPTS = Stage(
    table=tables.INDEX_RECEIPTS,
    build=build_index_receipts,
    upstream=(tables.EMBEDDINGS, tables.PASSAGES, tables.PAPERS),
    settings=("qdrant_collection", "qdrant_url", "qdrant_quantization"),
    inputs=_inputs,
    outputs_exist=_still_indexed,
    version=3,
    pool="qdrant",
)
