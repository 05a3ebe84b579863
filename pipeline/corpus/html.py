"""The fast parser: one walk over a LaTeXML page in document order, on selectolax's lexbor tree.

Not here: what an element is (`kinds.py`), how its text is written (`policies.py`), names and affiliations
(`authors.py`), bibliography items (`bibliography.py`).

A *sink* gathers the text of one thing. An element that opens a block, a cell or a note opens a sink of its own, walks
its children into it, and puts what came of it where it belongs.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache

from selectolax.lexbor import LexborHTMLParser, LexborNode

from pipeline.corpus import policies
from pipeline.corpus.authors import Byline, read_bylines
from pipeline.corpus.bibliography import ItemParts, read_item
from pipeline.corpus.front_matter import find_abstract, without_empty
from pipeline.corpus.kinds import is_algorithm, kind_of, section_rank
from pipeline.corpus.paper import BibliographyItem, Block, PageError, Paper, Section
from pipeline.corpus.policies import LINE, MARK, TEX

TOP, PARAGRAPH, GATHER = "top", "paragraph", "gather"
# Thanks belong to whatever section they stand in.
_LOWEST_RANK = 9
# A cell that claims to span more is broken input, not a table.
_WIDEST_SPAN = 200


def parse(html: bytes) -> Paper:
    """The paper that a page of the dump holds. Raises PageError for what is no page, or holds no text."""
    if not policies.is_html(html):
        raise PageError("not_html", "no <html>, <body> or <article> in its first 4,096 bytes")
    body = LexborHTMLParser(_without_math_trees(policies.clean_bytes(html))).body
    if body is None:
        raise PageError("not_html", "no body")
    walk = _Walk()
    try:
        walk.page(body)
    except RecursionError:
        raise PageError("too_deep", "its elements nest deeper than the parser follows") from None
    return walk.paper(body, html)


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


@dataclass(slots=True)
class _Float:
    captions: list[str] = field(default_factory=list)
    grids: list[str] = field(default_factory=list)
    listing: bool = False


@dataclass(slots=True)
class _Sink:
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
    float: _Float | None = None
    item: ItemParts | None = None

    @property
    def raw(self) -> str:
        return "".join(self.parts)

    @property
    def text(self) -> str:
        return policies.finish(self.parts)


@dataclass(frozen=True, slots=True)
class _Open:
    """A section that the walk is in."""

    rank: int
    depth: int
    path: tuple[str, ...]


Handler = Callable[["_Walk", LexborNode], None]


class _Walk:
    """The state of one walk: where we are, what was found, what was lost."""

    def __init__(self) -> None:
        self.sink = _Sink(TOP)
        self.title: str | None = None
        self.abstract: str | None = None
        self.bylines: list[Byline] = []
        self.byline: Byline | None = None
        self.institutes: list[str] = []
        self.sections: list[Section] = []
        self.blocks: list[Block] = []
        self.items: list[BibliographyItem] = []
        self.open_sections: list[_Open] = []
        self.read_heads: set[int] = set()
        self.anchor = ""
        self.losses: Counter[str] = Counter()
        self.missing = self.tables = self.figures = self.formulas = 0
        self.tex_chars = self.unseen_chars = 0

    def page(self, body: LexborNode) -> None:
        """Walk the whole page."""
        self.count_loss("outside_paragraphs", self.gather(body, _Sink(TOP)))

    def paper(self, body: LexborNode, html: bytes) -> Paper:
        """What the walk found. Raises PageError where that is no text at all."""
        authors, notes, lost = read_bylines(self.bylines, self.institutes)
        self.losses["author_mark"] += lost
        blocks = [Block("footnote", "authors", (), note) for note in notes] + self.blocks
        abstract, sections = self.abstract, self.sections
        if abstract is None:
            abstract, sections, blocks = find_abstract(sections, blocks)
        sections = without_empty(sections, blocks)
        if not blocks and not abstract:
            raise PageError("no_text", "no paragraph, table, caption or abstract on the page")
        seen = policies.visible(body.text()) - self.unseen_chars + self.tex_chars
        losses = {name: count for name, count in sorted(self.losses.items()) if count}
        return Paper(
            title=self.title,
            authors=authors,
            abstract=abstract,
            sections=tuple(sections),
            blocks=tuple(blocks),
            bibliography=tuple(self.items),
            paragraphs=sum(block.kind == "paragraph" for block in blocks),
            tables=self.tables,
            figures=self.figures,
            formulas=self.formulas,
            chars_seen=seen,
            chars_kept=seen - sum(losses.values()),
            losses=losses,
            ltx_errors=policies.count_errors(html),
            missing_citations=self.missing,
            truncated=policies.is_truncated(html),
            html_bytes=len(html),
            html_sha256=hashlib.sha256(html).hexdigest(),
        )

    # The walk itself: the one loop that every element of the page goes through.

    def flow(self, node: LexborNode) -> None:
        """Walk the children of a node into the sink that is open."""
        child = node.first_child
        parts = self.sink.parts
        while child is not None:
            tag = child.tag
            if tag == "-text":
                parts.append(child.text_content or "")
            elif tag is not None and tag[0] not in "-!":
                handler = _handler(tag, child.attributes.get("class") or "")
                if handler is None:
                    self.flow(child)
                else:
                    handler(self, child)
                parts = self.sink.parts  # a list within a paragraph ends it and begins another
            child = child.next

    def gather(self, node: LexborNode, sink: _Sink) -> _Sink:
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
        anchor = node.attributes.get("id") or self.sink.anchor or self.anchor
        return Block(kind, anchor, self.path, text, policies.cited_keys(text))

    def count_loss(self, name: str, sink: _Sink) -> None:
        self.losses[name] += policies.visible(sink.raw.replace(LINE, "").replace(MARK, ""))

    # Paragraphs.

    def para(self, node: LexborNode) -> None:
        """Running text. Within a theorem, list, note or cell it is part of that."""
        if self.sink.mode != TOP:
            return self.box(node)
        self.anchor = node.attributes.get("id") or self.anchor
        outer, self.sink = self.sink, _Sink(PARAGRAPH, anchor=node.attributes.get("id") or "")
        self.flow(node)
        self.close_paragraph()
        self.sink = outer
        return None

    def close_paragraph(self) -> None:
        """End the paragraph that is open; the text that follows begins another."""
        sink = self.sink
        text = sink.text
        if text:
            anchor = sink.anchor or self.anchor
            self.blocks.append(Block("paragraph", anchor, self.path, text, policies.cited_keys(text)))
        self.blocks.extend(sink.after)
        self.sink = _Sink(PARAGRAPH)

    def p(self, node: LexborNode) -> None:
        if self.sink.mode == TOP:
            return self.para(node)
        if self.sink.mode == PARAGRAPH and not self.sink.anchor:
            self.sink.anchor = node.attributes.get("id") or ""
        return self.box(node)

    def box(self, node: LexborNode) -> None:
        self.flow(node)
        self.sink.parts.append(self.sink.breaks)

    def line_break(self, node: LexborNode) -> None:
        self.sink.parts.append(self.sink.breaks)

    # Within a sentence.

    def math(self, node: LexborNode) -> None:
        """A formula, once, as its TeX."""
        attributes = node.attributes
        tex = policies.tex_source(attributes.get("alttext") or attributes.get("alt") or _annotation(node))
        self.formulas += 1
        self.tex_chars += policies.visible(tex)
        if node.first_child is not None:
            self.unseen_chars += policies.visible(node.text())
        if self.sink.display:
            self.sink.parts.append(f"{TEX}{tex}{TEX}")
        else:
            self.sink.parts.append(tex if self.sink.lost else policies.inline_math(tex))

    def cite(self, node: LexborNode) -> None:
        pieces: list[str | tuple[str, str]] = []
        self.cite_pieces(node, pieces)
        if self.sink.lost:
            pieces = [piece if isinstance(piece, str) else piece[1] for piece in pieces]
        self.sink.parts.append(policies.citation(pieces))

    def cite_pieces(self, node: LexborNode, pieces: list[str | tuple[str, str]]) -> None:
        child = node.first_child
        while child is not None:
            tag, attributes = child.tag, child.attributes
            key = policies.cited_key(attributes.get("href")) if tag == "a" else None
            if tag == "-text":
                pieces.append(child.text_content or "")
            elif key:
                pieces.append((key, policies.fold(child.text())))
            elif tag is not None and tag[0] not in "-!":
                handler = _handler(tag, attributes.get("class") or "")
                if handler is None or tag == "a":
                    self.cite_pieces(child, pieces)
                else:
                    pieces.append(self.aside(child, handler))
            child = child.next

    def aside(self, node: LexborNode, handler: Handler) -> str:
        outer, self.sink = self.sink, _Sink(GATHER, lost=self.sink.lost)
        handler(self, node)
        sink, self.sink = self.sink, outer
        self.put(None, sink.after)
        return sink.raw

    def note(self, node: LexborNode) -> None:
        """A footnote: out of the sentence, a block of its own after the block that held it."""
        classes = node.attributes.get("class") or ""
        sink = self.gather(node, _Sink(GATHER, breaks=LINE if self.sink.marks else " "))
        if self.byline is not None and self.sink.marks:
            self.byline.add_note(_note_mark(node), sink.raw)
            self.sink.parts.append(f"{MARK}{_note_mark(node)}{MARK}")
            return
        if "ltx_role_institutetext" in classes or "ltx_role_email" in classes:
            self.institutes.append(sink.raw)
            return
        text = "" if "ltx_role_footnotemark" in classes else sink.text
        self.put(self.block("footnote", node, text), sink.after)

    def link(self, node: LexborNode) -> None:
        if self.sink.item is not None:
            self.sink.item.links.append(node.attributes.get("href") or "")
        self.flow(node)

    def mark(self, node: LexborNode) -> None:
        if not self.sink.marks:
            return self.flow(node)
        self.sink.parts.append(MARK)
        self.flow(node)
        self.sink.parts.append(MARK)
        return None

    def emphasis(self, node: LexborNode) -> None:
        start = len(self.sink.parts)
        self.flow(node)
        if self.sink.item is not None:
            self.sink.item.emphases.append(policies.fold("".join(self.sink.parts[start:])))

    def tag(self, node: LexborNode) -> None:
        """A number or bullet: aside where the sink asks for it, else a word of the text."""
        if self.sink.tags is None:
            return self.flow(node)
        sink = self.gather(node, _Sink(GATHER))
        self.sink.tags.append(sink.text)
        return None

    # Blocks.

    def equation(self, node: LexborNode) -> None:
        """A display equation: part of the paragraph around it, row by row."""
        if self.sink.mode == TOP:
            outer, self.sink = self.sink, _Sink(PARAGRAPH, anchor=node.attributes.get("id") or "")
            self.equation(node)
            self.close_paragraph()
            self.sink = outer
            return None
        if self.sink.display:
            return self.flow(node)
        if self.sink.mode == PARAGRAPH and not self.sink.anchor:
            self.sink.anchor = node.attributes.get("id") or ""
        for row in _rows(node):
            tags: list[str] = []
            sink = self.gather(row, _Sink(GATHER, display=True, tags=tags, lost=self.sink.lost))
            self.sink.after.extend(sink.after)
            self.sink.parts.append(f" {policies.display_math(sink.raw, ' '.join(tags))} ")
        return None

    def list_block(self, node: LexborNode) -> None:
        """A list with its nested lists: one block, or lines of the theorem, note or list around it."""
        if self.sink.mode == GATHER:
            return self.items_of(node)
        if self.sink.mode == PARAGRAPH:
            self.close_paragraph()
        anchor = node.attributes.get("id") or self.anchor
        outer, self.sink = self.sink, _Sink(GATHER, anchor=anchor)
        self.items_of(node)
        sink, self.sink = self.sink, outer
        block = Block("list", anchor, self.path, sink.text, policies.cited_keys(sink.text))
        self.blocks.extend([block, *sink.after] if block.text else sink.after)
        return None

    def items_of(self, node: LexborNode) -> None:
        child = node.first_child
        while child is not None:
            if child.tag in ("li", "dt", "dd"):
                self.item_of(child)
            elif child.tag == "-text":
                self.sink.parts.append(child.text_content or "")
            child = child.next
        self.sink.parts.append(LINE if not self.sink.cell else " ")

    def item_of(self, node: LexborNode) -> None:
        outer = self.sink
        tags: list[str] = []
        sink = self.gather(node, _Sink(GATHER, anchor=outer.anchor, tags=tags, cell=outer.cell, lost=outer.lost))
        outer.after.extend(sink.after)
        begin = " " if node.tag == "dd" else f"{' ' if outer.cell else LINE}{policies.list_mark(' '.join(tags))} "
        outer.parts.append(begin + sink.raw)

    def theorem(self, node: LexborNode) -> None:
        """A theorem or a proof, title and all: one block."""
        if self.sink.mode == GATHER:
            return self.box(node)
        if self.sink.mode == PARAGRAPH:
            self.close_paragraph()
        sink = self.gather(node, _Sink(GATHER, anchor=node.attributes.get("id") or ""))
        block = self.block("theorem", node, sink.text)
        self.blocks.extend([block, *sink.after] if block.text else sink.after)
        return None

    def listing(self, node: LexborNode) -> None:
        """Lines of an algorithm or of code."""
        if self.sink.float is not None:
            self.sink.float.listing = True
        if self.sink.mode == GATHER:
            return self.lines(node)
        if self.sink.mode == PARAGRAPH:
            self.close_paragraph()
        outer, self.sink = self.sink, _Sink(GATHER, breaks=LINE)
        self.lines(node)
        sink, self.sink = self.sink, outer
        block = self.block("algorithm", node, sink.text)
        self.blocks.extend([block, *sink.after] if block.text else sink.after)
        return None

    def lines(self, node: LexborNode) -> None:
        start = len(self.sink.parts)
        self.box(node)
        if node.tag == "pre":
            parts = self.sink.parts
            parts[start:] = [part.replace("\n", self.sink.breaks) for part in parts[start:]]

    def line(self, node: LexborNode) -> None:
        self.flow(node)
        self.sink.parts.append(" " if self.sink.cell else LINE)

    def float_block(self, node: LexborNode) -> None:
        """A figure, table or algorithm with its caption: one block; what is nested in it follows."""
        classes = node.attributes.get("class") or ""
        if "ltx_figure" in classes.split() and self.sink.float is None:
            self.figures += 1
        contents = _Float(listing=is_algorithm(classes))
        anchor = node.attributes.get("id") or ""
        sink = self.gather(node, _Sink(GATHER, anchor=anchor, breaks=LINE, float=contents, lost=self.sink.lost))
        kind = "algorithm" if contents.listing else "table" if contents.grids else "caption"
        head, body = "\n".join(contents.captions), [sink.text, *contents.grids]
        text = "\n".join(filter(None, [head, *(body if kind != "table" else reversed(body))]))
        self.put(self.block(kind, node, text), sink.after)

    def caption(self, node: LexborNode) -> None:
        outer = self.sink
        sink = self.gather(node, _Sink(GATHER, anchor=outer.anchor))
        if outer.float is None:
            return self.put(self.block("caption", node, sink.text), sink.after)
        outer.float.captions.append(sink.text)
        outer.after.extend(sink.after)
        return None

    def tabular(self, node: LexborNode) -> None:
        """A grid as Markdown. A grid within a cell is part of the cell's text."""
        outer = self.sink
        if outer.cell or outer.lost:
            return self.box(node)
        self.tables += 1
        sink = self.sink = _Sink(GATHER, anchor=outer.anchor)
        grid = policies.markdown_table(_spread(self.rows_of(node)))
        self.sink = outer
        if outer.float is None:
            return self.put(self.block("table", node, grid), sink.after)
        outer.float.grids.append(grid)
        outer.after.extend(sink.after)
        return None

    def rows_of(self, node: LexborNode) -> Iterator[list[tuple[str, int, int]]]:
        """The rows of a grid: (text, columns, rows) of each cell."""
        for row in _rows(node):
            cells = []
            child = row.first_child
            while child is not None:
                if child.tag is not None and child.tag[0] not in "-!":
                    cells.append(self.cell(child))
                child = child.next
            yield cells

    def cell(self, node: LexborNode) -> tuple[str, int, int]:
        sink = self.gather(node, _Sink(GATHER, anchor=self.sink.anchor, cell=True))
        self.sink.after.extend(sink.after)
        attributes = node.attributes
        return sink.text, _span(attributes.get("colspan")), _span(attributes.get("rowspan"))

    # Sections and front matter.

    def section(self, node: LexborNode) -> None:
        """A section of any depth: its heading, then what is in it.

        One that lies within a float, list or theorem was nested there by mistake: it follows that block.
        """
        outer, self.sink = self.sink, _Sink(TOP)
        blocks = self.blocks
        if outer.mode != TOP:
            self.blocks = []
        self.enter(node, section_rank(node.attributes.get("class") or ""))
        self.flow(node)
        self.open_sections.pop()
        self.count_loss("outside_paragraphs", self.sink)
        if outer.mode != TOP:
            outer.after.extend(self.blocks)
            self.blocks = blocks
        self.sink = outer

    @property
    def path(self) -> tuple[str, ...]:
        return self.open_sections[-1].path if self.open_sections else ()

    def enter(self, node: LexborNode, rank: int, untitled: str = "") -> None:
        """Begin a section; `untitled` is its title where it has no heading."""
        self.anchor = node.attributes.get("id") or self.anchor
        above = next((other for other in reversed(self.open_sections) if other.rank < rank), _Open(-1, 0, ()))
        number, title, notes = self.read_headings(node)
        title = title or untitled
        inside = _Open(rank, above.depth + 1, (*above.path, title) if title else above.path)
        self.open_sections.append(inside)
        self.sections.append(Section(self.anchor, number, title, inside.depth, inside.path))
        self.blocks.extend(Block(b.kind, b.anchor, inside.path, b.text, b.cited_keys) for b in notes)

    def read_headings(self, node: LexborNode) -> tuple[str | None, str, list[Block]]:
        """(number, title, footnotes) of a section."""
        tags: list[str] = []
        sink = _Sink(GATHER, tags=tags)
        for head in _headings_of(node):
            self.read_heads.add(head.mem_id)
            self.gather(head, sink)
            sink.parts.append(" ")
        return policies.section_number(" ".join(tags)), policies.heading(sink.raw), sink.after

    def heading(self, node: LexborNode) -> None:
        """A heading: read already where it is a section's, else words of the theorem or box around it."""
        if node.mem_id in self.read_heads:
            return None
        # A title set within \part becomes that part's second heading (2306.17806).
        if self.title is None and "ltx_title_part" in (node.attributes.get("class") or ""):
            return self.document_title(node)
        return self.box(node)

    def acknowledgements(self, node: LexborNode) -> None:
        """Thanks: a section of their own, which LaTeXML often leaves without paragraphs."""
        if self.sink.mode != TOP:
            return self.box(node)
        self.enter(node, _LOWEST_RANK, untitled="Acknowledgements")
        self.para(node)
        self.open_sections.pop()
        return None

    def document_title(self, node: LexborNode) -> None:
        """The title; a supplement's own title after it is lost."""
        sink = self.gather(node, _Sink(GATHER))
        self.put(None, sink.after)
        if self.title is None and sink.text:
            self.title = sink.text
        else:
            self.count_loss("second_title", sink)

    def abstract_of(self, node: LexborNode) -> None:
        """The abstract; a second one, as in another language, becomes a paragraph."""
        if self.abstract is not None and self.sink.mode == TOP:
            return self.para(node)
        sink = self.gather(node, _Sink(GATHER))
        self.abstract = sink.text or None
        return self.put(None, sink.after)

    def authors(self, node: LexborNode) -> None:
        sink = self.gather(node, _Sink(GATHER))
        self.put(None, sink.after)
        self.count_loss("author_mark", sink)

    def creator(self, node: LexborNode) -> None:
        """One byline: an author, or all of them with their affiliations glued in."""
        if "ltx_role_author" not in (node.attributes.get("class") or ""):
            return self.lose(node, "creator")
        outer, self.byline = self.byline, Byline()
        sink = self.gather(node, _Sink(GATHER))
        self.bylines.append(self.byline)
        self.byline = outer
        self.put(None, sink.after)
        return self.count_loss("author_mark", sink)

    def personname(self, node: LexborNode) -> None:
        sink = self.gather(node, _Sink(GATHER, marks=True, breaks=LINE))
        if self.byline is None:
            self.bylines.append(Byline(names=sink.raw))
        else:
            self.byline.names += sink.raw

    def contact(self, node: LexborNode) -> None:
        sink = self.gather(node, _Sink(GATHER, breaks=LINE))
        if self.byline is None:
            return self.count_loss("contact", sink)
        self.byline.contacts.append((_role(node), policies.joined_lines(sink.raw)))
        return None

    def author_notes(self, node: LexborNode) -> None:
        sink = self.gather(node, _Sink(GATHER))
        if self.byline is not None:
            self.byline.remarks.append(sink.text)

    # Bibliography, and what goes nowhere.

    def bibliography(self, node: LexborNode) -> None:
        if self.sink.mode != TOP:
            return self.box(node)
        sink = self.gather(node, _Sink(TOP))
        return self.count_loss("bibliography", sink)

    def bibitem(self, node: LexborNode) -> None:
        item = ItemParts(key=node.attributes.get("id") or f"bib.item{len(self.items) + 1}")
        sink = self.gather(node, _Sink(GATHER, item=item))
        item.raw = sink.text
        self.items.append(read_item(item))

    def bibblock(self, node: LexborNode) -> None:
        start = len(self.sink.parts)
        self.box(node)
        if self.sink.item is not None:
            self.sink.item.blocks.append(policies.fold("".join(self.sink.parts[start:])))

    def bibliography_field(self, node: LexborNode, name: str) -> None:
        start = len(self.sink.parts)
        self.flow(node)
        if self.sink.item is not None:
            self.sink.item.fields.append((name, policies.fold("".join(self.sink.parts[start:]))))

    def lose(self, node: LexborNode, name: str) -> None:
        """Walk what no column has a place for, and count it."""
        if name == "missing_citation":
            self.missing += 1
        self.count_loss(name, self.gather(node, _Sink(GATHER, lost=True)))

    def skip(self, node: LexborNode) -> None:
        """What no reader sees."""
        self.unseen_chars += policies.visible(node.text())


