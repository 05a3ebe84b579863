"""`citeloom serve` over a Qdrant server, which serves a run that loads it at the same time."""

import pytest
from filelock import FileLock

from tests.server.conftest import KEY
from tests.unit.doors.conftest import client_of
from tests.unit.doors.corpus import FUSION, MONTH, make_corpus


@pytest.fixture
def corpus(qdrant, tmp_path_factory):
    """The small corpus, indexed on the server."""
    return make_corpus(
        tmp_path_factory.mktemp("served") / "data", qdrant_url=qdrant.url, qdrant_api_key=KEY,
        qdrant_grpc_port=qdrant.grpc_port, qdrant_collection="served",
    )  # fmt: skip


def test_pages_and_api_read_the_servers_index_also_while_a_run_loads_it(corpus):
    with client_of(corpus) as client:
        with FileLock(corpus.cache("locks") / "pool-qdrant.lock"):
            found = client.get(
                "/api/search", params={"q": "reciprocal rank fusion of two ranked lists"}
            ).json()
        assert found["hits"][0]["paper"]["arxiv_id"] == FUSION
        assert client.get(f"/api/papers/{FUSION}/similar").status_code == 200
        page = client.get("/search", params={"q": FUSION}, headers={"Accept": "text/html"})
        assert (page.status_code, KEY in page.text) == (200, False)
        months = {month["month"]: month for month in client.get("/api/corpus").json()["months"]}
        assert months[MONTH]["points_present"] == 7
