"""The stage `metadata`: which source is believed of each paper."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from pipeline import tables
from pipeline.engine import progress
from pipeline.engine.stage import Job, Stage, Workspace
from pipeline.errors import SettingError
from pipeline.metadata.answers import Answers
from pipeline.metadata.arxiv_api import ArxivApi
from pipeline.metadata.harvested import STORE, Harvested, HarvestStore
from pipeline.metadata.pace import Pace, Patience
from pipeline.metadata.record import Record, absent
from pipeline.metadata.snapshot import Found, Snapshot
from pipeline.storage.writing import Row

_NOTHING = Found({}, (), {})


@dataclass(frozen=True, slots=True)
class MetadataBuilder:
    """Computes a month of `metadata`; a pace and a patience other than arXiv's rules are for tests."""

    pace: Pace | None = None
    patience: Patience | None = None

    def __call__(self, job: Job) -> Iterator[Row]:
        """One row for each paper of the month's dump, by identifier.

        From the snapshot, or from the harvest where that is newer, or from a kept answer of the API of a later version
        than the snapshot's; of what these lack from the API itself; else absent. A paper that arXiv has deleted counts
        as withdrawn.
        """
        wanted = _wanted(job.workspace, job.month)
        job.expect(len(wanted))
        found = _from_files(job, wanted)
        found |= _later_answers(job, found)
        found |= self._from_api(job, [arxiv_id for arxiv_id in wanted if arxiv_id not in found])
        records = [found.get(arxiv_id) or absent(arxiv_id) for arxiv_id in wanted]
        job.notes["sources"] = _count(record.source or "none" for record in records)
        job.notes["status"] = _count(record.status for record in records)
        for record in records:
            if record.status == "absent":
                job.leave_out(record.arxiv_id, "no_metadata", _where_looked(job, record))
            yield record.as_row()

    def _from_api(self, job: Job, missing: list[str]) -> dict[str, Record]:
        cache = job.workspace.cache("arxiv_api")
        if not job.settings.arxiv_api or not missing:
            return Answers.kept_in(cache, missing)

        def tell(asked: int, to_ask: int) -> None:
            # Of the papers to ask for alone: those of the snapshot took no time, and would promise an early end.
            progress.advanced(job.stage.name, job.month, asked, to_ask)

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


def snapshot_of(workspace: Workspace) -> Snapshot | None:
    """The snapshot that the settings name, if any."""
    file = workspace.settings.metadata_snapshot
    return Snapshot(file, workspace.cache("snapshot")) if file else None


def _from_files(job: Job, wanted: list[str]) -> dict[str, Record]:
    """What the snapshot and the harvest say, each paper as the newer of the two has it."""
    store = HarvestStore(job.workspace.cache(STORE))
    snapshot, harvested = _from_snapshot(job, wanted), store.find(wanted)
    if not (job.settings.metadata_snapshot or harvested or job.settings.arxiv_api):
        raise SettingError(
            "there is no source of metadata: set CITELOOM_METADATA_SNAPSHOT to arXiv's snapshot, or "
            "CITELOOM_ARXIV_API=true, or run citeloom harvest"
        )
    for arxiv_id, reason in store.broken(wanted).items():
        job.leave_out(arxiv_id, "broken_harvested_record", f"its newest record over OAI-PMH is unreadable: {reason}")
    return believed(snapshot, harvested)


def believed(snapshot: Found, harvested: Mapping[str, Harvested]) -> dict[str, Record]:
    """Each paper as the newer of snapshot and harvest has it."""
    records = dict(snapshot.records)
    for arxiv_id, change in harvested.items():
        if change.datestamp >= snapshot.dates.get(arxiv_id, ""):
            records[arxiv_id] = _newer(arxiv_id, records.get(arxiv_id), change)
    return records


def _newer(arxiv_id: str, known: Record | None, change: Harvested) -> Record:
    """What a newer harvest makes of a paper: nothing else where it says the same, so that its row stays as it was."""
    record = change.record or known or Record(arxiv_id)
    if change.deleted:
        return replace(record, source="oai", status="withdrawn")
    same = known and replace(record, source=known.source, fetched_at=known.fetched_at) == known
    return known if known and same else record


def _later_answers(job: Job, found: Mapping[str, Record]) -> dict[str, Record]:
    """Kept answers of the API of a later version than the snapshot has: a snapshot may be older than what was asked."""
    versions = {name: record.version or 0 for name, record in found.items() if record.source == "snapshot"}
    kept = Answers.kept_in(job.workspace.cache("arxiv_api"), versions)
    return {name: record for name, record in kept.items() if (record.version or 0) > versions[name]}


def _from_snapshot(job: Job, wanted: Collection[str]) -> Found:
    snapshot = snapshot_of(job.workspace)
    if snapshot is None:
        return _NOTHING
    found = snapshot.find(wanted)
    for arxiv_id in found.broken:
        job.leave_out(arxiv_id, "broken_snapshot_line", f"its line in {job.settings.metadata_snapshot} is unreadable")
    job.measured["snapshot"] = snapshot.facts()
    return found


def _count(values: Iterable[str]) -> dict[str, int]:
    return dict(sorted(Counter(values).items()))


def _digests(workspace: Workspace, month: str) -> Mapping[str, str]:
    """What the snapshot and the harvest say of the month's papers: news of other papers leave this month as it is."""
    wanted, snapshot = _wanted(workspace, month), snapshot_of(workspace)
    digests = {
        "snapshot": snapshot.digest(wanted) if snapshot else None,
        "harvest": HarvestStore(workspace.cache(STORE)).digest(wanted),
    }
    return {name: digest for name, digest in digests.items() if digest}


METADATA = Stage(
    table=tables.METADATA,
    build=MetadataBuilder(),
    upstream=(tables.DUMP_MEMBERS,),
    settings=("arxiv_api",),
    version=2,
    inputs=_digests,
    pool="arxiv_api",
)
