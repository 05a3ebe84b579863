"""Audits of many months, the receipts that keep their outcome, and mending what differs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from pipeline import tables
from pipeline.arxiv.months import select_months
from pipeline.engine.locks import month_lock
from pipeline.engine.run import run_stage
from pipeline.engine.stage import Workspace
from pipeline.errors import CiteloomError, MissingInput, SettingError
from pipeline.index.audit import KINDS, MonthAudit, audit_month
from pipeline.index.load import digest_of
from pipeline.index.opening import close_indexes, collection_of, edge_folder, open_collections
from pipeline.index.points import digests_of
from pipeline.index.stages import INDEX_RECEIPTS, layout_of, receipt
from pipeline.storage.provenance import Provenance, read_provenance
from pipeline.storage.writing import MonthWriter, Row

if TYPE_CHECKING:
    from pathlib import Path

    from pipeline.index.passage_index import PassageIndex, PointId
    from pipeline.index.server_collections import ServerCollections


@dataclass(frozen=True, slots=True)
class Audit:
    """What an audit of some months found.

    months: those that could be audited, oldest first. outside: points of no month of the data root, by collection;
    looked for where every month is audited. failures: (month, message) of months that could not be audited, or
    could not be mended. live: the collection that searches ask; a month may lie in another that is loaded beside it.
    """

    months: tuple[MonthAudit, ...]
    outside: tuple[tuple[str, tuple[PointId, ...]], ...] = ()
    failures: tuple[tuple[str, str], ...] = ()
    live: str | None = None

    @property
    def clean(self) -> bool:
        """Whether every month was audited, and the index holds what the tables ask for and nothing else."""
        return not self.failures and not self.strangers and all(month.clean for month in self.months)

    @property
    def strangers(self) -> int:
        """How many points are of no month of the data root."""
        return sum(len(ids) for _, ids in self.outside)

    def describe(self) -> str:
        """For a message: what is wrong, in numbers."""
        counts = {kind: sum(len(getattr(month, kind)) for month in self.months) for kind in KINDS}
        counts["foreign"] += self.strangers
        told = ", ".join(f"{count:,} {kind}" for kind, count in counts.items())
        expected = sum(month.expected for month in self.months)
        failed = f"; {len(self.failures)} months failed" if self.failures else ""
        return f"{expected:,} points of {len(self.months)} months: {told}{failed}"

    @property
    def beside(self) -> tuple[str, ...]:
        """Months whose vectors belong into another collection than the one that searches ask."""
        return tuple(month.month for month in self.months if self.live not in (None, month.collection))

    def as_json(self) -> dict[str, Any]:
        """Everything, every id included."""
        return {
            "clean": self.clean,
            "live": self.live,
            "months": [asdict(month) for month in self.months],
            "outside": [{"collection": name, "foreign": ids} for name, ids in self.outside],
            "failures": [{"month": month, "message": message} for month, message in self.failures],
        }


def audit_months(
    workspace: Workspace, selection: str = "all", told: Callable[[str], None] = lambda month: None
) -> Audit:
    """Compare the tables of the months that a selection names with the collections of their layouts.

    A month whose receipt says otherwise gets another one. A month that cannot be audited leaves the others to go on.
    told: is given each month when its turn comes. Raises SettingError where the selection names no month,
    MissingInput where none was ever embedded, and what opening the index may raise.
    """
    held = _months(workspace)
    chosen = select_months(selection, held)
    found: list[MonthAudit] = []
    failures: list[tuple[str, str]] = []
    try:
        live = open_collections(workspace).live()  # a server that is down is told now, and not for every month
        for month in chosen:
            told(month)
            try:
                found.append(_audit_and_note(workspace, month))
            except SettingError:
                raise  # a wrong key or URL is wrong for every month
            except CiteloomError as error:
                failures.append((month, str(error)))
        collections = sorted({audit.collection for audit in found})
        outside = tuple(_outside(workspace, collections)) if chosen == held else ()
    finally:
        close_indexes()
    return Audit(tuple(found), outside, tuple(failures), live)


def audit_of(workspace: Workspace, month: str) -> tuple[MonthAudit, Row]:
    """One month's tables against the collection of their layout, and the receipt that says so. Changes nothing."""
    layout, _ = layout_of(workspace, month)
    collections = open_collections(workspace)
    index = collection_of(collections, layout)
    expected = digests_of(workspace.root, month)
    index.layout()  # raises where somebody else's collection has the name
    audit = audit_month(index, month, expected)
    return audit, receipt(collections.engine, index.name, layout, audit, digest_of(expected))


