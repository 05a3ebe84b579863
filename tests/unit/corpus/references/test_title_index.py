"""The titles of all months up to one: what a month sees, and which files are made."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from pipeline import tables
from pipeline.arxiv.titles import title_keys, window_key, window_keys
from pipeline.corpus.references.resolution import Resolution, resolve_references
from pipeline.corpus.references.title_index import TitleIndex, open_title_index
from pipeline.engine.stage import Workspace
from pipeline.errors import PermanentFailure
from pipeline.settings import load_settings
from tests.month_tables import write_table

pytestmark = pytest.mark.slow

MONTHS = [f"20{22 + number // 12}-{number % 12 + 1:02}" for number in range(27)]


def row(month: str, title: str | None = None, **known: Any) -> dict[str, Any]:
    """A paper of a month, with a title that no other month has."""
    told = {
        "arxiv_id": f"{month}.1",
        "title": title or f"The weaving of papers in {month} for readers",
    }
    return told | {"authors": ["A. One"], "published": f"{month}-02", "doi": None} | known


def write(workspace: Workspace, month: str, *rows: dict[str, Any]) -> None:
    """A month of metadata: these papers, or one."""
    write_table(workspace.root, tables.METADATA, month, rows or [row(month)])


def item(title: str, year: int = 2023) -> dict[str, Any]:
    known = {
        "title": title,
        "authors": ["A. One"],
        "raw": f"A. One. {title}. {year}.",
        "year": year,
    }
    return known | {"doi": None, "arxiv_id": None}


def resolve(titles: TitleIndex, item: dict[str, Any], citing: str) -> Resolution:
    """What one item is resolved to."""
    (resolution,) = resolve_references(titles, [(item, citing)])
    return resolution


def cited_paper(titles: TitleIndex, month: str) -> str | None:
    """The paper that the title of a month's paper is resolved to."""
    return resolve(titles, item(row(month)["title"]), "9.9").arxiv_id


def files(workspace: Workspace) -> list[Path]:
    return sorted(workspace.cache("titles").iterdir())


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return Workspace(load_settings(data=tmp_path / "data"))


@pytest.fixture
def filled(workspace: Workspace) -> Workspace:
    """27 months of metadata."""
    for month in MONTHS:
        write(workspace, month)
    return workspace


def test_a_month_sees_its_own_and_every_earlier_month_and_no_later_one(filled: Workspace) -> None:
    for last in (0, 1, 6, 7, 15, 26):
        titles = open_title_index(filled, MONTHS[last])
        seen = [month for month in MONTHS if cited_paper(titles, month) == f"{month}.1"]
        assert seen == MONTHS[: last + 1]


def test_the_order_in_which_months_are_run_changes_nothing(filled: Workspace) -> None:
    late = cited_paper(open_title_index(filled, MONTHS[-1]), MONTHS[3])
    early = open_title_index(filled, MONTHS[4])
    assert late == cited_paper(early, MONTHS[3]) == f"{MONTHS[3]}.1"
    assert cited_paper(early, MONTHS[5]) is None


def test_a_month_whose_titles_are_stored_is_not_read_again(filled: Workspace) -> None:
    open_title_index(filled, MONTHS[-1])
    for month in MONTHS[:-1]:
        file = filled.root.file(tables.METADATA, month)
        content = file.read_bytes()
        # The footer tells the digest; the rows before it are no longer readable.
        file.write_bytes(content[:4] + b"\0" * 64 + content[68:])
    assert cited_paper(open_title_index(filled, MONTHS[-1]), MONTHS[0]) == f"{MONTHS[0]}.1"


def test_a_month_more_leaves_the_files_before_it_alone(filled: Workspace) -> None:
    open_title_index(filled, MONTHS[-2])
    before = {file: file.stat().st_mtime_ns for file in files(filled)}
    open_title_index(filled, MONTHS[-1])
    after = {file: file.stat().st_mtime_ns for file in files(filled)}
    assert before.items() <= after.items()
    assert len(after) == len(before) + 1 == len(MONTHS)


