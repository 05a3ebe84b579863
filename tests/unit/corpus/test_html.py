"""The fast parser on hand-written pages: each policy, and pages that are broken."""

import re

import pytest

from pipeline.corpus.parse import reference
from pipeline.corpus.parse.html import parse
from pipeline.corpus.parse.parsed_page import PageError
from tests.cases import agrees, cases
from tests.unit.corpus.building import math, note, only_block, page, para, section

INPUTS = {"html", "paragraph", "heading", "metadata_authors", "all_losses"}
SHORT_FORMS = {"para": para, "methods": section, "note": note}


def written_out(text):
    """The HTML of a case, with LaTeXML's markup for its short forms."""
    text = re.sub(r"<tex>(.*?)</tex>", lambda formula: math(formula[1]), text, flags=re.DOTALL)
    for name, write in SHORT_FORMS.items():
        opening, closing = write("|").split("|")
        text = text.replace(f"<{name}>", opening).replace(f"</{name}>", closing)
    return text


@cases("unit/corpus/pages.toml")
def test_a_page_is_read(case):
    bodies = case["html"] if "html" in case else para(case["paragraph"])
    for body in bodies if isinstance(bodies, list) else [bodies]:
        content = page(written_out(body), written_out(case.get("heading", "A Page")))
        paper = parse(content, case.get("metadata_authors", ()))
        for name in case.keys() - INPUTS:
            assert agrees(expected(case, name), getattr(paper, name)), getattr(paper, name)
        assert paper.chars_kept == sum(paper.kept.values())
        if "all_losses" in case:
            assert paper.losses == case["all_losses"]
            assert paper.chars_seen == paper.chars_kept + sum(paper.losses.values())


def expected(case, name):
    """The value of a field; a block may be its text alone."""
    if name != "blocks":
        return case[name]
    return [{"text": block} if isinstance(block, str) else block for block in case[name]]


# Pages that are broken


def test_a_page_cut_off_is_marked():
    whole = page(section(para("One.") + para("Two.", "S1.p2")))
    cut = parse(whole[: whole.index(b"Two") + 2])
    assert (parse(whole).truncated, cut.truncated) == (False, True)
    assert [block.text for block in cut.blocks] == ["One.", "Tw"]
    whole = page(para("One.") + para(f"Let {math('x')} be.", "p2"))
    cut = parse(whole[: whole.index(b"<annotation-xml")])
    assert cut.truncated
    assert [block.text for block in cut.blocks] == ["One.", "Let $x$"]


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "not_html"),
        (b"%PDF-1.5 \x00\xff", "not_html"),
        (b"<html></html>", "no_text"),
        (page(""), "no_text"),
        (b"<html><body><h1>404 Not Found</h1></body></html>", "no_text"),
        (b"<html><body><main><b>Words.</b></main></body></html>", "no_text"),
    ],
)
def test_what_is_no_page_says_why(content, reason):
    for parse_page in (parse, reference.parse):
        with pytest.raises(PageError) as caught:
            parse_page(content)
        assert caught.value.reason == reason


def test_bytes_that_are_no_utf8_are_replaced():
    assert "\ufffd" in only_block(parse(page(para("W@rds.")).replace(b"@", b"\xff"))).text
