"""Formulas in texts of papers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from selectolax.lexbor import LexborHTMLParser

from pipeline.report.rendering import render_formulas
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
