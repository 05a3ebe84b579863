"""The fast parser: one walk over a LaTeXML page in document order, on selectolax's lexbor tree.

Here: the way from bytes to a Paper, and which handler each kind of element has. Not here: the walk and its handlers
(`walk/`), what an element is (`kinds.py`), how its text is written (`policies.py`), names and affiliations
(`authors.py`), bibliography items (`bibliography.py`).
"""

from __future__ import annotations

import hashlib
from functools import lru_cache

from selectolax.lexbor import LexborHTMLParser, LexborNode

from pipeline.corpus import policies
from pipeline.corpus.authors import read_bylines
from pipeline.corpus.front_matter import find_abstract, without_empty
from pipeline.corpus.kinds import kind_of
from pipeline.corpus.paper import Block, PageError, Paper
from pipeline.corpus.walk import blocks, floats, front, inline, items, sections
from pipeline.corpus.walk.state import Handler, Walk


def parse(html: bytes) -> Paper:
    """The paper that a page of the dump holds. Raises PageError for what is no page, or holds no text."""
    if not policies.is_html(html):
        raise PageError("not_html", "no <html>, <body> or <article> in its first 4,096 bytes")
    body = LexborHTMLParser(_without_math_trees(policies.clean_bytes(html))).body
    if body is None:
        raise PageError("not_html", "no body")
    walk = Walk(_handler_of)
    try:
        walk.page(body)
    except RecursionError:
        raise PageError("too_deep", "its elements nest deeper than the parser follows") from None
    return _paper(walk, body, html)


def _without_math_trees(html: bytes) -> bytes:
    """The page with each formula reduced to its alttext.

    The trees below `math` are 16-96 % of a page's bytes and say the same TeX again; without them lexbor takes 2.7 ms
    instead of 13 ms for 2403.18886 (627 KB). A formula without `alttext="…"` stays as it is.
    """
    first, *rest = html.split(b"<math ")
    pieces = [first]
    for piece in rest:
        end = piece.find(b"</math>")
        start = piece.find(b'alttext="', 0, max(end, 0))
        if end < 0 or start < 0:
            pieces.append(b"<math " + piece)
            continue
        close = piece.find(b'"', start + 9)
        pieces += (b"<math ", piece[start : close + 1], b"></math>", piece[end + 7 :])
    return b"".join(pieces)


def _paper(walk: Walk, body: LexborNode, html: bytes) -> Paper:
    """What the walk found. Raises PageError where that is no text at all."""
    authors, notes, lost = read_bylines(walk.bylines, walk.institutes)
    walk.losses["author_mark"] += lost
    found = [Block("footnote", "authors", (), note) for note in notes] + walk.blocks
    abstract, headed = walk.abstract, walk.sections
    if abstract is None:
        abstract, headed, found = find_abstract(headed, found)
    headed = without_empty(headed, found)
    if not found and not abstract:
        raise PageError("no_text", "no paragraph, table, caption or abstract on the page")
    seen = policies.visible(body.text()) - walk.unseen_chars + walk.tex_chars
    losses = {name: count for name, count in sorted(walk.losses.items()) if count}
    return Paper(
        title=walk.title,
        authors=authors,
        abstract=abstract,
        sections=tuple(headed),
        blocks=tuple(found),
        bibliography=tuple(walk.items),
        paragraphs=sum(block.kind == "paragraph" for block in found),
        tables=walk.tables,
        figures=walk.figures,
        formulas=walk.formulas,
        chars_seen=seen,
        chars_kept=seen - sum(losses.values()),
        losses=losses,
        ltx_errors=policies.count_errors(html),
        missing_citations=walk.missing,
        truncated=policies.is_truncated(html),
        html_bytes=len(html),
        html_sha256=hashlib.sha256(html).hexdigest(),
    )


_HANDLERS: dict[str, Handler] = {
    "para": blocks.para,
    "p": blocks.p,
    "box": blocks.box,
    "break": inline.line_break,
    "math": inline.math,
    "cite": inline.cite,
    "note": inline.note,
    "link": inline.link,
    "mark": inline.mark,
    "emphasis": inline.emphasis,
    "tag": inline.tag,
    "unseen": inline.skip,
    "equation": blocks.equation,
    "list": blocks.list_block,
    "theorem": blocks.theorem,
    "listing": blocks.listing,
    "line": blocks.line,
    "float": floats.float_block,
    "caption": floats.caption,
    "tabular": floats.tabular,
    "section": sections.section,
    "heading": sections.heading,
    "acknowledgements": sections.acknowledgements,
    "title": sections.document_title,
    "abstract": sections.abstract,
    "authors": front.authors,
    "creator": front.creator,
    "personname": front.personname,
    "contact": front.contact,
    "author_notes": front.author_notes,
    "bibliography": items.bibliography,
    "bibitem": items.bibitem,
    "bibblock": items.bibblock,
}


# A page has some 200 different pairs of tag and classes, and 3,000 elements.
@lru_cache(maxsize=8192)
def _handler_of(tag: str, classes: str) -> Handler | None:
    kind, _, name = kind_of(tag, classes).partition(":")
    if kind in ("drop", "lose"):
        return lambda walk, node: walk.lose(node, name)
    if kind == "bib":
        return lambda walk, node: items.bibliography_field(walk, node, name)
    return _HANDLERS[kind] if kind else None
