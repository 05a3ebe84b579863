"""Where authors work, from their thanks."""

import pytest

from pipeline.corpus.parse.affiliations import is_place, places_of_note, stated_places
from pipeline.identity.people import KnownNames
from tests.cases import cases

ANN, BOB, CID = "Ann Lee", "Bob J. Roe", "Cid van der Moe"


def places(*thanks, names=(ANN, BOB, CID)):
    found = [pair for text in thanks for pair in stated_places(text, KnownNames(names))]
    return [[place for one, place in found if one == name] for name in names]


@cases("unit/corpus/thanks.toml")
def test_a_sentence_says_whose_place_it_is(case):
    received = "Manuscript received April 1, 2024."
    assert places(received, case["thanks"]) == case["places"]


def test_a_note_is_a_place_by_its_words_or_before_an_email():
    assert places_of_note("Institute of X and University of Y.") == [
        "Institute of X",
        "University of Y",
    ]
    assert places_of_note("Acme Analytics. E-mail: ann@acme.org") == ["Acme Analytics"]
    assert places_of_note("Acme Analytics.") == []


@cases("unit/corpus/cases.toml", "no_place_of_work_now")
def test_what_is_no_place_of_work_now_is_left_out(case):
    assert (places(case), places_of_note(case)) == ([[], [], []], [])


@pytest.mark.parametrize(
    "place",
    ["International Research Institute", "Joint Research Centre, Italy", "Workday Research"],
)
def test_places_that_begin_as_remarks_do_are_places(place):
    assert is_place(place)


def test_a_hostile_list_takes_no_time():
    assert places("A" * 100_000 + " is with the University of X. " * 2_000)[0] == []


def test_names_of_any_signs_harm_nobody():
    assert places("Lee is with the University of X.", names=(", Jr.", "[x Lee", "(y Lee", ANN)) == [
        [],
        [],
        [],
        [],
    ]
