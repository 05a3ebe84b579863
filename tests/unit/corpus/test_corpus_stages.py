"""The stages dump_members and papers: what is kept, what is left out and why, and when they are out of date."""

from __future__ import annotations

import os
import struct
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from pipeline import tables
from pipeline.corpus.stages import DUMP_MEMBERS, PAPERS, PaperBuilder
from pipeline.engine import progress
from pipeline.engine.run import State, run_stage, state
from pipeline.engine.stage import Workspace
from pipeline.errors import MissingInput, PermanentFailure
from pipeline.settings import load_settings
from pipeline.storage.provenance import Provenance, read_provenance
from pipeline.storage.writing import MonthWriter
from tests.unit.corpus import harmful
from tests.unit.corpus.building import byline, overwrite_zip64_field, page, para, section, write_zip

MONTH = "2024-03"


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    (tmp_path / "dump").mkdir()
    return workspace_for(tmp_path)


def workspace_for(folder: Path, **overrides: object) -> Workspace:
    return Workspace(load_settings(dump_dir=folder / "dump", data=folder / "data", **overrides))


def ledger(workspace: Workspace, stage: str, month: str = MONTH) -> list[tuple[str, str]]:
    rows = pq.read_table(workspace.root.ledger_file(stage, month)).to_pylist()
    return [(row["subject"], row["reason"]) for row in rows]


def put_metadata(workspace: Workspace, *rows: dict[str, Any]) -> None:
    empty: dict[str, Any] = dict.fromkeys(tables.METADATA.schema.names)
    given = {"title": "From Metadata", "abstract": "Told by metadata.", "status": "present", "source": "snapshot"}
    file = workspace.root.file(tables.METADATA, MONTH)
    with MonthWriter(tables.METADATA, file) as writer:
        for row in rows:
            writer.add({**empty, **given, "categories": ["cs.CL"], "primary_category": "cs.CL", **row})
        writer.commit(Provenance("metadata", MONTH, 1, 1, "test", "", {}, {}))


def run_both(workspace: Workspace) -> list[dict[str, Any]]:
    run_stage(DUMP_MEMBERS, workspace, MONTH)
    run_stage(PAPERS, workspace, MONTH)
    return workspace.root.rows(tables.PAPERS, MONTH)


def zips(workspace: Workspace, members: Iterable[str], content: bytes = page(section(para("Words.")))) -> None:
    by_zip: dict[str, dict[str, bytes]] = {}
    for member in members:
        by_zip.setdefault(member.partition("/")[0], {})[member] = content
    for name, pages in by_zip.items():
        write_zip(workspace.settings.dump_dir / f"ar5iv-{name}.zip", pages)


def test_members_are_listed_by_identifier(workspace: Workspace) -> None:
    zips(workspace, ["warning/2403/2403.00003.html", "error/2403/2403.00001.html", "error/2404/2404.00002.html"])
    run_stage(DUMP_MEMBERS, workspace, MONTH)
    rows = workspace.root.rows(tables.DUMP_MEMBERS, MONTH)
    assert [(row["arxiv_id"], row["subset"]) for row in rows] == [("2403.00001", "error"), ("2403.00003", "warning")]


def test_of_one_identifier_the_best_conversion_is_kept(workspace: Workspace) -> None:
    zips(workspace, [f"{subset}/2403/2403.00001.html" for subset in ("error", "no-problem", "warning")])
    run_stage(DUMP_MEMBERS, workspace, MONTH)
    assert [row["subset"] for row in workspace.root.rows(tables.DUMP_MEMBERS, MONTH)] == ["no_problem"]
    assert ledger(workspace, "dump_members") == [("2403.00001", "duplicate")] * 2


def test_names_that_are_no_pages_are_in_the_ledger_of_one_month(workspace: Workspace) -> None:
    zips(
        workspace, ["error/2403/2403.00001.html", "error/2404/2404.00001.html", "error/2404/x.html", "error/notes.txt"]
    )
    for month in ("2024-03", "2024-04"):
        run_stage(DUMP_MEMBERS, workspace, month)
    assert ledger(workspace, "dump_members", "2024-03") == [("ar5iv-error.zip:error/notes.txt", "not_an_arxiv_page")]
    assert ledger(workspace, "dump_members", "2024-04") == [("ar5iv-error.zip:error/2404/x.html", "not_an_arxiv_page")]


