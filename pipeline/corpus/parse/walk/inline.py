"""Elements within a sentence: formulas, citations, footnotes, links, marks."""

from __future__ import annotations

from pipeline.corpus.parse import policies
from pipeline.corpus.parse.policies import (
    ERRED,
    GONE,
    INDENT,
    LINE,
    LOWERED,
    MARK,
    NOTE,
    RAISED,
    SCRIPT_END,
)
from pipeline.corpus.parse.tree import Node
from pipeline.corpus.parse.walk.state import (
    TextBuffer,
    Walk,
    annotation_of,
    drawn_text,
    note_mark_of,
)

Pieces = list[str | tuple[str, str]]

# Elements that styles set around the links of a citation.
_AROUND_LINKS = frozenset({"link", "subscript", "emphasis", "box", "p", "raised", "lowered"})


def math(walk: Walk, node: Node) -> None:
    """A formula left in the text: it has no alttext, or is a picture."""
    given_tex = node.get("alttext") or node.get("alt") or annotation_of(node)
    tex = policies.tex_source(given_tex or drawn_text(node))
    walk.findings.formulas += 1
    walk.findings.math_without_tex += not given_tex
    walk.findings.seen += policies.visible(tex) - policies.visible(node.text())
    walk.buffer.parts.append(policies.inline_tex(tex))


def cite(walk: Walk, node: Node) -> None:
    """A citation as its markers."""
    if walk.buffer.lost:
        return walk.flow(node)
    pieces: Pieces = []
    _cite_pieces(walk, node, pieces)
    cited = policies.citation(pieces)
    walk.findings.citations.append(cited)
    walk.buffer.parts.append(cited[0])
    return None


def _cite_pieces(walk: Walk, node: Node, pieces: Pieces) -> None:
    for child in node:
        if isinstance(child, str):
            pieces.append(child)
            continue
        kind = child.tag_type.kind
        key = policies.cited_key(child.href) if kind == "link" else None
        if key:
            is_raised = child.only_text() is None and any(
                inner.tag_type.kind == "superscript" for inner in child.elements()
            )
            link = (key, child.text())
            pieces.extend([RAISED, link, SCRIPT_END] if is_raised else [link])
        elif kind == "superscript" or (kind == "raised" and policies.is_mark(child.text())):
            pieces.append(RAISED)
            _cite_pieces(walk, child, pieces)
            pieces.append(SCRIPT_END)
        elif kind in _AROUND_LINKS:
            _cite_pieces(walk, child, pieces)
        elif child.tag_type.detail == "missing_citation":
            lose(walk, child)
            pieces.append(policies.missing_key(child.text()))
        else:
            outer, walk.buffer = walk.buffer, TextBuffer()
            walk.handlers[kind](walk, child)
            buffer, walk.buffer = walk.buffer, outer
            walk.put(None, buffer.after)
            pieces.append(buffer.raw)


def note(walk: Walk, node: Node) -> None:
    """A footnote: out of the sentence, a block of its own after the block that held it."""
    if walk.buffer.lost:
        return walk.flow(node)
    buffer = walk.gather(node, TextBuffer(breaks=LINE if walk.buffer.marks else " "))
    if walk.byline is not None and walk.buffer.marks:
        mark = f"{NOTE}{note_mark_of(node)}"
        walk.byline.parts.append((mark, policies.with_dollars(buffer.raw)))
        walk.buffer.parts.append(f"{MARK}{mark}{MARK}")
        return None
    classes = node.classes
    if "ltx_role_institutetext" in classes or "ltx_role_email" in classes:
        walk.findings.institutes.append(policies.with_dollars(buffer.raw).replace(GONE, ""))
        return None
    text = "" if "ltx_role_footnotemark" in classes else buffer.text
    walk.put(walk.block("footnote", node, text), buffer.after)
    if walk.byline is None:
        walk.buffer.parts.append(GONE)
    return None


def link(walk: Walk, node: Node) -> None:
    """A link: its words; in a bibliography item its address too."""
    if walk.buffer.item is not None:
        walk.buffer.item.links.append(node.href)
    walk.flow(node)


def superscript(walk: Walk, node: Node) -> None:
    """A superscript: among author names a mark that leads to an affiliation."""
    if not walk.buffer.marks:
        return _script(walk, node, RAISED)
    parts = walk.buffer.parts
    start = len(parts)
    walk.flow(node)
    parts[start:] = [policies.mark("".join(parts[start:]))]
    return None


def subscript(walk: Walk, node: Node) -> None:
    """A subscript of the text."""
    return walk.flow(node) if walk.buffer.marks else _script(walk, node, LOWERED)


def moved(walk: Walk, node: Node) -> None:
    """A box of \\raisebox: a superscript or subscript if it is a number or mark, else words."""
    if not policies.is_mark(node.text()):
        return walk.flow(node)
    if node.tag_type.kind == "raised":
        return superscript(walk, node)
    return subscript(walk, node)


def _script(walk: Walk, node: Node, mark: str) -> None:
    if walk.byline is not None:
        return walk.flow(node)
    walk.buffer.parts.append(mark)
    walk.flow(node)
    walk.buffer.parts.append(SCRIPT_END)
    return None


def emphasis(walk: Walk, node: Node) -> None:
    """Words in italics: in a bibliography item they tell titles and venues."""
    start = len(walk.buffer.parts)
    walk.flow(node)
    if walk.buffer.item is not None:
        words = policies.fold("".join(walk.buffer.parts[start:]))
        walk.buffer.item.emphases += filter(None, [words])


def tag(walk: Walk, node: Node) -> None:
    """A number or bullet: aside where the buffer asks for it, else a word of the text."""
    if walk.buffer.tags is None:
        return walk.flow(node)
    text = node.only_text()
    if text is None:
        walk.buffer.tags.append(walk.gather(node, TextBuffer()).text)
    else:
        walk.buffer.tags.append(policies.finish(text))
    return None


def line_number(walk: Walk, node: Node) -> None:
    """The number of a line of code or an algorithm, as a word of its own."""
    walk.flow(node)
    walk.buffer.parts.append(f" {INDENT}")


def line_break(walk: Walk, node: Node) -> None:
    """A `br`."""
    walk.buffer.parts.append(walk.buffer.breaks)


def white(walk: Walk, node: Node) -> None:
    """White letters: read in a table, whose heads may have a dark ground; hidden anywhere else."""
    if walk.buffer.cell:
        return walk.flow(node)
    return _lose(walk, node, "hidden")


def lose(walk: Walk, node: Node) -> None:
    """What no column has a place for, or what is said elsewhere: counted by what it is."""
    name = node.tag_type.detail
    if name == "missing_citation":
        walk.findings.missing_citations += 1
    if name == "ltx_error" and walk.buffer.marks:
        walk.buffer.parts.append(ERRED + policies.author_macro(node.text()))
    if name == "bibliography_tag" and walk.buffer.item is not None:
        walk.buffer.item.label = policies.fold(node.text())
    _lose(walk, node, name)


def _lose(walk: Walk, node: Node, name: str) -> None:
    text = node.only_text()
    if text is not None:
        return walk.lose(name, text)
    return walk.lose(name, walk.gather_apart(node, TextBuffer(lost=True)).raw)
