"""Words of papers whose licence, by the metadata snapshot, lets anyone redistribute them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa

from pipeline.arxiv.snapshot import Snapshot
from pipeline.engine.stage import Workspace
from pipeline.tables import METADATA

# The licences at arXiv that allow redistributing changed text, as passages are, and Apache-2.0,
# the licence of the sample corpus. Licences with NC or ND do not allow it.
_OPEN = (
    "creativecommons.org/licenses/by/",
    "creativecommons.org/licenses/by-sa/",
    "creativecommons.org/publicdomain/zero/",
    "creativecommons.org/licenses/publicdomain",
    "www.apache.org/licenses/license-2.0",
)


def open_licences(workspace: Workspace, month: str) -> Mapping[str, str]:
    """arXiv id → address of the licence, for the month's papers under an open licence. None is
    known of papers that OAI-PMH or the API has described since the snapshot, and of withdrawn ones.
    """
    snapshot = Snapshot.of(workspace)
    if snapshot is None:
        return {}
    known = [
        row["arxiv_id"]
        for row in workspace.root.iterate(METADATA, month, ["arxiv_id", "source", "status"])
        if row["source"] == "snapshot" and row["status"] == "present"
    ]
    licences = snapshot.licences(known)
    return {arxiv_id: licence for arxiv_id, licence in licences.items() if is_open(licence)}


def is_open(licence: str) -> bool:
    """Whether a licence, by its address, lets anyone redistribute the text, changed or not."""
    return licence.lower().removeprefix("https://").removeprefix("http://").startswith(_OPEN)


def mask_texts(
    batch: pa.RecordBatch, columns: Sequence[str], licences: Mapping[str, str]
) -> pa.RecordBatch:
    """The batch with a column `license`, and with null in `columns` where it is null."""
    names = batch.schema.names
    licence_of_row = [
        # Front matter holds e-mail addresses.
        None if row.get("kind") == "front_matter" else licences.get(row["arxiv_id"])
        for row in batch.select(sorted({"arxiv_id", "kind"} & {*names})).to_pylist()
    ]
    # `take` gives null for a null index, whatever the column's type.
    rows = pa.array([row if text else None for row, text in enumerate(licence_of_row)], pa.int32())
    for name in columns:
        batch = batch.set_column(names.index(name), name, batch[name].take(rows))
    return batch.append_column("license", pa.array(licence_of_row, pa.string()))