def test_an_entry_that_lies_goes_to_the_ledger_and_the_month_goes_on(workspace: Workspace) -> None:
    zips(workspace, ["error/2403/2403.00001.html", "error/2403/2403.00002.html"])
    lying = struct.pack("<2HQ", 1, 8, 2**64 - 1)
    overwrite_zip64_field(workspace.settings.dump_dir / "ar5iv-error.zip", "error/2403/2403.00001.html", lying)
    run_stage(DUMP_MEMBERS, workspace, MONTH)
    assert [row["arxiv_id"] for row in workspace.root.rows(tables.DUMP_MEMBERS, MONTH)] == ["2403.00002"]
    assert ledger(workspace, "dump_members") == [("ar5iv-error.zip:error/2403/2403.00001.html", "corrupt_member")]


def test_only_the_chosen_subsets_are_listed(tmp_path: Path) -> None:
    (tmp_path / "dump").mkdir()
    workspace = workspace_for(tmp_path, subsets="warning")
    zips(workspace, ["warning/2403/2403.00003.html", "error/2403/2403.00001.html"])
    run_stage(DUMP_MEMBERS, workspace, MONTH)
    assert [row["arxiv_id"] for row in workspace.root.rows(tables.DUMP_MEMBERS, MONTH)] == ["2403.00003"]


def test_a_zip_that_was_only_touched_is_still_the_same(workspace: Workspace) -> None:
    zips(workspace, ["error/2403/2403.00001.html"])
    run_stage(DUMP_MEMBERS, workspace, MONTH)
    os.utime(workspace.settings.dump_dir / "ar5iv-error.zip", (1, 1))
    assert state(DUMP_MEMBERS, workspace, MONTH) is State.DONE


def test_another_page_makes_its_month_alone_out_of_date(workspace: Workspace) -> None:
    zips(workspace, ["error/2403/2403.00001.html", "error/2404/2404.00001.html"])
    for month in ("2024-03", "2024-04"):
        run_stage(DUMP_MEMBERS, workspace, month)
    zips(workspace, ["error/2403/2403.00001.html", "error/2404/2404.00001.html", "error/2404/2404.00002.html"])
    assert state(DUMP_MEMBERS, workspace, "2024-04") is State.STALE


def test_a_paper_of_computer_science_is_parsed(workspace: Workspace) -> None:
    zips(workspace, ["error/2403/2403.00001.html"])
    put_metadata(workspace, {"arxiv_id": "2403.00001"})
    (row,) = run_both(workspace)
    assert (row["arxiv_id"], row["subset"], row["year"]) == ("2403.00001", "error", 2024)
    assert (row["title"], row["title_source"]) == ("A Page", "heading")
    assert (row["abstract"], row["abstract_source"]) == ("Told by metadata.", "metadata")
    assert [block["text"] for block in row["blocks"]] == ["Words."]


def test_a_field_that_neither_page_nor_metadata_has_is_none(workspace: Workspace) -> None:
    zips(workspace, ["error/2403/2403.00001.html"], page(para("Words."), title=""))
    put_metadata(workspace, {"arxiv_id": "2403.00001", "abstract": None})
    (row,) = run_both(workspace)
    assert (row["title"], row["title_source"]) == ("From Metadata", "metadata")
    assert (row["abstract"], row["abstract_source"]) == (None, "none")


def test_authors_come_from_metadata_where_the_page_names_none(workspace: Workspace) -> None:
    zips(workspace, ["error/2403/2403.00001.html"])
    put_metadata(workspace, {"arxiv_id": "2403.00001", "authors": ["Ann Lee", "Bob Roe"]})
    (row,) = run_both(workspace)
    assert [author["name"] for author in row["authors"]] == ["Ann Lee", "Bob Roe"]
    assert (row["authors_source"], row["authors_differ"]) == ("metadata", 0)


def test_authors_of_the_page_stay_where_metadata_names_others_and_the_difference_is_counted(
    workspace: Workspace,
) -> None:
    zips(workspace, ["error/2403/2403.00001.html"], page(byline("Ann B. Lee") + byline("Cid Moe") + para("Words.")))
    put_metadata(workspace, {"arxiv_id": "2403.00001", "authors": ["Ann Lee", "Bob Roe"]})
    (row,) = run_both(workspace)
    assert [author["name"] for author in row["authors"]] == ["Ann B. Lee", "Cid Moe"]
    assert (row["authors_source"], row["authors_differ"]) == ("page", 2)
    provenance = read_provenance(workspace.root.file(tables.PAPERS, MONTH))
    assert provenance is not None
    assert provenance.notes["papers_with_other_authors"] == 1


