"""Pages made to break a parser: each is parsed or refused, and none takes quadratic time."""

from time import process_time

import pytest

from pipeline.corpus.parse.html import parse
from pipeline.corpus.parse.parsed_page import PageError
from tests.unit.corpus.building import note, only_block, page, para

pytestmark = pytest.mark.slow

MANY = 100_000

DEEP = {
    "500,000 open": "<div>" * 500_000,
    "closed": "<div>" * MANY + "</div>" * MANY,
    "wrongly closed": "<div></b>" * MANY,
    "formatting": "<b></div>" * MANY,
    "tables": "<table><td>" * MANY,
    "formulas": "<math " * MANY,
    "formulas with no end": '<math alttext="x">' * MANY,
}


@pytest.mark.parametrize("name", DEEP)
def test_elements_nested_beyond_reason_are_refused(name):
    with pytest.raises(PageError) as caught:
        parse(page(para("Words.") + DEEP[name]))
    assert caught.value.reason == "too_deep"


NAMES = " ".join(f"a{place}" for place in range(MANY))
ROW = '<tr><td colspan="999" rowspan="999"></td></tr>'
LONG = {
    "attributes": f"<div {NAMES}>x</div>",
    "attributes of an irregular page": f"<p><div {NAMES}>x</div>",
    "a class": f'<span class="{"ltx_text " * MANY}">x</span>',
    "brackets": "<" * MANY,
    "ends of tags": ">" * MANY,
    "references": "&amp;lt;" * MANY,
    "comments": "<!--" * MANY,
    "scripts": "<script>" * MANY,
    "formulas in formulas": '<math alttext="x">' * MANY + "</math>" * MANY,
    "citations": f'<cite class="ltx_cite">{"[(" * MANY}<a href="#b">1</a></cite>',
    "spans of cells": f'<table class="ltx_tabular">{ROW * 2_000}</table>',
}


def parse_within_a_minute(content):
    """The page, parsed in linear time: in processor time, which a busy machine does not change."""
    started = process_time()
    paper = parse(content)
    assert process_time() - started < 60
    return paper


@pytest.mark.parametrize("name", LONG)
def test_a_page_of_one_thing_is_read(name):
    paper = parse_within_a_minute(page(para("Words.") + LONG[name]))
    assert paper.blocks[0].text == "Words."


def test_footnotes_in_a_row_are_read():
    paper = parse_within_a_minute(page(para("Words" + note("x") * 30_000 + ".")))
    assert (paper.blocks[0].text, len(paper.blocks)) == ("Words.", 30_001)


@pytest.mark.parametrize(
    "content",
    [
        page(para("Wörds.")).decode().encode("utf-16"),
        b"\xfe\xff" + page(para("Wörds.")).decode().encode("utf-16-be"),
        b"\xef\xbb\xbf" + page(para("Wörds.")),
        b'<?xml version="1.0"?>' + page('<div class="ltx_date"/>' + para("Wörds.")),
        page(para("W\0ö\7r\x08d&#1;s.")),
        page(para("W&#246;rds.<!-- </p> -->")),
        page(para("W&ouml;rds.<script>if (a < b) '</p>'</script>")),
        page('<P CLASS="ltx_p">W&ouml;rds.</P>'),
        b"<html><body><p class=ltx_p>W&ouml;rds.",
    ],
)
def test_a_page_in_other_clothes_says_the_same(content):
    assert only_block(parse(content)).text == "Wörds."
