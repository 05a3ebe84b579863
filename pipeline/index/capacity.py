"""Expected passages of an index, and the store that they need."""

from __future__ import annotations

import math

from pipeline import tables
from pipeline.corpus.dump.catalogue import read_dump
from pipeline.engine.stage import Workspace
from pipeline.errors import CiteloomError

# Passages up to which Qdrant Edge was measured (docs/experiments/scale.md): searches, openings and
# memory grow with them, and one process at a time searches or loads.
EDGE_PASSAGES = 1_000_000
SHARD_PASSAGES = 1_500_000
# Passages of a page, where all categories are kept.
_PAGE_PASSAGES = 34


def expected_passages(workspace: Workspace) -> int:
    """Passages of the data root, and of the pages of the dump's other months at most."""
    root = workspace.root
    packed = root.months(tables.PASSAGES)
    passages = 0
    for month in packed:
        provenance = root.provenance(tables.PASSAGES, month)
        if provenance is not None:
            passages += provenance.rows
    try:
        dump = read_dump(workspace.settings, may_be_empty=True)
        to_come = sum(dump.count_pages(month) for month in dump.months if month not in packed)
    except CiteloomError:  # another probe reports the dump
        to_come = 0
    return passages + to_come * _PAGE_PASSAGES


def shards_of(passages: int) -> int:
    """Shards of a server's collection for so many passages."""
    return max(1, math.ceil(passages / SHARD_PASSAGES))
