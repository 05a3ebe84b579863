"""Parameters of a search, results by paper, the sentences that fit best, and the index held by another process."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from filelock import FileLock
from starlette.testclient import TestClient

from pipeline.engine.stage import Workspace
from pipeline.errors import SettingError
from pipeline.index.edge_folder import PATIENCE
from pipeline.index.opening import edge_folder
from pipeline.serve.search_results import SearchForm, parse_form, run_search
from pipeline.serve.site import SECONDS_BETWEEN_LOOKS, IndexAccess, IndexInUse
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
    assert form == SearchForm(q="ferns", category=("cs.CL", "cs.IR"), first_month="2024-03", page=2, all=True)
    assert sorted(form.pairs()) == sorted(pairs)


@pytest.mark.parametrize(
    "pair",
    [("x", "1"), ("page", "-1"), ("page", "²"), ("limit", "1e3"), ("page", "9" * 30), ("q", "x" * 10_001)],
)
def test_a_wrong_parameter_is_an_error_that_names_it(pair: tuple[str, str]) -> None:
    with pytest.raises(SettingError, match=rf"^'?{pair[0]}'? is ") as error:
        parse_form([pair])
    assert len(str(error.value)) < 300, "a long value is cut"


@pytest.mark.parametrize(
    "pair", [("page", "0"), ("year", "24"), ("from", "March"), ("grade", "Z"), ("category", "!"), ("page", "9999")]
)
def test_a_wrong_option_is_an_error(pair: tuple[str, str]) -> None:
    with pytest.raises(SettingError):
        parse_form([("q", "ferns"), pair]).options()


def test_results_are_grouped_by_paper_and_mark_the_best_sentence(client: TestClient) -> None:
    results = client.get("/api/search", params={"q": "fusion of ranked lists with rare terms"}).json()
    assert results["papers"][0]["arxiv_id"] == FUSION
    assert len({paper["arxiv_id"] for paper in results["papers"]}) == len(results["papers"])
    passages = {passage["section_path"][-1]: passage for passage in results["papers"][0]["passages"]}
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
    tables = client.get("/api/search", params={"q": "recall", "kind": "table", "to": "2024-03", "all": "1"}).json()
    assert {passage["kind"] for paper in tables["papers"] for passage in paper["passages"]} == {"table"}
    query = {"q": "terms", "to": "2024-03", "limit": "2", "all": "1"}
    first, second = (client.get("/api/search", params={**query, "page": page}).json() for page in ("1", "2"))
    ids = [
        {passage["passage_id"] for paper in page["papers"] for passage in paper["passages"]} for page in (first, second)
    ]
    assert (first["has_more"], second["first"], ids[0] & ids[1]) == (True, 3, set())


@contextmanager
def _index_in_another_process(workspace: Workspace) -> Iterator[None]:
    """Another process that has the embedded index open."""
    folder = next(edge_folder(workspace).glob("citeloom-*/"))
    code = (
        "import sys, qdrant_edge; shard = qdrant_edge.EdgeShard.load(sys.argv[1]); print('open', flush=True); "
        "sys.stdin.read()"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code, str(folder)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "open\n"
        yield
    finally:
        process.communicate()


def test_while_a_run_loads_the_index_the_answer_is_to_come_back_later(corpus: Workspace, client: TestClient) -> None:
    client.get("/api/search", params={"q": "fusion"})
    with FileLock(corpus.cache("locks") / "pool-qdrant.lock"):
        time.sleep(SECONDS_BETWEEN_LOOKS)
        answer = client.get("/api/search", params={"q": "fusion"})
        page = client.get("/search", params={"q": "fusion"}, headers={"Accept": "text/html"})
        assert client.get(f"/paper/{FUSION}").status_code == 200
        with _index_in_another_process(corpus):  # it was released
            pass
    assert answer.status_code == page.status_code == 503
    assert (answer.json()["type"], "retry-after" in answer.headers) == ("urn:citeloom:index-in-use", True)
    assert "retry-after" in page.headers
    time.sleep(SECONDS_BETWEEN_LOOKS)
    assert client.get("/api/search", params={"q": "fusion"}).status_code == 200


def test_an_index_that_another_process_has_open_is_waited_for_by_the_visitor(
    corpus: Workspace, client: TestClient
) -> None:
    time.sleep(3)  # the server has released it by now
    with _index_in_another_process(corpus):
        started = time.monotonic()
        assert client.get("/api/search", params={"q": "fusion"}).status_code == 503
        assert time.monotonic() - started < PATIENCE
    assert client.get("/api/search", params={"q": "fusion"}).status_code == 200


def test_the_index_is_kept_while_somebody_searches(corpus: Workspace) -> None:
    access = IndexAccess(corpus)
    with access.searching():
        access.release_if_idle(0)
        with pytest.raises(AssertionError), _index_in_another_process(corpus):
            pass
    access.release_if_idle(0)
    with _index_in_another_process(corpus), pytest.raises(IndexInUse):
        run_search(corpus, access, SearchForm(q="fusion"))
