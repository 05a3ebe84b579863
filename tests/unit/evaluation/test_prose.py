"""Texts as pieces around their citations."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.evaluation.prose import Piece, paragraphs, printable


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        (
            "As [Reference 2] says.",
            [Piece("As "), Piece("[Reference 2]", 2, True), Piece(" says.")],
        ),
        ("[Reference 9]", [Piece("[Reference 9]", 9, False)]),  # which the task does not have
        (
            "[Reference 1] [Reference 2]",
            [Piece("[Reference 1]", 1, True), Piece(" "), Piece("[Reference 2]", 2, True)],
        ),
        (
            f"[Reference {'9' * 5000}]",
            [Piece(f"[Reference {'9' * 5000}]")],
        ),  # too long for a number
    ],
    ids=["known", "unknown", "two", "too long"],
)
def test_a_citation_is_a_piece_of_its_own(text, pieces):
    assert paragraphs(text, {1, 2}) == [pieces]


def test_blank_lines_part_paragraphs_and_nothing_else_does():
    assert [p[0].text for p in paragraphs("one\ntwo\n \n\nthree", ())] == ["one\ntwo", "three"]


def test_control_signs_are_shown_not_passed_on():
    assert printable("a\x00b\x1b[31m\r\nc\td") == "a�b�[31m\nc\td"


@given(st.text(alphabet="[]Reference 0123456789,;\n<>&x", max_size=200))
def test_no_text_is_lost(text):
    shown = "".join(piece.text for pieces in paragraphs(text, {1, 2}) for piece in pieces)
    assert "".join(shown.split()) == "".join(text.split())
