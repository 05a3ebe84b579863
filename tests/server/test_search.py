"""Search on a real server: the same answers as on Edge."""

import pytest

from pipeline.engine.run import run_stage
from pipeline.index.search import search_many
from pipeline.index.search_options import SearchOptions
from pipeline.index.stages import INDEX_RECEIPTS
from tests.server.conftest import KEY
from tests.unit.index.building import TEXTS, embed, make_workspace, write_month

MONTHS = {"2024-03": ["cs.CL"], "2024-04": ["cs.IR", "stat.ML"], "2024-05": ["cs.DL", "cs.CL"]}
# Lengths all differ: two passages that score alike in one list take its ranks in any order, and
# fusion goes by ranks.
MORE = {
    month: [
        f"{text} {'So it is. ' * (len(TEXTS) * place + number)}"
        for number, text in enumerate(TEXTS)
    ]
    for place, month in enumerate(MONTHS)
}
QUERIES = [
    "how do plants get energy from light?",
    "untranslated words",
    "rank fusion of retrievers in Rome",
]
OPTIONS = [
    {},
    {"limit": 3, "offset": 2},
    {"per_paper": True, "limit": 4},
    {"per_paper": True, "limit": 50},
    {"by": "dense", "exact": True},
    {"by": "lexical"},
    {"categories": ["cs.CL"], "first_month": "2024-04", "by": "dense"},
    {
        "categories": ["stat", "cs.DL"],
        "kinds": ["paragraph"],
        "worst_quality": "C",
        "severities": ["no_problem"],
    },
    {"last_month": "2024-03", "limit": 1},
]


def _load(workspace):
    for month, categories in MONTHS.items():
        write_month(workspace, month, MORE[month], categories)
        embed(workspace, month)
        run_stage(INDEX_RECEIPTS, workspace, month)
    return workspace


@pytest.fixture(scope="module")
def on_server(qdrant, tmp_path_factory):
    settings = {
        "qdrant_url": qdrant.url,
        "qdrant_api_key": KEY,
        "qdrant_grpc_port": qdrant.grpc_port,
    }
    folder = tmp_path_factory.mktemp("server") / "data"
    return _load(make_workspace(folder, qdrant_collection="searched", **settings))


@pytest.fixture(scope="module")
def on_edge(tmp_path_factory):
    return _load(make_workspace(tmp_path_factory.mktemp("edge") / "data"))


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_both_engines_answer_alike(on_server, on_edge, options):
    wanted = SearchOptions(**options)
    pairs = list(
        zip(
            search_many(on_server, QUERIES, wanted),
            search_many(on_edge, QUERIES, wanted),
            strict=True,
        )
    )
    for theirs, ours in pairs:
        assert [hit.item.passage_id for hit in theirs] == [hit.item.passage_id for hit in ours]
        assert [hit.score for hit in theirs] == pytest.approx([hit.score for hit in ours], rel=1e-4)
    assert any(ours for _, ours in pairs)
