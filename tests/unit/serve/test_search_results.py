"""Parameters of a search, results by paper, the sentences that fit best, and the index held by
another process.
"""

from __future__ import annotations

from typing import Any

import pytest
from starlette.testclient import TestClient

from pipeline.engine.stage import Workspace
from pipeline.errors import SettingError
from pipeline.index.opening import close_indexes, edge_folder
from pipeline.serve.search_results import SearchForm, parse_form
from tests.unit.index.building import opened_by_another_process
from tests.unit.serve.corpus import BEAM, FUSION, RETRIEVAL


def found(client: TestClient, **parameters: str) -> dict[str, Any]:
    results: dict[str, Any] = client.get("/api/search", params=parameters).json()
    return results


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
    "pair", [("x", "1"), ("page", "²"), ("limit", "1e3"), ("page", "9" * 30), ("q", "x" * 10_001)]
)
def test_a_wrong_parameter_is_an_error_that_names_it(pair: tuple[str, str]) -> None:
    with pytest.raises(SettingError, match=rf"^'?{pair[0]}'? is ") as error:
        parse_form([pair])
    assert len(str(error.value)) < 300, "a long value is cut"


@pytest.mark.parametrize("pair", [("page", "0"), ("year", "24"), ("grade", "Z"), ("page", "9999")])
def test_a_wrong_option_is_an_error(pair: tuple[str, str]) -> None:
    with pytest.raises(SettingError):
        parse_form([("q", "ferns"), pair]).options()


def test_results_are_grouped_by_paper_and_mark_the_best_sentence(client: TestClient) -> None:
    results = found(client, q="fusion of ranked lists with rare terms")
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
    results = found(client, q="asdf qwer zxcv uiop")
    assert (results["papers"], results["count"]) == ([], 0)
    assert found(client, q="asdf qwer zxcv uiop", all="1")["count"] == results["unfit"] > 0


def test_the_id_of_a_paper_finds_similar_papers_and_not_itself(client: TestClient) -> None:
    results = found(client, q=f"arXiv:{FUSION}v2", all="1")
    assert results["similar_to"] == FUSION
    papers = {paper["arxiv_id"] for paper in results["papers"]}
    assert {RETRIEVAL, BEAM} <= papers
    assert FUSION not in papers


def test_filters_and_pages_restrict_the_results(client: TestClient) -> None:
    def values(results: dict[str, Any], name: str) -> set[str]:
        return {passage[name] for paper in results["papers"] for passage in paper["passages"]}

    tables = found(client, q="recall", kind="table", to="2024-03", all="1")
    assert values(tables, "kind") == {"table"}
    query = {"q": "terms", "to": "2024-03", "limit": "2", "all": "1"}
    first, second = (found(client, **query, page=page) for page in ("1", "2"))
    assert (first["has_more"], second["first"]) == (True, 3)
    assert values(first, "passage_id").isdisjoint(values(second, "passage_id"))


def test_an_index_that_another_process_keeps_open_makes_the_visitor_come_back_later(
    corpus: Workspace, client: TestClient
) -> None:
    close_indexes()
    with opened_by_another_process(next(edge_folder(corpus).glob("citeloom-*/"))):
        answer = client.get("/api/search", params={"q": "fusion"})
    assert (answer.status_code, answer.json()["type"]) == (503, "urn:citeloom:index-in-use")
    assert "retry-after" in answer.headers
    assert client.get("/api/search", params={"q": "fusion"}).status_code == 200
