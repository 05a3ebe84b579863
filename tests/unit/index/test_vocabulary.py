"""Misspelt words of queries, corrected by the words of the corpus."""

import shutil

import pytest

from pipeline import tables
from pipeline.index.vocabulary import corrected
from tests.month_tables import passage_row, write_table
from tests.unit.index.building import TEXTS, make_workspace


def write_passages(workspace, month, texts):
    paper = f"{month[2:4]}{month[5:]}.00001"
    rows = [passage_row(paper, number, "Ferns", (), text) for number, text in enumerate(texts)]
    write_table(workspace.root, tables.PASSAGES, month, rows)


@pytest.fixture
def workspace(tmp_path):
    workspace = make_workspace(tmp_path)
    write_passages(workspace, "2024-03", TEXTS)
    return workspace


@pytest.mark.parametrize(
    ("typed", "right"),
    [
        ("reciprocal rank fuson", "reciprocal rank fusion"),
        ("Penaltise for the decooder!", "penalties for the decoder!"),
        ("ehtical lexcial retrieval", "ehtical lexical retrieval"),
        ("photosynteses", "photosynthesis"),
    ],
)
def test_misspelt_words_are_corrected_and_the_rest_stays(workspace, typed, right):
    assert corrected(workspace, typed) == right


@pytest.mark.parametrize(
    "query",
    [
        "beam search",
        "merging ranks",  # inflections: the index compares stems
        "bean",  # too short
        "FUSON and DecOder and fuson2",  # names
        "wheelbarrow",
        "fuson " * 60,  # a pasted paragraph
    ],
)
def test_right_words_and_names_are_kept(workspace, query):
    assert corrected(workspace, query) is None


def test_words_are_corrected_where_the_cache_cannot_be_written(workspace):
    cache = workspace.local / "cache"
    shutil.rmtree(cache, ignore_errors=True)
    cache.write_text("a file where the folder should be")
    assert corrected(workspace, "reciprocal rank fuson") == "reciprocal rank fusion"


def test_words_come_and_go_with_their_month(workspace):
    write_passages(workspace, "2024-04", ["Lichens grow slowly.", "Lichens need light."])
    assert corrected(workspace, "lichesn") == "lichens"
    write_passages(workspace, "2024-04", ["Mosses grow slowly."])
    assert corrected(workspace, "lichesn") is None
    assert corrected(workspace, "slowyl") == "slowly"
