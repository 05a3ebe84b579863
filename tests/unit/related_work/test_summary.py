"""Sentences and citations of a section."""

import pytest

from pipeline.llm.messages import Spent
from pipeline.related_work.summary import (
    CITES_NOTHING,
    REPEATS_PROMPT,
    make_summary,
    named_faults,
    normalize,
    split_sentences,
)
from tests.cases import cases, cases_beside


@cases("unit/related_work/cases.toml", "other_spellings_of_a_citation", ["written", "exact"])
def test_other_spellings_of_a_citation_become_the_exact_one(written, exact):
    assert normalize(written) == (exact, int(written != exact))


def test_a_number_without_end_is_no_citation():
    assert normalize(f"(ref {'9' * 5000})") == (f"(ref {'9' * 5000})", 0)


def test_sentences_know_the_references_that_they_cite():
    text = (
        "Lanternfish [Reference 2] gains 8.1 points, cf. Tab. 2. Others [Reference 1] [Reference 2]"
        " do not. It ends."
    )
    summary = make_summary(text, {1, 2}, {}, Spent())
    assert [(sentence.text, sentence.references) for sentence in summary.sentences] == [
        ("Lanternfish [Reference 2] gains 8.1 points, cf. Tab. 2.", (2,)),
        ("Others [Reference 1] [Reference 2] do not.", (1, 2)),
        ("It ends.", ()),
    ]


@cases_beside("text", "sentences")
def test_text_is_split_into_sentences(text, sentences):
    assert split_sentences(text) == sentences


def test_the_trace_records_citations_out_of_range_and_references_left_out():
    summary = make_summary("A (ref 9) [2] [7]. B [Reference 1].", {1, 2}, {"rounds": []}, Spent())
    assert summary.trace["citations"] == {
        "respelt": 1,
        "bare": 1,
        "out_of_range": [9],
        "uncited": [2],
    }
    assert summary.sentences[0].references == ()
    assert "[Reference 9]" in summary.text
    empty = make_summary("  \n", {1}, {}, Spent())
    assert (empty.text, empty.sentences) == ("", ())


@cases("unit/related_work/cases.toml", "what_a_model_puts_around_a_section", "written")
def test_what_a_model_puts_around_a_section_is_taken_off_and_listed(written):
    summary = make_summary(written, {1}, {}, Spent())
    assert summary.text == "Early work [Reference 1] is slow."
    assert summary.trace["frame"]


@cases_beside("written")
def test_lines_of_the_section_stay(written):
    summary = make_summary(written, {1}, {}, Spent())
    assert (summary.text, "frame" in summary.trace) == (written, False)


@cases("unit/related_work/cases.toml", "bare_numbers_are_read_where", ["written", "cited"])
def test_bare_numbers_are_read_where_a_section_has_no_other_citations(written, cited):
    (sentence,) = make_summary(written, {1, 2, 3}, {}, Spent()).sentences
    assert list(sentence.references) == cited


@pytest.mark.parametrize(
    ("written", "faults"),
    [
        ("The method compares three kinds of graphs [Reference 1].", [REPEATS_PROMPT]),
        ("Graphs are compared there.", [CITES_NOTHING]),
        ("Graphs are compared there [Reference 1].", []),
    ],
)
def test_a_section_is_named_for_its_faults(written, faults):
    summary = make_summary(written, {1}, {}, Spent())
    shown = ["## Method\n\nThe method compares\nthree kinds of graphs. It is fast."]
    assert named_faults(summary, shown) == faults
