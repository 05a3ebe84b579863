"""Names of people: form, parts, lists, comparison."""

import pytest

from pipeline.identity.people import (
    TITLES,
    KnownNames,
    PersonName,
    is_name,
    parse_name,
    split_names,
    without_titles,
)
from tests.cases import cases

NAMES = "unit/names.toml"


@cases(NAMES, "names")
def test_what_can_be_a_name(case):
    assert is_name(case)


@cases(NAMES, "other_texts")
def test_what_cannot_be_a_name(case):
    assert not is_name(case)


@cases(NAMES, "parts")
def test_a_name_has_parts(case):
    text, *parts = case
    assert parse_name(text) == PersonName(*parts)


@cases(NAMES, "lists")
def test_a_list_of_names_is_split(case):
    text, *names = case
    assert list(split_names(text)) == names


@pytest.mark.parametrize("example", [example for _, example in TITLES])
def test_titles_are_no_part_of_a_name(example):
    left = [part.strip() for part in without_titles(example).split(" and ")]
    assert left[0].strip(" ,") == "Ann Lee"


def found(names, printed):
    """The known name that a print is found to be."""
    return next((place.name for place in KnownNames(names).find(printed)), None)


@cases(NAMES, "same_person")
def test_two_prints_of_one_name(case):
    one, other = case
    assert found([one], other) == one
    assert found([other], one) == other


@cases(NAMES, "two_people")
def test_two_names(case):
    assert found(case[:1], case[1]) is None


def test_a_known_name_is_found_in_another_print():
    known = ["Jordan Boyd-Graber", "Wei Wang", "Wen Wang"]
    assert found(known, "J. Boyd-Graber") == "Jordan Boyd-Graber"
    assert found(known, "Wen Wang") == "Wen Wang"
    assert found(known, "University of Wang") is None


def test_known_names_are_found_in_a_row_and_with_a_word_stuck_to_them():
    known = KnownNames(["Ann Lee", "Robert Roe", "Jan van der Moe"])
    text = "Prof. A. B. Lee R. Roe Jr. Jan Q. van der MoeUniversity of X"
    assert [(text[place.start : place.end], place.name) for place in known.find(text)] == [
        ("A. B. Lee", "Ann Lee"),
        ("R. Roe Jr", "Robert Roe"),
        ("Jan Q. van der Moe", "Jan van der Moe"),
    ]
