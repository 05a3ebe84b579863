"""Bylines as they stand on the page."""

from __future__ import annotations

from pipeline.corpus import policies
from pipeline.corpus.policies import LINE, TEX
from pipeline.corpus.printed_byline import Byline
from pipeline.corpus.tree import Node
from pipeline.corpus.walk.nodes import role_of
from pipeline.corpus.walk.state import GATHER, Sink, Walk


def authors(walk: Walk, node: Node) -> None:
    """All bylines; what stands between them is lost."""
    sink = walk.gather(node, Sink(GATHER))
    walk.put(None, sink.after)
    walk.lose("author_mark", sink.raw)


def creator(walk: Walk, node: Node) -> None:
    """One byline: an author, or all of them with their affiliations glued in."""
    if "ltx_role_author" not in node.classes:
        sink = walk.gather(node, Sink(GATHER, lost=True))
        walk.put(None, sink.after)
        return walk.lose("creator", sink.raw)
    outer, walk.byline = walk.byline, Byline()
    sink = walk.gather(node, Sink(GATHER))
    walk.found.bylines.append(walk.byline)
    walk.byline = outer
    walk.put(None, sink.after)
    return walk.lose("author_mark", sink.raw)


def personname(walk: Walk, node: Node) -> None:
    """The names of a byline, with line breaks, marks and places of errors."""
    sink = walk.gather(node, Sink(GATHER, marks=True, breaks=LINE))
    walk.put(None, sink.after)
    names = sink.raw.replace(TEX, "$")
    if walk.byline is None:
        walk.found.bylines.append(Byline(names=names))
    else:
        walk.byline.names += names


def contact(walk: Walk, node: Node) -> None:
    """An affiliation, address, e-mail or the like of a byline."""
    sink = walk.gather(node, Sink(GATHER, breaks=LINE))
    walk.put(None, sink.after)
    if walk.byline is None:
        return walk.lose("contact", sink.raw)
    walk.byline.contacts.append((role_of(node), policies.with_dollars(sink.raw)))
    return None


def address_part(walk: Walk, node: Node) -> None:
    """The institution, city or country of an acmart affiliation, which have nothing between them."""
    walk.flow(node)
    walk.sink.parts.append(LINE if walk.sink.breaks == LINE else ", ")


def author_notes(walk: Walk, node: Node) -> None:
    """What else is said of the authors of a byline."""
    sink = walk.gather(node, Sink(GATHER))
    walk.put(None, sink.after)
    if walk.byline is not None:
        walk.byline.remarks.append(sink.text)
