"""Words, markers and sentences: hand-checked text of the sample papers and hard cases, and what no cut
may fall into.

`sentences.txt` holds a sentence on each line and a paragraph between empty lines. From "We follow
Smith" on, the sentences were written as hard cases; those before are of `examples/papers`.
"""

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.corpus.parse.policies import without_markers
from pipeline.corpus.passages.sentences import mask, split_sentences
from pipeline.corpus.passages.text import count_words, embedded_text
from tests.cases import cases

CHECKED = Path(__file__).with_name("sentences.txt").read_text().strip()
PARAGRAPHS = [paragraph.split("\n") for paragraph in CHECKED.split("\n\n")]


@pytest.mark.parametrize("paragraph", PARAGRAPHS, ids=lambda paragraph: paragraph[0][:40])
def test_the_sentences_of_a_checked_paragraph_are_found(paragraph):
    assert split_sentences(" ".join(paragraph)) == paragraph


@cases("unit/corpus/cases.toml", "single_sentences")
def test_no_sentence_ends_inside_a_formula_or_an_abbreviation(case):
    assert split_sentences(case) == [case]


@cases("unit/corpus/cases.toml", "sentences_of_other_scripts")
def test_sentences_end_at_the_marks_of_other_scripts_and_behind_notes(case):
    space = "" if "。" in case[0] else " "
    assert split_sentences(space.join(case)) == case


def test_a_price_in_dollars_opens_no_formula():
    assert split_sentences("It costs $5. We paid $6. That is $x. Y$.") == [
        "It costs $5.",
        "We paid $6.",
        "That is $x. Y$.",
    ]


def test_a_numbered_line_keeps_its_number():
    assert split_sentences("1. Cut the text.\n2. Pack it. Count.") == [
        "1. Cut the text.",
        "2. Pack it.",
        "Count.",
    ]


@given(st.text(alphabet="aB.?! $[@]{}\\;\n(”é…", max_size=200))
def test_nothing_but_white_space_is_lost_between_sentences(text):
    found = split_sentences(text)
    assert "".join("".join(found).split()) == "".join(text.split())
    assert all(sentence == sentence.strip() and sentence for sentence in found)
    assert len(mask(text)) == len(text)


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
