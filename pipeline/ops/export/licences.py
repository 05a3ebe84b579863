"""The licence of each paper of a month, from the metadata snapshot.

The table `metadata` does not hold it, and of what OAI-PMH and the API say of it nothing is kept: a paper that one of
them has had news of since the snapshot may be under another licence now, so its licence passes for unknown.
"""

from __future__ import annotations

from collections.abc import Mapping

from pipeline.engine.stage import Workspace
from pipeline.metadata.snapshot import Snapshot
from pipeline.tables import METADATA


def licences_of(workspace: Workspace, month: str) -> Mapping[str, str]:
    """arXiv id → address of the licence, of the month's papers that the snapshot alone speaks of and are not withdrawn.

    Raises MissingInput where the month has no metadata or the snapshot is gone, PermanentFailure where one of them
    cannot be read.
    """
    file = workspace.settings.metadata_snapshot
    if file is None:
        return {}
    rows = workspace.root.iterate(METADATA, month, ["arxiv_id", "source", "status"])
    known = [row["arxiv_id"] for row in rows if row["source"] == "snapshot" and row["status"] == "present"]
    return Snapshot(file, workspace.cache("snapshot")).licences(known)
