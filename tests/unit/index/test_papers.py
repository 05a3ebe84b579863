"""The table citations, papers read by id, and the papers that cite one."""

import subprocess
import sys

import pytest

from pipeline import tables
from pipeline.corpus.references.citation_index import count_shared_works, read_citing_papers
from pipeline.corpus.references.stages import CITATIONS
from pipeline.engine.run import run_stage
from pipeline.errors import MissingInput, PermanentFailure, SettingError
from pipeline.index.papers import read_paper
from tests.month_tables import write_table
from tests.unit.index.building import make_workspace

MONTH = "2024-03"
# (citing paper, key, cited paper)
REFERENCES = [
    ("2403.00001", "bib1", "1706.03762"),
    ("2403.00001", "bib2", "2403.00002"),
    ("2403.00001", "bib3", "1706.03762"),  # listed twice in the bibliography
    ("2403.00001", "bib4", None),
    ("2403.00002", "bib1", "1706.03762"),
]
# (paper, passage, keys that it cites)
PASSAGES = [
    ("2403.00001", "p1", ["bib1", "bib3", "bib4"]),
    ("2403.00001", "p2", ["bib2"]),
    ("2403.00001", "p3", ["bib3"]),
    ("2403.00002", "p4", ["bib9"]),
]


def write(workspace, table, rows):
    empty = {
        field.name: [] if str(field.type).startswith("list") else None for field in table.schema
    }
    write_table(workspace.root, table, MONTH, [empty | row for row in rows])


@pytest.fixture
def workspace(tmp_path):
    made = make_workspace(tmp_path)
    papers = [("2403.00001", "One"), ("2403.00002", "Two")]
    write(
        made,
        tables.PAPERS,
        [
            {
                "arxiv_id": arxiv_id,
                "title": title,
                "authors": [{"name": "A. Bee", "affiliations": [], "emails": []}],
            }
            for arxiv_id, title in papers
        ],
    )
    write(
        made,
        tables.REFERENCES,
        [
            {"arxiv_id": citing, "key": key, "cited_arxiv_id": cited, "ordinal": place, "raw": key}
            for place, (citing, key, cited) in enumerate(REFERENCES)
        ],
    )
    write(
        made,
        tables.PASSAGES,
        [
            {
                "arxiv_id": paper,
                "passage_id": passage,
                "cited_keys": keys,
                "ordinal": place,
                "text": passage,
                "anchor": "S1.p1",
                "kind": "paragraph",
            }
            for place, (paper, passage, keys) in enumerate(PASSAGES)
        ],
    )
    return made


def test_a_citation_has_its_keys_and_the_passages_that_cite(workspace):
    run_stage(CITATIONS, workspace, MONTH)
    rows = workspace.root.rows(tables.CITATIONS, MONTH)
    assert rows == [
        {
            "citing": "2403.00001",
            "cited": "1706.03762",
            "keys": ["bib1", "bib3"],
            "passage_ids": ["p1", "p3"],
        },
        {"citing": "2403.00002", "cited": "1706.03762", "keys": ["bib1"], "passage_ids": []},
        {"citing": "2403.00001", "cited": "2403.00002", "keys": ["bib2"], "passage_ids": ["p2"]},
    ]


def test_citing_papers_are_found_for_papers_within_and_outside_the_corpus(workspace):
    run_stage(CITATIONS, workspace, MONTH)
    outside = read_citing_papers(workspace, "arXiv:1706.03762v5")
    assert [(each.paper.arxiv_id, each.paper.title, each.passage_ids) for each in outside] == [
        ("2403.00001", "One", ("p1", "p3")),
        ("2403.00002", "Two", ()),
    ]
    (citing,) = read_citing_papers(workspace, "2403.00002")
    assert citing.paper.arxiv_id == "2403.00001"
    assert read_citing_papers(workspace, "2403.00001") == []
    with pytest.raises(SettingError, match="not an id"):
        read_citing_papers(workspace, "not an id")


def test_citing_papers_are_those_of_all_months_as_they_are_now(workspace):
    def citing(*ids):
        return [
            {"citing": name, "cited": "1706.03762", "keys": [], "passage_ids": []} for name in ids
        ]

    run_stage(CITATIONS, workspace, MONTH)
    later, gone = "2024-05", "2024-04"
    write_table(workspace.root, tables.CITATIONS, gone, citing("2404.00001"))
    write_table(workspace.root, tables.CITATIONS, later, citing("2405.00001", "2405.00002"))
    found = [each.paper.arxiv_id for each in read_citing_papers(workspace, "1706.03762")]
    assert found == ["2403.00001", "2403.00002", "2404.00001", "2405.00001", "2405.00002"]
    workspace.root.file(tables.CITATIONS, gone).unlink()
    write_table(workspace.root, tables.CITATIONS, later, citing("2405.00003"))
    found = [each.paper.arxiv_id for each in read_citing_papers(workspace, "1706.03762")]
    assert found == ["2403.00001", "2403.00002", "2405.00003"]
    assert count_shared_works(workspace, ["1706.03762", "2403.00002"]) == {
        "2403.00001": 2,
        "2403.00002": 1,
        "2405.00003": 1,
    }


def test_a_paper_has_its_passages_and_references_in_order(workspace):
    paper = read_paper(workspace, "2403.00001")
    assert (paper.title, paper.authors, paper.month) == ("One", ("A. Bee",), MONTH)
    assert [passage.passage_id for passage in paper.passages] == ["p1", "p2", "p3"]
    assert [(item.arxiv_id, item.title, item.in_corpus) for item in paper.references] == [
        ("1706.03762", None, False),
        ("2403.00002", "Two", True),
        ("1706.03762", None, False),
        (None, None, False),
    ]
    with pytest.raises(MissingInput, match=r"2403\.00009"):
        read_paper(workspace, "2403.00009")


def test_a_paper_is_read_without_pandas(workspace):
    code = (
        "import sys; from pipeline.engine.stage import Workspace;"
        " from pipeline.index.papers import read_paper; from pipeline.settings import load_settings;"
        f" workspace = Workspace(load_settings(data={str(workspace.root.path)!r}));"
        " paper = read_paper(workspace, '2403.00001');"
        " print(len(paper.passages), 'pandas' in sys.modules)"
    )
    assert subprocess.check_output([sys.executable, "-c", code], text=True) == "3 False\n"


def test_rows_of_other_values_are_not_read(workspace):
    def passages_of(arxiv_id):
        root = workspace.root
        return list(root.rows_with(tables.PASSAGES, MONTH, "arxiv_id", {arxiv_id}, ["passage_id"]))

    assert passages_of("2403.00002") == [{"passage_id": "p4"}]
    assert passages_of("9999.99999") == []
    workspace.root.file(tables.PASSAGES, MONTH).write_bytes(b"PAR1 broken")
    with pytest.raises(PermanentFailure, match="2024-03"):
        passages_of("2403.00002")
