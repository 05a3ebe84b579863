"""Sentences where they stand in their section, and what was found of their citations."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.related_work.summary import split_sentences
from pipeline.report.formatting import at_quote, passage_link
from pipeline.report.written import Run, lay_out
from tests.cases import cases

CASES = "unit/report/cases.toml"
TEXT = "One says [Reference 1]. Two\nsays more.\n\n* A list\n* of things [Reference 2]."


def laid(text, sentences):
    return lay_out(text, [(sentence, ()) for sentence in sentences], {1, 2})


def shown(runs):
    return "".join(piece.text for run in runs for piece in run.pieces)


def places(*paragraphs):
    return [run.place for runs in paragraphs for run in runs if run.place]


@pytest.mark.parametrize(
    ("sentences", "in_first", "in_second"),
    [
        (split_sentences(TEXT), [1, 2], [3]),
        (["One says [Reference 1].", "Nobody wrote this.", "Two says more."], [1, 3], []),
        ([], [], []),
    ],
)
def test_sentences_stand_in_their_paragraphs_with_line_breaks_kept(sentences, in_first, in_second):
    first, second = laid(TEXT, sentences)
    assert (places(first), places(second)) == (in_first, in_second)
    assert shown(first) == "One says [Reference 1]. Two\nsays more."
    assert shown(second) == "* A list\n* of things [Reference 2]."


@given(st.text(alphabet="AB. \n[]Reference12\x00é", max_size=160))
def test_no_text_is_lost_and_no_sentence_is_shown_twice(text):
    paragraphs = laid(text, split_sentences(text))
    joined = "".join(shown(runs) for runs in paragraphs)
    assert "".join(joined.split()) == "".join(
        text.replace("\x00", "\N{REPLACEMENT CHARACTER}").split()
    )
    assert places(*paragraphs) == sorted(set(places(*paragraphs)))


@cases(CASES, "verdicts_of_a_sentence", ("verdicts", "come_to"))
def test_a_sentence_is_supported_where_all_its_judged_citations_are(verdicts, come_to):
    rows = [{"verdict": None if verdict == "unjudged" else verdict} for verdict in verdicts]
    assert Run([], 1, rows).verdict == come_to


def test_a_quote_is_found_apart_from_white_space_and_case():
    text = "Before. The very\nWORDS  of it. After."
    parts = "Before. ", "The very\nWORDS  of it", ". After."
    assert at_quote(text, "the very words of it") == parts
    assert at_quote(text, "never written") == at_quote(text, None) == (text, "", "")


def test_a_passage_of_an_old_paper_leads_to_ar5iv_and_one_without_a_paper_nowhere():
    assert passage_link("1706.03762", "S1") == "https://ar5iv.labs.arxiv.org/html/1706.03762#S1"
    assert passage_link(None, "S1") == ""


@cases(CASES, "anchors")
def test_an_anchor_never_leads_off_its_page(case):
    url = passage_link("2401.00001", case)
    assert url.startswith("https://arxiv.org/html/2401.00001#")
    assert not set(url) & set("\"<> '")
