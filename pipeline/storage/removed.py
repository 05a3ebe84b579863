"""What earlier versions left in a data root and nothing reads any more, as `citeloom status` says.

To add a name is all that the removal of a table or file needs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pipeline.storage.data_root import DataRoot

REMOVED_TABLES: Mapping[str, str] = {
    "question_drafts": "questions for people to review",
    "retrieval_queries": "citing sentences as queries",
    "retrieval_scores": "scores of search by citing sentences",
}
"""Table → what its rows were. Its ledger and its timings can be deleted too."""

REMOVED_FILES: Mapping[str, str] = {
    "watches": "papers that watches found",
    "unfinished/index_receipts.txt": "a mark that watches were due",
    "failures/index_receipts-all-months.json": "a failure of watches",
}
"""File or folder, below the data root → what it was."""


def deletable(root: DataRoot) -> dict[str, str]:
    """What lies in a data root and belongs to nothing of this version: path → what it was."""
    paths = dict(REMOVED_FILES)
    for table, rows in REMOVED_TABLES.items():
        paths |= {f"{folder}{table}": rows for folder in ("", "ledger/", "timings/")}
    return {path: what for path, what in paths.items() if _is_there(root, path)}


def _is_there(root: DataRoot, path: str) -> bool:
    place = root.path / path
    # A folder of an object store is there where a file is below it.
    return place.exists() or any(place.glob("*"))
