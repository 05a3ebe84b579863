"""Quotes found by their exact words, by nearly the same words, or by their meaning."""

import pytest

from pipeline.errors import SettingError
from pipeline.index.opening import close_indexes
from pipeline.index.quotes import find_quote
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


@pytest.mark.parametrize(
    ("quote", "text"),
    [
        ("finds rare terms that dense vectors blur", "finds rare terms that dense vectors blur"),
        (
            "FINDS rare  terms, that dense\nvectors blur!",
            "finds rare terms that dense vectors blur",
        ),
        ("merge the ranked lists of the two engines", "merge the ranked lists of the two “engines"),
        (TEXTS[0], TEXTS[0].rstrip(".")),
        ("we follow and merge the ranked lists", "We follow and merge the ranked lists"),
    ],
)
def test_the_same_words_are_an_exact_match(loaded, quote, text):
    best = find_quote(loaded, quote)[0]
    assert (best.match, best.similarity, best.text) == ("exact", 1.0, text)


def test_changed_words_are_a_near_match_with_the_part_of_the_passage(loaded):
    best = find_quote(
        loaded, "retrieval with inverse term frequency finds unusual terms that dense vectors blur"
    )[0]
    assert best.match == "near"
    assert 0.78 <= (best.similarity or 0) < 1
    assert best.text in TEXTS[2]
    assert best.text.endswith("terms that dense vectors blur")


def test_a_word_that_is_cut_off_is_no_exact_match(loaded):
    assert find_quote(loaded, "are terms that dense vectors blu")[0].match == "near"


def test_other_words_are_found_by_meaning(loaded):
    best = find_quote(loaded, "how light on the forest floor limits ferns")[0]
    assert (best.match, best.similarity, best.text) == ("meaning", None, TEXTS[5])


def test_what_fits_nothing_is_not_found(loaded):
    assert find_quote(loaded, "asdf qwer zxcv uiop hjkl") == []


@pytest.mark.parametrize("quote", ["", "three short words", "… “” ( )"])
def test_a_quote_without_enough_words_is_refused(loaded, quote):
    with pytest.raises(SettingError, match="at least 4"):
        find_quote(loaded, quote)
