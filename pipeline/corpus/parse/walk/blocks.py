"""Paragraphs, equations, lists, theorems, listings, bibliography items, floats."""

from __future__ import annotations

from pipeline.corpus.parse import policies
from pipeline.corpus.parse.bibliography import ItemParts
from pipeline.corpus.parse.grids import TableCell, markdown_grid, span
from pipeline.corpus.parse.kinds import is_algorithm
from pipeline.corpus.parse.parsed_page import Block
from pipeline.corpus.parse.policies import INDENT, LINE
from pipeline.corpus.parse.tree import Node
from pipeline.corpus.parse.walk.state import (
    GATHER,
    PARAGRAPH,
    TOP,
    Float,
    Handler,
    TextBuffer,
    Walk,
    is_unmarked_paragraph,
    rows_of,
    take_textboxes,
)

_ITEMS = frozenset({"li", "dt", "dd"})


def box(walk: Walk, node: Node) -> None:
    """An element that ends a word, or a line where lines matter; a paragraph where it is none's."""
    if walk.buffer.mode == TOP and is_unmarked_paragraph(node):
        return para(walk, node)
    walk.flow(node)
    walk.buffer.parts.append(walk.buffer.breaks)
    return None


def para(walk: Walk, node: Node) -> None:
    """Running text. Within a theorem, list, note or cell it is part of that."""
    if walk.buffer.mode != TOP:
        return box(walk, node)
    walk.anchor = node.id or walk.anchor
    return _paragraph(walk, node, Walk.flow)


def _paragraph(walk: Walk, node: Node, read: Handler) -> None:
    """A paragraph of what `read` takes from a node."""
    outer, walk.buffer = walk.buffer, TextBuffer(PARAGRAPH, anchor=node.id)
    read(walk, node)
    walk.end_paragraph()
    walk.buffer = outer


def p(walk: Walk, node: Node) -> None:
    """A `ltx_p`: a paragraph by itself where no `ltx_para` is around it."""
    if walk.buffer.mode == TOP:
        return para(walk, node)
    if walk.buffer.mode == PARAGRAPH and not walk.buffer.anchor:
        walk.buffer.anchor = node.id
    return box(walk, node)


def picture(walk: Walk, node: Node) -> None:
    """A drawing, whose labels are lost; boxes of text in it are text where the drawing is."""
    if not walk.buffer.lost:
        for text in take_textboxes(
            node, is_inline=walk.buffer.mode != TOP and not walk.buffer.float
        ):
            textbox(walk, text)
    return walk.lose("picture", walk.gather_apart(node, TextBuffer(lost=True)).raw)


def textbox(walk: Walk, node: Node) -> None:
    """A box of text: a paragraph where nothing is open."""
    return para(walk, node) if walk.buffer.mode == TOP else box(walk, node)


def equation(walk: Walk, node: Node) -> None:
    """A display equation: part of the paragraph around it, row by row."""
    if walk.buffer.mode == TOP:
        return _paragraph(walk, node, equation)
    if walk.buffer.display:
        return walk.flow(node)
    if walk.buffer.mode == PARAGRAPH and not walk.buffer.anchor:
        walk.buffer.anchor = node.id
    for row in rows_of(node):
        tags: list[str] = []
        buffer = walk.gather(row, TextBuffer(display=True, tags=tags, lost=walk.buffer.lost))
        walk.buffer.after.extend(buffer.after)
        walk.buffer.parts.append(f" {policies.display_math(buffer.raw, ' '.join(tags))} ")
    return None


def list_block(walk: Walk, node: Node) -> None:
    """A list with its nested lists: one block, or lines of the theorem, note or list around it."""
    if walk.buffer.mode == GATHER:
        return _items(walk, node)
    if walk.buffer.mode == PARAGRAPH:
        walk.close_paragraph()
    anchor = node.id or walk.anchor
    outer, walk.buffer = walk.buffer, TextBuffer(anchor=anchor)
    _items(walk, node)
    buffer, walk.buffer = walk.buffer, outer
    text = buffer.text
    return _append(
        walk,
        Block("list", anchor, walk.path, text, policies.cited_keys(text)),
        buffer,
    )


