"""A data root holds arXiv's papers or one snapshot of Wikipedia."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pipeline import tables
from pipeline.engine.stage import Workspace
from pipeline.engine.status import month_status
from pipeline.errors import SettingError
from pipeline.ops.preflight import check
from pipeline.ops.run_months import known_months, months_of_status, stages_of
from pipeline.settings import load_settings
from pipeline.stages import STAGES, choose_stages
from pipeline.wikipedia.root import claim, held_snapshot
from tests.unit.index.building import write_table
from tests.unit.wikipedia.pages import MONTH


def workspace_at(folder: Path | None, **settings: Any) -> Workspace:
    return Workspace(load_settings(_env_file=None, data=folder, **settings))


def test_a_root_is_claimed_for_one_snapshot(tmp_path: Path) -> None:
    workspace = workspace_at(tmp_path)
    assert held_snapshot(workspace.root) is None
    claim(workspace, MONTH)
    claim(workspace, MONTH)
    assert held_snapshot(workspace.root) == MONTH


def test_another_snapshot_goes_into_another_root_unless_nothing_came_of_the_first(tmp_path: Path) -> None:
    workspace = workspace_at(tmp_path)
    claim(workspace, MONTH)
    claim(workspace, "2024-10")
    write_table(workspace, tables.PAPERS, "2024-10", [])
    with pytest.raises(SettingError, match="as of 2024-10"):
        claim(workspace, MONTH)


@pytest.mark.parametrize("table", [tables.DUMP_MEMBERS, tables.METADATA, tables.PAPERS])
def test_a_root_with_papers_of_arxiv_is_refused(tmp_path: Path, table: tables.Table) -> None:
    workspace = workspace_at(tmp_path)
    write_table(workspace, table, "2024-03", [])
    with pytest.raises(SettingError, match="a data root of its own"):
        claim(workspace, MONTH)
    assert held_snapshot(workspace.root) is None


def test_the_demos_root_and_the_default_one_are_refused(tmp_path: Path) -> None:
    (tmp_path / "holds-the-demo").touch()
    with pytest.raises(SettingError, match="papers of arXiv"):
        claim(workspace_at(tmp_path), MONTH)
    with pytest.raises(SettingError, match="CITELOOM_DATA names no folder"):
        claim(workspace_at(None), MONTH)


def test_on_a_server_wikipedia_has_a_collection_of_its_own(tmp_path: Path) -> None:
    url = "http://127.0.0.1:1"
    with pytest.raises(SettingError, match="CITELOOM_QDRANT_COLLECTION"):
        claim(workspace_at(tmp_path, qdrant_url=url), MONTH)
    claim(workspace_at(tmp_path, qdrant_url=url, qdrant_collection="wikipedia"), MONTH)


def test_arxivs_stages_do_not_run_into_wikipedias_root(tmp_path: Path) -> None:
    workspace = workspace_at(tmp_path)
    check(workspace, STAGES)
    claim(workspace, MONTH)
    with pytest.raises(SettingError, match="holds Wikipedia as of 2024-09"):
        check(workspace, STAGES)
    check(workspace, choose_stages(select=["passages", "embeddings"]))


def test_the_months_of_wikipedias_root_are_its_own(tmp_path: Path) -> None:
    workspace = workspace_at(tmp_path)
    claim(workspace, MONTH)
    write_table(workspace, tables.PAPERS, MONTH, [])
    assert known_months(workspace, "all") == [MONTH]
    assert months_of_status(workspace, "all") == ([MONTH], None)
    told = [(row["stage"], row["state"]) for row in month_status(stages_of(workspace), workspace, MONTH)]
    assert told == [(name, "missing") for name in ("passages", "embeddings", "index_receipts")]
