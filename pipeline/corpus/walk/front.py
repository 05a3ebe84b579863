"""Bylines as they stand on the page. Not here: telling names from affiliations (`authors.py`)."""

from __future__ import annotations

from selectolax.lexbor import LexborNode

from pipeline.corpus import policies
from pipeline.corpus.authors import Byline
from pipeline.corpus.policies import LINE
from pipeline.corpus.walk.nodes import classes_of, role_of
from pipeline.corpus.walk.state import GATHER, Sink, Walk


def authors(walk: Walk, node: LexborNode) -> None:
    """All bylines; what stands between them is lost."""
    sink = walk.gather(node, Sink(GATHER))
    walk.put(None, sink.after)
    walk.count_loss("author_mark", sink)


def creator(walk: Walk, node: LexborNode) -> None:
    """One byline: an author, or all of them with their affiliations glued in."""
    if "ltx_role_author" not in classes_of(node):
        return walk.lose(node, "creator")
    outer, walk.byline = walk.byline, Byline()
    sink = walk.gather(node, Sink(GATHER))
    walk.bylines.append(walk.byline)
    walk.byline = outer
    walk.put(None, sink.after)
    return walk.count_loss("author_mark", sink)


def personname(walk: Walk, node: LexborNode) -> None:
    """The names of a byline, with line breaks and marks kept."""
    sink = walk.gather(node, Sink(GATHER, marks=True, breaks=LINE))
    if walk.byline is None:
        walk.bylines.append(Byline(names=sink.raw))
    else:
        walk.byline.names += sink.raw


def contact(walk: Walk, node: LexborNode) -> None:
    """An affiliation, address, e-mail or the like of a byline."""
    sink = walk.gather(node, Sink(GATHER, breaks=LINE))
    if walk.byline is None:
        return walk.count_loss("contact", sink)
    walk.byline.contacts.append((role_of(node), policies.joined_lines(sink.raw)))
    return None


def author_notes(walk: Walk, node: LexborNode) -> None:
    """What else is said of the authors of a byline."""
    sink = walk.gather(node, Sink(GATHER))
    if walk.byline is not None:
        walk.byline.remarks.append(sink.text)
