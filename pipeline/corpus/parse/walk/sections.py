"""Title, bylines, abstract, sections and their headings, thanks."""

from __future__ import annotations

from pipeline.corpus.parse import policies
from pipeline.corpus.parse.byline_text import THANKS, Byline
from pipeline.corpus.parse.kinds import section_rank
from pipeline.corpus.parse.parsed_page import Block, Section
from pipeline.corpus.parse.policies import LINE
from pipeline.corpus.parse.tree import Node
from pipeline.corpus.parse.walk.blocks import box, para
from pipeline.corpus.parse.walk.state import (
    TOP,
    OpenSection,
    TextBuffer,
    Walk,
    headings_of,
    role_of,
)

# Thanks belong to the section that they are in.
_LOWEST_RANK = 9
_OUTSIDE = OpenSection(-1, 0, ())


def section(walk: Walk, node: Node) -> None:
    """A section of any depth: its heading, then what is in it.

    One that lies within a float, list or theorem was nested there by mistake: it follows that
    block.
    """
    outer, walk.buffer = walk.buffer, TextBuffer(TOP)
    blocks = walk.blocks
    if outer.mode != TOP:
        walk.blocks = []
    _enter(walk, node, section_rank(node.classes))
    walk.flow(node)
    walk.open_sections.pop()
    walk.lose("outside_paragraphs", walk.buffer.raw)
    if outer.mode != TOP:
        outer.after.extend(walk.blocks)
        walk.blocks = blocks
    walk.buffer = outer


def _enter(walk: Walk, node: Node, rank: int, untitled: str = "") -> None:
    """Begin a section; `untitled` is its title where it has no heading."""
    walk.anchor = node.id or walk.anchor
    above = next((other for other in reversed(walk.open_sections) if other.rank < rank), _OUTSIDE)
    number, title, notes = _read_headings(walk, node)
    title = title or untitled
    inside = OpenSection(rank, above.depth + 1, (*above.path, title) if title else above.path)
    walk.open_sections.append(inside)
    walk.findings.sections.append(Section(walk.anchor, number, title, inside.depth, inside.path))
    walk.blocks.extend(note._replace(section_path=inside.path) for note in notes)


def _read_headings(walk: Walk, node: Node) -> tuple[str | None, str, list[Block]]:
    """(number, title, footnotes) of a section."""
    tags: list[str] = []
    buffer = TextBuffer(tags=tags)
    for head in headings_of(node):
        walk.read_heads.add(id(head))
        walk.gather(head, buffer)
        buffer.parts.append(" ")
    return policies.section_number(" ".join(tags)), policies.heading(buffer.raw), buffer.after


def heading(walk: Walk, node: Node) -> None:
    """A heading; a section's is read already, others are words of what they are in."""
    if id(node) in walk.read_heads:
        return None
    # A title set within \part becomes that part's second heading (2306.17806).
    if walk.findings.title is None and "ltx_title_part" in node.classes:
        return document_title(walk, node)
    return box(walk, node)


def acknowledgements(walk: Walk, node: Node) -> None:
    """Thanks: a section of their own, which LaTeXML often leaves without paragraphs."""
    if walk.buffer.mode != TOP:
        return box(walk, node)
    _enter(walk, node, _LOWEST_RANK, untitled="Acknowledgements")
    para(walk, node)
    walk.open_sections.pop()
    return None


def document_title(walk: Walk, node: Node) -> None:
    """The title; a supplement's own title after it is lost."""
    buffer = walk.gather_apart(node)
    if walk.findings.title is None and buffer.text:
        walk.findings.title = buffer.text
    else:
        walk.lose("second_title", buffer.raw)


def subtitle(walk: Walk, node: Node) -> None:
    """The subtitle; that of a supplement is lost with its title."""
    buffer = walk.gather_apart(node)
    if walk.findings.subtitle is None:
        walk.findings.subtitle = buffer.text or None
    else:
        walk.lose("second_title", buffer.raw)


def abstract(walk: Walk, node: Node) -> None:
    """The abstract; a second one becomes a paragraph, or words of what it is in."""
    if walk.findings.abstract is not None:
        return para(walk, node)
    walk.findings.abstract = walk.gather_apart(node).text or None
    return None


def authors(walk: Walk, node: Node) -> None:
    """All bylines; what is between them is lost."""
    walk.lose("author_mark", walk.gather_apart(node).raw)


def creator(walk: Walk, node: Node) -> None:
    """One byline: an author, or all of them with their affiliations glued in."""
    if "ltx_role_author" not in node.classes:
        return walk.lose("creator", walk.gather_apart(node, TextBuffer(lost=True)).raw)
    outer, walk.byline = walk.byline, Byline()
    buffer = walk.gather_apart(node)
    walk.findings.bylines.append(walk.byline)
    walk.byline = outer
    return walk.lose("author_mark", buffer.raw)


def personname(walk: Walk, node: Node) -> None:
    """The names of a byline, with line breaks, marks and places of errors."""
    buffer = walk.gather_apart(node, TextBuffer(marks=True, breaks=LINE))
    names = policies.as_formulas(buffer.raw)
    if walk.byline is None:
        walk.findings.bylines.append(Byline(names=names))
    else:
        walk.byline.names += names


def contact(walk: Walk, node: Node) -> None:
    """An affiliation, address, e-mail or the like of a byline."""
    buffer = walk.gather_apart(node, TextBuffer(marks=True, breaks=LINE))
    if walk.byline is None:
        return walk.lose("contact", buffer.raw)
    walk.byline.parts.append((role_of(node), policies.as_formulas(buffer.raw)))
    if walk.buffer.marks:  # a broken page may have other texts in a byline
        walk.buffer.parts.append(policies.PLACE)
    return None


def address_part(walk: Walk, node: Node) -> None:
    """The institution, city or country of an acmart affiliation, each before a comma."""
    walk.flow(node)
    walk.buffer.parts.append(", ")


def author_notes(walk: Walk, node: Node) -> None:
    """What else is said of the authors of a byline."""
    buffer = walk.gather_apart(node, TextBuffer(marks=True, breaks=LINE))
    if walk.byline is not None:
        walk.byline.parts.append((THANKS, policies.as_formulas(buffer.raw)))
