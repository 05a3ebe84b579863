"""Addresses of papers: none for the invented ones of the sample."""

from pipeline.corpus.citation_formats import bibtex_entry
from pipeline.corpus.links import abstract_url, passage_url

SAMPLE, REAL = "2404.90003", "2404.95003"


def test_a_paper_of_the_sample_has_no_address_on_arxiv():
    assert abstract_url(SAMPLE) == passage_url(SAMPLE, "S1.p1") == ""
    entry = {"title": "T", "authors": ["A"], "year": 2024, "arxiv_id": SAMPLE}
    assert "url" not in bibtex_entry("a2024", entry)


def test_a_high_number_alone_makes_no_paper_one_of_the_sample():
    assert abstract_url(REAL) == "https://arxiv.org/abs/2404.95003"
    assert passage_url(REAL, "S1.p1") == "https://arxiv.org/html/2404.95003#S1.p1"
