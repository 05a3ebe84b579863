"""The stage `metadata`. Not here: how a source is read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from pipeline import progress, tables
from pipeline.errors import SettingError
from pipeline.metadata.arxiv_api import ArxivApi
from pipeline.metadata.pace import Pace, Patience
from pipeline.metadata.record import Record, absent
from pipeline.metadata.snapshot import Snapshot
from pipeline.stages import Job, Stage, Workspace
from pipeline.tables import Row


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
