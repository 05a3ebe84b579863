"""The stage `metadata`: each paper's record, from the snapshot, the harvest and the API."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from pipeline import tables
from pipeline.arxiv.category_filter import verdict
from pipeline.arxiv.harvest_store import STORE, HarvestedPaper, HarvestStore
from pipeline.arxiv.record import Record, absent
from pipeline.arxiv.snapshot import Snapshot
from pipeline.engine.progress import StageAdvanced, publish
from pipeline.engine.stage import Job, Stage, Workspace
from pipeline.errors import SettingError
from pipeline.storage.read_cache import remember
from pipeline.storage.writing import Row

if TYPE_CHECKING:
    from pipeline.arxiv.rate_limited_client import Pace


def _from_api(job: Job, missing: list[str], pace: Pace | None) -> dict[str, Record]:
    from pipeline.arxiv.api import ApiCache, ArxivApi

    cache = job.workspace.cache("arxiv_api")
    if not job.settings.arxiv_api or not missing:
        return ApiCache(cache).find(missing)

    def advance(done: int, total: int) -> None:
        # Of the papers to request alone: those of the snapshot took no time, and would promise
        # an early end.
        publish(StageAdvanced(job.stage.name, job.month, done, total))

    with ArxivApi(job.settings, cache, pace=pace) as api:
        records = api.find(missing, advance)
    job.measured["api_requests"] = api.requests
    return records


def records_of_month(workspace: Workspace, month: str) -> dict[str, Record]:
    """A record of every paper of a month that the snapshot or the harvest has.

    Raises MissingInput where the snapshot is missing, PermanentFailure where it or the harvest
    cannot be read.
    """
    snapshot, store = Snapshot.of(workspace), HarvestStore(workspace.cache(STORE))
    identifiers = snapshot.identifiers(month) if snapshot else []
    return _newest(snapshot, identifiers, store.find(store.identifiers(month)))


def objections_of_month(workspace: Workspace, month: str) -> dict[str, str]:
    """Every paper of a month that the snapshot or the harvest has, with the reason that keeps it
    out of the corpus; empty where none does.

    Raises SettingError where there is no metadata of the month.
    """
    records = records_of_month(workspace, month)
    if not records:
        raise SettingError(
            f"there is no metadata of {month}: run citeloom harvest, set CITELOOM_METADATA_SNAPSHOT"
            " to a newer snapshot, or name the papers by --ids"
        )
    return {
        name: "withdrawn"
        if record.status == "withdrawn"
        else verdict(record.categories, record.primary_category or "", workspace.settings)[1]
        for name, record in records.items()
    }


def metadata_version(workspace: Workspace) -> str:
    """A text that changes when the snapshot or the harvest does. Raises as `records_of_month`."""
    snapshot, harvest = Snapshot.of(workspace), HarvestStore(workspace.cache(STORE))
    return f"{snapshot.version if snapshot else ''} {harvest.version}"


def _ids_of_pages(workspace: Workspace, month: str) -> list[str]:
    members = workspace.root.read(tables.DUMP_MEMBERS, month, ["arxiv_id"])
    return sorted(set(members["arxiv_id"].to_pylist()))


def _from_files(job: Job, ids: list[str]) -> dict[str, Record]:
    """The newer of snapshot and harvest for each paper; broken records go to the ledger."""
    settings, workspace = job.settings, job.workspace
    snapshot, store = Snapshot.of(workspace), HarvestStore(workspace.cache(STORE))
    harvested = store.find(ids)
    if not (snapshot or harvested or settings.arxiv_api):
        raise SettingError(
            "there is no source of metadata: set CITELOOM_METADATA_SNAPSHOT to arXiv's snapshot, or"
            " CITELOOM_ARXIV_API=true, or run citeloom harvest"
        )
    if snapshot:
        job.measured["snapshot"] = snapshot.facts()
    for arxiv_id, reason in store.broken(ids).items():
        job.leave_out(
            arxiv_id,
            "broken_harvested_record",
            f"its newest record over OAI-PMH cannot be read: {reason}",
        )
    return _newest(snapshot, ids, harvested)


def _newest(
    snapshot: Snapshot | None, ids: Collection[str], harvested: Mapping[str, HarvestedPaper]
) -> dict[str, Record]:
    """Each paper from the newer of snapshot and harvest."""
    records = snapshot.find(ids) if snapshot else {}
    days = snapshot.update_days(harvested) if snapshot and harvested else {}
    for arxiv_id, paper in harvested.items():
        if arxiv_id not in records or paper.datestamp >= days[arxiv_id]:
            records[arxiv_id] = _updated(arxiv_id, records.get(arxiv_id), paper)
    return records


def _updated(arxiv_id: str, earlier: Record | None, paper: HarvestedPaper) -> Record:
    """The record of a harvested paper, or the earlier one where nothing else changed."""
    record = paper.record or earlier or Record(arxiv_id)
    if paper.deleted:
        return replace(record, source="oai", status="withdrawn")
    if earlier is None:
        return record
    same = replace(record, source=earlier.source, fetched_at=earlier.fetched_at) == earlier
    return earlier if same else record


def _sources_tried(job: Job, record: Record, broken_line: int | None) -> str:
    sources = []
    if snapshot := job.settings.metadata_snapshot:
        sources.append(
            f"{snapshot.name} has no readable line of this paper"
            if broken_line is None
            else f"line {broken_line} of {snapshot.name} cannot be read"
        )
    sources.append(
        "arXiv's API has no such paper" if record.source == "api" else "CITELOOM_ARXIV_API is false"
    )
    return "; ".join(sources)


def _count(values: Iterable[str]) -> dict[str, int]:
    return dict(sorted(Counter(values).items()))


class Metadata(Stage):
    """What arXiv says of each page's paper: from the snapshot or the newer harvest, then from the
    rate-limited API for the rest.
    """

    table = tables.METADATA
    upstream = (tables.DUMP_MEMBERS,)
    settings = ("arxiv_api",)
    version = 5
    pool = "arxiv_api"
    kinds = ("parquet", "arxiv")
    pace: Pace | None = None
    """Of requests to the API; None for arXiv's rules."""

    def inputs(self, workspace: Workspace, month: str) -> Mapping[str, str]:
        """Digests of the records of the month's papers in snapshot and harvest."""
        snapshot, harvest = Snapshot.of(workspace), HarvestStore(workspace.cache(STORE))

        def read() -> str:
            ids = _ids_of_pages(workspace, month)
            digests = {
                "snapshot": snapshot.digest(ids) if snapshot else None,
                "harvest": harvest.digest(ids),
            }
            return json.dumps({name: digest for name, digest in digests.items() if digest})

        pages = workspace.root.provenance(tables.DUMP_MEMBERS, month)
        version = f"{pages.rows_sha256 if pages else ''} {metadata_version(workspace)}"
        fact = remember(f"records of {workspace.root.path} {month}", version, read)
        digests: dict[str, str] = json.loads(fact)
        return digests

    def build(self, job: Job) -> Iterator[Row]:
        """One row for each paper of the month's dump, by identifier.

        From the snapshot, or from the harvest where that is newer; else from the API; else absent.
        A paper that arXiv has deleted counts as withdrawn.
        """
        ids = _ids_of_pages(job.workspace, job.month)
        job.expect(len(ids))
        records = _from_files(job, ids)
        records |= _from_api(
            job, [arxiv_id for arxiv_id in ids if arxiv_id not in records], self.pace
        )
        rows = [records.get(arxiv_id) or absent(arxiv_id) for arxiv_id in ids]
        job.notes["sources"] = _count(record.source or "none" for record in rows)
        job.notes["status"] = _count(record.status for record in rows)
        snapshot = Snapshot.of(job.workspace)
        absent_ids = [record.arxiv_id for record in rows if record.status == "absent"]
        broken_lines = snapshot.line_numbers(absent_ids) if snapshot else {}
        for record in rows:
            if record.status == "absent":
                sources = _sources_tried(job, record, broken_lines.get(record.arxiv_id))
                job.leave_out(record.arxiv_id, "no_metadata", sources)
            yield record.as_row()


METADATA = Metadata()
