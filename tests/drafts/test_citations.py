"""Citing sentences beside the nearest sentence of the cited paper: numbers, quotes, a model's verdict."""

import pytest

from drafts.citations import CitationCase, judge_by_model, show_nearest, with_numbers
from drafts.draft import DraftSentence
from drafts.numbers import numbers_of
from pipeline.evaluation.claim_judge import ClaimFinding
from pipeline.evaluation.passages import EvidencePassage
from tests.cases import cases, cases_beside

TABLE = "Recall of both rankings.\n| ranking | recall | time |\n| --- | --- | --- |\n| BM25 | 0.52 | 12 ms |\n| fused | 0.69 | 31 ms |"
TEXTS = (
    "We hold 1,200 questions by 31 students. They were written in 2023.",
    TABLE,
    "The model has seven layers and 2.1M weights, and is 3.5 times as fast.",
)


@cases("drafts/numbers.toml", "read")
def test_quantities_are_read_with_their_units(case):
    text, *expected = case
    numbers = [number for number in numbers_of(text) if number.is_quantity]
    assert [f"{number.value:g} {number.unit}".strip() for number in numbers] == expected


@cases("drafts/numbers.toml", "agree")
def test_numbers_agree_that_are_one_or_are_rounded(case):
    ours, theirs, agree = case
    (number,), (other,) = numbers_of(ours), numbers_of(theirs)
    assert number.agrees(other) == agree


def case_of(text, extent="full text"):
    sentence = DraftSentence(f"{text} [@k]", ("k",), "draft.md", 1, 0)
    passages = tuple(EvidencePassage(shown, place) for place, shown in enumerate(TEXTS))
    return CitationCase("k", sentence, text, "2401.00001", "Title", passages, extent)


def nearest(case):
    (check,) = show_nearest(list(with_numbers([case], {"2401.00001": case.passages})))
    return check


@cases_beside("claim", "verdict", "ours", "theirs", "quote")
def test_a_number_that_is_nowhere_in_the_paper_is_shown_with_that_of_the_nearest_sentence(
    claim, verdict, ours, theirs, quote
):
    check = nearest(case_of(claim))
    assert (check.verdict, check.ours, check.theirs) == (verdict, ours, theirs)
    assert check.quote.startswith(quote)
    assert any(line in text for line in check.quote.splitlines() for text in TEXTS)


@pytest.mark.parametrize("extent", ["abstract", "part of the text"])
def test_without_the_full_text_no_number_is_said_to_be_missing(extent):
    assert nearest(case_of("They hold 1,400 questions.", extent)).verdict == "read"


def test_a_model_decides_and_needs_a_quote_of_the_paper_to_support():
    case = case_of("They hold 1,400 questions.")
    shown = nearest(case)
    quoted = judge_by_model(case, shown, ClaimFinding("not", "31 ms", 1))
    assert (quoted.verdict, quoted.quote, quoted.ours) == ("not_supported", "31 ms", "1,400")
    assert "1,400 is nowhere" in quoted.reason
    invented = judge_by_model(case, shown, ClaimFinding("supported", "It holds 1,400 questions."))
    assert (invented.verdict, invented.quote) == ("partly", shown.quote)
    contradicted = ClaimFinding("contradicted", "31 ms")
    assert judge_by_model(case, shown, contradicted).verdict == "not_supported"
    assert judge_by_model(case, shown, contradicted._replace(place=1)).verdict == "contradicted"
