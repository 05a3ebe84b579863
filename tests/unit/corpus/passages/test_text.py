"""Words, markers and the text that is embedded."""

import re

from hypothesis import given
from hypothesis import strategies as st

from pipeline.corpus.parse.policies import without_markers
from pipeline.corpus.passages.text import count_words, embedded_text
from tests.cases import cases


def test_the_embedded_text_has_the_headings_and_no_markers():
    assert (
        embedded_text("Tidepool", ["Method", "Data"], "Known [@b1; @b2] since.")
        == "Tidepool > Method > Data\nKnown since."
    )


def test_a_paper_or_section_without_a_title_leaves_no_gap_in_the_heading():
    assert embedded_text(None, ["Method", ""], "Known.") == "Method\nKnown."


def test_a_marker_goes_with_the_space_before_it():
    assert without_markers("One [@b1], two[@b2]\n[@b3] [?lee].") == "One, two."


@cases("unit/corpus/cases.toml", "numbers_of_words", ["text", "count"])
def test_words_are_counted(text, count):
    assert count_words(text) == count


def test_a_lone_surrogate_is_no_word():
    assert count_words("\ud800 x") == 1


@given(st.text(st.characters(max_codepoint=0x24F), max_size=80))
def test_words_are_what_white_space_parts_and_holds_a_letter_or_digit(text):
    parted = re.sub(r"\[@[^\[\]]+\]", " ", text).split()
    assert count_words(text) == sum(re.search(r"\w", word) is not None for word in parted)


def test_a_million_signs_hold_no_word():
    assert count_words("." * 1_000_000 + "…") == 0
