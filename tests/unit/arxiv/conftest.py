"""Builders of the metadata tests: small workspaces, dump months, snapshots."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest

from pipeline import tables
from pipeline.engine.stage import Workspace
from pipeline.settings import load_settings
from pipeline.storage.provenance import Provenance
from pipeline.storage.writing import MonthWriter, Row
from pipeline.tables import Table


def write_month(workspace: Workspace, table: Table, month: str, rows: Iterable[Row]) -> None:
    """A month of a table as its stage would leave it."""
    with MonthWriter(table, workspace.root.file(table, month)) as writer:
        for row in rows:
            writer.add(row)
        writer.commit(Provenance(table.name, month, table.version, 1, "test", "", {}, {}))


def write_members(workspace: Workspace, month: str, ids: Iterable[str]) -> None:
    """A month of the dump that holds these papers."""
    write_month(workspace, tables.DUMP_MEMBERS, month, [{"arxiv_id": name, "subset": "no_problem"} for name in ids])


def line(arxiv_id: str, **changes: Any) -> str:
    """A line of the snapshot."""
    content: Mapping[str, Any] = {
        "id": arxiv_id, "authors": "A. One and B. Two", "title": f"On {arxiv_id}", "comments": None, "doi": None,
        "journal-ref": None, "categories": "cs.CL cs.LG", "abstract": "We say.", "update_date": "2024-05-01",
        "versions": [{"version": "v1", "created": "Mon, 4 Mar 2024 09:00:00 GMT"}],
        "authors_parsed": [["One", "A.", ""], ["Two", "B.", ""]],
    }  # fmt: skip
    return json.dumps({**content, **changes})


@pytest.fixture
def snapshot_file(tmp_path: Path) -> Path:
    return tmp_path / "snapshot.jsonl"


@pytest.fixture
def workspace(tmp_path: Path, snapshot_file: Path) -> Workspace:
    """A workspace whose snapshot is `snapshot_file` and that asks no API."""
    return Workspace(load_settings(data=tmp_path / "data", metadata_snapshot=snapshot_file, arxiv_api=False))
