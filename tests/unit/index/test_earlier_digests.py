"""Collections and months of earlier versions keep their names and digests, whatever setting left."""

import pytest

from pipeline.corpus.passages.stages import PASSAGES
from pipeline.embedding.stages import EMBEDDINGS
from pipeline.engine.run import fingerprint
from pipeline.index.passage_index import Layout
from tests.unit.index.building import make_workspace, write_month


@pytest.mark.parametrize(
    ("layout", "name"),
    [
        (Layout("all-MiniLM-L6-v2", 384, lexical=2), "citeloom-all-minilm-l6-v2-e074c833"),
        (Layout("BAAI/bge-m3", 1024, sparse=True, lexical=2), "citeloom-baai-bge-m3-73fe8a48"),
    ],
)
def test_a_collection_keeps_its_name(layout, name):
    assert layout.collection("citeloom") == name


@pytest.mark.parametrize("embedder", ["minilm", "bge-m3"])
def test_months_keep_the_settings_that_their_digests_hold(workspace, embedder):
    write_month(workspace)
    here = make_workspace(workspace.root.path, embedder=embedder)
    settings = [
        dict(fingerprint(stage, here, "2024-03").settings) for stage in (PASSAGES, EMBEDDINGS)
    ]
    assert settings == [
        {"embedded_form": "sections"},
        {"embedded_form": "sections", "embedder": embedder},
    ]
