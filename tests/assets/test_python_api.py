"""The package `citeloom` on the finished sample corpus, and the page that documents it."""

import doctest
from pathlib import Path

import pytest

import citeloom

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "python.md"


@pytest.fixture
def corpus(place):
    with place.entered(), citeloom.open_corpus(place.root) as opened:
        yield opened


def test_the_guide_says_what_happens(place, monkeypatch):
    pytest.importorskip("drafts", reason="the guide asks drafts for papers to cite too")
    with place.entered():
        monkeypatch.chdir(place.root.parent)
        failed, tried = doctest.testfile(str(GUIDE), module_relative=False)
    assert tried > 10
    assert failed == 0


@pytest.mark.parametrize("identifier", ["2404.99999", "no id", ""])
def test_a_paper_that_is_not_there_is_named(corpus, identifier):
    with pytest.raises(citeloom.MissingInput, match=repr(identifier)):
        corpus.paper(identifier)


def test_a_wrong_argument_is_refused_with_the_names_of_the_right_ones(corpus):
    with pytest.raises(citeloom.SettingError, match=r"categorys.*categories"):
        corpus.search("related work", categorys=["cs.CL"])
    with pytest.raises(citeloom.SettingError, match="arxiv_ids"):
        corpus.bibtex()


def test_settings_that_are_none_are_refused(place):
    with place.entered():
        with pytest.raises(citeloom.SettingError, match="qdrant_ulr"):
            citeloom.open_corpus(place.root, qdrant_ulr="http://localhost:6333")
        with pytest.raises(citeloom.SettingError, match="CITELOOM_EMBEDDER"):
            citeloom.open_corpus(place.root, embedder="word2vec")


def test_a_folder_without_a_corpus_has_no_index(place, tmp_path):
    with place.entered(), citeloom.open_corpus(tmp_path) as corpus:
        assert corpus.months() == []
        with pytest.raises(citeloom.MissingInput, match=str(tmp_path)):
            corpus.search("anything")
