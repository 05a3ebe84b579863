"""Where authors work, from their thanks."""

import pytest

from pipeline.corpus.parse.affiliations import is_place, workplaces
from pipeline.identity.people import KnownNames
from tests.cases import cases

ANN, BOB, CID = "Ann Lee", "Bob J. Roe", "Cid van der Moe"


def places(*thanks, owner=None, names=(ANN, BOB, CID)):
    found = [pair for text in thanks for pair in workplaces(text, owner, KnownNames(names))]
    return [[place for one, place in found if one == name] for name in names]


@cases("unit/corpus/thanks.toml")
def test_a_sentence_says_whose_place_it_is(case):
    received = "Manuscript received April 1, 2024."
    assert places(received, case["thanks"], owner=case.get("owner")) == case["places"]


def test_a_surname_that_two_bear_needs_the_initial():
    names = ("Ann Lee", "Bo Lee")
    assert places("B. Lee is with the University of X.", names=names) == [[], ["University of X"]]
    assert places("Lee is with the University of X.", names=names) == [[], []]


@cases("unit/corpus/cases.toml", "no_place_of_work_now")
def test_what_is_no_place_of_work_now_is_left_out(case):
    assert places(case, owner=ANN) == [[], [], []]


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