def _items(walk: Walk, node: Node) -> None:
    for child in node:
        if isinstance(child, str):
            walk.buffer.parts.append(child)
        elif child.tag_type.name in _ITEMS:
            _item(walk, child)
        else:
            walk.handlers[child.tag_type.kind](walk, child)
    walk.buffer.parts.append(LINE if not walk.buffer.cell else " ")


def _item(walk: Walk, node: Node) -> None:
    outer = walk.buffer
    tags: list[str] = []
    buffer = walk.gather(
        node, TextBuffer(anchor=outer.anchor, tags=tags, cell=outer.cell, lost=outer.lost)
    )
    outer.after.extend(buffer.after)
    begin = " "
    if node.tag_type.name != "dd":
        line_break = " " if outer.cell else LINE
        begin = f"{line_break}{policies.list_mark(' '.join(tags))} "
    outer.parts.append(begin + buffer.raw)


def theorem(walk: Walk, node: Node) -> None:
    """A theorem or a proof, title and all: one block."""
    if walk.buffer.mode == GATHER:
        return box(walk, node)
    if walk.buffer.mode == PARAGRAPH:
        walk.close_paragraph()
    buffer = walk.gather(node, TextBuffer(anchor=node.id))
    return _append(walk, walk.block("theorem", node, buffer.text), buffer)


def listing(walk: Walk, node: Node) -> None:
    """Lines of an algorithm or of code."""
    if walk.buffer.float is not None:
        walk.buffer.float.listing = True
    if walk.buffer.mode == GATHER:
        return _lines(walk, node)
    if walk.buffer.mode == PARAGRAPH:
        walk.close_paragraph()
    outer, walk.buffer = walk.buffer, TextBuffer(breaks=LINE)
    _lines(walk, node)
    buffer, walk.buffer = walk.buffer, outer
    return _append(walk, walk.block("algorithm", node, buffer.text), buffer)


def _append(walk: Walk, block: Block, buffer: TextBuffer) -> None:
    """A block of its own between paragraphs, and after it what was in it."""
    walk.blocks.extend([block, *buffer.after] if block.text else buffer.after)


def _lines(walk: Walk, node: Node) -> None:
    start = len(walk.buffer.parts)
    box(walk, node)
    if node.tag_type.name == "pre":
        parts = walk.buffer.parts
        lines = [part.replace("\n", LINE + INDENT) for part in parts[start:]]
        parts[start:] = [INDENT, *lines]


def line(walk: Walk, node: Node) -> None:
    """One line of a listing. Spaces in an element of their own are the code's, not the markup's."""
    parts = walk.buffer.parts
    parts.append(LINE + INDENT)
    start = len(parts)
    walk.flow(node)
    parts[start:] = [
        part.replace(" ", "\xa0") if part.isspace() and "\n" not in part else part
        for part in parts[start:]
    ]
    walk.buffer.parts.append(LINE)


def bibliography(walk: Walk, node: Node) -> None:
    """The list of items; words outside of them are lost."""
    if walk.buffer.mode != TOP:
        return box(walk, node)
    buffer = walk.gather(node, TextBuffer(TOP))
    return walk.lose("bibliography", buffer.raw)


def bibitem(walk: Walk, node: Node) -> None:
    """One item."""
    item = ItemParts(key=node.id or f"bib.item{len(walk.findings.printed_items) + 1}")
    buffer = walk.gather(node, TextBuffer(item=item))
    item.raw = buffer.text
    walk.findings.printed_items.append(item)


def bibblock(walk: Walk, node: Node) -> None:
    """A part of an item: authors, title, the rest."""
    start = len(walk.buffer.parts)
    box(walk, node)
    if walk.buffer.item is not None:
        walk.buffer.item.blocks.append(policies.fold("".join(walk.buffer.parts[start:])))


def bibliography_field(walk: Walk, node: Node) -> None:
    """A part of an item that LaTeXML named, such as `ltx_bib_title`."""
    start = len(walk.buffer.parts)
    walk.flow(node)
    item, name = walk.buffer.item, node.tag_type.detail
    if item is not None:
        item.fields.append((name, policies.fold("".join(walk.buffer.parts[start:]))))
        if node.href:
            item.links.append(node.href)
    if name == "author-year":
        walk.buffer.parts.append(" ")


