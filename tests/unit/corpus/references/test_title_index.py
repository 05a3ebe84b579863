"""The index of the titles of all months: what a month sees, and how it is kept."""

import os
import sqlite3

import pytest

from pipeline import tables
from pipeline.corpus.references.lookups import metadata_titles
from pipeline.corpus.references.resolution import resolve_references
from pipeline.corpus.references.title_index import NEWEST, TitleIndex
from pipeline.engine.stage import Workspace
from pipeline.errors import TransientFailure
from pipeline.identity.titles import title_keys, window_key
from pipeline.settings import load_settings
from tests.month_tables import write_table

pytestmark = pytest.mark.slow

MONTHS = [f"20{22 + number // 12}-{number % 12 + 1:02}" for number in range(14)]


def row(month, title=None, **known):
    """A paper of a month, with a title that no other month has."""
    paper = {
        "arxiv_id": f"{month}.1",
        "title": title or f"The weaving of papers in {month} for readers",
    }
    return paper | {"authors": ["A. One"], "published": f"{month}-02", "doi": None} | known


def write(workspace, month, *rows):
    """A month of metadata: these papers, or one."""
    write_table(workspace.root, tables.METADATA, month, rows or [row(month)])


def item(title, year=2023):
    known = {
        "title": title,
        "authors": ["A. One"],
        "raw": f"A. One. {title}. {year}.",
        "year": year,
    }
    return known | {"doi": None, "arxiv_id": None}


def resolve(workspace, items, month=NEWEST):
    """What items are resolved to among the titles up to a month."""
    with metadata_titles(workspace).open() as connection:
        return resolve_references(TitleIndex(connection, month), items)


def cited_papers(workspace, month=NEWEST):
    """The months whose titles are found by a month."""
    items = [(item(row(other)["title"]), "9.9") for other in MONTHS]
    return [
        other
        for other, resolution in zip(MONTHS, resolve(workspace, items, month), strict=True)
        if resolution.arxiv_id == f"{other}.1"
    ]


@pytest.fixture
def workspace(tmp_path):
    return Workspace(load_settings(data=tmp_path / "data"))


@pytest.fixture
def filled(workspace):
    """Months of metadata."""
    for month in MONTHS:
        write(workspace, month)
    return workspace


def test_a_month_sees_its_own_and_every_earlier_month_and_no_later_one(filled):
    for last in (3, 0, 13):
        assert cited_papers(filled, MONTHS[last]) == MONTHS[: last + 1]


def test_a_month_that_is_indexed_is_not_read_again(filled):
    assert cited_papers(filled) == MONTHS
    for month in MONTHS[:-1]:
        file = filled.root.file(tables.METADATA, month)
        content = file.read_bytes()
        # The footer tells the digest; the rows before it are no longer readable.
        file.write_bytes(content[:4] + b"\0" * 64 + content[68:])
    write(filled, MONTHS[-1], row(MONTHS[-1], "Another title of the same month"))
    assert cited_papers(filled) == MONTHS[:-1]


def test_a_data_root_that_cannot_be_written_is_read(filled):
    (filled.local / "cache").write_text("in the place of the folder")
    assert cited_papers(filled) == MONTHS


@pytest.mark.parametrize("harm", ["absent", "another version", "cut off", "garbled"])
def test_an_index_that_cannot_be_used_is_made_again(filled, harm):
    assert cited_papers(filled) == MONTHS
    file = metadata_titles(filled).file
    match harm:
        case "absent":
            file.unlink()
        case "another version":
            with sqlite3.connect(file) as connection:
                connection.executescript("delete from keys; pragma user_version = 99")
        case "cut off":
            os.truncate(file, file.stat().st_size // 2)
        case "garbled":
            content = file.read_bytes()
            file.write_bytes(content[:4096] + b"\xff" * (len(content) - 4096))
            with pytest.raises(TransientFailure, match="run"):
                cited_papers(filled)
    assert cited_papers(filled) == MONTHS


def test_papers_without_a_title_are_found_by_their_doi_alone(workspace):
    assert cited_papers(workspace) == []
    write(
        workspace,
        "2023-01",
        row("2023-01") | {"title": None},
        row("2023-01") | {"title": "Word", "arxiv_id": "2", "doi": "10.5555/word"},
    )
    by_doi = item("Nothing of the kind") | {"doi": "10.5555/word"}
    assert resolve(workspace, [(by_doi, "9.9")])[0].arxiv_id == "2"


def test_a_doi_that_two_months_bear_is_that_of_the_smaller_identifier(workspace):
    for month in ("2023-02", "2023-01"):
        write(workspace, month, row(month, doi="10.5555/One 10.5555/two"))
    by_doi = item("Nothing of the kind") | {"doi": "10.5555/two"}
    resolutions = resolve(workspace, [(by_doi, "9.9"), (by_doi, "2023-01.1")])
    assert [resolution.arxiv_id for resolution in resolutions] == ["2023-01.1", None]


def test_keys_are_the_same_in_every_process():
    """They are kept: Python's own hashes differ from process to process."""
    words = ["attention", "is", "all", "you", "need"]
    assert title_keys(words) == [
        9389158134594241271,
        4457982561307631907,
        522253599857667015,
        5571946552960689453,
    ]
    assert window_key(words) == 4137875040808376105