_METHODS: dict[str, Handler] = {
    "para": _Walk.para,
    "p": _Walk.p,
    "box": _Walk.box,
    "break": _Walk.line_break,
    "math": _Walk.math,
    "cite": _Walk.cite,
    "note": _Walk.note,
    "link": _Walk.link,
    "mark": _Walk.mark,
    "emphasis": _Walk.emphasis,
    "tag": _Walk.tag,
    "equation": _Walk.equation,
    "list": _Walk.list_block,
    "theorem": _Walk.theorem,
    "listing": _Walk.listing,
    "line": _Walk.line,
    "float": _Walk.float_block,
    "caption": _Walk.caption,
    "tabular": _Walk.tabular,
    "section": _Walk.section,
    "heading": _Walk.heading,
    "acknowledgements": _Walk.acknowledgements,
    "title": _Walk.document_title,
    "abstract": _Walk.abstract_of,
    "authors": _Walk.authors,
    "creator": _Walk.creator,
    "personname": _Walk.personname,
    "contact": _Walk.contact,
    "author_notes": _Walk.author_notes,
    "bibliography": _Walk.bibliography,
    "bibitem": _Walk.bibitem,
    "bibblock": _Walk.bibblock,
    "unseen": _Walk.skip,
}


# A page has some 200 different pairs of tag and classes, and 3,000 elements.
@lru_cache(maxsize=8192)
def _handler(tag: str, classes: str) -> Handler | None:
    kind, _, name = kind_of(tag, classes).partition(":")
    if kind in ("drop", "lose"):
        return lambda walk, node: walk.lose(node, name)
    if kind == "bib":
        return lambda walk, node: walk.bibliography_field(node, name)
    return _METHODS[kind] if kind else None