def test_metadata_decides_before_any_page_is_read(workspace: Workspace) -> None:
    """The zip is gone when papers runs: had one of these pages been asked for, the stage would fail."""
    ids = [f"2403.0000{number}" for number in range(1, 5)]
    zips(workspace, [f"error/2403/{arxiv_id}.html" for arxiv_id in ids])
    put_metadata(
        workspace,
        {"arxiv_id": ids[0], "status": "absent", "categories": None, "primary_category": None},
        {"arxiv_id": ids[1], "status": "withdrawn"},
        {"arxiv_id": ids[2], "categories": ["physics.optics"], "primary_category": "physics.optics"},
    )
    run_stage(DUMP_MEMBERS, workspace, MONTH)
    (workspace.settings.dump_dir / "ar5iv-error.zip").unlink()
    outcome = run_stage(PAPERS, workspace, MONTH)
    assert outcome.rows == 0
    assert ledger(workspace, "papers") == [
        (ids[0], "no_metadata"),
        (ids[1], "withdrawn"),
        (ids[2], "not_computer_science"),
        (ids[3], "no_metadata"),
    ]


def test_a_bad_member_goes_to_the_ledger_and_the_month_goes_on(workspace: Workspace) -> None:
    ids = [f"2403.0000{number}" for number in range(1, 5)]
    good = page(para("Words."))
    contents = [b"%PDF-1.4", page(""), good * 3, good]
    names = [f"error/2403/{arxiv_id}.html" for arxiv_id in ids]
    file = write_zip(workspace.settings.dump_dir / "errors.zip", dict(zip(names, contents, strict=True)))
    put_metadata(workspace, *({"arxiv_id": arxiv_id} for arxiv_id in ids))
    run_stage(DUMP_MEMBERS, workspace, MONTH)
    offset = workspace.root.rows(tables.DUMP_MEMBERS, MONTH)[2]["offset"]
    broken = bytearray(file.read_bytes())
    broken[offset + 60 : offset + 80] = b"\xff" * 20
    file.write_bytes(broken)
    run_stage(PAPERS, workspace, MONTH)
    assert [row["arxiv_id"] for row in workspace.root.rows(tables.PAPERS, MONTH)] == [ids[3]]
    assert ledger(workspace, "papers") == [(ids[0], "not_html"), (ids[1], "no_text"), (ids[2], "corrupt_member")]


def test_what_was_read_is_measured(workspace: Workspace) -> None:
    zips(workspace, ["error/2403/2403.00001.html"])
    put_metadata(workspace, {"arxiv_id": "2403.00001"})
    run_stage(DUMP_MEMBERS, workspace, MONTH)
    outcome = run_stage(PAPERS, workspace, MONTH)
    assert outcome.measured["pages"] == 1
    assert outcome.measured["bytes_read"] == workspace.root.rows(tables.DUMP_MEMBERS, MONTH)[0]["compressed_bytes"]
    assert outcome.notes["chars_seen"] >= outcome.notes["chars_kept"] > 0


def test_both_parsers_write_the_same_rows(tmp_path: Path) -> None:
    rows = []
    for parser in ("fast", "reference"):
        (tmp_path / parser / "dump").mkdir(parents=True)
        workspace = workspace_for(tmp_path / parser, parser=parser)
        zips(workspace, ["error/2403/2403.00001.html"])
        put_metadata(workspace, {"arxiv_id": "2403.00001"})
        rows.append(run_both(workspace))
    assert rows[0] == rows[1]


@pytest.mark.parametrize(
    "setting",
    [{"categories": "cs.CL"}, {"category_match": "primary"}, {"parser": "reference"}, {"page_errors": "drop_page"}],
)
def test_a_setting_that_changes_rows_makes_papers_out_of_date(
    workspace: Workspace, tmp_path: Path, setting: dict[str, str]
) -> None:
    zips(workspace, ["error/2403/2403.00001.html"])
    put_metadata(workspace, {"arxiv_id": "2403.00001"})
    run_both(workspace)
    assert state(PAPERS, workspace, MONTH) is State.DONE
    assert state(PAPERS, workspace_for(tmp_path, **setting), MONTH) is State.STALE


