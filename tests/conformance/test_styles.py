"""The parser on one paper and one bibliography in many styles: share of each field that is read as
it is printed.
"""

import re

import pytest

from tests.conformance import truth
from tests.conformance.report import score_real_bylines, score_styles, table
from tests.conformance.scoring import match_references, printed_items

# A floor, a little below what was measured (targets: report.py). "affiliations one by one" has no
# target: it tells affiliations that were read as one string, or as a string per line, from one
# string per institution.
FLOOR = {
    "paper title": 0.99,
    "author names": 0.98,
    "affiliations": 0.98,
    "affiliations one by one": 0.93,
    "e-mails": 0.99,
    "title": 0.98,
    "item authors": 0.98,
    "year": 0.99,
    "venue": 0.97,
    "DOI": 0.99,
    "arXiv id": 0.99,
}
# The page of 1904.90027 prints no name; the labels know no affiliations of 2003.90030, which prints
# them in a grid.
FLOOR_ON_REAL_PAGES = {"author names": 0.93, "affiliations": 0.94}


@pytest.fixture(scope="module")
def score():
    """The score of every style."""
    return score_styles()


@pytest.mark.parametrize("field", FLOOR)
def test_a_field_is_read_as_it_is_printed(score, field):
    rate = score.rate(field)
    assert rate >= FLOOR[field], table(score)


def test_names_and_affiliations_of_real_pages_are_read_as_printed(shared_data):
    score = score_real_bylines(shared_data / "dump2")
    rates = {field: score.rate(field) for field in FLOOR_ON_REAL_PAGES}
    assert {
        field: rate for field, rate in rates.items() if (rate or 0) < FLOOR_ON_REAL_PAGES[field]
    } == {}


def test_there_is_a_paper_and_a_page_for_every_style():
    papers = sorted(file.stem for file in (truth.STYLES / "papers").glob("*.tex"))
    pages = sorted(file.stem for file in (truth.STYLES / "pages").glob("*.html"))
    assert papers == pages == truth.style_names()


def test_truth_and_bibtex_have_the_same_works():
    bibtex = (truth.STYLES / "references.bib").read_text(encoding="utf-8")
    keys = re.findall(r"^@\w+\{([^,]+),$", bibtex, flags=re.MULTILINE)
    assert keys == [reference.key for reference in truth.true_references()]


@pytest.mark.parametrize("style", truth.style_names())
def test_every_work_is_on_every_page(style):
    items = printed_items((truth.STYLES / "pages" / f"{style}.html").read_text(encoding="utf-8"))
    references = truth.true_references()
    assert len(match_references(items, references)) == len(references)
