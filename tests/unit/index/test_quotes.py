"""Quotes found by their exact words, by nearly the same words, or by their meaning; the sentence or
table row of a passage that fits a query best, and what is shown around it.
"""

import pytest

from pipeline.errors import SettingError
from pipeline.index.excerpts import with_excerpts
from pipeline.index.opening import close_indexes
from pipeline.index.quotes import find_quote
from tests.cases import cases_beside
from tests.unit.answering.scripted_answers import passage
from tests.unit.index.building import TEXTS, load, make_workspace

CITING = (
    "We follow [@bib.bib1] and merge the ranked lists of the two “engines”, as others do"
    " [@bib.bib2]."
)


@pytest.fixture(scope="module")
def loaded(tmp_path_factory):
    workspace = make_workspace(tmp_path_factory.mktemp("quoted") / "data")
    load(workspace, texts=(*TEXTS, CITING))
    yield workspace
    close_indexes()


@cases_beside("quote", "reason", "part")
def test_a_quote_is_found_by_its_words_or_else_by_its_meaning(loaded, quote, reason, part):
    best = find_quote(loaded, quote)[0]
    (passage,) = best.passages
    assert best.reason == reason
    assert passage.excerpt in part
    assert passage.excerpt.split()[-1] == part.split()[-1]
    assert reason != "exact" or (passage.excerpt, best.score) == (part, 1)
    assert reason != "near" or 0.78 <= best.score < 1


def test_what_fits_nothing_is_not_found(loaded):
    results = find_quote(loaded, "asdf qwer zxcv uiop hjkl")
    assert (results.hits, bool(results.note)) == ((), True)


@cases_beside("quote")
def test_a_quote_without_enough_words_is_refused(loaded, quote):
    with pytest.raises(SettingError, match="at least 4"):
        find_quote(loaded, quote)


TABLE = """Table 3: Fuel of all boats.

| Boat | # of nets | fuel (l) |
| --- | --- | --- |
| Old | 7 | 120 |
| New \\| long | many | 60 |
| Boats without fuel are left out. | | |
"""
ROWS = TABLE.splitlines()


@cases_beside("query", "row")
def test_a_row_is_best_if_the_query_names_it_and_a_column(query, row):
    """row: of the table, the number of the best."""
    best = [] if row is None else [ROWS[row]]
    (found,) = with_excerpts(query, [passage(1, TABLE, kind="table")], 40)
    assert list(found.best_sentences) == best
    rows = [line for line in found.excerpt.splitlines() if line in ROWS[4:]]
    assert rows == (best if row in (4, 5) else ROWS[4:])
    assert found.excerpt.startswith("\n".join([ROWS[0], *ROWS[2:4]])) or rows == ROWS[4:]


def test_the_best_sentence_is_shown_with_those_after_it_up_to_a_length():
    text = "Boats are old. The new hull saves fuel [@bib.bib7]. Paint is dear. Oars rot."
    first, second = with_excerpts("fuel of the hull", [passage(1, text), passage(2, "No.")], 30)
    assert first.best_sentences == ("The new hull saves fuel [7].",)
    assert first.excerpt == "… The new hull saves fuel [7]. …"
    assert (second.best_sentences, second.excerpt) == ((), "No.")
