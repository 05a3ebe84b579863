"""The table index_receipts: load a month into the index, then audit it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from pipeline import tables
from pipeline.engine.digests import digest_of as digest_of_table
from pipeline.engine.stage import CheckResult, Job, MonthCheck, Stage, Workspace
from pipeline.errors import CiteloomError, MissingInput, PermanentFailure, TransientFailure
from pipeline.index.load import KINDS, MonthAudit, audit_month, digest_of, load_month
from pipeline.index.opening import (
    collection_of,
    index_for,
    layout_for,
    open_collections,
)
from pipeline.index.passage_index import Layout, PassageIndex
from pipeline.index.points import digests_of, points_of
from pipeline.storage.provenance import Provenance
from pipeline.storage.read_cache import is_active, once, remember

if TYPE_CHECKING:
    from pipeline.storage.writing import Row

# Points of one kind that a check names; `citeloom audit --json` names all.
_MOST_NAMED = 20


def receipt(
    engine: str, collection: str, layout: Layout, audit: MonthAudit, ids_sha256: str
) -> Row:
    """The row of `index_receipts` for an audit."""
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
    """The layout for a month's embeddings, and their number.

    Both come from the file's metadata, since a month may have no row. Raises MissingInput without
    the file, and PermanentFailure if its metadata lacks the layout.
    """
    provenance = workspace.root.provenance(tables.EMBEDDINGS, month)
    if provenance is None:
        raise MissingInput(
            f"there are no embeddings of {month}: run citeloom run --months {month} --until index"
        )
    notes = provenance.notes
    try:
        layout = layout_for(
            workspace, notes["model"], notes["dimensions"], notes["sparse"], notes["form"]
        )
    except KeyError as error:
        raise PermanentFailure(
            f"embeddings of {month} do not record what made them (no {error}): "
            f"run citeloom run --months {month} --select embeddings --force"
        ) from error
    return layout, provenance.rows


def audit_and_receipt(workspace: Workspace, month: str) -> tuple[MonthAudit, Row]:
    """Audit a month against the collection of its layout; returns the audit and its receipt.
    Changes nothing.
    """
    layout, _ = layout_of(workspace, month)
    collections = open_collections(workspace)
    index = collection_of(collections, layout)
    expected = digests_of(workspace.root, month)
    index.layout()  # raises for a collection of this name that citeloom did not make
    audit = audit_month(index, month, expected)
    return audit, receipt(collections.engine, index.name, layout, audit, digest_of(expected))


def _count_points(index: PassageIndex, month: str) -> int:
    """The number of a month's points. Raises as `PassageIndex.count` does.

    Within `read_cache` the first month is counted alone and the others by one request for all: a
    run that looks at one month after another must not count a million points for each. While the
    files of an in-process index stay the same, it is not opened at all, which takes 200 MB for
    24,000 points.
    """
    place = (index.place, index.name)

    def count_all() -> dict[str, int]:
        return index.month_counts(wait=False)

    def stored_counts(version: str) -> dict[str, int]:
        name = f"points of {index.place}/{index.name}"
        return dict(json.loads(remember(name, version, lambda: json.dumps(count_all()))))

    if not is_active():
        return index.count(month, wait=False)
    version = once(("version of points", *place), index.points_version)
    if version is not None:
        return once(("points by month", *place), lambda: stored_counts(version)).get(month, 0)
    if once(("first month counted", *place), lambda: month) == month:
        return index.count(month, wait=False)
    return once(("points by month", *place), count_all).get(month, 0)


def index_holds_the_embeddings(workspace: Workspace, month: str) -> CheckResult:
    """The index holds the points that the month's tables ask for, id by id and as they are now, and
    no other.
    """
    audit, receipt = audit_and_receipt(workspace, month)
    points = {kind: list(map(str, getattr(audit, kind)[:_MOST_NAMED])) for kind in KINDS}
    facts = {
        "collection": audit.collection,
        "expected": audit.expected,
        "present": audit.present,
        **points,
    }
    return CheckResult(
        audit.clean and [receipt] == workspace.root.rows(tables.INDEX_RECEIPTS, month), facts
    )


class IndexReceipts(Stage):
    """The month's points in the Qdrant collection, audited against the embeddings id by id."""

    table = tables.INDEX_RECEIPTS
    upstream = (tables.EMBEDDINGS, tables.PASSAGES, tables.PAPERS)
    settings = ("qdrant_collection", "qdrant_url")
    # A collection's name tells it.
    former_settings = {"qdrant_quantization": "int8"}  # noqa: RUF012
    version = 4
    pool = "qdrant"
    plain_name = "index"
    kinds = ("parquet", "qdrant")
    checks = (MonthCheck(index_holds_the_embeddings, blocking=True, uses_pool=True),)

    def inputs(self, workspace: Workspace, month: str) -> Mapping[str, str]:
        """The month's collection, since the rows of a month without passages do not show it, and
        its metadata, from which points take the venue.
        """
        collection = layout_of(workspace, month)[0].collection(workspace.settings.qdrant_collection)
        return {
            "collection": collection,
            "metadata": digest_of_table(workspace, tables.METADATA, [month]),
        }

    def outputs_exist(self, workspace: Workspace, month: str, written: Provenance) -> bool:
        """Whether the index holds as many points of the month as its receipt says.

        Only a count, since `citeloom status` calls this for every month; `citeloom audit` compares
        ids. A server that does not answer counts as empty. An Edge folder that another process
        holds is in use, so its receipt is trusted. Raises nothing: the next run reports a wrong key
        or a broken folder.
        """
        points = written.notes.get("points")
        if points is None:
            return False  # an audit found differences
        try:
            layout, _ = layout_of(workspace, month)
            collections = open_collections(workspace)
            index = collection_of(collections, layout)
            return _count_points(index, month) == int(points)
        except TransientFailure:
            return workspace.settings.qdrant_url is None
        except CiteloomError:
            return False

    def build(self, job: Job) -> Iterator[Row]:
        """Load the month and yield its receipt, one row.

        The receipt depends only on the month's tables, and is written only if the audit finds every
        point and no other. How many points were sent and removed differs if an earlier run was
        killed, so that goes to `job.measured`; `stale` counts points that should not be there after
        the load: 0. Raises TransientFailure if points could not be loaded or the audit fails.
        Raises PermanentFailure if searches use a collection of another layout.
        """
        layout, rows = layout_of(job.workspace, job.month)
        job.expect(rows)
        index = index_for(job.workspace, layout)
        points = points_of(job.workspace.root, job.month, layout)
        # The graph of another collection than the live one is built once, at the end of `reindex`.
        live = open_collections(job.workspace).live() == index.name
        load = load_month(
            index, job.month, points, expected_rows=rows, build_graph=live, on_progress=job.advance
        )
        job.measured.update(sent=load.sent, removed=load.removed)
        audit = audit_month(index, job.month, load.expected)
        if not audit.clean:
            ids = [*audit.missing, *map(str, audit.surplus)]
            raise TransientFailure(
                f"after loading {job.month} into {job.settings.qdrant_collection},"
                f" {audit.describe()} ({', '.join(ids[:5])}): run again; citeloom audit --months"
                f" {job.month} --json lists them all"
            )
        job.notes["points"] = audit.expected
        yield receipt(
            open_collections(job.workspace).engine,
            index.name,
            layout,
            audit,
            digest_of(load.expected),
        )


INDEX_RECEIPTS = IndexReceipts()