def _rows(node: LexborNode) -> Iterator[LexborNode]:
    """The rows of a table or display equation; the node itself where it is not laid out in rows."""
    found = False
    for row in _rows_below(node):
        found = True
        yield row
    if not found:
        yield node


def _rows_below(node: LexborNode) -> Iterator[LexborNode]:
    child = node.first_child
    while child is not None:
        tag = child.tag
        classes = (child.attributes.get("class") or "") if tag is not None and tag[0] not in "-!" else ""
        if tag == "tr" or "ltx_tr" in classes or "ltx_eqn_row" in classes:
            yield child
        elif tag in ("tbody", "thead", "tfoot", "table") or "ltx_t" in classes:
            yield from _rows_below(child)
        child = child.next


def _spread(rows: Iterator[list[tuple[str, int, int]]]) -> list[list[str]]:
    """The rows with empty cells where a cell spans more columns or rows than one."""
    held: dict[int, int] = {}
    table = []
    for cells in rows:
        row: list[str] = []
        for text, columns, height in cells:
            _fill(row, held)
            for place in range(len(row), len(row) + columns):
                if height > 1:
                    held[place] = height - 1
            row += [text] + [""] * (columns - 1)
        _fill(row, held)
        table.append(row)
    return table


def _fill(row: list[str], held: dict[int, int]) -> None:
    while held.get(len(row), 0) > 0:
        held[len(row)] -= 1
        row.append("")


def _span(value: str | None) -> int:
    return min(int(value), _WIDEST_SPAN) if value and value.isdecimal() and int(value) > 0 else 1


def _headings_of(node: LexborNode) -> list[LexborNode]:
    """The headings that a section begins with."""
    found = []
    child = node.first_child
    while child is not None:
        tag = child.tag
        if tag is not None and tag[0] not in "-!":
            if tag[0] != "h" or "ltx_title" not in (child.attributes.get("class") or ""):
                break
            found.append(child)
        child = child.next
    return found


def _annotation(node: LexborNode) -> str:
    """The TeX of a formula without alttext: its annotation, else the characters of its presentation."""
    for below in node.css("annotation"):
        if below.attributes.get("encoding") == "application/x-tex":
            return below.text()
    return node.text()


def _note_mark(node: LexborNode) -> str:
    mark = node.first_child
    while mark is not None and mark.tag != "sup":
        mark = mark.next
    return policies.fold(mark.text()) if mark is not None else ""


def _role(node: LexborNode) -> str:
    for name in (node.attributes.get("class") or "").split():
        if name.startswith("ltx_role_"):
            return name.removeprefix("ltx_role_")
    return ""
