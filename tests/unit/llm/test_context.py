"""Token estimates, and cutting text to fit."""

from __future__ import annotations

from pipeline.llm.context import count_tokens, fit

PAPER = (
    "# Title\n\n## Abstract\n\nShort one.\n\n## One\n\n" + "Word after word. " * 40 + "\n\n## Two\n\n" + "More. " * 60
)


def test_a_text_that_fits_is_left_alone() -> None:
    assert fit(PAPER, 10_000).text == PAPER
    assert not fit(PAPER, 10_000).cut


def test_a_long_text_is_cut_at_a_sections_end() -> None:
    found = fit(PAPER, count_tokens(PAPER) - 20)
    assert found.cut
    assert found.text == PAPER.partition("\n\n## Two")[0]


def test_where_sections_would_leave_the_room_empty_it_is_cut_at_a_sentence() -> None:
    found = fit(PAPER, 120)
    assert found.cut
    assert found.text.endswith("word.")
    assert 60 <= count_tokens(found.text) <= 120


def test_no_cut_is_longer_than_asked() -> None:
    for tokens in range(0, 300, 7):
        assert count_tokens(fit(PAPER, tokens).text) <= tokens


def test_numbers_and_formulas_count_more_than_words() -> None:
    assert count_tokens("3.14159") > count_tokens("retrieval")
    assert count_tokens(r"$\alpha_{i}$") >= 7
    assert count_tokens("") == 0
