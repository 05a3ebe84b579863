"""Figures, tables and algorithms with their captions, and grids as Markdown. Not here: the Markdown (`policies.py`)."""

from __future__ import annotations

from collections.abc import Iterator

from selectolax.lexbor import LexborNode

from pipeline.corpus import policies
from pipeline.corpus.kinds import is_algorithm
from pipeline.corpus.policies import LINE
from pipeline.corpus.walk.blocks import box
from pipeline.corpus.walk.nodes import classes_of, elements, id_of, rows_of
from pipeline.corpus.walk.state import GATHER, Float, Sink, Walk

# A cell that claims to span more is broken input, not a table.
_WIDEST_SPAN = 200

Cell = tuple[str, int, int]
"""Text, columns, rows."""


def float_block(walk: Walk, node: LexborNode) -> None:
    """A figure, table or algorithm with its caption: one block; what is nested in it follows."""
    classes = classes_of(node)
    if "ltx_figure" in classes.split() and walk.sink.float is None:
        walk.figures += 1
    contents = Float(listing=is_algorithm(classes))
    sink = walk.gather(node, Sink(GATHER, anchor=id_of(node), breaks=LINE, float=contents, lost=walk.sink.lost))
    kind = "algorithm" if contents.listing else "table" if contents.grids else "caption"
    head, body = "\n".join(contents.captions), [sink.text, *contents.grids]
    text = "\n".join(filter(None, [head, *(body if kind != "table" else reversed(body))]))
    walk.put(walk.block(kind, node, text), sink.after)


def caption(walk: Walk, node: LexborNode) -> None:
    """A caption: the head of its float's block, or a block where it stands alone."""
    outer = walk.sink
    sink = walk.gather(node, Sink(GATHER, anchor=outer.anchor))
    if outer.float is None:
        return walk.put(walk.block("caption", node, sink.text), sink.after)
    outer.float.captions.append(sink.text)
    outer.after.extend(sink.after)
    return None


def tabular(walk: Walk, node: LexborNode) -> None:
    """A grid as Markdown. A grid within a cell is part of the cell's text."""
    outer = walk.sink
    if outer.cell or outer.lost:
        return box(walk, node)
    walk.tables += 1
    sink = walk.sink = Sink(GATHER, anchor=outer.anchor)
    grid = policies.markdown_table(_spread(_cells(walk, row) for row in rows_of(node)))
    walk.sink = outer
    if outer.float is None:
        return walk.put(walk.block("table", node, grid), sink.after)
    outer.float.grids.append(grid)
    outer.after.extend(sink.after)
    return None


def _cells(walk: Walk, row: LexborNode) -> list[Cell]:
    return [_cell(walk, child) for child in elements(row)]


def _cell(walk: Walk, node: LexborNode) -> Cell:
    sink = walk.gather(node, Sink(GATHER, anchor=walk.sink.anchor, cell=True))
    walk.sink.after.extend(sink.after)
    attributes = node.attributes
    return sink.text, _span(attributes.get("colspan")), _span(attributes.get("rowspan"))


def _spread(rows: Iterator[list[Cell]]) -> list[list[str]]:
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