def float_block(walk: Walk, node: Node) -> None:
    """A figure, table or algorithm with its caption: one block; what is nested in it follows."""
    if walk.buffer.lost:
        return box(walk, node)
    classes = node.classes
    if "ltx_figure" in classes.split() and walk.buffer.float is None:
        walk.findings.figures += 1
    contents = Float(listing=is_algorithm(classes))
    grids: list[str] = []
    buffer = walk.gather(node, TextBuffer(anchor=node.id, breaks=LINE, float=contents, grids=grids))
    kind = "algorithm" if contents.listing else "table" if grids else "caption"
    body = [*grids, buffer.text] if kind == "table" else [buffer.text, *grids]
    text = "\n".join(filter(None, [*contents.captions, *body]))
    return walk.put(walk.block(kind, node, text), buffer.after)


def caption(walk: Walk, node: Node) -> None:
    """A caption: the head of its float's block, or a block where it stands alone."""
    outer = walk.buffer
    buffer = walk.gather(node, TextBuffer(anchor=outer.anchor))
    if outer.float is None:
        return walk.put(walk.block("caption", node, buffer.text), buffer.after)
    outer.float.captions.append(buffer.text)
    outer.after.extend(buffer.after)
    return None


def tabular(walk: Walk, node: Node) -> None:
    """A table as Markdown.

    Within a cell, a table of several rows and columns follows the table that it lies in; any other
    only breaks lines.
    """
    outer = walk.buffer
    if outer.lost or (outer.cell and (outer.grids is None or not _is_grid(node))):
        return box(walk, node)
    if outer.marks:
        outer.parts.append(
            policies.byline_grid(
                [[_byline_cell(walk, cell) for cell in row.elements()] for row in rows_of(node)]
            )
        )
        return None
    walk.findings.tables += 1
    buffer = walk.buffer = TextBuffer(anchor=outer.anchor, grids=[], float=outer.float)
    grid, repeated = markdown_grid([_cells(walk, row) for row in rows_of(node)])
    walk.findings.repeated += repeated
    walk.buffer = outer
    text = "\n".join(filter(None, [grid, *(buffer.grids or ())]))
    if outer.grids is None:
        return walk.put(walk.block("table", node, text), buffer.after)
    outer.grids.append(text)
    outer.parts.append(" " if outer.cell else "")
    outer.after.extend(buffer.after)
    return None


def _is_grid(node: Node) -> bool:
    """Whether a table has at least two rows of at least two cells."""
    rows = ([cell for cell in row if not isinstance(cell, str)] for row in rows_of(node))
    return sum(len(cells) > 1 for cells in rows) > 1


def _byline_cell(walk: Walk, node: Node) -> str:
    """A cell of a grid that an author laid a byline out in."""
    return walk.gather_apart(node, TextBuffer(marks=True, breaks=LINE)).raw


def _cells(walk: Walk, row: Node) -> list[TableCell]:
    cells = []
    for child in row:
        if not isinstance(child, str):
            cells.append(_cell(walk, child))
        elif not child.isspace():  # in a cell of an unknown class
            cells.append(TableCell(policies.finish(child)))
    return cells


def _cell(walk: Walk, node: Node) -> TableCell:
    raw = node.only_text()
    if raw is None:
        table = walk.buffer
        buffer = walk.gather(
            node,
            TextBuffer(anchor=table.anchor, cell=True, grids=table.grids, float=table.float),
        )
        walk.buffer.after.extend(buffer.after)
        raw = buffer.raw
    columns = rows = 1
    attributes, classes = node.tag_type.attributes, node.classes
    if "colspan" in attributes or "rowspan" in attributes or "span_" in classes:  # 1 cell of 20
        columns, rows = _span_of(node, "colspan"), _span_of(node, "rowspan")
    return TableCell(
        policies.finish(raw.replace(LINE, " ")),
        columns,
        rows,
        "ltx_th_column" in classes,
        "ltx_border_t" in classes,
    )


def _span_of(node: Node, name: str) -> int:
    """The columns or rows of a cell; of a table of `span`s its class alone has them."""
    return span(node.get(name) or node.classes.partition(f"ltx_{name}_")[2].partition(" ")[0])
