"""The fast parser: one walk over a light tree of the page, in document order.

Here: the steps from bytes to the parsed page, and which handler each kind of element has.
"""

from __future__ import annotations

import gc
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace

from pipeline.corpus.parse import policies
from pipeline.corpus.parse.assembly import assemble
from pipeline.corpus.parse.browser import browse
from pipeline.corpus.parse.findings import Findings
from pipeline.corpus.parse.parsed_page import PageError, ParsedPage
from pipeline.corpus.parse.policies import LINE
from pipeline.corpus.parse.source import (
    PageSource,
    as_utf8,
    is_html,
    read_source,
    without_raw,
    without_site,
)
from pipeline.corpus.parse.tree import Irregular, Node, grow
from pipeline.corpus.parse.walk import blocks, inline, sections
from pipeline.corpus.parse.walk.state import Handler, TextBuffer, Walk

_SECTION = re.compile(rb"""<section|class="ltx_section""")
# Front matter of real pages has 2 to 40 KB; a page without sections has none that could be told
# from its text.
_LONGEST_FRONT = 200_000


def parse(html: bytes, authors: Sequence[str] = ()) -> ParsedPage:
    """The paper that a page of the dump holds. Raises PageError for what is no page, or holds no
    text.

    `authors` are the paper's authors as arXiv's metadata names them. Without them, names are those
    on the first line of a byline, and a page without a byline has no authors.
    """
    page = without_site(as_utf8(html))
    if not is_html(page):
        raise PageError("not_html", "no <html>, <body> or <article> in its first 4,096 bytes")
    with _cycle_collector_off():
        source, findings = _read(page)
        first = findings.blocks[0] if findings.blocks else None
        # A byline, or parts of one, may be in paragraphs before the first section.
        if not findings.bylines or (first is not None and not first.section_path):
            findings.front = _read_front(page)
        return assemble(findings, html, authors, errors=source.errors, truncated=source.truncated)


def _read(page: bytes) -> tuple[PageSource, Findings]:
    """The source of a page, and the findings of the walk over it.

    The tree ends with this call: or else the search for cycles that is due after it takes 4 % of
    the time.
    """
    source, body, text = _tree_of(page)
    try:
        findings = Walk(_HANDLERS).page(body)
    except RecursionError:
        raise PageError("too_deep", "its elements nest deeper than the parser follows") from None
    findings.formulas += len(source.formulas)
    findings.seen += policies.visible(text) + policies.visible("".join(source.formulas))
    return source, findings


def _read_front(page: bytes) -> list[str]:
    """The paragraphs before the first section, each with the marks of a byline among its text.

    Authors whose class LaTeXML does not know at all are in such paragraphs.
    """
    start = max(0, page.find(b"<body"))
    section = _SECTION.search(page, start)
    end = section.start() if section else start + _LONGEST_FRONT
    if end - start > _LONGEST_FRONT:
        return []
    try:
        body, _ = grow(replace(read_source(page[start:end]), truncated=True))
    except Irregular:
        return []
    walk = Walk(_HANDLERS)
    return [
        policies.as_formulas(walk.gather(node, TextBuffer(marks=True, breaks=LINE)).raw)
        for node in _paragraphs(body)
    ]


def _paragraphs(node: Node) -> Iterator[Node]:
    for child in node.elements():
        if child.tag_type.kind in ("para", "p"):
            yield child
        elif child.tag_type.kind in ("", "box"):
            yield from _paragraphs(child)


@contextmanager
def _cycle_collector_off() -> Iterator[None]:
    """Switch the cycle collector off: it takes 15 % of the time, and nodes have no cycles."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def _tree_of(page: bytes) -> tuple[PageSource, Node, str]:
    """A page's source, tree, and text without formulas. Raises PageError without a tree."""
    source = read_source(page)
    with suppress(Irregular):
        return source, *grow(source)
    plainer = read_source(without_raw(page), nested=True)
    if plainer.text != source.text:
        with suppress(Irregular):
            return plainer, *grow(plainer)
    return plainer, *browse(plainer)


_HANDLERS: dict[str, Handler] = {
    "": Walk.flow,
    "drop": inline.lose,
    "lose": inline.lose,
    "white": inline.white,
    "bib": blocks.bibliography_field,
    "para": blocks.para,
    "p": blocks.p,
    "box": blocks.box,
    "textbox": blocks.textbox,
    "picture": blocks.picture,
    "break": inline.line_break,
    "math": inline.math,
    "annotation": Walk.flow,
    "cite": inline.cite,
    "note": inline.note,
    "link": inline.link,
    "superscript": inline.superscript,
    "subscript": inline.subscript,
    "raised": inline.moved,
    "lowered": inline.moved,
    "emphasis": inline.emphasis,
    "tag": inline.tag,
    "line_number": inline.line_number,
    "equation": blocks.equation,
    "list": blocks.list_block,
    "theorem": blocks.theorem,
    "listing": blocks.listing,
    "line": blocks.line,
    "float": blocks.float_block,
    "caption": blocks.caption,
    "tabular": blocks.tabular,
    "section": sections.section,
    "heading": sections.heading,
    "acknowledgements": sections.acknowledgements,
    "title": sections.document_title,
    "subtitle": sections.subtitle,
    "abstract": sections.abstract,
    "authors": sections.authors,
    "creator": sections.creator,
    "personname": sections.personname,
    "contact": sections.contact,
    "address_part": sections.address_part,
    "author_notes": sections.author_notes,
    "bibliography": blocks.bibliography,
    "bibitem": blocks.bibitem,
    "bibblock": blocks.bibblock,
}
