"""Figures, tables and algorithms with their captions, and grids as Markdown."""

from __future__ import annotations

from pipeline.corpus.parse import policies
from pipeline.corpus.parse.grids import Cell, markdown_grid, span
from pipeline.corpus.parse.kinds import is_algorithm
from pipeline.corpus.parse.policies import ERRED, LINE
from pipeline.corpus.parse.tree import Node
from pipeline.corpus.parse.walk.blocks import box
from pipeline.corpus.parse.walk.state import GATHER, Float, TextBuffer, Walk, rows_of


def float_block(walk: Walk, node: Node) -> None:
    """A figure, table or algorithm with its caption: one block; what is nested in it follows."""
    if walk.buffer.lost:
        return box(walk, node)
    classes = node.classes
    if "ltx_figure" in classes.split() and walk.buffer.float is None:
        walk.found.figures += 1
    contents = Float(listing=is_algorithm(classes))
    grids: list[str] = []
    buffer = walk.gather(node, TextBuffer(GATHER, anchor=node.id, breaks=LINE, float=contents, grids=grids))
    kind = "algorithm" if contents.listing else "table" if grids else "caption"
    body = [*grids, buffer.text] if kind == "table" else [buffer.text, *grids]
    text = "\n".join(filter(None, [*contents.captions, *body]))
    return walk.put(walk.block(kind, node, text, contents.errors + buffer.errors), buffer.after)


def caption(walk: Walk, node: Node) -> None:
    """A caption: the head of its float's block, or a block where it stands alone."""
    outer = walk.buffer
    buffer = walk.gather(node, TextBuffer(GATHER, anchor=outer.anchor))
    if outer.float is None:
        return walk.put(walk.block("caption", node, buffer.text, buffer.errors), buffer.after)
    outer.float.captions.append(buffer.text)
    outer.float.errors += buffer.errors
    outer.after.extend(buffer.after)
    return None


def tabular(walk: Walk, node: Node) -> None:
    """A table as Markdown.

    Within a cell, a table of several rows and columns follows the table that it lies in; any other only breaks lines.
    """
    outer = walk.buffer
    if outer.lost or (outer.cell and (outer.grids is None or not _is_grid(node))):
        return box(walk, node)
    if outer.marks:
        outer.parts.append(
            policies.byline_grid([[_byline_cell(walk, cell) for cell in row.elements()] for row in rows_of(node)])
        )
        return None
    walk.found.tables += 1
    buffer = walk.buffer = TextBuffer(GATHER, anchor=outer.anchor, grids=[], float=outer.float)
    grid, repeated = markdown_grid([_cells(walk, row) for row in rows_of(node)])
    walk.found.repeated += repeated
    walk.buffer = outer
    text = "\n".join(filter(None, [grid, *(buffer.grids or ())]))
    if outer.grids is None:
        return walk.put(walk.block("table", node, text, buffer.errors), buffer.after)
    outer.grids.append(text)
    outer.parts.append(ERRED * buffer.errors + (" " if outer.cell else ""))
    outer.after.extend(buffer.after)
    return None


def _is_grid(node: Node) -> bool:
    """Whether a table has at least two rows of at least two cells."""
    rows = ([cell for cell in row if not isinstance(cell, str)] for row in rows_of(node))
    return sum(len(cells) > 1 for cells in rows) > 1


def _byline_cell(walk: Walk, node: Node) -> str:
    """A cell of a grid that an author laid a byline out in."""
    buffer = walk.gather(node, TextBuffer(GATHER, marks=True, breaks=LINE))
    walk.buffer.after.extend(buffer.after)
    return buffer.raw


def _cells(walk: Walk, row: Node) -> list[Cell]:
    cells = []
    for child in row:
        if not isinstance(child, str):
            cells.append(_cell(walk, child))
        elif not child.isspace():
            walk.lose("outside_cells", child)
    return cells


def _cell(walk: Walk, node: Node) -> Cell:
    raw = node.only_text()
    if raw is None:
        table = walk.buffer
        buffer = walk.gather(
            node, TextBuffer(GATHER, anchor=table.anchor, cell=True, grids=table.grids, float=table.float)
        )
        walk.buffer.after.extend(buffer.after)
        raw = buffer.raw
    if ERRED in raw:
        walk.buffer.parts.append(ERRED * raw.count(ERRED))
    columns = rows = 1
    attributes = node.tag_type.attributes
    if "colspan" in attributes or "rowspan" in attributes:  # 1 cell of 20
        columns, rows = span(node.get("colspan")), span(node.get("rowspan"))
    classes = node.classes
    return Cell(policies.finish(raw), columns, rows, "ltx_th_column" in classes, "ltx_border_t" in classes)
