"""Names that papers introduce, by which queries find these papers."""

import pytest

from pipeline import tables
from pipeline.index.paper_names import introduced_names, paper_named
from pipeline.index.search_options import SearchOptions
from pipeline.index.typed_queries import read_query
from tests.month_tables import write_table
from tests.unit.index.building import make_workspace


@pytest.mark.parametrize(
    ("abstract", "names"),
    [
        ("We introduce Fern, a corpus.", {"fern"}),
        ("We propose a simple new network, the Transformer, based on attention.", {"transformer"}),
        ("Here, we develop social Fern factorization (SFF), a model.", {"sff"}),
        ("We describe deep Fern families (DFFs).", {"deepfernfamilies", "dffs", "dff"}),
        ("Our method (Fern Normalization) is fast.", {"fernnormalization"}),
        ("We present a dataset called FernBank.", {"fernbank"}),
        ("We propose a method for large language models (LLMs).", set()),
        ("Our model uses grouped fern attention (GFA).", set()),
        ("We introduce the idea of moss (see below).", set()),
    ],
)
def test_an_abstract_introduces_names(abstract, names):
    introduced = introduced_names("A title", abstract)
    assert names <= introduced.keys()
    assert bool(names) == bool(introduced.keys() - {"atitle"})


def test_a_name_in_a_title_comes_before_one_in_an_abstract(tmp_path):
    workspace = make_workspace(tmp_path)
    rows = [
        {"arxiv_id": "2403.00001", "title": "Mosses", "abstract": "We introduce Fern, a corpus."},
        {"arxiv_id": "2403.00002", "title": "Fern: a corpus", "abstract": "We introduce Moss."},
    ]
    rows = [row | {"authors": [], "categories": ["cs.CL"]} for row in rows]
    write_table(workspace.root, tables.PAPERS, "2024-03", rows)
    assert paper_named(workspace, "FERN") == "2403.00002"
    assert paper_named(workspace, "moss") == "2403.00002"
    assert paper_named(workspace, "Fe-rn") == "2403.00002"
    assert paper_named(workspace, "lichen") is None
    readings = {
        query: read_query(workspace, query, SearchOptions(as_typed=True))
        for query in ("the fern paper", "What is Fern?", "Fern github", "fern growth")
    }
    papers = {query: reading.paper for query, reading in readings.items()}
    assert papers == dict.fromkeys(readings, "2403.00002") | {"fern growth": None}
    assert readings["What is Fern?"].text == "Fern"
