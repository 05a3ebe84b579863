"""Papers and references written for reference managers, and read back."""

import json

import rispy

from pipeline.corpus.citation_formats import entries_of
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
