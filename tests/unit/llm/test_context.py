"""Token estimates, cutting text to fit, and sharing room among texts."""

import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.llm.context import Cut, count_tokens, cut_to_share, first_that_fit, fit, shares
from tests.cases import cases_beside

PAPER = (
    "# Title\n\n## Abstract\n\nShort one.\n\n## One\n\n"
    + "Word after word. " * 40
    + "\n\n## Two\n\n"
    + "More. " * 60
)


def test_a_long_text_is_cut_at_a_sections_end():
    found = fit(PAPER, count_tokens(PAPER) - 20)
    assert found == Cut(PAPER.partition("\n\n## Two")[0], True)


def test_where_sections_would_leave_the_room_empty_it_is_cut_at_a_sentence():
    found = fit(PAPER, 120).text
    assert found.endswith("word.")
    assert 60 <= count_tokens(found) <= 120


def counted_one_by_one(text):
    """The estimate as it is meant, piece by piece: up to seven letters, a digit, a sign, 0.7 of a
    byte beyond ASCII.
    """
    pieces = re.findall(r"[A-Za-z]{1,7}|[^\sA-Za-z]", text)
    return 1.1 * sum(1 if piece.isascii() else 0.7 * len(piece.encode()) for piece in pieces)


TEXTS = st.text(
    st.sampled_from("abXYZ  \n.,$\\{}_^19é\u2003\xa0\x85\x1c\x01\u6f22\U0001f600#"), max_size=200
)


@given(TEXTS)
def test_every_piece_counts(text):
    assert count_tokens(text) == pytest.approx(math.ceil(counted_one_by_one(text)), abs=1)


@given(st.lists(TEXTS, max_size=8), st.integers(0, 200))
def test_what_is_kept_is_a_beginning_that_fits_whatever_the_text(parts, tokens):
    text = "\n\n## S\n\n".join(parts)
    found = fit(text, tokens)
    assert text.startswith(found.text)
    assert count_tokens(found.text) <= tokens
    assert found.cut == (found.text != text) == (count_tokens(text) > tokens)


@cases_beside("lengths", "tokens", "parts")
def test_short_texts_stay_whole_and_long_ones_share_what_is_left(lengths, tokens, parts):
    assert shares(lengths, tokens) == parts


def test_texts_share_the_room_and_the_longest_is_cut_first():
    texts = ["short one", "word " * 200, "word " * 400]
    shown, cut = cut_to_share(texts, 300)
    assert (shown[0], cut) == ("short one", True)
    assert sum(map(count_tokens, shown)) <= 300
    assert abs(count_tokens(shown[1]) - count_tokens(shown[2])) <= 4
    assert cut_to_share(["a", "b"], 300) == (["a", "b"], False)


def test_the_first_lines_that_fit_are_shown_and_one_at_any_rate():
    assert first_that_fit(["one", "two", "word " * 50], 10) == ["one", "two"]
    (cut,) = first_that_fit(["word " * 50], 10)
    assert 0 < count_tokens(cut) <= 10
    assert first_that_fit([], 10) == []
