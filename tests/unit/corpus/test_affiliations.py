"""Where authors work, from their thanks."""

from __future__ import annotations

import pytest

from pipeline.corpus.parse.affiliations import add_workplaces
from pipeline.corpus.parse.byline_rules import is_affiliation
from pipeline.corpus.parse.parsed_page import Author

ANN, BOB, CID = "Ann Lee", "Bob J. Roe", "Cid van der Moe"


def places(
    *thanks: str, owner: str | None = None, names: tuple[str, ...] = (ANN, BOB, CID)
) -> list[list[str]]:
    found = add_workplaces([Author(name) for name in names], [(text, owner) for text in thanks])
    return [list(author.affiliations) for author in found]


X, Y = "University of X", "Institute of Y"


@pytest.mark.parametrize(
    ("thanks", "owner", "expected"),
    [
        (
            (
                "A. Lee and B. J. Roe are with the Dept. of Physics, University of X, Y 12345,"
                " U.S.A. (e-mail: ). C. van der Moe is with Acme Research, Z."
            ),
            None,
            [["Dept. of Physics, University of X, Y 12345, U.S.A"]] * 2 + [["Acme Research, Z"]],
        ),
        (
            (
                "A. Lee is with the University of X, U.S.A. B. J. Roe and C. van der Moe are with"
                " Acme Labs."
            ),
            None,
            [["University of X, U.S.A"], ["Acme Labs"], ["Acme Labs"]],
        ),
        (
            "Supported by the Y Foundation. Address: Department of X, P.O. Box 9, Z. E-mail:",
            ANN,
            [["Department of X, P.O. Box 9, Z"], [], []],
        ),
        (
            (
                "Lee is currently with the University of X, and also with the Institute of Y; she"
                " rows."
            ),
            None,
            [[X, Y], [], []],
        ),
        ("B. J. Roe is with ETH Zürich.", None, [[], ["ETH Zürich"], []]),
        ("Bob Roe is with us.", BOB, [[], [], []]),
        ("The authors are with the University of X.", None, [[X]] * 3),
        ("The first author is with the University of X.", BOB, [[], [X], []]),
        ("The first author is with the University of X.", None, [[], [], []]),
        ("Mr. Moe is with the University of X.", BOB, [[], [], [X]]),
        ("Lee is with Acme and also with the ", None, [["Acme"], [], []]),
    ],
)
def test_a_sentence_says_whose_place_it_is(
    thanks: str, owner: str | None, expected: list[list[str]]
) -> None:
    assert places("Manuscript received April 1, 2024.", thanks, owner=owner) == expected


def test_a_surname_that_two_bear_needs_the_initial() -> None:
    names = ("Ann Lee", "Bo Lee")
    assert places("B. Lee is with the University of X.", names=names) == [[], ["University of X"]]
    assert places("Lee is with the University of X.", names=names) == [[], []]


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
    "place",
    ["International Research Institute", "Joint Research Centre, Italy", "Workday Research"],
)
def test_places_that_begin_as_remarks_do_are_places(place: str) -> None:
    assert is_affiliation(place)


def test_a_hostile_list_takes_no_time() -> None:
    assert places("A" * 100_000 + " is with the University of X. " * 2_000)[0] == []


def test_names_of_any_signs_harm_nobody() -> None:
    assert places("Lee is with the University of X.", names=(", Jr.", "[x Lee", "(y Lee", ANN)) == [
        [],
        [],
        [],
        [],
    ]
