"""The state of one walk: where it is, what it found, what it lost; and the loop over a node's children.

A *sink* gathers the text of one thing. An element that opens a block, a cell or a note opens a sink of its own, walks
its children into it, and puts what came of it where it belongs. Not here: what any element does (the handlers).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from selectolax.lexbor import LexborNode

from pipeline.corpus import policies
from pipeline.corpus.authors import Byline
from pipeline.corpus.bibliography import ItemParts
from pipeline.corpus.paper import BibliographyItem, Block, Section

TOP, PARAGRAPH, GATHER = "top", "paragraph", "gather"


@dataclass(slots=True)
class Float:
    """What a figure, table or algorithm holds beside its running words."""

    captions: list[str] = field(default_factory=list)
    grids: list[str] = field(default_factory=list)
    listing: bool = False


@dataclass(slots=True)
class Sink:
    """The text of one thing while it is walked. `mode` is TOP outside of blocks, PARAGRAPH, or GATHER in any other."""

    mode: str
    anchor: str = ""
    parts: list[str] = field(default_factory=list)
    after: list[Block] = field(default_factory=list)
    """Blocks that were met inside and follow the block that this sink becomes."""
    breaks: str = " "
    """What ends a box: a space, or LINE where the lines of the page matter."""
    tags: list[str] | None = None
    """Takes numbers and bullets aside where they are no part of the text."""
    display: bool = False
    marks: bool = False
    lost: bool = False
    cell: bool = False
    float: Float | None = None
    item: ItemParts | None = None

    @property
    def raw(self) -> str:
        return "".join(self.parts)

    @property
    def text(self) -> str:
        return policies.finish(self.parts)


@dataclass(frozen=True, slots=True)
class OpenSection:
    """A section that the walk is in."""

    rank: int
    depth: int
    path: tuple[str, ...]


class Walk:
    """One walk over one page.

    `handler_of` gives what handles an element by its tag and classes, None where its children alone matter.
    """

    def __init__(self, handler_of: Callable[[str, str], Handler | None]) -> None:
        self.handler_of = handler_of
        self.sink = Sink(TOP)
        self.title: str | None = None
        self.abstract: str | None = None
        self.bylines: list[Byline] = []
        self.byline: Byline | None = None
        self.institutes: list[str] = []
        self.sections: list[Section] = []
        self.blocks: list[Block] = []
        self.items: list[BibliographyItem] = []
        self.open_sections: list[OpenSection] = []
        self.read_heads: set[int] = set()
        self.anchor = ""
        self.losses: Counter[str] = Counter()
        self.missing = self.tables = self.figures = self.formulas = 0
        self.tex_chars = self.unseen_chars = 0

    @property
    def path(self) -> tuple[str, ...]:
        """The titles of the sections that are open, outermost first."""
        return self.open_sections[-1].path if self.open_sections else ()

    def page(self, body: LexborNode) -> None:
        """Walk the whole page."""
        self.count_loss("outside_paragraphs", self.gather(body, Sink(TOP)))

    def flow(self, node: LexborNode) -> None:
        """Walk the children of a node into the sink that is open."""
        child = node.first_child
        parts = self.sink.parts
        handler_of = self.handler_of
        while child is not None:
            tag = child.tag
            if tag == "-text":
                parts.append(child.text_content or "")
            elif tag is not None and tag[0] not in "-!":
                handler = handler_of(tag, child.attributes.get("class") or "")
                if handler is None:
                    self.flow(child)
                else:
                    handler(self, child)
                parts = self.sink.parts  # a list within a paragraph ends it and begins another
            child = child.next

    def gather(self, node: LexborNode, sink: Sink) -> Sink:
        """Walk the children of a node into a sink of their own, and return it."""
        outer, self.sink = self.sink, sink
        self.flow(node)
        self.sink = outer
        return sink

    def put(self, block: Block | None, after: list[Block]) -> None:
        """Put a block, and those that follow it, after whatever is open now."""
        target = self.blocks if self.sink.mode == TOP else self.sink.after
        if block is not None and block.text:
            target.append(block)
        target.extend(after)

    def block(self, kind: str, node: LexborNode, text: str) -> Block:
        """A block of the section that is open; its anchor is the nearest id."""
        anchor = node.attributes.get("id") or self.sink.anchor or self.anchor
        return Block(kind, anchor, self.path, text, policies.cited_keys(text))

    def close_paragraph(self) -> None:
        """End the paragraph that is open; the text that follows begins another."""
        sink = self.sink
        text = sink.text
        if text:
            anchor = sink.anchor or self.anchor
            self.blocks.append(Block("paragraph", anchor, self.path, text, policies.cited_keys(text)))
        self.blocks.extend(sink.after)
        self.sink = Sink(PARAGRAPH)

    def lose(self, node: LexborNode, name: str) -> None:
        """Walk what no column has a place for, and count it."""
        if name == "missing_citation":
            self.missing += 1
        self.count_loss(name, self.gather(node, Sink(GATHER, lost=True)))

    def count_loss(self, name: str, sink: Sink) -> None:
        """Count the characters of a sink that goes nowhere."""
        self.losses[name] += policies.visible(policies.bare(sink.raw))


Handler = Callable[[Walk, LexborNode], None]