def repair(workspace: Workspace, audit: Audit, told: Callable[[str], None] = lambda month: None) -> Audit:
    """Load every month again that an audit found wrong, take out what is of no month, and audit those months again.

    A load sends what is missing or changed and takes out what is of the month and should not be, so it is all the
    mending that a month needs. Raises as `audit_months` does.
    """
    wrong = [month.month for month in audit.months if not month.clean]
    failures = dict(audit.failures)
    for month in wrong:
        told(month)
        try:
            run_stage(INDEX_RECEIPTS, workspace, month, force=True)
        except SettingError:
            raise
        except CiteloomError as error:
            failures[month] = str(error)
    strange = [name for name, ids in audit.outside if ids]
    for name in strange:
        remove_outside(workspace, open_collections(workspace).collection(name))
    again = audit_months(workspace, ",".join(wrong)) if wrong else Audit(())
    months = {month.month: month for month in (*audit.months, *again.months)}
    outside = tuple(_outside(workspace, strange))
    close_indexes()
    failures |= dict(again.failures)
    return Audit(tuple(months[each] for each in sorted(months)), outside, tuple(sorted(failures.items())), audit.live)


def remove_outside(workspace: Workspace, index: PassageIndex) -> None:
    """Take out of a collection what is of no month of the data root as it is now."""
    index.delete(_outside_of(workspace, index))


def take_snapshot(workspace: Workspace, folder: Path) -> Path:
    """Put the live collection of a server into one file of a folder. Raises SettingError for Edge."""
    from pipeline.index.snapshots import take

    return take(_on_server(workspace), folder)


def restore_snapshot(workspace: Workspace, file: Path) -> str:
    """Make a server's collection of a snapshot again and let searches ask it; its name. Raises SettingError for Edge,
    and for a file that is not there or is another index's."""
    from pipeline.index.snapshots import restore

    collections = _on_server(workspace)
    name = restore(collections, file)
    collections.make_live(name)
    return name


def _on_server(workspace: Workspace) -> ServerCollections:
    from pipeline.index.server_collections import ServerCollections

    collections = open_collections(workspace)
    if not isinstance(collections, ServerCollections):
        folder = edge_folder(workspace)
        raise SettingError(
            f"snapshots are of a Qdrant server, and CITELOOM_QDRANT_URL is not set: copy the folder {folder} while "
            f"nothing uses it, which is all there is to the embedded index"
        )
    return collections


def _months(workspace: Workspace) -> list[str]:
    """Months that the index may be asked for: embedded, or loaded once. Raises MissingInput where there is none."""
    root = workspace.root
    held = sorted({*root.months(tables.EMBEDDINGS), *root.months(tables.INDEX_RECEIPTS)})
    if not held:
        raise MissingInput(f"{root.path} holds no embeddings yet: run citeloom run --months all --until index_receipts")
    return held


def _outside(workspace: Workspace, names: Iterable[str]) -> Iterator[tuple[str, tuple[PointId, ...]]]:
    """For each collection, the points of no month of the data root."""
    for name in names:
        yield name, _outside_of(workspace, open_collections(workspace).collection(name))


def _outside_of(workspace: Workspace, index: PassageIndex) -> tuple[PointId, ...]:
    """Points of no month of the data root. A month is embedded before it is loaded, so one that another run loads
    meanwhile is seen by looking at the months once more."""
    before: list[str] = []
    ids: Iterable[PointId] = ()
    while (months := _months(workspace)) != before:
        before, ids = months, list(index.outside(months))
    return tuple(sorted(ids, key=str))


def _audit_and_note(workspace: Workspace, month: str) -> MonthAudit:
    """Audit a month while nobody loads it, and let its receipt say what was found."""
    with month_lock(workspace, INDEX_RECEIPTS.name, month):
        audit, found = audit_of(workspace, month)
        _note(workspace, month, audit, found)
    return audit


def _note(workspace: Workspace, month: str, audit: MonthAudit, found: Row) -> None:
    """Rewrite the receipt of a month where it says otherwise than the audit found.

    Its fingerprint stays, since it tells what the load was made of. That the month is damaged is told by the number
    of points that the index must hold for the receipt to be believed: none will do. Counting would not see a
    missing point where there is a strange one as well.
    """
    file = workspace.root.file(tables.INDEX_RECEIPTS, month)
    written = read_provenance(file)
    if written is None:
        return
    notes = {**written.notes, "points": audit.expected if audit.clean else None}
    rows = workspace.root.rows(tables.INDEX_RECEIPTS, month)
    if rows == [found] and notes == written.notes:
        return
    _write_receipt(workspace, replace(written, notes=notes), found)


def _write_receipt(workspace: Workspace, provenance: Provenance, row: Row) -> None:
    file = workspace.root.file(tables.INDEX_RECEIPTS, provenance.month)
    with MonthWriter(tables.INDEX_RECEIPTS, file) as writer:
        writer.add(row)
        writer.commit(provenance)
