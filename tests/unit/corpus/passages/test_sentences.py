"""Where sentences end: hand-checked text of the sample papers and hard cases, and what no cut may
fall into.

`sentences.txt` holds a sentence on each line and a paragraph between empty lines. From "We follow
Smith" on, the sentences were written as hard cases; those before are of `examples/papers`.
"""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.corpus.passages.sentences import mask, split_sentences
from tests.cases import cases

CHECKED = Path(__file__).with_name("sentences.txt").read_text().strip()
PARAGRAPHS = [paragraph.split("\n") for paragraph in CHECKED.split("\n\n")]


@pytest.mark.parametrize("paragraph", PARAGRAPHS, ids=lambda paragraph: paragraph[0][:40])
def test_the_sentences_of_a_checked_paragraph_are_found(paragraph):
    assert split_sentences(" ".join(paragraph)) == paragraph


def test_the_checked_paragraphs_have_more_than_150_boundaries():
    assert sum(len(paragraph) - 1 for paragraph in PARAGRAPHS) > 150


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


def test_a_text_that_only_opens_brackets_is_read_to_its_end():
    """Patterns that try every way to part such a text would take years."""
    for sign in ("$", "{", "${", "[@", "$$", ". [@a]", "\\", "A. ", "( ", "$$a ", "$\\", "${a "):
        assert "".join(split_sentences(sign * 20_000)).replace(" ", "") == (sign * 20_000).replace(
            " ", ""
        )


@given(st.text(alphabet="aB.?! $[@]{}\\;\n(”é…", max_size=200))
def test_nothing_but_white_space_is_lost_between_sentences(text):
    found = split_sentences(text)
    assert "".join("".join(found).split()) == "".join(text.split())
    assert all(sentence == sentence.strip() and sentence for sentence in found)
    assert len(mask(text)) == len(text)
