"""Figures, tables and algorithms with their captions, and grids as Markdown."""

from __future__ import annotations

from pipeline.corpus.parse import policies
from pipeline.corpus.parse.grids import Cell, markdown_grid, span
from pipeline.corpus.parse.kinds import is_algorithm
from pipeline.corpus.parse.policies import ERRED, LINE
from pipeline.corpus.parse.tree import Node
from pipeline.corpus.parse.walk.blocks import box
from pipeline.corpus.parse.walk.state import GATHER, Float, Sink, Walk, rows_of


def float_block(walk: Walk, node: Node) -> None:
    """A figure, table or algorithm with its caption: one block; what is nested in it follows."""
    if walk.sink.lost:
        return box(walk, node)
    classes = node.classes
    if "ltx_figure" in classes.split() and walk.sink.float is None:
        walk.found.figures += 1
    contents = Float(listing=is_algorithm(classes))
    grids: list[str] = []
    sink = walk.gather(node, Sink(GATHER, anchor=node.id, breaks=LINE, float=contents, grids=grids))
    kind = "algorithm" if contents.listing else "table" if grids else "caption"
    body = [*grids, sink.text] if kind == "table" else [sink.text, *grids]
    text = "\n".join(filter(None, [*contents.captions, *body]))
    return walk.put(walk.block(kind, node, text, contents.errors + sink.errors), sink.after)


def caption(walk: Walk, node: Node) -> None:
    """A caption: the head of its float's block, or a block where it stands alone."""
    outer = walk.sink
    sink = walk.gather(node, Sink(GATHER, anchor=outer.anchor))
    if outer.float is None:
        return walk.put(walk.block("caption", node, sink.text, sink.errors), sink.after)
    outer.float.captions.append(sink.text)
    outer.float.errors += sink.errors
    outer.after.extend(sink.after)
    return None


def tabular(walk: Walk, node: Node) -> None:
    """A table as Markdown.

    Within a cell, a table of several rows and columns follows the table that it lies in; any other only breaks lines.
    """
    outer = walk.sink
    if outer.lost or (outer.cell and (outer.grids is None or not _is_grid(node))):
        return box(walk, node)
    if outer.marks:
        outer.parts.append(
            policies.byline_grid([[_byline_cell(walk, cell) for cell in row.elements()] for row in rows_of(node)])
        )
        return None
    walk.found.tables += 1
    sink = walk.sink = Sink(GATHER, anchor=outer.anchor, grids=[], float=outer.float)
    grid, repeated = markdown_grid([_cells(walk, row) for row in rows_of(node)])
    walk.found.repeated += repeated
    walk.sink = outer
    text = "\n".join(filter(None, [grid, *(sink.grids or ())]))
    if outer.grids is None:
        return walk.put(walk.block("table", node, text, sink.errors), sink.after)
    outer.grids.append(text)
    outer.parts.append(ERRED * sink.errors + (" " if outer.cell else ""))
    outer.after.extend(sink.after)
    return None


def _is_grid(node: Node) -> bool:
    """Whether a table has at least two rows of at least two cells."""
    rows = ([cell for cell in row if not isinstance(cell, str)] for row in rows_of(node))
    return sum(len(cells) > 1 for cells in rows) > 1


def _byline_cell(walk: Walk, node: Node) -> str:
    """A cell of a grid that an author laid a byline out in."""
    sink = walk.gather(node, Sink(GATHER, marks=True, breaks=LINE))
    walk.sink.after.extend(sink.after)
    return sink.raw


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
        table = walk.sink
        sink = walk.gather(node, Sink(GATHER, anchor=table.anchor, cell=True, grids=table.grids, float=table.float))
        walk.sink.after.extend(sink.after)
        raw = sink.raw
    if ERRED in raw:
        walk.sink.parts.append(ERRED * raw.count(ERRED))
    columns = rows = 1
    attributes = node.mould.attributes
    if "colspan" in attributes or "rowspan" in attributes:  # 1 cell of 20
        columns, rows = span(node.get("colspan")), span(node.get("rowspan"))
    classes = node.classes
    return Cell(policies.finish(raw), columns, rows, "ltx_th_column" in classes, "ltx_border_t" in classes)
