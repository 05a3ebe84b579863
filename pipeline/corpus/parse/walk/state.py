"""The state of one walk: where it is, what it found, what it lost; and the loop over a node's
children.

A *buffer* gathers the text of one thing. An element that opens a block, a cell or a note opens a
buffer of its own, walks its children into it, and puts what came of it where it belongs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from pipeline.corpus.parse import policies
from pipeline.corpus.parse.bibliography import ItemParts
from pipeline.corpus.parse.byline_text import Byline
from pipeline.corpus.parse.findings import Findings
from pipeline.corpus.parse.kinds import (
    HEADING_NAMES,
    NO_TEXT_KINDS,
    TEXT_KINDS,
    WITHIN_PARAGRAPHS,
)
from pipeline.corpus.parse.parsed_page import Block
from pipeline.corpus.parse.tree import Node

TOP, PARAGRAPH, GATHER = "top", "paragraph", "gather"


@dataclass(slots=True, eq=False)
class Float:
    """Captions and kind of a figure, table or algorithm, beside its running words."""

    captions: list[str] = field(default_factory=list)
    listing: bool = False


@dataclass(slots=True, eq=False)
class TextBuffer:
    """The text of one element under way. mode: TOP, PARAGRAPH, or GATHER elsewhere."""

    mode: str = GATHER
    anchor: str = ""
    parts: list[str] = field(default_factory=list)
    after: list[Block] = field(default_factory=list)
    """Blocks that were met inside and follow the block that this buffer becomes."""
    breaks: str = " "
    """What ends a box: a space, or LINE where the lines of the page matter."""
    tags: list[str] | None = None
    """Takes numbers and bullets aside where they are no part of the text."""
    display: bool = False
    marks: bool = False
    lost: bool = False
    cell: bool = False
    grids: list[str] | None = None
    """Takes the tables of a float or within a cell; others are blocks of their own."""
    float: Float | None = None
    item: ItemParts | None = None

    @property
    def raw(self) -> str:
        """The text as it was gathered, with the marks of `policies.py`."""
        return "".join(self.parts)

    @property
    def text(self) -> str:
        """The text as a block holds it."""
        return policies.finish("".join(self.parts))


@dataclass(frozen=True, slots=True)
class OpenSection:
    """A section that the walk is in."""

    rank: int
    depth: int
    path: tuple[str, ...]


class Walk:
    """One walk over one page. `handlers` say what to do with an element, by its kind."""

    def __init__(self, handlers: Mapping[str, Handler]) -> None:
        self.handlers = handlers
        self.findings = Findings()
        self.blocks = self.findings.blocks
        """The blocks of the page, or of a section within a float."""
        self.buffer = TextBuffer(TOP)
        self.byline: Byline | None = None
        self.open_sections: list[OpenSection] = []
        self.read_heads: set[int] = set()
        self.anchor = ""

    @property
    def path(self) -> tuple[str, ...]:
        """The titles of the sections that are open, outermost first."""
        return self.open_sections[-1].path if self.open_sections else ()

    def page(self, body: Node) -> Findings:
        """Walk the whole page."""
        self.lose("outside_paragraphs", self.gather(body, TextBuffer(TOP)).raw)
        return self.findings

    def flow(self, node: Node) -> None:
        """Walk the children of a node into the buffer that is open."""
        handlers = self.handlers
        for child in node:
            if isinstance(child, str):
                # Not bound outside the loop: a list within a paragraph begins another buffer.
                self.buffer.parts.append(child)
            else:
                handlers[child.tag_type.kind](self, child)

    def gather(self, node: Node, buffer: TextBuffer) -> TextBuffer:
        """Walk the children of a node into a buffer of their own, and return it."""
        outer, self.buffer = self.buffer, buffer
        self.flow(node)
        self.buffer = outer
        return buffer

    def gather_apart(self, node: Node, buffer: TextBuffer | None = None) -> TextBuffer:
        """Walk the children of a node into a buffer, whose blocks follow the block that is open."""
        buffer = self.gather(node, buffer or TextBuffer())
        self.put(None, buffer.after)
        return buffer

    def put(self, block: Block | None, after: list[Block]) -> None:
        """Put a block, and those that follow it, after the block that is open."""
        target = self.blocks if self.buffer.mode == TOP else self.buffer.after
        if block is not None and block.text:
            target.append(block)
        target.extend(after)

    def block(self, kind: str, node: Node, text: str) -> Block:
        """A block of the section that is open; its anchor is the nearest id."""
        anchor = node.id or self.buffer.anchor or self.anchor
        return Block(kind, anchor, self.path, text, policies.cited_keys(text))

    def close_paragraph(self) -> None:
        """End the paragraph that is open; the text that follows begins another."""
        self.end_paragraph()
        self.buffer = TextBuffer(PARAGRAPH)

    def end_paragraph(self) -> None:
        """End the paragraph that is open, for a handler that goes back to the buffer around it."""
        buffer, text = self.buffer, self.buffer.text
        if text:
            anchor = buffer.anchor or self.anchor
            keys = policies.cited_keys(text)
            self.blocks.append(Block("paragraph", anchor, self.path, text, keys))
        self.blocks.extend(buffer.after)

    def lose(self, name: str, text: str) -> None:
        """Note a text that goes nowhere."""
        self.findings.lost[name].append(text)


Handler = Callable[[Walk, Node], None]


# Questions to a node.

# Function application, invisible times, separator and plus.
_INVISIBLE = dict.fromkeys(range(0x2061, 0x2065))

_ROW_GROUPS = frozenset({"tbody", "thead", "tfoot", "table"})


def rows_of(node: Node) -> list[Node]:
    """The rows of a table or display equation; the node itself where it is not laid out in rows."""
    return list(_rows_below(node)) or [node]


def _rows_below(node: Node) -> Iterator[Node]:
    for child in node.elements():
        name, classes = child.tag_type.name, child.classes
        if name == "tr" or "ltx_tr" in classes or "ltx_eqn_row" in classes:
            yield child
        elif name in _ROW_GROUPS or "ltx_t" in classes:
            yield from _rows_below(child)


def headings_of(node: Node) -> list[Node]:
    """The headings that a section begins with."""
    nodes = []
    for child in node.elements():
        if child.tag_type.name not in HEADING_NAMES:
            break
        nodes.append(child)
    return nodes


def take_textboxes(picture: Node, *, is_inline: bool) -> list[Node]:
    """Take the boxes out of a picture that hold text of the paper, and return them.

    These are boxes with paragraphs, lists, tables or code (tcolorbox), and the only box of a
    picture, which is a frame around words or a circle around a number; an SVG `text` only where the
    picture is within a line. Other boxes are labels of a drawing.
    """
    boxes = list(_textboxes_below(picture))
    is_frame = len(boxes) == 1 and policies.has_word(boxes[0][1].text())
    is_frame = is_frame and (is_inline or boxes[0][1].tag_type.name != "text")
    texts = [pair for pair in boxes if is_frame or _holds_text(pair[1])]
    for parent, box in texts:
        parent[:] = [child for child in parent if child is not box]
    return [box for _, box in texts]


def _textboxes_below(node: Node) -> Iterator[tuple[Node, Node]]:
    for child in node.elements():
        if child.tag_type.kind == "textbox":
            yield node, child
        else:
            yield from _textboxes_below(child)


def _holds_text(node: Node) -> bool:
    return any(child.tag_type.kind in TEXT_KINDS or _holds_text(child) for child in node.elements())


def is_unmarked_paragraph(node: Node) -> bool:
    """Whether a box of an unknown class holds words, and nothing that makes a block of its own."""
    words = None if node.tag_type.kind == "heading" else _words_alone(node)
    return words is not None and policies.is_several_words(words)


def _words_alone(node: Node) -> str | None:
    """The text below a node; None where a block is in it."""
    texts: list[str] = []
    for child in node:
        if isinstance(child, str):
            texts.append(child)
        elif child.tag_type.kind in WITHIN_PARAGRAPHS:
            words = _words_alone(child)
            if words is None:
                return None
            texts.append(words)
        elif child.tag_type.kind not in NO_TEXT_KINDS:
            return None
    return "".join(texts)


def annotation_of(node: Node) -> str:
    """The TeX in a formula's annotation, or "" where it has none."""
    for child in node.elements():
        if child.tag_type.kind == "annotation" and child.get("encoding") == "application/x-tex":
            return child.text()
        inner = annotation_of(child)
        if inner:
            return inner
    return ""


def drawn_text(node: Node) -> str:
    """The text of a formula as it is drawn, without its annotations and invisible signs."""
    texts = (
        child if isinstance(child, str) else drawn_text(child)
        for child in node
        if isinstance(child, str) or child.tag_type.kind != "annotation"
    )
    return "".join(texts).translate(_INVISIBLE)


def note_mark_of(node: Node) -> str:
    """The mark of a footnote, such as 1 or †; "" where it has none."""
    mark = next((child for child in node.elements() if child.tag_type.name == "sup"), None)
    return policies.fold(mark.text()) if mark is not None else ""


def role_of(node: Node) -> str:
    """The first `ltx_role_…` of a node without the prefix, or ""."""
    roles = (
        name.removeprefix("ltx_role_")
        for name in node.classes.split()
        if name.startswith("ltx_role_")
    )
    return next(roles, "")
