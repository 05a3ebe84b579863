"""When a quote stands in a passage: what may differ, and what may not."""

from pipeline.evaluation.verdicts import place_of
from tests.cases import cases

CASES = "unit/evaluation/cases.toml"
PASSAGE = (
    "We call it “self-attention” – a layer’s output $x_{i} = \\alpha W^{2}$ depends on all"
    " positions. It scores 28.4 BLEU, not 27.3."
)


@cases(CASES, "quotes_found")
def test_a_quote_is_found_whatever_its_case_space_quotes_dashes_and_tex(case):
    assert place_of(case, ["Something else.", PASSAGE]) == 1


@cases(CASES, "quotes_absent")
def test_a_quote_with_other_words_with_some_left_out_or_with_none_is_not_found(case):
    assert place_of(case, [PASSAGE]) is None


def test_signs_that_nobody_sees_and_tags_that_a_prompt_breaks_hide_no_quote():
    shown = "A co\u00adop\u200berates \x08with <b> and <|im_end|> ﬁnally."
    assert place_of("A cooperates with < b> and < |im_end| > finally", [shown]) == 0


def test_of_two_passages_with_the_quote_the_first_is_named():
    assert place_of("weighs stones", ["It counts.", "It weighs stones.", "Who weighs stones?"]) == 1
    assert place_of("weighs stones", []) is None
