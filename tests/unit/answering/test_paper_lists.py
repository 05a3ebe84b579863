"""Questions for the papers of the corpus: how many, and which."""

from itertools import groupby

import pytest

from pipeline import tables
from pipeline.answering.paper_lists import list_papers, papers_of_author
from pipeline.answering.retriever import ALL_MONTHS, MonthSpan
from pipeline.engine.stage import Workspace
from pipeline.identity.identifiers import month_of
from pipeline.settings import load_settings
from tests.cases import cases
from tests.month_tables import write_table

PAPERS = {
    "2403.00001": ("Nets of quills", ["Ada Quill", "Bo Vellum"], []),
    "2403.00002": ("Ferns", ["Dora Moss"], ["2403.00001"]),
    "2405.00001": ("Moss and ferns?", ["Dora Moss", "Ada Quill"], ["2403.00001"]),
    "2501.00001": ("Winter", ["Cy Frond"], []),
}


def paper_row(arxiv_id, title, authors):
    return {
        "arxiv_id": arxiv_id,
        "title": title,
        "authors": [{"name": name, "affiliations": [], "emails": []} for name in authors],
        "year": 2000 + int(arxiv_id[:2]),
        "categories": ["cs.CL"],
    }


@pytest.fixture
def workspace(tmp_path):
    made = Workspace(load_settings(data=tmp_path / "data"))
    for month, ids in groupby(PAPERS, key=month_of):
        papers, citations = [], []
        for arxiv_id in ids:
            title, authors, cited = PAPERS[arxiv_id]
            papers.append(paper_row(arxiv_id, title, authors))
            citations += [
                {"citing": arxiv_id, "cited": each, "keys": ["b1"], "passage_ids": []}
                for each in cited
            ]
        write_table(made.root, tables.PAPERS, str(month), papers)
        write_table(made.root, tables.CITATIONS, str(month), citations)
    return made


ADA = '"Moss and ferns?" (arXiv:2405.00001), "Nets of quills" (arXiv:2403.00001)'


@pytest.mark.parametrize(
    ("question", "named", "answer"),
    [
        ("Which papers did Ada Quill write?", [], f"2 papers of this corpus have Ada Quill among the authors: {ADA}."),
        ("How many papers did Ada Quill write?", [], "2 papers of this corpus have Ada Quill among the authors."),
        ("papers by quill", [], f"2 papers of this corpus have quill among the authors: {ADA}."),
        ("What has Frond published?", [], '1 paper of this corpus has Frond among the authors: "Winter" (arXiv:2501.00001).'),
        ("List the papers by Eve Nobody.", [], "0 papers of this corpus have Eve Nobody among the authors."),
        ("papers of computer science", [], None),
        ("What did the committee write about ferns?", [], None),
        ("Which papers cite it?", ["2403.00001"], '2 papers of this corpus cite arXiv:2403.00001: "Moss and ferns?" (arXiv:2405.00001), "Ferns" (arXiv:2403.00002).'),
        ("How many papers cite QuillNet?", ["2501.00001"], "0 papers of this corpus cite arXiv:2501.00001."),
        ("How many papers does it cite?", ["2403.00001"], None),
        ("Which papers are from 2025?", [], '1 paper of this corpus is of 2025: "Winter" (arXiv:2501.00001).'),
        ("How many papers of 2024 are in the corpus?", [], "3 papers of this corpus are of 2024."),
        ("How many papers are there?", [], "4 papers are in this corpus."),
        ("How many papers are there about ferns?", [], ""),
        ("Which papers about ferns are from 2024?", [], None),
        ("How many papers were annotated for QuillNet?", [], None),
    ],
)  # fmt: skip
def test_papers_are_counted_and_listed_from_the_tables(workspace, question, named, answer):
    sentences = list_papers(workspace, ALL_MONTHS, question, named)
    assert (None if sentences is None else " ".join(sentences)) == answer


def test_papers_of_other_months_than_those_asked_are_left_out(workspace):
    span = MonthSpan(first="2024-05")
    (sentence,) = list_papers(workspace, span, "papers by Dora Moss", []) or []
    assert sentence.startswith("1 paper of this corpus has")


def test_of_many_papers_the_newest_are_named(workspace):
    rows = [
        paper_row(f"2601.{number:05}", f"Title {number}", ["Ada Quill"]) for number in range(1, 31)
    ]
    write_table(workspace.root, tables.PAPERS, "2026-01", rows)
    (sentence,) = list_papers(workspace, ALL_MONTHS, "Which papers are from 2026?", []) or []
    assert sentence.count("arXiv:") == 20
    assert sentence.endswith(", and 10 others.")


@cases("unit/answering/cases.toml", "papers_of_an_author_are_those_of_the", ["question", "papers"])
def test_papers_of_an_author_are_those_of_the_first_one_before_et_al(workspace, question, papers):
    assert papers_of_author(workspace, ALL_MONTHS, question) == papers
