"""The table citations, papers read by id, and the papers that cite one."""

import pytest

from pipeline import tables
from pipeline.corpus.references.citation_index import count_shared_works, read_citing_papers
from pipeline.corpus.references.stages import CITATIONS
from pipeline.engine.run import run_stage
from pipeline.errors import MissingInput, SettingError
from pipeline.index.papers import read_paper
from tests.month_tables import passage_id, passage_row, write_table
from tests.unit.index.building import make_workspace

MONTH = "2024-03"
ONE, TWO, OUTSIDE = "2403.00001", "2403.00002", "1706.03762"
# (citing paper, key, cited paper)
REFERENCES = [
    (ONE, "bib1", OUTSIDE),
    (ONE, "bib2", TWO),
    (ONE, "bib3", OUTSIDE),  # listed twice in the bibliography
    (ONE, "bib4", None),
    (TWO, "bib1", OUTSIDE),
]
# (paper, keys that the passage cites)
PASSAGES = [(ONE, ["bib1", "bib3", "bib4"]), (ONE, ["bib2"]), (ONE, ["bib3"]), (TWO, ["bib9"])]
P1, P2, P3, _ = (passage_id(paper, place) for place, (paper, _) in enumerate(PASSAGES))


@pytest.fixture
def workspace(tmp_path):
    """A month of two papers whose citations are known."""
    made = make_workspace(tmp_path)
    authors = [{"name": "A. Bee", "affiliations": [], "emails": []}]
    rows = {
        tables.PAPERS: [
            {"arxiv_id": arxiv_id, "title": title, "authors": authors, "categories": []}
            for arxiv_id, title in ((ONE, "One"), (TWO, "Two"))
        ],
        tables.REFERENCES: [
            {"arxiv_id": citing, "key": key, "cited_arxiv_id": cited, "ordinal": place, "raw": key}
            | {"authors": []}
            for place, (citing, key, cited) in enumerate(REFERENCES)
        ],
        tables.PASSAGES: [
            passage_row(paper, place, "A title", (), "A text.", cited=keys)
            for place, (paper, keys) in enumerate(PASSAGES)
        ],
    }
    for table in rows:
        write_table(made.root, table, MONTH, rows[table])
    run_stage(CITATIONS, made, MONTH)
    return made


def test_a_citation_has_its_keys_and_the_passages_that_cite(workspace):
    names = ("citing", "cited", "keys", "passage_ids")
    rows = [tuple(map(row.get, names)) for row in workspace.root.rows(tables.CITATIONS, MONTH)]
    assert rows == [
        (ONE, OUTSIDE, ["bib1", "bib3"], [P1, P3]),
        (TWO, OUTSIDE, ["bib1"], []),
        (ONE, TWO, ["bib2"], [P2]),
    ]


def test_citing_papers_are_found_for_papers_within_and_outside_the_corpus(workspace):
    outside = read_citing_papers(workspace, f"arXiv:{OUTSIDE}v5")
    assert [(each.paper.arxiv_id, each.paper.title, each.passage_ids) for each in outside] == [
        (ONE, "One", (P1, P3)),
        (TWO, "Two", ()),
    ]
    (citing,) = read_citing_papers(workspace, TWO)
    assert citing.paper.arxiv_id == ONE
    assert read_citing_papers(workspace, ONE) == []
    with pytest.raises(SettingError, match="not an id"):
        read_citing_papers(workspace, "not an id")


def test_citing_papers_are_those_of_all_months_as_they_are_now(workspace):
    later, gone = "2024-05", "2024-04"

    def write(month, *ids):
        row = {"cited": OUTSIDE, "keys": [], "passage_ids": []}
        write_table(
            workspace.root, tables.CITATIONS, month, [{"citing": each} | row for each in ids]
        )

    def citing():
        return [each.paper.arxiv_id for each in read_citing_papers(workspace, OUTSIDE)]

    write(gone, "2404.00001")
    write(later, "2405.00001", "2405.00002")
    assert citing() == [ONE, TWO, "2404.00001", "2405.00001", "2405.00002"]
    workspace.root.file(tables.CITATIONS, gone).unlink()
    write(later, "2405.00003")
    assert citing() == [ONE, TWO, "2405.00003"]
    shared = count_shared_works(workspace, [OUTSIDE, TWO])
    assert shared == {ONE: 2, TWO: 1, "2405.00003": 1}


def test_a_paper_has_its_passages_and_references_in_order(workspace):
    paper = read_paper(workspace, ONE)
    assert (paper.title, paper.authors, paper.month) == ("One", ("A. Bee",), MONTH)
    assert [passage.passage_id for passage in paper.passages] == [P1, P2, P3]
    assert [(item.arxiv_id, item.title, item.in_corpus) for item in paper.references] == [
        (OUTSIDE, None, False),
        (TWO, "Two", True),
        (OUTSIDE, None, False),
        (None, None, False),
    ]
    with pytest.raises(MissingInput, match=r"2403\.00009"):
        read_paper(workspace, "2403.00009")
