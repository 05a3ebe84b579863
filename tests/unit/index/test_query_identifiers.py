"""Queries that are an identifier, in the spellings of citations, addresses and catalogues."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipeline import tables
from pipeline.answering.user_question import UserQuestion
from pipeline.arxiv.identifiers import arxiv_id_of, doi_of
from pipeline.errors import SettingError
from pipeline.index.quotes import find_quote
from pipeline.index.search_options import SearchOptions
from pipeline.index.typed_queries import paper_with_doi, read_query
from tests.month_tables import write_table
from tests.unit.index.building import make_workspace, write_month


@pytest.mark.parametrize(
    "query",
    [
        "1706.03762",
        "arXiv:1706.03762v7 [cs.CL] 2 Aug 2023",
        "arXiv preprint arXiv:1706.03762 (2017)",
        "CoRR abs/1706.03762",
        "[1706.03762]",
        "arXiv：1706. 03762",
        "doi:10.48550/arxiv.1706.03762",
        "https://doi.org/10.48550/arXiv.1706.03762",
        "oai:arXiv.org:1706.03762",
        "arxiv.org/pdf/1706.03762v1.pdf#page=3",
        "https://www.alphaxiv.org/abs/1706.03762?context=cs",
        "https://ar5iv.labs.arxiv.org/html/1706.03762",
        "https://huggingface.co/papers/1706.03762",
    ],
)
def test_a_paper_is_named_in_any_spelling(query: str) -> None:
    assert arxiv_id_of(query) == "1706.03762"


@pytest.mark.parametrize(
    "query", ["cs.CL/9901001v2", "https://arxiv.org/abs/cs/9901001", "cs9901001.html"]
)
def test_an_id_of_the_old_scheme_has_no_subject(query: str) -> None:
    assert arxiv_id_of(query) == "cs/9901001"


@pytest.mark.parametrize(
    "query", ["attention 1706.03762", "1706.03762 and beam search", "3.14159", "arXiv:1234.5678"]
)
def test_other_text_is_no_identifier(query: str) -> None:
    assert (arxiv_id_of(query), doi_of(query)) == (None, None)


@pytest.mark.parametrize(
    "query", ["10.1145/3292500.333", "https://dl.acm.org/doi/pdf/10.1145/3292500.333?download=1"]
)
def test_a_published_doi_is_read_from_addresses_too(query: str) -> None:
    assert (arxiv_id_of(query), doi_of(query)) == (None, "10.1145/3292500.333")


def test_a_published_doi_names_the_paper_whose_metadata_has_it(tmp_path: Path) -> None:
    workspace = make_workspace(tmp_path)
    shared = {"authors": ["A. Fern"], "published": "2024-03-01T00:00:00Z"}
    rows = [
        {"arxiv_id": "2403.00001", "title": "Beam search", "doi": "10.1145/1, 10.1145/2"} | shared,
        {"arxiv_id": "2403.00002", "title": "Sparse retrieval", "doi": None} | shared,
    ]
    write_table(workspace.root, tables.METADATA, "2024-03", rows)
    assert paper_with_doi(workspace, "10.1145/2") == "2403.00001"
    assert paper_with_doi(workspace, "10.1145/3") is None


def test_a_doi_that_only_bibliographies_have_leads_to_those_who_cite_it(tmp_path: Path) -> None:
    workspace = make_workspace(tmp_path)
    cited = [("10.1145/1", None), ("10.1145/1", "1706.03762"), ("10.1145/2", None)]
    references = [
        {"arxiv_id": f"2403.0000{number // 2}", "doi": doi, "cited_arxiv_id": arxiv_id}
        for number, (doi, arxiv_id) in enumerate(cited)
    ]
    write_month(workspace)
    write_table(workspace.root, tables.REFERENCES, "2024-03", references)
    assert read_query(workspace, "10.1145/1", SearchOptions()).paper == "1706.03762"
    reading = read_query(workspace, "https://doi.org/10.1145/2", SearchOptions())
    assert (reading.paper, reading.text) == ("10.1145/2", "")
    assert [(paper.arxiv_id, paper.title) for paper in reading.cited_by] == [
        ("2403.00001", "Paper 2403.00001")
    ]
    assert (
        "no paper of it cites 10.1145/3"
        in read_query(workspace, "doi:10.1145/3", SearchOptions()).note
    )


def test_a_typed_text_longer_than_a_page_is_refused(tmp_path: Path) -> None:
    workspace, text = make_workspace(tmp_path), "a few words " * 1_000
    for refuse in (
        lambda: read_query(workspace, text, SearchOptions()),
        lambda: find_quote(workspace, text),
        lambda: UserQuestion(text),
    ):
        with pytest.raises(SettingError, match="12,000 characters: give at most 10,000"):
            refuse()
