"""Front matter of papers, from the tables."""

import asyncio

import pytest

from pipeline import tables
from pipeline.answering.front_matter import FrontMatterTables
from pipeline.answering.retriever import ALL_MONTHS, MonthSpan
from pipeline.corpus.parse.parsed_page import Author
from pipeline.errors import PermanentFailure
from tests.month_tables import write_table
from tests.unit.answering.corpus import FERNS, MARCH, MAY, QUILLNET, UNSIGNED
from tests.unit.index.building import make_workspace


def read(workspace, *papers, span=ALL_MONTHS):
    return asyncio.run(FrontMatterTables(workspace, span).front_matter(papers))


def test_front_matter_comes_in_the_order_of_the_papers(corpus):
    ferns, quillnet = read(corpus, FERNS, QUILLNET, FERNS)
    assert quillnet.authors == (Author("Ada Quill", ("Nib University",)), Author("Bo Vellum"))
    assert (quillnet.date, quillnet.categories) == ("2024-03-07", ("cs.CL", "cs.DL"))
    assert (quillnet.passage.kind, quillnet.passage.month) == ("front_matter", MARCH)
    assert quillnet.passage.text.endswith("part 1")
    assert (ferns.passage.arxiv_id, ferns.date) == (FERNS, MAY)
    # Where page and metadata name other numbers of people, metadata is right.
    assert [author.name for author in ferns.authors] == ["C.  FROND", "Dora Moss"]


def test_papers_that_the_tables_or_the_span_lack_are_left_out(corpus):
    assert read(corpus, "2403.09999", "1901.00001", "no-id", UNSIGNED) == []
    assert read(corpus, QUILLNET, span=MonthSpan(first=MAY)) == []


def test_a_broken_table_is_named(tmp_path, corpus):
    workspace = make_workspace(tmp_path / "data")
    rows = corpus.root.rows(tables.PASSAGES, MARCH)
    write_table(workspace.root, tables.PASSAGES, MARCH, rows)
    file = workspace.root.file(tables.PASSAGES, MARCH)
    whole = file.read_bytes()
    # The footer stays readable, as when a disk loses pages.
    file.write_bytes(whole[:4] + bytes(200) + whole[204:])
    with pytest.raises(
        PermanentFailure, match="citeloom run --months 2024-03 --select passages --force"
    ):
        read(workspace, QUILLNET)