def test_a_changed_month_is_seen_and_its_old_file_goes(workspace: Workspace) -> None:
    write(workspace, "2023-01")
    write(workspace, "2023-02")
    open_title_index(workspace, "2023-02")
    old = files(workspace)
    for file in old:
        os.utime(file, (1, 1))
    write(workspace, "2023-01", row("2023-01", "Another title of the same month"))
    titles = open_title_index(workspace, "2023-02")
    assert cited_paper(titles, "2023-01") is None
    assert resolve(titles, item("Another title of the same month"), "9.9").arxiv_id == "2023-01.1"
    assert len(set(old) & set(files(workspace))) == 1
    assert len(files(workspace)) == 2


def test_a_damaged_file_is_named_with_what_to_do(workspace: Workspace) -> None:
    write(workspace, "2023-01")
    open_title_index(workspace, "2023-01")
    (file,) = files(workspace)
    content = file.read_bytes()
    file.write_bytes(content[: len(content) // 2])
    with pytest.raises(PermanentFailure, match=r"delete the folder cache/titles"):
        cited_paper(open_title_index(workspace, "2023-01"), "2023-01")


def test_two_processes_at_once_make_the_same_file(filled: Workspace) -> None:
    code = (
        "import sys\n"
        "from pipeline.engine.stage import Workspace\n"
        "from pipeline.corpus.references.title_index import open_title_index\n"
        "from pipeline.settings import load_settings\n"
        "open_title_index(Workspace(load_settings(data=sys.argv[1])), sys.argv[2])"
    )
    command = [sys.executable, "-c", code, str(filled.settings.data_root), MONTHS[-1]]
    children = [subprocess.Popen(command) for _ in range(2)]
    assert [child.wait() for child in children] == [0, 0]
    assert len(files(filled)) == len(MONTHS)


def test_no_metadata_is_an_empty_catalogue(workspace: Workspace) -> None:
    assert cited_paper(open_title_index(workspace, "2023-01"), "2023-01") is None


def test_a_month_without_titles_joins(workspace: Workspace) -> None:
    write(
        workspace,
        "2023-01",
        row("2023-01") | {"title": None},
        row("2023-01") | {"title": "Word", "arxiv_id": "2"},
    )
    write(workspace, "2023-02")
    titles = open_title_index(workspace, "2023-02")
    assert cited_paper(titles, "2023-02") == "2023-02.1"


def test_a_doi_that_two_months_bear_is_that_of_the_smaller_identifier(workspace: Workspace) -> None:
    for month in ("2023-02", "2023-01"):
        write(workspace, month, row(month, doi="10.5555/One 10.5555/two"))
    titles = open_title_index(workspace, "2023-02")
    by_doi = item("Nothing of the kind") | {"doi": "10.5555/two"}
    assert resolve(titles, by_doi, "9.9").arxiv_id == "2023-01.1"
    assert resolve(titles, by_doi, "2023-01.1").arxiv_id is None


def test_many_items_at_once_are_resolved_as_one_by_one(filled: Workspace) -> None:
    titles = open_title_index(filled, MONTHS[20])
    items = [
        (item(row(month)["title"]) | {"title": None if number % 2 else row(month)["title"]}, "9.9")
        for number, month in enumerate(MONTHS)
    ]
    at_once = resolve_references(titles, items)
    assert at_once == [resolve(titles, *one) for one in items]
    assert [one.by for one in at_once] == ["title"] * 21 + [None] * 6
    assert resolve_references(titles, []) == []


def test_keys_are_the_same_in_every_process() -> None:
    code = (
        "from pipeline.arxiv.titles import title_keys, window_key\nprint(title_keys('attention is"
        " all you need'.split()), window_key('attention is all you need'.split()))"
    )
    told = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
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
