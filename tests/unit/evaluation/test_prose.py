"""Texts as pieces around their citations."""

from hypothesis import given
from hypothesis import strategies as st

from pipeline.evaluation.prose import Piece, paragraphs, printable
from tests.cases import cases


@cases("unit/evaluation/cases.toml", "pieces", ["text", "pieces"])
def test_a_citation_is_a_piece_of_its_own(text, pieces):
    assert paragraphs(text, {1, 2}) == [[Piece(*piece) for piece in pieces]]


def test_what_is_too_long_for_a_number_is_text():
    text = f"[Reference {'9' * 5000}]"
    assert paragraphs(text, {1, 2}) == [[Piece(text)]]


def test_blank_lines_part_paragraphs_and_nothing_else_does():
    assert [p[0].text for p in paragraphs("one\ntwo\n \n\nthree", ())] == ["one\ntwo", "three"]


def test_control_signs_are_shown_not_passed_on():
    assert printable("a\x00b\x1b[31m\r\nc\td") == "a�b�[31m\nc\td"


@given(st.text(alphabet="[]Reference 0123456789,;\n<>&x", max_size=200))
def test_no_text_is_lost(text):
    shown = "".join(piece.text for pieces in paragraphs(text, {1, 2}) for piece in pieces)
    assert "".join(shown.split()) == "".join(text.split())
