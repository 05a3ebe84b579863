"""What typed texts mean: identifiers in many spellings, DOIs, titles, authors, misspelt words."""

import shutil

import pytest

from pipeline import tables
from pipeline.answering.user_question import UserQuestion
from pipeline.corpus.paper_index import papers_named_in
from pipeline.doors.query import paper_with_doi, read_query, well_spelt
from pipeline.errors import SettingError
from pipeline.identity.identifiers import arxiv_id_of, doi_of
from pipeline.index.quotes import find_quote
from pipeline.index.search_options import SearchOptions
from tests.cases import cases
from tests.month_tables import passage_row, write_table
from tests.unit.index.building import TEXTS, make_workspace, write_month

OPTIONS = SearchOptions()


@cases("unit/index/cases.toml", "a_text_names_a_paper_or_a_doi", ("query", "arxiv_id", "doi"))
def test_a_text_names_a_paper_in_any_spelling_or_a_published_doi(query, arxiv_id, doi):
    assert arxiv_id_of(query) == (arxiv_id or None)
    assert arxiv_id or doi_of(query) == doi


def test_a_published_doi_names_the_paper_whose_metadata_has_it(tmp_path):
    workspace = make_workspace(tmp_path)
    shared = {"authors": ["A. Fern"], "published": "2024-03-01T00:00:00Z"}
    rows = [
        {"arxiv_id": "2403.00001", "title": "Beam search", "doi": "10.1145/1, 10.1145/2"} | shared,
        {"arxiv_id": "2403.00002", "title": "Sparse retrieval", "doi": None} | shared,
    ]
    write_table(workspace.root, tables.METADATA, "2024-03", rows)
    assert paper_with_doi(workspace, "10.1145/2") == "2403.00001"


def test_a_doi_that_only_bibliographies_have_leads_to_those_who_cite_it(tmp_path):
    workspace = make_workspace(tmp_path)
    cited = [("10.1145/1", None), ("10.1145/1", "1706.03762"), ("10.1145/2", None)]
    references = [
        {"arxiv_id": f"2403.0000{number // 2}", "doi": doi, "cited_arxiv_id": arxiv_id}
        for number, (doi, arxiv_id) in enumerate(cited)
    ]
    write_month(workspace)
    write_table(workspace.root, tables.REFERENCES, "2024-03", references)
    assert read_query(workspace, "10.1145/1", OPTIONS).paper == "1706.03762"
    query = read_query(workspace, "https://doi.org/10.1145/2", OPTIONS)
    assert (query.paper, query.text) == ("10.1145/2", "")
    assert [(citing.paper.arxiv_id, citing.paper.title) for citing in query.cited_by] == [
        ("2403.00001", "Paper 2403.00001")
    ]
    assert "no paper of it cites 10.1145/3" in read_query(workspace, "doi:10.1145/3", OPTIONS).note


def test_a_typed_text_longer_than_a_page_is_refused(tmp_path):
    workspace, text = make_workspace(tmp_path), "a few words " * 1_000
    for refuse in (
        lambda: read_query(workspace, text, OPTIONS),
        lambda: find_quote(workspace, text),
        lambda: UserQuestion(text),
    ):
        with pytest.raises(SettingError, match="12,000 characters: give at most 10,000"):
            refuse()


@pytest.fixture
def papers(tmp_path):
    """Papers whose titles and authors queries name."""
    workspace = make_workspace(tmp_path)
    rows = [
        ("2403.00001", "Mosses of Baker Street", "Ada Lovelace"),
        ("2403.00002", "Fern-2: a corpus", "Noël Ada Lovelace"),
        ("2403.00003", "Growing a Fern", "Tom Baker"),
    ]
    write_table(
        workspace.root,
        tables.PAPERS,
        "2024-03",
        [
            {"arxiv_id": arxiv_id, "title": title, "abstract": "", "categories": ["cs.CL"]}
            | {"authors": [{"name": author, "affiliations": [], "emails": []}]}
            for arxiv_id, title, author in rows
        ],
    )
    return workspace


@cases("unit/index/cases.toml", "a_title_or_an_id_among_words_names_its_paper", ("typed", "paper"))
def test_a_title_or_an_id_among_words_names_its_paper(papers, typed, paper):
    assert read_query(papers, typed, OPTIONS).paper == paper
    assert read_query(papers, typed, SearchOptions(as_typed=True)).paper is None


def test_the_names_in_a_question_are_the_longest_titles_in_it(papers):
    named, written = papers_named_in(papers, "Does “Growing a Fern” cite Fern-2's data?")
    assert (named, written) == (["2403.00003", "2403.00002"], [])


@cases("unit/index/cases.toml", "the_name_of_an_author_restricts_the_search", ("typed", "note"))
def test_the_name_of_an_author_restricts_the_search(papers, typed, note):
    query = read_query(papers, typed, OPTIONS)
    assert (query.note, query.is_name) == (note, bool(note))
    assert bool(query.options.authors) == bool(note)
    assert query.options.first_year == (2024 if "2024" in typed else None)


def test_authors_of_an_option_are_not_replaced_by_one_who_is_typed(papers):
    options = SearchOptions(authors=("Tom Baker",))
    assert read_query(papers, "Ada Lovelace", options).options == options


def write_passages(workspace, month, texts):
    paper = f"{month[2:4]}{month[5:]}.00001"
    rows = [passage_row(paper, number, "Ferns", (), text) for number, text in enumerate(texts)]
    write_table(workspace.root, tables.PASSAGES, month, rows)


@pytest.fixture
def workspace(tmp_path):
    workspace = make_workspace(tmp_path)
    write_passages(workspace, "2024-03", TEXTS)
    return workspace


@cases(
    "unit/index/cases.toml", "misspelt_words_are_corrected_and_the_rest_stays", ["typed", "right"]
)
def test_misspelt_words_are_corrected_and_the_rest_stays(workspace, typed, right):
    query = read_query(workspace, typed, OPTIONS)
    assert (query.text, query.note) == (right, f"showing results for: {right}")
    assert read_query(workspace, typed, SearchOptions(as_typed=True)).text == typed


@pytest.mark.parametrize(
    "query",
    [
        "beam search",
        "merging ranks",  # inflections: the index compares stems
        "bean",  # too short
        "FUSON and DecOder and fuson2",  # names
        "lifts",  # English, and one letter from "lists"
        "fuson " * 60,  # a pasted paragraph
    ],
)
def test_right_words_and_names_are_kept(workspace, query):
    assert well_spelt(workspace, query) == query


def test_words_are_corrected_where_the_cache_cannot_be_written(workspace):
    cache = workspace.local / "cache"
    shutil.rmtree(cache, ignore_errors=True)
    cache.write_text("a file where the folder should be")
    assert well_spelt(workspace, "reciprocal rank fuson") == "reciprocal rank fusion"


def test_words_come_and_go_with_their_month(workspace):
    write_passages(workspace, "2024-04", ["Lichens grow slowly.", "Lichens need lychens."])
    assert well_spelt(workspace, "lichesn lychens") == "lichens lychens"
    write_passages(workspace, "2024-04", ["Mosses grow slowly."])
    assert well_spelt(workspace, "lichesn slowyl") == "lichesn slowly"
