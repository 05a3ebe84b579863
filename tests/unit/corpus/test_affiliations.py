"""Where authors work, from their thanks."""

from __future__ import annotations

import pytest

from pipeline.corpus.parse.affiliations import add_workplaces
from pipeline.corpus.parse.byline_rules import is_affiliation
from pipeline.corpus.parse.paper import Author

ANN, BOB, CID = "Ann Lee", "Bob J. Roe", "Cid van der Moe"


def places(*thanks: str, owner: str | None = None, names: tuple[str, ...] = (ANN, BOB, CID)) -> list[list[str]]:
    found = add_workplaces([Author(name) for name in names], [(text, owner) for text in thanks])
    return [list(author.affiliations) for author in found]


def test_a_sentence_names_whose_place_it_is() -> None:
    assert places(
        "Manuscript received April 1, 2024.",
        "A. Lee and B. J. Roe are with the Dept. of Physics, University of X, Y 12345, U.S.A. (e-mail: ). "
        "C. van der Moe is with Acme Research, Z.",
    ) == [["Dept. of Physics, University of X, Y 12345, U.S.A"]] * 2 + [["Acme Research, Z"]]


def test_a_place_that_ends_with_a_capital_ends_before_the_next_sentence() -> None:
    assert places("A. Lee is with the University of X, U.S.A. B. J. Roe and C. van der Moe are with Acme Labs.") == [
        ["University of X, U.S.A"],
        ["Acme Labs"],
        ["Acme Labs"],
    ]


def test_an_address_may_follow_other_thanks() -> None:
    assert places("Supported by the Y Foundation. Address: Department of X, P.O. Box 9, Z. E-mail:", owner=ANN)[0] == [
        "Department of X, P.O. Box 9, Z"
    ]


def test_one_may_be_with_two() -> None:
    assert places("Lee is currently with the University of X, and also with the Institute of Y; she rows.")[0] == [
        "University of X",
        "Institute of Y",
    ]


def test_a_place_that_is_known_by_no_word_is_that_of_whom_the_sentence_names() -> None:
    assert places("B. J. Roe is with ETH Zürich.") == [[], ["ETH Zürich"], []]
    assert places("The truth is with Everybody.", "Bob Roe is with us.", owner=BOB) == [[], [], []]


def test_the_authors_are_all_of_them() -> None:
    assert places("The authors are with the University of X.") == [["University of X"]] * 3


def test_a_surname_that_two_bear_needs_the_initial() -> None:
    names = ("Ann Lee", "Bo Lee")
    assert places("B. Lee is with the University of X.", names=names) == [[], ["University of X"]]
    assert places("Lee is with the University of X.", names=names) == [[], []]


def test_a_sentence_that_names_nobody_is_of_the_one_whose_thanks_these_are() -> None:
    assert places("The first author is with the University of X.", owner=BOB) == [[], ["University of X"], []]
    assert places("The first author is with the University of X.") == [[], [], []]
    assert places("Mr. Moe is with the University of X.", owner=BOB)[1:] == [[], ["University of X"]]


@pytest.mark.parametrize(
    "said",
    [
        "Work performed while at Google Brain.",
        "This work was supported by the National Science Foundation.",
        "We thank Google Research for computers.",
        "Corresponding author, University of X",
        "C. Moe was with the University of X.",
        "The truth is with you.",
        "All authors contributed equally.",
        "",
    ],
)
def test_what_is_no_place_of_work_now_is_left_out(said: str) -> None:
    assert places(said, owner=ANN) == [[], [], []]


def test_an_affiliation_that_a_byline_has_stays_alone() -> None:
    author = Author(ANN, ("University of X",))
    assert add_workplaces([author], [("Ann Lee is with the Institute of Y.", ANN)]) == [author]


@pytest.mark.parametrize(
    "place", ["International Research Institute", "Joint Research Centre, Italy", "Workday Research"]
)
def test_places_that_begin_as_remarks_do_are_places(place: str) -> None:
    assert is_affiliation(place)


def test_a_hostile_list_takes_no_time() -> None:
    assert places("A" * 100_000 + " is with the University of X. " * 2_000)[0] == []


def test_a_sentence_that_breaks_off_names_no_place() -> None:
    assert places("Lee is with Acme and also with the ")[0] == ["Acme"]


def test_names_of_any_signs_harm_nobody() -> None:
    assert places("Lee is with the University of X.", names=(", Jr.", "[x Lee", "(y Lee", ANN)) == [[], [], [], []]
