"""Rubbish in, account out: pages made to break a parser, and mutated ones, are parsed or refused, and none
takes quadratic time.
"""

import random
import re
import time
from time import process_time

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pipeline.corpus.parse import html
from pipeline.corpus.parse.html import parse
from pipeline.corpus.parse.parsed_page import PageError
from pipeline.corpus.passages.packing import pack
from pipeline.corpus.stages import PAGE_SECONDS
from pipeline.settings import SAMPLE_DUMP
from tests.cases import read_cases
from tests.conftest import SHARED_DATA
from tests.unit.corpus.building import note, only_block, page, pages_of, para

pytestmark = pytest.mark.slow

BLOCK_KINDS = {"paragraph", "list", "table", "caption", "theorem", "algorithm", "footnote"}
PAGE_REASONS = {"not_html", "no_text", "too_deep", "failed_conversion"}
# Marks that the parser sets among the pieces of a text; none may come out.
OWN_MARKS = {chr(code) for code in (*range(9), *range(14, 20))}
# Every case reads a whole page: that is slow by hypothesis's measure, and large.
LENIENT = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example]


# The smallest of the real pages where they are at hand, else of the sample's: ten keep thousands of
# cases within minutes.
DUMPS = [folder for folder in (SHARED_DATA / "dump", SAMPLE_DUMP) if folder.is_dir()]
PAGES = sorted((content for _, content in pages_of(DUMPS[0])), key=len)[:10]
JUNK = (
    *(text.encode() for text in read_cases("unit/corpus/cases.toml")["junk_of_pages"]),
    *(b"\0", b"\1\2\3\6", b"\xff\xfe", b"\xed\xa0\x80", b"\xc3", b"<math "),
    *(b"<b><i></b></i>" * 20, b"<div>" * 300, b"<div a=1>" * 40 + b"</p>" * 40),
)
CLOSERS = (b"</p>", b"</div>", b"</span>", b"</td>", b"</section>", b"</math>")
QUOTES = (b"", b"'", b'""')
ENCODINGS = ("utf-16", "utf-16-le", "cp1252")
TAG = re.compile(rb"</?[a-zA-Z][^>]*>")


def junk(rng, content, at):
    return content[:at] + rng.choice(JUNK) + content[at:]


def cut(rng, content, at):
    return content[:at]


def delete(rng, content, at):
    return content[:at] + content[at + rng.randint(1, 5000) :]


def repeat(rng, content, at):
    repeated = content[at : at + rng.randint(1, 5000)] * rng.randint(2, 20)
    return content[:at] + repeated + content[at:]


def flip(rng, content, at):
    return content[:at] + rng.randbytes(1) + content[at + 1 :]


def other_tag(rng, content, at):
    old, new = TAG.search(content, at), TAG.search(content, rng.randint(0, len(content)))
    if old is None or new is None:
        return content
    return content[: old.start()] + new.group() + content[old.end() :]


def no_closers(rng, content, at):
    return content[:at] + content[at:].replace(rng.choice(CLOSERS), b"")


def other_quotes(rng, content, at):
    return content[:at] + content[at:].replace(b'"', rng.choice(QUOTES), rng.randint(1, 9))


def other_encoding(rng, content, at):
    return content.decode("utf-8", "replace").encode(rng.choice(ENCODINGS), "replace")


FAULTS = (
    junk,
    junk,
    junk,
    cut,
    delete,
    repeat,
    flip,
    other_tag,
    no_closers,
    other_quotes,
    other_encoding,
)


PAGE = st.integers(0, len(PAGES) - 1)
SEEDED = st.lists(st.tuples(st.sampled_from(FAULTS), st.integers(0, 2**32)), min_size=1, max_size=6)


def mutated(page, faults):
    """A page with some faults, each at a place that its seed chooses."""
    content = PAGES[page]
    for fault, seed in faults:
        rng = random.Random(seed)
        content = fault(rng, content, rng.randint(0, len(content)))
    return content


def parsed(content):
    """The paper, or the reason why there is none."""
    try:
        return html.parse(content)
    except PageError as error:
        return error.reason


def check_page(content):
    """A page becomes a paper whose account is right, or says why it cannot; its passages can be
    made.
    """
    # In a worker the kernel holds the limit; here no worker runs.
    started = time.process_time()
    paper = parsed(content)
    assert time.process_time() - started < PAGE_SECONDS
    if isinstance(paper, str):
        assert paper in PAGE_REASONS
        return
    assert {block.kind for block in paper.blocks} <= BLOCK_KINDS
    texts = [paper.title or "", paper.abstract or "", *(block.text for block in paper.blocks)]
    texts += [
        text
        for author in paper.authors
        for text in (author.name, *author.affiliations, *author.emails)
    ]
    texts += [section.title for section in paper.sections] + [
        item.raw for item in paper.bibliography
    ]
    assert [text for text in texts if OWN_MARKS & set(text)] == []
    assert "".join(texts).encode()  # a lone surrogate could not be written
    # Nothing vanishes without being counted. Text of bylines within bylines may be counted as lost
    # more than once, and an affiliation as kept for each of two authors.
    assert paper.chars_seen <= paper.chars_kept + sum(paper.losses.values())
    assert paper.chars_kept <= 1.3 * paper.chars_seen + 200
    row = paper.as_row() | {
        "arxiv_id": "2403.00001",
        "categories": ["cs.CL"],
        "year": 2024,
        "title": paper.title or "",
    }
    assert pack(row)


@settings(max_examples=100, suppress_health_check=LENIENT)
@given(PAGE, SEEDED)
def test_a_mutated_page_is_parsed_or_refused_with_a_reason(page, faults):
    check_page(mutated(page, faults))


@pytest.mark.faults
@settings(max_examples=5000, suppress_health_check=LENIENT)
@given(PAGE, SEEDED)
def test_five_thousand_mutated_pages_are_parsed_or_refused_with_a_reason(page, faults):
    check_page(mutated(page, faults))


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
