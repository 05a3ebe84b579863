"""The bibliography's items as the page lays them out."""

from __future__ import annotations

from pipeline.corpus import policies
from pipeline.corpus.bibliography import ItemParts
from pipeline.corpus.tree import Node
from pipeline.corpus.walk.blocks import box
from pipeline.corpus.walk.state import GATHER, TOP, Sink, Walk


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
