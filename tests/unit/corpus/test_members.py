"""The stage dump_members: broken zips, loose pages, and what goes to its ledger."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from pipeline import tables
from pipeline.corpus.stages import DUMP_MEMBERS
from pipeline.engine.run import State, run_stage, state
from pipeline.engine.stage import Workspace
from pipeline.errors import MissingInput
from pipeline.settings import load_settings
from tests.unit.corpus.building import write_zip

ERRORS = {"error/2403/2403.00001.html": b"<html>1</html>", "error/2404/2404.00001.html": b"<html>2</html>"}
WARNINGS = {"warning/2404/2404.00002.html": b"<html>3</html>"}


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    (tmp_path / "dump").mkdir()
    write_zip(tmp_path / "dump" / "errors.zip", ERRORS)
    write_zip(tmp_path / "dump" / "warnings.zip", WARNINGS)
    return workspace_for(tmp_path)


def workspace_for(folder: Path, **overrides: object) -> Workspace:
    return Workspace(load_settings(dump_dir=folder / "dump", data=folder / "data", **overrides))


def listed(workspace: Workspace, month: str, *, force: bool = False) -> list[str]:
    run_stage(DUMP_MEMBERS, workspace, month, force=force)
    return [row["arxiv_id"] for row in workspace.root.rows(tables.DUMP_MEMBERS, month)]


def ledger(workspace: Workspace, month: str) -> list[tuple[str, str]]:
    rows = pq.read_table(workspace.root.ledger_file("dump_members", month)).to_pylist()
    return [(row["subject"], row["reason"]) for row in rows]


def spoil(tmp_path: Path, name: str) -> None:
    file = tmp_path / "dump" / name
    file.write_bytes(file.read_bytes()[:-30])


def test_a_broken_zip_is_in_the_ledger_of_the_first_month_and_the_others_pages_go_on(
    workspace: Workspace, tmp_path: Path
) -> None:
    spoil(tmp_path, "warnings.zip")
    assert listed(workspace, "2024-03") == ["2403.00001"]
    assert listed(workspace, "2024-04") == ["2404.00001"]
    assert ledger(workspace, "2024-03") == [("warnings.zip", "unreadable_zip")]
    assert ledger(workspace, "2024-04") == []


def test_a_month_that_has_pages_of_a_zip_that_broke_stays_as_it_is(workspace: Workspace, tmp_path: Path) -> None:
    assert listed(workspace, "2024-04") == ["2404.00001", "2404.00002"]
    spoil(tmp_path, "warnings.zip")
    assert listed(workspace, "2024-03") == ["2403.00001"]
    with pytest.raises(MissingInput, match=r"warnings\.zip is no zip.*2024-04 has pages of it.*--force"):
        run_stage(DUMP_MEMBERS, workspace, "2024-04")
    assert workspace.root.read(tables.DUMP_MEMBERS, "2024-04").num_rows == 2


def test_forced_a_month_goes_on_without_the_pages_of_a_zip_that_broke(workspace: Workspace, tmp_path: Path) -> None:
    listed(workspace, "2024-04")
    spoil(tmp_path, "warnings.zip")
    assert listed(workspace, "2024-04", force=True) == ["2404.00001"]


def test_a_zip_that_was_mended_is_read(workspace: Workspace, tmp_path: Path) -> None:
    spoil(tmp_path, "warnings.zip")
    assert listed(workspace, "2024-04") == ["2404.00001"]
    write_zip(tmp_path / "dump" / "warnings.zip", WARNINGS)
    assert state(DUMP_MEMBERS, workspace, "2024-04") is State.STALE
    assert listed(workspace, "2024-04") == ["2404.00001", "2404.00002"]


def test_of_one_identifier_the_loose_page_is_kept(workspace: Workspace, tmp_path: Path) -> None:
    (tmp_path / "dump" / "2404").mkdir()
    (tmp_path / "dump" / "2404" / "2404.00002.html").write_bytes(b"<html>newer</html>")
    assert listed(workspace, "2024-04") == ["2404.00001", "2404.00002"]
    row = workspace.root.rows(tables.DUMP_MEMBERS, "2024-04")[1]
    assert (row["zip"], row["member"], row["subset"]) == ("", "2404/2404.00002.html", "unrated")
    assert ledger(workspace, "2024-04") == [("2404.00002", "duplicate")]


def test_a_loose_page_that_changed_makes_its_month_alone_out_of_date(workspace: Workspace, tmp_path: Path) -> None:
    (tmp_path / "dump" / "2404").mkdir()
    page = tmp_path / "dump" / "2404" / "2404.00003.html"
    page.write_bytes(b"<html>one</html>")
    listed(workspace, "2024-03")
    listed(workspace, "2024-04")
    page.write_bytes(b"<html>two</html>")
    assert state(DUMP_MEMBERS, workspace, "2024-03") is State.DONE
    assert state(DUMP_MEMBERS, workspace, "2024-04") is State.STALE


def test_strays_of_subsets_that_are_not_chosen_are_not_in_the_ledger(tmp_path: Path) -> None:
    (tmp_path / "dump").mkdir()
    write_zip(tmp_path / "dump" / "errors.zip", {**ERRORS, "error/2403/notes.txt": b""})
    write_zip(tmp_path / "dump" / "warnings.zip", {**WARNINGS, "warning/2404/notes.txt": b""})
    workspace = workspace_for(tmp_path, subsets="warning")
    assert listed(workspace, "2024-04") == ["2404.00002"]
    assert ledger(workspace, "2024-04") == [("warnings.zip:warning/2404/notes.txt", "not_an_arxiv_page")]


def test_the_cache_of_directories_changes_no_row(workspace: Workspace, tmp_path: Path) -> None:
    assert listed(workspace, "2024-04") == ["2404.00001", "2404.00002"]
    before = workspace.root.file(tables.DUMP_MEMBERS, "2024-04").read_bytes()
    for kept in (tmp_path / "data" / "cache" / "zips").iterdir():
        kept.write_bytes(b"damaged")
    listed(workspace, "2024-04", force=True)
    assert workspace.root.file(tables.DUMP_MEMBERS, "2024-04").read_bytes() == before
