"""Sentences where they stand in their section, and what was found of their citations."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.related_work.summary import split_sentences
from pipeline.report.task_page import JudgedSentence, excerpt, judged_citation, lay_out
from tests.cases import cases

TEXT = "One says [Reference 1]. Two\nsays more.\n\n* A list\n* of things [Reference 2]."


def laid(text, found):
    sentences = [JudgedSentence(place, words) for place, words in enumerate(found, 1)]
    return lay_out(text, sentences, {1, 2})


def shown(runs):
    return "".join(piece.text for run in runs for piece in run.pieces)


def places(*paragraphs):
    return [run.sentence.place for runs in paragraphs for run in runs if run.sentence]


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


@cases(
    "unit/report/cases.toml",
    "a_sentence_is_supported_where_all_its_judged_citations_are",
    ("verdicts", "come_to"),
)
def test_a_sentence_is_supported_where_all_its_judged_citations_are(verdicts, come_to):
    citations = [judged_citation(support(verdict=verdict), {}) for verdict in verdicts]
    assert JudgedSentence(1, "One.", citations).verdict == come_to


def support(**changed):
    passages = [
        {"passage_id": "p", "anchor": "S3.p2", "text": "Before. The very\nWORDS  of it. After."},
        {"passage_id": "q", "anchor": "abstract", "text": "Another."},
    ]
    row = {
        "sentence": 1,
        "number": 1,
        "arxiv_id": "2401.00001",
        "source": "full_text",
        "verdict": "supported",
        "unjudged": None,
        "quote": "the very words of it",
        "quote_found": True,
        "passages": passages,
        "quoted": 0,
        "judge": "j",
    }
    return row | changed


def test_the_quote_is_marked_in_its_passage_which_leads_to_its_place():
    view = judged_citation(support(), {1: "A Study"})
    first, second = view.passages
    assert (first.before, first.quote, first.after) == (
        "Before. ",
        "The very\nWORDS  of it",
        ". After.",
    )
    assert first.url == "https://arxiv.org/html/2401.00001#S3.p2"
    assert second.quote == ""
    assert second.url == "https://arxiv.org/html/2401.00001"
    assert view.title == "A Study"


def test_a_quote_that_stands_nowhere_is_shown_and_said_so():
    view = judged_citation(
        support(quote="never written", quote_found=False, quoted=None), {1: "A Study"}
    )
    assert view.row["quote"] == "never written"
    assert not any(passage.quote for passage in view.passages)


def test_a_citation_out_of_range_has_no_title_and_says_why():
    row = support(
        number=9, arxiv_id=None, verdict=None, unjudged="out_of_range", passages=None, quote=None
    )
    view = judged_citation(
        row | {"quote_found": None, "source": None, "judge": None}, {1: "A Study"}
    )
    assert (view.title, view.verdict, view.passages) == ("", "unjudged", [])


def test_a_passage_of_an_old_paper_leads_to_ar5iv_and_one_without_a_paper_nowhere():
    assert excerpt("t", "1706.03762", "S1").url == "https://ar5iv.labs.arxiv.org/html/1706.03762#S1"
    assert excerpt("t", None, "S1").url == ""


@pytest.mark.parametrize("anchor", ['"><script>', "javascript:alert(1)", "a b", "../../x"])
def test_an_anchor_never_leads_off_its_page(anchor):
    url = excerpt("t", "2401.00001", anchor).url
    assert url.startswith("https://arxiv.org/html/2401.00001#")
    assert not set(url) & set("\"<> '")
