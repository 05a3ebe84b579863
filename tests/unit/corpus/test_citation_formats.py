"""Papers and references written for reference managers, and read back; addresses of papers."""

import json

import rispy

from pipeline.corpus.citation_formats import bibtex_entry, entries_of
from pipeline.corpus.links import abstract_url, passage_url
from pipeline.corpus.nouns import Paper, Reference

AUTHORS = ("Hal Daumé III", "Roos van Aalderen", "Ships and Boats Group")
PAPER = Paper("2404.00001", "50% of \x1b & more\nER  - \nTY  - JOUR", AUTHORS, 2024)
TITLE = "50% of \ufffd & more ER - TY - JOUR"
REFERENCE = Reference("b1", "A. Bee: On_keys", None, (), None, "Keys & Co", "10.1/a_b", None, False)
WORKS = (PAPER, REFERENCE, PAPER)


def test_ris_is_read_back():
    paper, reference = rispy.loads(entries_of(WORKS, "ris"))
    assert (paper["title"], paper["year"], paper["urls"]) == (TITLE, "2024", [PAPER.url])
    assert paper["authors"] == ["Daumé, Hal, III", "van Aalderen, Roos", AUTHORS[2]]
    assert (reference["title"], "year" in reference) == (REFERENCE.raw, False)


def test_csl_json_is_read_back():
    paper, reference = json.loads(entries_of(WORKS, "csl"))
    assert paper["author"][1:] == [
        {"family": "van Aalderen", "given": "Roos"},
        {"literal": AUTHORS[2]},
    ]
    assert paper["issued"] == {"date-parts": [[2024]]}
    assert (reference["DOI"], reference["container-title"]) == (REFERENCE.doi, REFERENCE.venue)


SAMPLE, REAL = "2404.90003", "2404.95003"


def test_a_paper_of_the_sample_has_no_address_on_arxiv():
    assert abstract_url(SAMPLE) == passage_url(SAMPLE, "S1.p1") == ""
    entry = {"title": "T", "authors": ["A"], "year": 2024, "arxiv_id": SAMPLE}
    assert "url" not in bibtex_entry("a2024", entry)


def test_a_high_number_alone_makes_no_paper_one_of_the_sample():
    assert abstract_url(REAL) == "https://arxiv.org/abs/2404.95003"
    assert passage_url(REAL, "S1.p1") == "https://arxiv.org/html/2404.95003#S1.p1"
