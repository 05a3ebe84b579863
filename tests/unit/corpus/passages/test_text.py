"""Words, markers and the text that is embedded."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.corpus.parse.policies import without_markers
from pipeline.corpus.passages.text import count_words, embedded_text


def test_the_embedded_text_has_the_headings_and_no_markers():
    assert (
        embedded_text("Tidepool", ["Method", "Data"], "Known [@b1; @b2] since.")
        == "Tidepool > Method > Data\nKnown since."
    )


def test_a_paper_or_section_without_a_title_leaves_no_gap_in_the_heading():
    assert embedded_text(None, ["Method", ""], "Known.") == "Method\nKnown."


def test_a_marker_goes_with_the_space_before_it():
    assert without_markers("One [@b1], two[@b2]\n[@b3] [?lee].") == "One, two."


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("", 0),
        ("| — | – |", 0),
        ("| one | 2 |", 2),
        ("it’s “here” — naïve…", 3),
        ("Smith et al. [@b1]’s", 4),
        ("Kōans 裏 覚", 3),
        ("a\xa0b\u2003c", 3),
        ("[@b1; @b2]", 0),
        ("[@ open", 1),
        ("as [?lee; ?moe] say", 2),
        ("本文研究 BERT 模型。", 7),
        ("ประโยคหนึ่ง", 3),
        ("한국어는 띄어쓰기가 있다", 3),
        ("\ud800 x", 1),
    ],
)
def test_words_are_counted(text, count):
    assert count_words(text) == count


@given(st.text(st.characters(max_codepoint=0x24F), max_size=80))
def test_words_are_what_white_space_parts_and_holds_a_letter_or_digit(text):
    parted = re.sub(r"\[@[^\[\]]+\]", " ", text).split()
    assert count_words(text) == sum(re.search(r"\w", word) is not None for word in parted)


def test_a_million_signs_hold_no_word():
    assert count_words("." * 1_000_000 + "…") == 0
