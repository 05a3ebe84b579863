"""Which papers a month has, as far as the snapshot and the harvest know."""

from __future__ import annotations

from pipeline.engine.stage import Workspace
from pipeline.metadata.harvested import STORE, HarvestStore
from pipeline.metadata.record import Record
from pipeline.metadata.snapshot import Found
from pipeline.metadata.stages import believed, snapshot_of


def records_of_month(workspace: Workspace, month: str) -> tuple[dict[str, Record], set[str]]:
    """A record of every paper of a month, each as the newer source has it, and the papers whose only lines are broken.

    Raises MissingInput where the snapshot is not there, PermanentFailure where it or the harvest cannot be read.
    """
    snapshot, store = snapshot_of(workspace), HarvestStore(workspace.cache(STORE))
    found = snapshot.find(snapshot.identifiers(month)) if snapshot else Found({}, (), {})
    records = believed(found, store.find(store.identifiers(month)))
    return records, set(found.broken) - records.keys()
