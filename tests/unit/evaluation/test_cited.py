"""Texts as pieces around their citations."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.evaluation.cited import Piece, paragraphs, printable


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("As [Reference 2] says.", [Piece("As "), Piece("[Reference 2]", 2, True), Piece(" says.")]),
        ("[Reference 9]", [Piece("[Reference 9]", 9, False)]),  # which the task does not have
        (f"[Reference {'9' * 5000}]", [Piece(f"[Reference {'9' * 5000}]")]),  # too long for a number
    ],
    ids=["known", "unknown", "too long"],
)
def test_a_citation_is_a_piece_of_its_own(text: str, pieces: list[Piece]) -> None:
    assert paragraphs(text, {1, 2}) == [pieces]


@pytest.mark.parametrize(
    "text", ["[Reference 1, Reference 2]", "[Reference 1; 2]", "[References 1, 2]", "[reference 1 and reference 2]"]
)
def test_each_number_of_a_group_is_found(text: str) -> None:
    (pieces,) = paragraphs(text, {1, 2})
    assert [piece.number for piece in pieces if piece.number is not None] == [1, 2]


def test_blank_lines_part_paragraphs_and_nothing_else_does() -> None:
    assert [p[0].text for p in paragraphs("one\ntwo\n \n\nthree", ())] == ["one\ntwo", "three"]


def test_control_signs_are_shown_not_passed_on() -> None:
    assert printable("a\x00b\x1b[31m\r\nc\td") == "a�b�[31m\nc\td"


@given(st.text(alphabet="[]Reference 0123456789,;\n<>&x", max_size=200))
def test_no_text_is_lost(text: str) -> None:
    shown = "".join(piece.text for pieces in paragraphs(text, {1, 2}) for piece in pieces)
    assert "".join(shown.split()) == "".join(text.split())
