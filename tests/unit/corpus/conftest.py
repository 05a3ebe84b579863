"""Fixtures of the corpus tests."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pipeline import tables
from pipeline.engine.stage import Workspace
from pipeline.storage.provenance import Provenance
from pipeline.storage.writing import MonthWriter


@pytest.fixture
def put_real_metadata() -> Callable[[Workspace, Path, str], None]:
    """Writes a month of metadata straight from a snapshot's lines, without the stage that does so."""
    return _put_real_metadata


def _put_real_metadata(workspace: Workspace, snapshot: Path, month: str) -> None:
    members = {row["arxiv_id"] for row in workspace.root.rows(tables.DUMP_MEMBERS, month)}
    empty: dict[str, Any] = dict.fromkeys(tables.METADATA.schema.names)
    with MonthWriter(tables.METADATA, workspace.root.file(tables.METADATA, month)) as writer:
        for line in snapshot.read_text().splitlines():
            record = json.loads(line)
            if record["id"] in members:
                categories = record["categories"].split()
                given = {"arxiv_id": record["id"], "title": record["title"], "status": "present"}
                writer.add({**empty, **given, "categories": categories, "primary_category": categories[0]})
        writer.commit(Provenance("metadata", month, 1, 1, "test", "", {}, {}))
