"""Quotes found by their exact words, by nearly the same words, or by their meaning."""

import pytest

from pipeline.errors import SettingError
from pipeline.index.opening import close_indexes
from pipeline.index.quotes import find_quote
from tests.cases import cases
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


@cases(
    "unit/index/cases.toml",
    "a_quote_is_found_by_its_words_or_else_by_its_meaning",
    ("quote", "reason", "part"),
)
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


@pytest.mark.parametrize("quote", ["", "three short words", "… “” ( )"])
def test_a_quote_without_enough_words_is_refused(loaded, quote):
    with pytest.raises(SettingError, match="at least 4"):
        find_quote(loaded, quote)
