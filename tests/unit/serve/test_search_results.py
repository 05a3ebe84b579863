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


def test_the_id_of_a_paper_gives_its_abstract_first_and_then_similar_papers(
    client: TestClient,
) -> None:
    query = {"q": f"arXiv:{FUSION}v2", "all": "1"}
    results = found(client, **query)
    assert results["similar_to"] == FUSION
    first, *similar = results["papers"]
    assert (first["arxiv_id"], first["passages"][0]["kind"]) == (FUSION, "abstract")
    assert len(first["passages"]) == 1
    assert {RETRIEVAL, BEAM} <= {paper["arxiv_id"] for paper in similar}
    pages = [found(client, **query, limit="2", page=page) for page in ("1", "2")]
    ids = [
        [passage["passage_id"] for paper in page["papers"] for passage in paper["passages"]]
        for page in (results, *pages)
    ]
    assert set(ids[1] + ids[2]) == set(ids[0][:4])
    tables = found(client, q=RETRIEVAL, kind="table", all="1")
    assert tables["papers"][0]["passages"][0]["kind"] == "table"


def test_a_paper_outside_the_corpus_is_named_with_the_papers_that_cite_it(
    client: TestClient,
) -> None:
    results = found(client, q="https://arxiv.org/abs/1706.03762")
    assert (results["similar_to"], results["papers"]) == ("1706.03762", [])
    assert [paper["arxiv_id"] for paper in results["cited_by"]] == [RETRIEVAL, FUSION]
    assert "not in this corpus" in client.get("/search", params={"q": "1706.03762"}).text


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


def test_misspelt_words_are_corrected_and_the_reader_is_told(client: TestClient) -> None:
    results = found(client, q="recirpocal rank fuison")
    assert results["note"] == "showing results for: reciprocal rank fusion"
    assert results["papers"][0]["arxiv_id"] == FUSION
    assert found(client, q="qwertyuiop beem")["note"] == ""


def test_a_name_gives_the_abstract_of_its_paper_first_on_every_page_size(
    client: TestClient,
) -> None:
    def ids(results: dict[str, Any]) -> list[str]:
        return [
            passage["passage_id"] for paper in results["papers"] for passage in paper["passages"]
        ]

    query = {"q": "coverage penalties", "all": "1"}
    whole = found(client, **query)
    first = whole["papers"][0]
    assert (first["arxiv_id"], first["passages"][0]["kind"]) == (BEAM, "abstract")
    pages = [ids(found(client, **query, limit="2", page=page)) for page in ("1", "2", "3")]
    assert len({*pages[0], *pages[1], *pages[2]}) == 6
    assert pages[0][0] == first["passages"][0]["passage_id"]
    assert len(ids(whole)) == len(set(ids(whole)))
