"""The package `citeloom` on the finished sample corpus, and the page that documents it."""

import doctest
import subprocess
import sys
from pathlib import Path

import pytest

import citeloom
from tests.assets.conftest import MONTHS

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "python.md"


@pytest.fixture
def corpus(place):
    with place.entered(), citeloom.open_corpus(place.root) as opened:
        yield opened


def test_the_guide_says_what_happens(place, monkeypatch):
    with place.entered():
        monkeypatch.chdir(place.root.parent)
        failed, tried = doctest.testfile(str(GUIDE), module_relative=False)
    assert tried > 10
    assert failed == 0


def test_a_paper_has_what_its_tables_hold(corpus):
    (hit,) = corpus.search_passages("related work", limit=1)
    paper = corpus.paper(f"arXiv:{hit.paper.arxiv_id}v1")
    (found,) = hit.passages
    passages = {passage.passage_id: passage for passage in paper.passages}
    assert passages[found.passage_id].text == found.text
    assert paper.month in MONTHS
    assert paper.authors
    keys = {reference.key for reference in paper.references}
    assert keys
    assert len(keys) == len(paper.references)


def test_citations_agree_with_the_references_of_the_citing_papers(corpus):
    paper = corpus.paper("2404.90003")
    cited = {reference.arxiv_id for reference in paper.references if reference.arxiv_id}
    assert cited
    for arxiv_id in cited:
        own = next(
            citing
            for citing in corpus.cited_by(arxiv_id)
            if citing.paper.arxiv_id == paper.arxiv_id
        )
        assert set(own.passage_ids) <= {passage.passage_id for passage in paper.passages}
    sentence = paper.abstract.split(". ")[0]
    source = corpus.find_quote(sentence)[0]
    assert (source.reason, source.paper.arxiv_id) == ("exact", paper.arxiv_id)


@pytest.mark.parametrize("identifier", ["2404.99999", "1901.00001", "no id", ""])
def test_a_paper_that_is_not_there_is_named(corpus, identifier):
    with pytest.raises(citeloom.MissingInput, match=repr(identifier)):
        corpus.paper(identifier)


def test_where_nothing_fits_the_nearest_are_returned(corpus):
    for results in (corpus.search("asdfgh qwerty"), corpus.search_passages("asdfgh qwerty")):
        assert results
        assert not results.fits


def test_a_wrong_argument_is_refused_with_the_names_of_the_right_ones(corpus):
    with pytest.raises(citeloom.SettingError, match=r"categorys.*categories"):
        corpus.search("related work", categorys=["cs.CL"])
    with pytest.raises(citeloom.SettingError, match="arxiv_ids"):
        corpus.bibtex()


def test_papers_can_be_listed(corpus):
    (listed,) = corpus.papers(author="Haddad", year=2024)
    paper = listed.paper
    assert paper.arxiv_id not in {hit.paper.arxiv_id for hit in corpus.similar(paper.arxiv_id)}


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


def test_the_import_is_light():
    code = (
        "import sys, citeloom; print(*sorted({'pyarrow', 'torch', 'numpy', 'pydantic'} &"
        " sys.modules.keys()))"
    )
    printed = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout
    assert printed.strip() == ""
