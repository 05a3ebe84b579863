"""Parameters of a search, results by paper, the sentences that fit best, and the index held by
another process.
"""

from urllib.parse import parse_qsl

import pytest

from pipeline.doors.web.forms import SearchForm
from pipeline.doors.web.pages import render_passage
from pipeline.index.opening import close_indexes, edge_folder
from tests.cases import cases, cases_beside, values_at
from tests.unit.doors.corpus import BEAM, FUSION, RETRIEVAL
from tests.unit.index.building import opened_by_another_process


def found(client, path="search", **parameters):
    return client.get(f"/api/{path}", params=parameters).json()


def ids(results):
    """The papers of the hits."""
    return [hit["paper"]["arxiv_id"] for hit in results["hits"]]


def passages_of(results):
    return [passage for hit in results["hits"] for passage in hit["passages"]]


def test_parameters_survive_a_round_trip_through_an_address():
    address = "q=ferns&category=cs.CL&category=cs.IR&from=2024-03&page=2&as_typed=1"
    assert sorted(SearchForm.read(parse_qsl(address)).pairs()) == sorted(parse_qsl(address))


def test_a_result_is_a_paper_with_its_two_best_passages(client):
    results = found(client, q="fusion of ranked lists with rare terms")
    hit = results["hits"][0]
    paper = hit["paper"]
    assert (paper["arxiv_id"], paper["authors"]) == (FUSION, ["Noël Ada Lovelace"])
    assert (paper["year"], paper["categories"], paper["cited_by"]) == (2024, ["cs.CL"], 0)
    assert (paper["grade"], paper["month"], hit["reason"]) == ("B", "2024-03", "fits")
    passages = {passage["section_path"][-1]: passage for passage in hit["passages"]}
    assert passages.keys() == {"Formula", "Results"}, "the abstract is shown in any case"
    assert passages["Results"]["best_sentences"] == [
        "The gain is largest on questions with rare terms, as in ferns in the forest."
    ]


@cases_beside("query", "note", "named", "first")
def test_a_query_is_read_and_the_reader_is_told(client, query, note, named, first):
    results = found(client, q=query)
    assert (results["note"], results["named"]) == (note, named or None)
    assert results["fits"]
    assert first in ("any", ids(results)[0])
    corrected = note.removeprefix("showing results for: ")
    assert results["searched"] == (corrected if corrected != note else None)
    as_typed = found(client, q=query, as_typed="1")
    assert (as_typed["searched"], as_typed["query"]) == (None, query)
    page = client.get("/search", params={"q": query}).text
    assert ("as_typed=1" in page) == (corrected != note)


@pytest.mark.parametrize(
    ("query", "paper"), [(f"{FUSION}v2", FUSION), ("coverage penalties", BEAM)]
)
def test_the_paper_that_is_named_comes_first_on_every_page_size_and_once(client, query, paper):
    papers = ids(found(client, q=query))
    assert (papers[0], papers.count(paper), RETRIEVAL in papers) == (paper, 1, True)
    pages = [ids(found(client, q=query, limit="2", page=page)) for page in ("1", "2")]
    assert [paper for page in pages for paper in page] == papers[:4]
    whole = passages_of(found(client, "passages", q=query))
    assert (whole[0]["arxiv_id"], whole[0]["kind"]) == (paper, "abstract")
    shown = [passage["passage_id"] for passage in whole]
    assert len(shown) == len(set(shown))
    pages = [found(client, "passages", q=query, limit="2", page=page) for page in ("1", "2", "3")]
    paged = [passage["passage_id"] for page in pages for passage in passages_of(page)]
    assert paged == shown[:6]


def test_what_is_similar_to_a_named_paper_are_others(client):
    similar = passages_of(found(client, "passages", q=f"{FUSION}v2"))[1:]
    assert FUSION not in {passage["arxiv_id"] for passage in similar}


@cases("unit/doors/results.toml")
def test_a_query_has_the_results_that_its_case_lists(client, case):
    results = client.get(f"/api/{case['path']}").json()
    assert values_at(results, case["has"]) == case["has"]
    assert case.get("note", "") in client.get(f"/{case['path']}").text


def test_an_index_that_another_process_keeps_open_makes_the_visitor_come_back_later(corpus, client):
    close_indexes()
    with opened_by_another_process(next(edge_folder(corpus).glob("citeloom-*/"))):
        answer = client.get("/api/search", params={"q": "fusion"})
    assert (answer.status_code, answer.json()["type"]) == (503, "urn:citeloom:index-in-use")
    assert "retry-after" in answer.headers
    assert client.get("/api/search", params={"q": "fusion"}).status_code == 200


def test_a_quote_across_a_border_of_paragraphs_is_marked():
    html = render_passage(
        "One. It fuses ranks.\n\nIt is old. Two.",
        "paragraph",
        marked=["It fuses ranks. It is old."],
    )
    assert "One. <mark>It fuses ranks.\n\nIt is old.</mark> Two." in html