def test_two_runs_write_the_same_bytes(workspace: Workspace) -> None:
    zips(workspace, ["error/2403/2403.00001.html", "error/2403/2403.00002.html"])
    put_metadata(workspace, {"arxiv_id": "2403.00001"}, {"arxiv_id": "2403.00002"})
    run_both(workspace)
    files = [workspace.root.file(table, MONTH) for table in (tables.DUMP_MEMBERS, tables.PAPERS)]
    before = [file.read_bytes() for file in files]
    for stage in (DUMP_MEMBERS, PAPERS):
        run_stage(stage, workspace, MONTH, force=True)
    assert [file.read_bytes() for file in files] == before


def put_papers(workspace: Workspace, contents: dict[str, bytes]) -> None:
    """A month of these pages, all of computer science, listed and ready to be parsed."""
    names = {f"error/2403/{arxiv_id}.html": content for arxiv_id, content in contents.items()}
    write_zip(workspace.settings.dump_dir / "errors.zip", names)
    put_metadata(workspace, *({"arxiv_id": arxiv_id} for arxiv_id in sorted(contents)))
    run_stage(DUMP_MEMBERS, workspace, MONTH)


def parsed_ids(workspace: Workspace) -> list[str]:
    return [row["arxiv_id"] for row in workspace.root.rows(tables.PAPERS, MONTH)]


HARMFUL = replace(PAPERS, build=PaperBuilder(harmful.parse))


@pytest.mark.parametrize(
    ("word", "reason"),
    [("crash", "parser_crashed"), ("loop", "too_slow"), ("grow", "out_of_memory"), ("raise", "parser_error")],
)
def test_a_page_that_harms_its_worker_is_in_the_ledger_and_its_neighbours_are_parsed(
    tmp_path: Path, word: str, reason: str
) -> None:
    (tmp_path / "dump").mkdir()
    workspace = workspace_for(tmp_path, page_seconds=0.2)
    good, bad = page(section(para("Words."))), page(section(para(word)))
    put_papers(workspace, {"2403.00001": good, "2403.00002": bad, "2403.00003": good})
    outcome = run_stage(HARMFUL, workspace, MONTH)
    assert parsed_ids(workspace) == ["2403.00001", "2403.00003"]
    assert ledger(workspace, "papers") == [("2403.00002", reason)]
    assert outcome.left_out == {reason: 1}


class Notes(progress.Listener):
    """Keeps what a user is told."""

    def __init__(self) -> None:
        self.told: list[str] = []

    def noted(self, message: str) -> None:
        """Keep it."""
        self.told.append(message)


def test_pages_left_out_because_of_this_machine_are_reported_and_marked(tmp_path: Path) -> None:
    (tmp_path / "dump").mkdir()
    workspace = workspace_for(tmp_path, page_seconds=0.2)
    put_papers(workspace, {"2403.00001": page(section(para("loop")))})
    notes = Notes()
    with progress.listening(notes):
        run_stage(HARMFUL, workspace, MONTH)
    (row,) = pq.read_table(workspace.root.ledger_file("papers", MONTH)).to_pylist()
    assert "0.2 s of processor time (CITELOOM_PAGE_SECONDS); on another machine" in row["detail"]
    assert [message.partition(" was")[0] for message in notes.told] == ["1 page"]


def test_pages_of_a_zip_that_was_cut_off_since_it_was_listed_are_not_given_up(workspace: Workspace) -> None:
    """The month stays as it was: with the zip whole again nothing would be out of date, and they be missed for good."""
    put_papers(workspace, {"2403.00001": page(section(para("a"))), "2403.00002": page(section(para("b")))})
    run_stage(PAPERS, workspace, MONTH)
    file = workspace.settings.dump_dir / "errors.zip"
    file.write_bytes(file.read_bytes()[:400])
    write_zip(file.with_name("warnings.zip"), {"warning/2404/2404.00001.html": b""})
    with pytest.raises(MissingInput, match=r"the dump has changed since 2024-03 was listed, and \d of its pages"):
        run_stage(PAPERS, workspace, MONTH, force=True)
    assert parsed_ids(workspace) == ["2403.00001", "2403.00002"]


def test_a_page_with_a_disk_error_is_reported_and_tried_again(workspace: Workspace) -> None:
    folder = workspace.settings.dump_dir / "2403"
    folder.mkdir()
    (folder / "2403.00001.html").symlink_to("/proc/self/mem")  # it says that it is empty, and to read it is an error
    put_papers(workspace, {"2403.00002": page(section(para("Words.")))})
    put_metadata(workspace, {"arxiv_id": "2403.00001"}, {"arxiv_id": "2403.00002"})
    notes = Notes()
    with progress.listening(notes):
        run_stage(PAPERS, workspace, MONTH)
    assert (parsed_ids(workspace), ledger(workspace, "papers")) == (["2403.00002"], [("2403.00001", "unreadable")])
    assert notes.told[0].endswith("run citeloom run --months 2024-03 --select papers --force")
    assert state(PAPERS, workspace, MONTH) is State.STALE


