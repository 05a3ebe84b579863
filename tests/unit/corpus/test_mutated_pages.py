"""Rubbish in, account out: a mutated page never crashes the parser."""

import re
import time

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pipeline.corpus.parse import html
from pipeline.corpus.parse.parsed_page import PageError
from pipeline.corpus.passages.packing import pack
from pipeline.corpus.stages import PAGE_SECONDS
from pipeline.settings import SAMPLE_DUMP
from tests.cases import read_cases
from tests.conftest import SHARED_DATA
from tests.unit.corpus.building import pages_of

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


class Mutated:
    """A page with faults: (kind, place, size of the page after it) in the order in which they were
    put in.

    No dataclass: hypothesis would print the fields of one, and half a megabyte of HTML in a
    failure's report helps nobody.
    """

    def __init__(self, content, page, faults):
        self.content, self.page, self.faults = content, page, faults

    def __repr__(self):
        return (
            f"page {self.page} with"
            f" {', '.join(f'{name} at {at} ({size} bytes)' for name, at, size in self.faults)}"
        )


@st.composite
def mutated_pages(draw):
    """A page with one to six faults."""
    page = draw(st.integers(0, len(PAGES) - 1))
    content, faults = PAGES[page], []
    for _ in range(draw(st.integers(1, 6))):
        fault, at = draw(st.sampled_from(FAULTS)), draw(st.integers(0, len(content)))
        content = fault(draw, content, at)
        faults.append((fault.__name__, at, len(content)))
    return Mutated(content, page, faults)


def junk(draw, content, at):
    return content[:at] + draw(st.sampled_from(JUNK)) + content[at:]


def cut(draw, content, at):
    return content[:at]


def delete(draw, content, at):
    return content[:at] + content[at + draw(st.integers(1, 5000)) :]


def repeat(draw, content, at):
    return (
        content[:at]
        + content[at : at + draw(st.integers(1, 5000))] * draw(st.integers(2, 20))
        + content[at:]
    )


def flip(draw, content, at):
    return content[:at] + bytes([draw(st.integers(0, 255))]) + content[at + 1 :]


def other_tag(draw, content, at):
    old, new = TAG.search(content, at), TAG.search(content, draw(st.integers(0, len(content))))
    return (
        content
        if old is None or new is None
        else content[: old.start()] + new.group() + content[old.end() :]
    )


def no_closers(draw, content, at):
    return content[:at] + content[at:].replace(draw(st.sampled_from(CLOSERS)), b"")


def other_quotes(draw, content, at):
    return content[:at] + content[at:].replace(
        b'"', draw(st.sampled_from(QUOTES)), draw(st.integers(1, 9))
    )


def other_encoding(draw, content, at):
    return content.decode("utf-8", "replace").encode(draw(st.sampled_from(ENCODINGS)), "replace")


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


def parsed(content):
    """The paper, or the reason why there is none."""
    try:
        return html.parse(content)
    except PageError as error:
        return error.reason


def check_page(page):
    """A page becomes a paper whose account is right, or says why it cannot; its passages can be
    made.
    """
    # In a worker the kernel holds the limit; here no worker runs.
    started = time.process_time()
    paper = parsed(page.content)
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
@given(mutated_pages())
def test_a_mutated_page_is_parsed_or_refused_with_a_reason(page):
    check_page(page)


@pytest.mark.faults
@settings(max_examples=5000, suppress_health_check=LENIENT)
@given(mutated_pages())
def test_five_thousand_mutated_pages_are_parsed_or_refused_with_a_reason(page):
    check_page(page)
