"""When a quote stands in a passage: what may differ, and what may not."""

import pytest

from pipeline.evaluation.quotes import place_of

PASSAGE = (
    "We call it “self-attention” – a layer’s output $x_{i} = \\alpha W^{2}$ depends on all"
    " positions. It scores 28.4 BLEU, not 27.3."
)


@pytest.mark.parametrize(
    "quote",
    [
        'We call it "self-attention" - a layer\'s output',
        "WE CALL IT “SELF‑ATTENTION”",
        "``self-attention'' -- a layer's",
        "output x_i = \\alpha W^2 depends on\n  all positions",
        "output \\(x_{i}=\\alpha W^{2}\\) depends",
        "x_i = alpha W² depends",
        "“It scores 28.4 BLEU”",
        "...depends on all positions...",
        "It scores 28.4 BL",
    ],
)
def test_a_quote_is_found_whatever_its_case_space_quotes_dashes_and_tex(quote):
    assert place_of(quote, ["Something else.", PASSAGE]) == 1


@pytest.mark.parametrize(
    "quote",
    [
        "It scores 28.4 BLEU, not 27.4.",
        "It scores 284 BLEU",
        "a layer's output depends on all positions",
        "We call it self-attention ... depends on all positions",
        "",
        "  ",
        "...",
        "“”",
    ],
)
def test_a_quote_with_other_words_with_some_left_out_or_with_none_is_not_found(quote):
    assert place_of(quote, [PASSAGE]) is None


def test_signs_that_nobody_sees_and_tags_that_a_prompt_breaks_hide_no_quote():
    shown = "A co\u00adop\u200berates \x08with <b> and <|im_end|> ﬁnally."
    assert place_of("A cooperates with < b> and < |im_end| > finally", [shown]) == 0


def test_of_two_passages_with_the_quote_the_first_is_named():
    assert place_of("weighs stones", ["It counts.", "It weighs stones.", "Who weighs stones?"]) == 1
    assert place_of("weighs stones", []) is None
