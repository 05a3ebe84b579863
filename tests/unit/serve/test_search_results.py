"""Parameters of a search, results by paper, the sentences that fit best, and the index held by
another process.
"""

from __future__ import annotations

import pytest
from starlette.testclient import TestClient

from pipeline.engine.stage import Workspace
from pipeline.errors import SettingError
from pipeline.index.opening import close_indexes, edge_folder
from pipeline.serve.search_results import SearchForm, parse_form
from tests.unit.index.building import opened_by_another_process
from tests.unit.serve.corpus import BEAM, FUSION, RETRIEVAL


def test_parameters_survive_a_round_trip_through_an_address() -> None:
    pairs = [
        ("q", "ferns"),
        ("category", "cs.CL"),
        ("category", "cs.IR"),
        ("from", "2024-03"),
        ("page", "2"),
        ("all", "1"),
    ]
    form = parse_form(pairs)
    assert form == SearchForm(
        q="ferns", category=("cs.CL", "cs.IR"), first_month="2024-03", page=2, all=True
    )
    assert sorted(form.pairs()) == sorted(pairs)


@pytest.mark.parametrize(
    "pair",
    [
        ("x", "1"),
        ("page", "-1"),
        ("page", "²"),
        ("limit", "1e3"),
        ("page", "9" * 30),
        ("q", "x" * 10_001),
    ],
)
def test_a_wrong_parameter_is_an_error_that_names_it(pair: tuple[str, str]) -> None:
    with pytest.raises(SettingError, match=rf"^'?{pair[0]}'? is ") as error:
        parse_form([pair])
    assert len(str(error.value)) < 300, "a long value is cut"


@pytest.mark.parametrize(
    "pair",
    [
        ("page", "0"),
        ("year", "24"),
        ("from", "March"),
        ("grade", "Z"),
        ("category", "!"),
        ("page", "9999"),
    ],
)
def test_a_wrong_option_is_an_error(pair: tuple[str, str]) -> None:
    with pytest.raises(SettingError):
        parse_form([("q", "ferns"), pair]).options()


def test_results_are_grouped_by_paper_and_mark_the_best_sentence(client: TestClient) -> None:
    results = client.get(
        "/api/search", params={"q": "fusion of ranked lists with rare terms"}
    ).json()
    assert results["papers"][0]["arxiv_id"] == FUSION
    assert len({paper["arxiv_id"] for paper in results["papers"]}) == len(results["papers"])
    passages = {
        passage["section_path"][-1]: passage for passage in results["papers"][0]["passages"]
    }
    assert passages["Results"]["best_sentences"] == [
        "The gain is largest on questions with rare terms, as in ferns in the forest."
    ]
    assert results["count"] == sum(len(paper["passages"]) for paper in results["papers"])


def test_what_fits_nothing_is_not_found_unless_all_is_asked_for(client: TestClient) -> None:
    results = client.get("/api/search", params={"q": "asdf qwer zxcv uiop"}).json()
    assert (results["papers"], results["count"]) == ([], 0)
    assert results["unfit"] > 0
    everything = client.get("/api/search", params={"q": "asdf qwer zxcv uiop", "all": "1"}).json()
    assert everything["count"] == results["unfit"]


def test_the_id_of_a_paper_finds_similar_papers_and_not_itself(client: TestClient) -> None:
    results = client.get("/api/search", params={"q": f"arXiv:{FUSION}v2", "all": "1"}).json()
    assert results["similar_to"] == FUSION
    found = {paper["arxiv_id"] for paper in results["papers"]}
    assert {RETRIEVAL, BEAM} <= found
    assert FUSION not in found


def test_filters_and_pages_restrict_the_results(client: TestClient) -> None:
    tables = client.get(
        "/api/search", params={"q": "recall", "kind": "table", "to": "2024-03", "all": "1"}
    ).json()
    assert {passage["kind"] for paper in tables["papers"] for passage in paper["passages"]} == {
        "table"
    }
    query = {"q": "terms", "to": "2024-03", "limit": "2", "all": "1"}
    first, second = (
        client.get("/api/search", params={**query, "page": page}).json() for page in ("1", "2")
    )
    ids = [
        {passage["passage_id"] for paper in page["papers"] for passage in paper["passages"]}
        for page in (first, second)
    ]
    assert (first["has_more"], second["first"], ids[0] & ids[1]) == (True, 3, set())


def test_an_index_that_another_process_keeps_open_makes_the_visitor_come_back_later(
    corpus: Workspace, client: TestClient
) -> None:
    close_indexes()
    with opened_by_another_process(next(edge_folder(corpus).glob("citeloom-*/"))):
        answer = client.get("/api/search", params={"q": "fusion"})
    assert answer.status_code == 503
    assert (answer.json()["type"], "retry-after" in answer.headers) == (
        "urn:citeloom:index-in-use",
        True,
    )
    assert client.get("/api/search", params={"q": "fusion"}).status_code == 200
