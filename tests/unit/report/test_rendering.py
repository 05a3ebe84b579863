"""Formulas in texts of papers, citations as pieces of a text, and sentences where they stand in it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from selectolax.lexbor import LexborHTMLParser

from pipeline.evaluation.prose import Piece, paragraphs, printable
from pipeline.related_work.summary import split_sentences
from pipeline.report.formatting import at_quote, passage_link
from pipeline.report.rendering import render_formulas
from pipeline.report.written import Run, lay_out
from tests.cases import cases
from tests.unit.evaluation.hostile import HOSTILE

CASES = "unit/report/cases.toml"


def test_a_formula_becomes_mathml_between_escaped_text():
    html = render_formulas("so that $n \\leq k^2$ <b>holds</b>")
    parsed = LexborHTMLParser(str(html))
    assert parsed.css_first("math msup").text() == "k2"
    assert parsed.css("b") == []
    assert html.startswith("so that <math>")
    assert html.endswith(" &lt;b&gt;holds&lt;/b&gt;")


def test_a_display_formula_is_set_as_a_block():
    parsed = LexborHTMLParser(str(render_formulas("so $$s = \\sum_i r_i$$ (1)")))
    assert parsed.css_first("math[display=block] munder, math[display=block] msub") is not None
    assert "$" not in parsed.body.text()


@cases(CASES, "formulas", ["text", "formulas"])
def test_formulas_end_where_the_paper_ends_them(text, formulas):
    parsed = LexborHTMLParser(str(render_formulas(text)))
    shown = [formula.text().replace("\xa0", " ") for formula in parsed.css("math")]
    assert shown == formulas


@cases(CASES, "money")
def test_money_stays_text(case):
    assert render_formulas(case) == case


@cases(CASES, "tex_shown_as_code")
def test_tex_that_cannot_be_converted_is_shown_as_code(case):
    parsed = LexborHTMLParser(str(render_formulas(f"where ${case}$ is")))
    assert parsed.css_first("code.tex").text() == f"${case}$"


@pytest.mark.parametrize(
    "tex",
    [
        "\\text{<script>alert(1)</script>}",
        "\\href{javascript:alert(1)}{x}",
        "\\mathrm{&lt;img src=x onerror=alert(1)&gt;}",
        "\\style{background:url(//evil.example)}{x}",
        "\\class{x}{y}",
        *HOSTILE,
    ],
)
def test_tex_cannot_bring_markup_into_a_page(tex):
    parsed = LexborHTMLParser(f"<main>{render_formulas(f'a ${tex}$ b')}</main>")
    main = parsed.css_first("main")
    active = "script, img, svg, iframe, a, style, form, input, object, embed"
    assert main.css(f"{active}, [href], [style], [src]") == []
    names = {name for node in main.traverse(include_text=False) for name in node.attributes}
    assert not [name for name in names if name.startswith("on")]


@given(st.text(alphabet="ab$\\{}^_<>&\"' 1frac", max_size=60))
def test_any_text_can_be_rendered_and_nothing_of_it_becomes_an_element_of_html(text):
    parsed = LexborHTMLParser(f"<main>{render_formulas(text)}</main>")
    html_elements = {"a", "b", "i", "script", "img", "f"}
    assert not [
        node.tag for node in parsed.css_first("main").traverse() if node.tag in html_elements
    ]


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


@cases(CASES, "pieces", ["text", "pieces"])
def test_a_citation_is_a_piece_of_its_own(text, pieces):
    assert paragraphs(text, {1, 2}) == [[Piece(*piece) for piece in pieces]]


def test_what_is_too_long_for_a_number_is_text():
    text = f"[Reference {'9' * 5000}]"
    assert paragraphs(text, {1, 2}) == [[Piece(text)]]


def test_blank_lines_part_paragraphs_and_nothing_else_does():
    assert [p[0].text for p in paragraphs("one\ntwo\n \n\nthree", ())] == ["one\ntwo", "three"]


def test_control_signs_are_shown_not_passed_on():
    assert printable("a\x00b\x1b[31m\r\nc\td") == "a�b�[31m\nc\td"
