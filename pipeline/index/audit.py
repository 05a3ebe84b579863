"""Audits of the index: all months compared with the tables, the receipts that record the result,
and repair.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from pipeline import tables
from pipeline.engine.locks import month_lock
from pipeline.engine.run import run_stage
from pipeline.engine.stage import Workspace
from pipeline.errors import CiteloomError, MissingInput, SettingError
from pipeline.identity.months import select_months
from pipeline.index.load import KINDS, MonthAudit
from pipeline.index.opening import open_collections
from pipeline.index.stages import INDEX_RECEIPTS, audit_and_receipt
from pipeline.storage.provenance import read_provenance
from pipeline.storage.writing import MonthWriter
from pipeline.text import number_of

if TYPE_CHECKING:
    from pipeline.index.passage_index import PassageIndex, PointId
    from pipeline.storage.data_root import DataRoot


@dataclass(frozen=True, slots=True)
class IndexAudit:
    """Audit of several months.

    months: those that could be audited, oldest first. outside: (collection, ids) of points of no
    month of the data root; looked for only if every month is audited. failures: (month, message) of
    damaged tables and ledgers, and of months that could not be audited or repaired. live: the
    collection that searches use; a month may be in another one, which `reindex` loads.
    """

    months: tuple[MonthAudit, ...]
    outside: tuple[tuple[str, tuple[PointId, ...]], ...] = ()
    failures: tuple[tuple[str, str], ...] = ()
    live: str | None = None

    @property
    def clean(self) -> bool:
        """Whether every month was audited, and the index is clean."""
        return not self.failures and self.index_is_clean

    @property
    def index_is_clean(self) -> bool:
        """Whether the index holds what the audited months ask for and nothing else."""
        return not self.outside_count and all(month.clean for month in self.months)

    @property
    def outside_count(self) -> int:
        """Number of points of no month of the data root."""
        return sum(len(ids) for _, ids in self.outside)

    @property
    def months_not_live(self) -> tuple[str, ...]:
        """Months whose vectors belong to another collection than the one that searches use."""
        return tuple(
            month.month for month in self.months if self.live not in (None, month.collection)
        )

    def describe(self) -> str:
        """Numbers of the differences, for a message."""
        counts = {kind: sum(len(getattr(month, kind)) for month in self.months) for kind in KINDS}
        counts["foreign"] += self.outside_count
        differences = ", ".join(f"{count:,} {kind}" for kind, count in counts.items())
        expected = sum(month.expected for month in self.months)
        failed = f"; {number_of(len(self.failures), 'failure')}" if self.failures else ""
        months = number_of(len(self.months), "month")
        return f"{number_of(expected, 'point')} of {months}: {differences}{failed}"

    def as_json(self) -> dict[str, Any]:
        """All fields, with every id."""
        return {
            "clean": self.clean,
            "live": self.live,
            "months": [asdict(month) for month in self.months],
            "outside": [{"collection": name, "foreign": ids} for name, ids in self.outside],
            "failures": [{"month": month, "message": message} for month, message in self.failures],
        }


def audit_months(
    workspace: Workspace,
    selection: str = "all",
    on_month: Callable[[str], None] = lambda month: None,
) -> IndexAudit:
    """Compare tables and ledgers of the selected months with the digests in their files, and the
    tables with the collections of their layouts.

    A month whose receipt disagrees gets a new one. All damaged files of a month are named; the
    index is not compared with them. on_month: called before each month. Raises SettingError if the
    selection contains no month, MissingInput if no month was ever embedded, and the errors of
    opening the index.
    """
    available = _months(workspace)
    selected = select_months(selection, available)
    audits: list[MonthAudit] = []
    failures: list[tuple[str, str]] = []
    # A server that is down raises here once, instead of for every month.
    live = open_collections(workspace).live()
    with workspace.read_cache():
        for month in selected:
            on_month(month)
            damaged = _damaged_files(workspace.root, month)
            failures += damaged
            if damaged:
                continue
            try:
                audits.append(_audit_and_record(workspace, month))
            except SettingError:
                raise  # a wrong key or URL is wrong for every month
            except CiteloomError as error:
                failures.append((month, str(error)))
    collections = sorted({audit.collection for audit in audits}) if selected == available else ()
    outside = tuple(
        (name, _ids_outside(workspace, open_collections(workspace).collection(name)))
        for name in collections
    )
    return IndexAudit(tuple(audits), outside, tuple(failures), live)


def _damaged_files(root: DataRoot, month: str) -> list[tuple[str, str]]:
    """(month, message) of each table and ledger of a month that is damaged, and of each table
    without the ledger of the run that wrote it.
    """
    failures: list[str] = []
    for table in tables.TABLES.values():
        # A ledger is a table in a folder of its own.
        ledger = replace(tables.LEDGER, name=f"{tables.LEDGER.name}/{table.name}")
        damaged = [
            message
            for file in (table, ledger)
            if month in root.months(file)
            for message in _failure(root.check_rows, file, month)
        ]
        failures += damaged or _failure(root.check_ledger, table, month)
    return [(month, message) for message in failures]


def _failure(
    check: Callable[[tables.Table, str], None], table: tables.Table, month: str
) -> list[str]:
    """The message of a check that fails."""
    try:
        check(table, month)
    except CiteloomError as error:
        return [str(error)]
    return []


def repair(
    workspace: Workspace, audit: IndexAudit, on_month: Callable[[str], None] = lambda month: None
) -> IndexAudit:
    """Reload every month that the audit found wrong, remove points of no month, and audit again.

    A load sends what is missing or changed, removes what should not be there and creates payload
    indexes, so it repairs a month completely. Raises as `audit_months` does.
    """
    failures: list[tuple[str, str]] = []
    for month in [month.month for month in audit.months if not month.clean]:
        on_month(month)
        try:
            run_stage(INDEX_RECEIPTS, workspace, month, force=True)
        except SettingError:
            raise
        except CiteloomError as error:
            failures.append((month, str(error)))
    for name, ids in audit.outside:
        if ids:
            remove_outside(workspace, open_collections(workspace).collection(name))
    months = {*(month.month for month in audit.months), *dict(audit.failures)}
    after = audit_months(workspace, ",".join(sorted(months)))
    return replace(after, failures=(*failures, *after.failures))


def remove_outside(workspace: Workspace, index: PassageIndex) -> None:
    """Delete the points of a collection that belong to no month of the data root."""
    index.delete(_ids_outside(workspace, index))


def _months(workspace: Workspace) -> list[str]:
    """Months with embeddings or a receipt. Raises MissingInput if there is none."""
    root = workspace.root
    months = sorted({*root.months(tables.EMBEDDINGS), *root.months(tables.INDEX_RECEIPTS)})
    if not months:
        raise MissingInput(
            f"{root.path} holds no embeddings yet: run citeloom run --months all --until index"
        )
    return months


def _ids_outside(workspace: Workspace, index: PassageIndex) -> tuple[PointId, ...]:
    """Ids of points of no month of the data root. A run embeds a month before it loads it, so a
    month that appears during the listing is noticed by reading the months again.
    """
    months: list[str] = []
    ids: Iterable[PointId] = ()
    while (current := _months(workspace)) != months:
        months, ids = current, list(index.outside(current))
    return tuple(sorted(ids, key=str))


def _audit_and_record(workspace: Workspace, month: str) -> MonthAudit:
    """Audit a month while no run loads it, and rewrite its receipt if it disagrees.

    The receipt keeps its fingerprint, which covers what the load was made from. The number of
    points in its notes becomes None for a damaged month, so that no count makes the receipt valid:
    a count alone would not notice a missing point beside a foreign one.
    """
    with month_lock(workspace, INDEX_RECEIPTS.name, month):
        audit, row = audit_and_receipt(workspace, month)
        file = workspace.root.file(tables.INDEX_RECEIPTS, month)
        provenance = read_provenance(file)
        if provenance is None:
            return audit
        notes = {**provenance.notes, "points": audit.expected if audit.clean else None}
        if workspace.root.rows(tables.INDEX_RECEIPTS, month) != [row] or notes != provenance.notes:
            with MonthWriter(tables.INDEX_RECEIPTS, file) as writer:
                writer.add(row)
                writer.commit(replace(provenance, notes=notes))
    return audit
