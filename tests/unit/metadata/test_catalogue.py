"""The catalogue of months: what a month sees, what is kept of it, and what a changed or broken file does."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from pipeline import tables
from pipeline.engine.stage import Workspace
from pipeline.metadata.catalogue import open_catalogue
from pipeline.metadata.resolution import Catalogue
from pipeline.metadata.segment import Segment
from pipeline.metadata.titles import title_keys, window_key, window_keys
from pipeline.storage.provenance import Provenance
from pipeline.storage.writing import MonthWriter

MONTHS = [f"20{22 + number // 12}-{number % 12 + 1:02}" for number in range(27)]


def row(month: str, title: str | None = None, **known: Any) -> dict[str, Any]:
    """A paper of a month, with a title that no other month has."""
    told = {"arxiv_id": f"{month}.1", "title": title or f"The weaving of papers in {month} for readers"}
    return told | {"authors": ["A. One"], "published": f"{month}-02", "doi": None} | known


def write(workspace: Workspace, month: str, *rows: dict[str, Any], digest: str | None = None) -> None:
    """A month of metadata; its digest changes with its titles unless one is given."""
    with MonthWriter(tables.METADATA, workspace.root.file(tables.METADATA, month)) as writer:
        for one in rows or (row(month),):
            writer.add(one)
        writer.commit(Provenance("metadata", month, tables.METADATA.version, 1, "test", "", {}, {}))


def item(title: str, year: int = 2023) -> dict[str, Any]:
    known = {"title": title, "authors": ["A. One"], "raw": f"A. One. {title}. {year}.", "year": year}
    return known | {"doi": None, "arxiv_id": None}


def found(catalogue: Catalogue, month: str) -> str | None:
    return catalogue.resolve(item(row(month)["title"]), "9.9").arxiv_id


def files(workspace: Workspace) -> list[Path]:
    return sorted(workspace.cache("catalogue").glob("*.arrow"))


@pytest.fixture
def filled(workspace: Workspace) -> Workspace:
    """27 months of metadata, as many as fill blocks of sixteen, eight, two and one."""
    for month in MONTHS:
        write(workspace, month)
    return workspace


def test_a_month_sees_its_own_and_every_earlier_month_and_no_later_one(filled: Workspace) -> None:
    for last in (0, 1, 6, 7, 15, 26):
        catalogue = open_catalogue(filled, MONTHS[last])
        seen = [month for month in MONTHS if found(catalogue, month) == f"{month}.1"]
        assert seen == MONTHS[: last + 1]
        assert len(catalogue) == last + 1


def test_the_order_in_which_months_are_run_changes_nothing(filled: Workspace) -> None:
    late = found(open_catalogue(filled, MONTHS[-1]), MONTHS[3])
    early = open_catalogue(filled, MONTHS[4])
    assert late == found(early, MONTHS[3]) == f"{MONTHS[3]}.1"
    assert found(early, MONTHS[5]) is None


def test_a_month_that_was_joined_is_not_read_again(filled: Workspace) -> None:
    open_catalogue(filled, MONTHS[-1])
    for month in MONTHS[:-1]:
        file = filled.root.file(tables.METADATA, month)
        content = file.read_bytes()
        # The footer tells the digest; the rows before it are no longer readable.
        file.write_bytes(content[:4] + b"\0" * 64 + content[68:])
    assert found(open_catalogue(filled, MONTHS[-1]), MONTHS[0]) == f"{MONTHS[0]}.1"


def test_a_month_more_leaves_the_blocks_before_it_alone(filled: Workspace) -> None:
    for month in MONTHS[:-1]:
        open_catalogue(filled, month)
    before = {file: file.stat().st_mtime_ns for file in files(filled)}
    open_catalogue(filled, MONTHS[-1])
    after = {file: file.stat().st_mtime_ns for file in files(filled)}
    assert before.items() <= after.items()
    assert len(after) == len(before) + 1


def test_news_of_an_earlier_month_are_seen_and_the_old_file_goes(workspace: Workspace) -> None:
    write(workspace, "2023-01")
    write(workspace, "2023-02")
    open_catalogue(workspace, "2023-02")
    old = files(workspace)
    write(workspace, "2023-01", row("2023-01", "Another title of the same month"))
    catalogue = open_catalogue(workspace, "2023-02")
    assert found(catalogue, "2023-01") is None
    assert catalogue.resolve(item("Another title of the same month"), "9.9").arxiv_id == "2023-01.1"
    assert not set(old) & set(files(workspace))


def test_a_torn_file_is_made_again(workspace: Workspace) -> None:
    write(workspace, "2023-01")
    open_catalogue(workspace, "2023-01")
    (file,) = files(workspace)
    whole = file.read_bytes()
    file.unlink()
    file.write_bytes(whole[: len(whole) // 2])
    assert found(open_catalogue(workspace, "2023-01"), "2023-01") == "2023-01.1"
    assert file.read_bytes() == whole


def test_files_of_months_as_they_no_longer_are_go(workspace: Workspace) -> None:
    later = ("2023-02", "2023-03", "2023-04")
    for month in later:
        write(workspace, month)
    for month in later:
        open_catalogue(workspace, month)
    old = {file.name for file in files(workspace) if file.name.startswith("2023-02_2023-04")}
    assert old
    write(workspace, "2023-01")
    open_catalogue(workspace, "2023-04")
    assert not old & {file.name for file in files(workspace)}
    assert len(files(workspace)) == 3, "the two single months that are as they were stay, beside the block of all four"


@pytest.mark.parametrize("place", [0.1, 0.5, 0.95, 1.0])
def test_a_file_with_a_wrong_byte_is_made_again(workspace: Workspace, place: float) -> None:
    write(workspace, "2023-01")
    open_catalogue(workspace, "2023-01")
    (file,) = files(workspace)
    whole = file.read_bytes()
    wrong = bytearray(whole)
    wrong[int(place * (len(whole) - 1))] ^= 0xFF
    file.unlink()
    file.write_bytes(wrong)
    assert found(open_catalogue(workspace, "2023-01"), "2023-01") == "2023-01.1"
    assert file.read_bytes() == whole


def test_the_file_is_the_same_however_its_months_were_joined(filled: Workspace, tmp_path: Path) -> None:
    for month in MONTHS[:17]:
        open_catalogue(filled, month)
    in_order = {file.name: file.read_bytes() for file in files(filled)}
    for file in files(filled):
        file.unlink()
    open_catalogue(filled, MONTHS[16])
    at_once = {file.name: file.read_bytes() for file in files(filled)}
    assert at_once.items() <= in_order.items()


def test_no_metadata_is_an_empty_catalogue(workspace: Workspace) -> None:
    assert found(open_catalogue(workspace, "2023-01"), "2023-01") is None


def test_a_month_without_titles_joins(workspace: Workspace) -> None:
    write(workspace, "2023-01", row("2023-01") | {"title": None}, row("2023-01") | {"title": "Word", "arxiv_id": "2"})
    write(workspace, "2023-02")
    catalogue = open_catalogue(workspace, "2023-02")
    assert len(catalogue) == 1
    assert found(catalogue, "2023-02") == "2023-02.1"


def test_a_doi_that_two_months_bear_is_that_of_the_smaller_identifier(workspace: Workspace) -> None:
    for month in ("2023-02", "2023-01"):
        write(workspace, month, row(month, doi="10.5555/One 10.5555/two"))
    catalogue = open_catalogue(workspace, "2023-02")
    asked = item("Nothing of the kind") | {"doi": "10.5555/two"}
    assert catalogue.resolve(asked, "9.9").arxiv_id == "2023-01.1"
    assert catalogue.resolve(asked, "2023-01.1").arxiv_id is None


def test_many_items_at_once_are_resolved_as_one_by_one(filled: Workspace) -> None:
    catalogue = open_catalogue(filled, MONTHS[20])
    items = [(item(row(month)["title"]) | {"title": None if number % 2 else row(month)["title"]}, "9.9")
             for number, month in enumerate(MONTHS)]  # fmt: skip
    at_once = catalogue.resolve_all(items)
    assert at_once == [catalogue.resolve(*one) for one in items]
    assert [one.by for one in at_once] == ["title"] * 21 + [None] * 6
    assert catalogue.resolve_all([]) == []


def test_keys_are_the_same_in_every_process() -> None:
    code = (
        "from pipeline.metadata.titles import title_keys, window_key\n"
        "print(title_keys('attention is all you need'.split()), window_key('attention is all you need'.split()))"
    )
    told = {
        subprocess.run(
            [sys.executable, "-c", code], env={**os.environ, "PYTHONHASHSEED": seed}, capture_output=True, text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }  # fmt: skip
    words = ["attention", "is", "all", "you", "need"]
    assert told == {f"{title_keys(words)} {window_key(words)}\n"}


def test_a_title_is_found_by_a_window_of_the_text_that_holds_it() -> None:
    words = ["attention", "is", "all", "you", "need"]
    text = ["vaswani", "a", "attention", "is", "all", "you", "need", "in", "neurips", "2017"]
    assert window_key(words) in window_keys(text).tolist()
    assert window_key(words) not in window_keys(["why", *text[4:]]).tolist()
    assert window_key(words[:3]) is None
    assert len(window_keys(words[:3])) == 0


def test_a_slip_in_a_word_leaves_a_key() -> None:
    right, wrong = (
        title_keys(["attention", "is", "all", "you", "need"]),
        title_keys(["atention", "is", "all", "you", "need"]),
    )
    assert set(right) & set(wrong)
    assert title_keys(["word"]) == []


def test_a_segment_is_the_same_written_and_mapped(tmp_path: Path) -> None:
    made = Segment.from_rows([row("2023-01"), row("2023-02", doi="10.5555/x")], "2023-02")
    made.write(tmp_path / "segment.arrow")
    mapped = Segment.open(tmp_path / "segment.arrow")
    assert [mapped.paper(number) for number in range(2)] == [made.paper(number) for number in range(2)]
    assert [file.name for file in tmp_path.iterdir() if file.name.startswith(".")] == []
