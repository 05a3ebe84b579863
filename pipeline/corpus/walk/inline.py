"""Elements within a sentence: formulas, citations, footnotes, links, marks. Not here: what a sentence stands in."""

from __future__ import annotations

from selectolax.lexbor import LexborNode

from pipeline.corpus import policies
from pipeline.corpus.policies import GONE, LINE, MARK, TEX
from pipeline.corpus.walk.nodes import annotation_of, note_mark_of
from pipeline.corpus.walk.state import GATHER, Handler, Sink, Walk

Pieces = list[str | tuple[str, str]]


def math(walk: Walk, node: LexborNode) -> None:
    """A formula, once, as its TeX."""
    attributes = node.attributes
    tex = policies.tex_source(attributes.get("alttext") or attributes.get("alt") or annotation_of(node))
    walk.formulas += 1
    walk.tex_chars += policies.visible(tex)
    if node.first_child is not None:
        walk.unseen_chars += policies.visible(node.text())
    if walk.sink.display:
        walk.sink.parts.append(f"{TEX}{tex}{TEX}")
    else:
        walk.sink.parts.append(tex if walk.sink.lost else policies.inline_math(tex))


def cite(walk: Walk, node: LexborNode) -> None:
    """A citation as its markers."""
    pieces: Pieces = []
    _cite_pieces(walk, node, pieces)
    if walk.sink.lost:
        pieces = [piece if isinstance(piece, str) else piece[1] for piece in pieces]
    walk.sink.parts.append(policies.citation(pieces))


def _cite_pieces(walk: Walk, node: LexborNode, pieces: Pieces) -> None:
    child = node.first_child
    while child is not None:
        tag, attributes = child.tag, child.attributes
        key = policies.cited_key(attributes.get("href")) if tag == "a" else None
        if tag == "-text":
            pieces.append(child.text_content or "")
        elif key:
            pieces.append((key, policies.fold(child.text())))
        elif tag is not None and tag[0] not in "-!":
            handler = walk.handler_of(tag, attributes.get("class") or "")
            if handler is None or tag == "a":
                _cite_pieces(walk, child, pieces)
            else:
                pieces.append(_aside(walk, child, handler))
        child = child.next


def _aside(walk: Walk, node: LexborNode, handler: Handler) -> str:
    outer, walk.sink = walk.sink, Sink(GATHER, lost=walk.sink.lost)
    handler(walk, node)
    sink, walk.sink = walk.sink, outer
    walk.put(None, sink.after)
    return sink.raw


def note(walk: Walk, node: LexborNode) -> None:
    """A footnote: out of the sentence, a block of its own after the block that held it."""
    classes = node.attributes.get("class") or ""
    sink = walk.gather(node, Sink(GATHER, breaks=LINE if walk.sink.marks else " "))
    if walk.byline is not None and walk.sink.marks:
        walk.byline.add_note(note_mark_of(node), sink.raw)
        walk.sink.parts.append(f"{MARK}{note_mark_of(node)}{MARK}")
        return
    if "ltx_role_institutetext" in classes or "ltx_role_email" in classes:
        walk.institutes.append(sink.raw.replace(GONE, ""))
        return
    text = "" if "ltx_role_footnotemark" in classes else sink.text
    walk.put(walk.block("footnote", node, text), sink.after)
    if walk.byline is None:
        walk.sink.parts.append(GONE)


def link(walk: Walk, node: LexborNode) -> None:
    """A link: its words; in a bibliography item its address too."""
    if walk.sink.item is not None:
        walk.sink.item.links.append(node.attributes.get("href") or "")
    walk.flow(node)


def mark(walk: Walk, node: LexborNode) -> None:
    """A superscript: among author names a mark that leads to an affiliation."""
    if not walk.sink.marks:
        return walk.flow(node)
    walk.sink.parts.append(MARK)
    walk.flow(node)
    walk.sink.parts.append(MARK)
    return None


def emphasis(walk: Walk, node: LexborNode) -> None:
    """Words in italics: in a bibliography item they tell titles and venues."""
    start = len(walk.sink.parts)
    walk.flow(node)
    if walk.sink.item is not None:
        walk.sink.item.emphases.append(policies.fold("".join(walk.sink.parts[start:])))


def tag(walk: Walk, node: LexborNode) -> None:
    """A number or bullet: aside where the sink asks for it, else a word of the text."""
    if walk.sink.tags is None:
        return walk.flow(node)
    sink = walk.gather(node, Sink(GATHER))
    walk.sink.tags.append(sink.text)
    return None


def line_break(walk: Walk, node: LexborNode) -> None:
    """A `br`."""
    walk.sink.parts.append(walk.sink.breaks)


def skip(walk: Walk, node: LexborNode) -> None:
    """What no reader sees."""
    walk.unseen_chars += policies.visible(node.text())
