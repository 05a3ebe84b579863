"""Search on a real server: the same answers as on Edge."""

import pytest

from pipeline.index.search import search_many
from pipeline.index.search_options import SearchOptions
from tests.server.conftest import workspace_on
from tests.unit.index.building import TEXTS, load, make_workspace

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
        load(workspace, month, MORE[month], categories)
    return workspace


@pytest.fixture(scope="module")
def on_server(qdrant, tmp_path_factory):
    folder = tmp_path_factory.mktemp("server") / "data"
    return _load(workspace_on(folder, qdrant, "searched"))


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
