"""Paragraphs, display equations, lists, theorems, listings and bibliography items."""

from __future__ import annotations

from pipeline.corpus.parse import policies
from pipeline.corpus.parse.bibliography import ItemParts
from pipeline.corpus.parse.paper import Block
from pipeline.corpus.parse.policies import LINE
from pipeline.corpus.parse.tree import Node
from pipeline.corpus.parse.walk.state import GATHER, PARAGRAPH, TOP, Sink, Walk, rows_of

_ITEMS = frozenset({"li", "dt", "dd"})


def box(walk: Walk, node: Node) -> None:
    """An element that ends a word, or a line where lines matter."""
    walk.flow(node)
    walk.sink.parts.append(walk.sink.breaks)


def para(walk: Walk, node: Node) -> None:
    """Running text. Within a theorem, list, note or cell it is part of that."""
    if walk.sink.mode != TOP:
        return box(walk, node)
    walk.anchor = node.id or walk.anchor
    outer, walk.sink = walk.sink, Sink(PARAGRAPH, anchor=node.id)
    walk.flow(node)
    walk.end_paragraph()
    walk.sink = outer
    return None


def p(walk: Walk, node: Node) -> None:
    """A `ltx_p`: a paragraph by itself where no `ltx_para` is around it."""
    if walk.sink.mode == TOP:
        return para(walk, node)
    if walk.sink.mode == PARAGRAPH and not walk.sink.anchor:
        walk.sink.anchor = node.id
    return box(walk, node)


def equation(walk: Walk, node: Node) -> None:
    """A display equation: part of the paragraph around it, row by row."""
    if walk.sink.mode == TOP:
        outer, walk.sink = walk.sink, Sink(PARAGRAPH, anchor=node.id)
        equation(walk, node)
        walk.end_paragraph()
        walk.sink = outer
        return None
    if walk.sink.display:
        return walk.flow(node)
    if walk.sink.mode == PARAGRAPH and not walk.sink.anchor:
        walk.sink.anchor = node.id
    for row in rows_of(node):
        tags: list[str] = []
        sink = walk.gather(row, Sink(GATHER, display=True, tags=tags, lost=walk.sink.lost))
        walk.sink.after.extend(sink.after)
        walk.sink.parts.append(f" {policies.display_math(sink.raw, ' '.join(tags))} ")
    return None


def list_block(walk: Walk, node: Node) -> None:
    """A list with its nested lists: one block, or lines of the theorem, note or list around it."""
    if walk.sink.mode == GATHER:
        return _items(walk, node)
    if walk.sink.mode == PARAGRAPH:
        walk.close_paragraph()
    anchor = node.id or walk.anchor
    outer, walk.sink = walk.sink, Sink(GATHER, anchor=anchor)
    _items(walk, node)
    sink, walk.sink = walk.sink, outer
    text = sink.text
    return _append(walk, Block("list", anchor, walk.path, text, policies.cited_keys(text), sink.errors), sink)


def _items(walk: Walk, node: Node) -> None:
    for child in node:
        if isinstance(child, str):
            walk.sink.parts.append(child)
        elif child.mould.name in _ITEMS:
            _item(walk, child)
        else:
            walk.handlers[child.mould.kind](walk, child)
    walk.sink.parts.append(LINE if not walk.sink.cell else " ")


def _item(walk: Walk, node: Node) -> None:
    outer = walk.sink
    tags: list[str] = []
    sink = walk.gather(node, Sink(GATHER, anchor=outer.anchor, tags=tags, cell=outer.cell, lost=outer.lost))
    outer.after.extend(sink.after)
    begin = " " if node.mould.name == "dd" else f"{' ' if outer.cell else LINE}{policies.list_mark(' '.join(tags))} "
    outer.parts.append(begin + sink.raw)


def theorem(walk: Walk, node: Node) -> None:
    """A theorem or a proof, title and all: one block."""
    if walk.sink.mode == GATHER:
        return box(walk, node)
    if walk.sink.mode == PARAGRAPH:
        walk.close_paragraph()
    sink = walk.gather(node, Sink(GATHER, anchor=node.id))
    return _append(walk, walk.block("theorem", node, sink.text, sink.errors), sink)


def listing(walk: Walk, node: Node) -> None:
    """Lines of an algorithm or of code."""
    if walk.sink.float is not None:
        walk.sink.float.listing = True
    if walk.sink.mode == GATHER:
        return _lines(walk, node)
    if walk.sink.mode == PARAGRAPH:
        walk.close_paragraph()
    outer, walk.sink = walk.sink, Sink(GATHER, breaks=LINE)
    _lines(walk, node)
    sink, walk.sink = walk.sink, outer
    return _append(walk, walk.block("algorithm", node, sink.text, sink.errors), sink)


def _append(walk: Walk, block: Block, sink: Sink) -> None:
    """A block of its own between paragraphs, and after it what stood in it."""
    walk.blocks.extend([block, *sink.after] if block.text else sink.after)


def _lines(walk: Walk, node: Node) -> None:
    start = len(walk.sink.parts)
    box(walk, node)
    if node.mould.name == "pre":
        parts = walk.sink.parts
        parts[start:] = [part.replace("\n", walk.sink.breaks) for part in parts[start:]]


def line(walk: Walk, node: Node) -> None:
    """One line of a listing."""
    walk.flow(node)
    walk.sink.parts.append(" " if walk.sink.cell else LINE)


def bibliography(walk: Walk, node: Node) -> None:
    """The list of items; words outside of them are lost."""
    if walk.sink.mode != TOP:
        return box(walk, node)
    sink = walk.gather(node, Sink(TOP))
    return walk.lose("bibliography", sink.raw)


def bibitem(walk: Walk, node: Node) -> None:
    """One item."""
    item = ItemParts(key=node.id or f"bib.item{len(walk.found.printed_items) + 1}")
    sink = walk.gather(node, Sink(GATHER, item=item))
    item.raw = sink.text
    walk.found.printed_items.append(item)


def bibblock(walk: Walk, node: Node) -> None:
    """A part of an item: authors, title, the rest."""
    start = len(walk.sink.parts)
    box(walk, node)
    if walk.sink.item is not None:
        walk.sink.item.blocks.append(policies.fold("".join(walk.sink.parts[start:])))


def bibliography_field(walk: Walk, node: Node) -> None:
    """A part of an item that LaTeXML named, such as `ltx_bib_title`."""
    start = len(walk.sink.parts)
    walk.flow(node)
    if walk.sink.item is not None:
        walk.sink.item.fields.append((node.mould.detail, policies.fold("".join(walk.sink.parts[start:]))))
