"""The stages `metadata` and `references`. Not here: how a source is read, how a reference is resolved."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pipeline import progress, tables
from pipeline.errors import SettingError
from pipeline.metadata.arxiv_api import ArxivApi
from pipeline.metadata.pace import Pace, Patience
from pipeline.metadata.record import Record, absent
from pipeline.metadata.resolution import Catalogue, Resolution, split_dois
from pipeline.metadata.snapshot import Snapshot
from pipeline.stages import Job, Stage, Workspace
from pipeline.tables import Row, read_provenance


@dataclass(frozen=True, slots=True)
class MetadataBuilder:
    """Computes a month of `metadata`; a pace and a patience other than arXiv's rules are for tests."""

    pace: Pace | None = None
    patience: Patience | None = None

    def __call__(self, job: Job) -> Iterator[Row]:
        """One row for each paper of the month's dump, by identifier: from the snapshot, else the API, else absent."""
        wanted = _wanted(job.workspace, job.month)
        found = _from_snapshot(job, wanted)
        missing = [arxiv_id for arxiv_id in wanted if arxiv_id not in found]
        if missing and job.settings.arxiv_api:
            found |= self._from_api(job, missing, len(found))
        records = [found.get(arxiv_id) or absent(arxiv_id) for arxiv_id in wanted]
        job.notes["sources"] = _count(record.source or "none" for record in records)
        job.notes["status"] = _count(record.status for record in records)
        for record in records:
            if record.status == "absent":
                job.leave_out(record.arxiv_id, "no_metadata", _where_looked(job, record))
            yield record.as_row()

    def _from_api(self, job: Job, missing: list[str], before: int) -> dict[str, Record]:
        def tell(asked: int, to_ask: int) -> None:
            progress.advanced(job.stage.name, job.month, before + asked)

        cache = job.workspace.cache("arxiv_api")
        with ArxivApi(job.settings, cache, pace=self.pace, patience=self.patience) as api:
            found = api.find(missing, tell)
        job.measured["api_requests"] = api.requests
        return found


def _where_looked(job: Job, record: Record) -> str:
    snapshot = job.settings.metadata_snapshot
    broken = job.measured.get("snapshot", {}).get("broken_lines")
    places = (
        [f"not in {snapshot.name}" + (f", of which {broken} lines are broken" if broken else "")] if snapshot else []
    )
    places.append("arXiv's API knows no such paper" if record.source == "api" else "CITELOOM_ARXIV_API is false")
    return "; ".join(places)


def _wanted(workspace: Workspace, month: str) -> list[str]:
    members = workspace.root.read(tables.DUMP_MEMBERS, month, ["arxiv_id"])
    return sorted(set(members["arxiv_id"].to_pylist()))


def _snapshot(workspace: Workspace) -> Snapshot | None:
    file = workspace.settings.metadata_snapshot
    return Snapshot(file, workspace.cache("snapshot")) if file else None


def _from_snapshot(job: Job, wanted: list[str]) -> dict[str, Record]:
    snapshot = _snapshot(job.workspace)
    if snapshot is None:
        if not job.settings.arxiv_api:
            raise SettingError(
                "there is no source of metadata: set CITELOOM_METADATA_SNAPSHOT to arXiv's snapshot, or "
                "CITELOOM_ARXIV_API=true"
            )
        return {}
    found = snapshot.find(wanted)
    for arxiv_id in found.broken:
        job.leave_out(arxiv_id, "broken_snapshot_line", f"its line in {job.settings.metadata_snapshot} is unreadable")
    job.measured["snapshot"] = snapshot.facts()
    return dict(found.records)


def _count(values: Iterable[str]) -> dict[str, int]:
    return dict(sorted(Counter(values).items()))


def _snapshot_digest(workspace: Workspace, month: str) -> Mapping[str, str]:
    """What the snapshot says of the month's papers: another month's news in it leave this month as it is."""
    snapshot = _snapshot(workspace)
    return {"snapshot": snapshot.digest(_wanted(workspace, month))} if snapshot else {}


METADATA = Stage(
    table=tables.METADATA,
    build=MetadataBuilder(),
    upstream=(tables.DUMP_MEMBERS,),
    settings=("arxiv_api",),
    inputs=_snapshot_digest,
)


def build_references(job: Job) -> Iterator[Row]:
    """One row for each bibliography item of the month's papers, in the order of the papers and of their items."""
    catalogue = _catalogue(job)
    resolved: Counter[str] = Counter()
    for paper in job.iterate(tables.PAPERS, ["arxiv_id", "bibliography"]):
        for ordinal, item in enumerate(paper["bibliography"] or ()):
            resolution = catalogue.resolve(item, paper["arxiv_id"])
            resolved[resolution.by or "not_resolved"] += 1
            yield _reference(paper["arxiv_id"], ordinal, item, resolution)
    job.notes["resolved_by"] = dict(sorted(resolved.items()))


def _reference(citing: str, ordinal: int, item: Mapping[str, Any], resolution: Resolution) -> Row:
    copied = {name: item[name] for name in ("key", "raw", "title", "authors", "year", "venue")}
    return copied | {
        "arxiv_id": citing,
        "ordinal": ordinal,
        "doi": next(iter(split_dois(item["doi"])), None),
        "cited_arxiv_id": resolution.arxiv_id,
        "resolved_by": resolution.by,
    }


def _catalogue(job: Job) -> Catalogue:
    catalogue, root = Catalogue(), job.workspace.root
    columns = ["arxiv_id", "title", "authors", "doi", "published"]
    for month in _months_until(job.workspace, job.month):
        catalogue.add(root.iterate(tables.METADATA, month, columns), month)
    return catalogue


def _months_until(workspace: Workspace, month: str) -> list[str]:
    return [other for other in workspace.root.months(tables.METADATA) if other <= month]


def _earlier_metadata(workspace: Workspace, month: str) -> Mapping[str, str]:
    """What earlier months' metadata is: a paper cites what was there before it."""
    digests = {}
    for other in _months_until(workspace, month):
        provenance = read_provenance(workspace.root.file(tables.METADATA, other))
        if provenance is not None and other != month:
            digests[f"metadata/{other}"] = provenance.rows_sha256
    return digests


REFERENCES = Stage(
    table=tables.REFERENCES,
    build=build_references,
    upstream=(tables.PAPERS, tables.METADATA),
    inputs=_earlier_metadata,
)