def test_more_time_for_a_page_matters_only_where_one_was_too_slow(tmp_path: Path) -> None:
    (tmp_path / "dump").mkdir()
    quick, patient = workspace_for(tmp_path, page_seconds=0.2), workspace_for(tmp_path, page_seconds=0.4)
    put_papers(quick, {"2403.00001": page(section(para("loop")))})
    run_stage(HARMFUL, quick, MONTH)
    assert (state(HARMFUL, quick, MONTH), state(HARMFUL, patient, MONTH)) == (State.DONE, State.STALE)
    put_papers(quick, {"2403.00001": page(section(para("Words.")))})
    run_stage(HARMFUL, quick, MONTH)
    assert state(HARMFUL, patient, MONTH) is State.DONE


def test_rows_and_ledger_are_the_same_with_any_number_of_workers(tmp_path: Path) -> None:
    """Pages of 100 KB, cut into three chunks, of which one is done again page by page."""
    contents = {f"2403.{number:05d}": page(section(para("Words. " * 15_000 + str(number)))) for number in range(1, 26)}
    for number, word in ((3, "raise"), (12, "crash"), (24, "raise")):
        contents[f"2403.{number:05d}"] = page(section(para("Words. " * 15_000 + word)))
    made = []
    for workers in (1, 2, 7):
        (tmp_path / str(workers) / "dump").mkdir(parents=True)
        workspace = workspace_for(tmp_path / str(workers), workers=workers)
        put_papers(workspace, contents)
        run_stage(HARMFUL, workspace, MONTH)
        made.append((workspace.root.file(tables.PAPERS, MONTH).read_bytes(), ledger(workspace, "papers")))
    assert made[0] == made[1] == made[2]
    assert [arxiv_id for arxiv_id, _ in made[0][1]] == ["2403.00003", "2403.00012", "2403.00024"]


def test_metadata_out_of_order_is_refused_rather_than_missed(workspace: Workspace) -> None:
    zips(workspace, ["error/2403/2403.00001.html", "error/2403/2403.00002.html"])
    put_metadata(workspace, {"arxiv_id": "2403.00002"}, {"arxiv_id": "2403.00001"})
    run_stage(DUMP_MEMBERS, workspace, MONTH)
    with pytest.raises(PermanentFailure, match="metadata of 2024-03 is not sorted by identifier"):
        run_stage(PAPERS, workspace, MONTH)


def test_a_paper_s_row_holds_its_grade(workspace: Workspace) -> None:
    put_papers(workspace, {"2403.00001": page(section(para("Words.")))})
    run_stage(PAPERS, workspace, MONTH)
    (row,) = workspace.root.rows(tables.PAPERS, MONTH)
    assert (row["grade"], row["grade_reasons"]) == ("C", ["hardly_any_text"])


def test_errors_on_a_page_are_dealt_with_as_the_setting_says(tmp_path: Path) -> None:
    (tmp_path / "dump").mkdir()
    workspace = workspace_for(tmp_path, page_errors="drop_page")
    put_papers(workspace, {"2403.00001": page(section(para('<span class="ltx_ERROR undefined">\\foo</span> words')))})
    run_stage(PAPERS, workspace, MONTH)
    assert ledger(workspace, "papers") == [("2403.00001", "page_has_errors")]


def test_exactly_the_eleven_papers_of_computer_science_are_parsed(
    shared_data: Path, tmp_path: Path, put_real_metadata: Callable[[Workspace, Path, str], None]
) -> None:
    from pipeline.corpus.dump.catalogue import months_in_dump

    workspace = Workspace(load_settings(dump_dir=shared_data / "dump", data=tmp_path))
    kept, left_out = [], []
    for month in months_in_dump(workspace.settings):
        run_stage(DUMP_MEMBERS, workspace, month)
        put_real_metadata(workspace, shared_data / "metadata" / "snapshot.jsonl", month)
        run_stage(PAPERS, workspace, month)
        kept += [row["arxiv_id"] for row in workspace.root.rows(tables.PAPERS, month)]
        left_out += [reason for _, reason in ledger(workspace, "papers", month)]
    assert len(kept) == 11
    assert left_out == ["not_computer_science"] * 10
