"""Figures, tables and algorithms with their captions, and grids as Markdown."""

from __future__ import annotations

from collections.abc import Iterator

from pipeline.corpus import policies
from pipeline.corpus.kinds import is_algorithm
from pipeline.corpus.policies import ERRED, LINE
from pipeline.corpus.tree import Node
from pipeline.corpus.walk.blocks import box
from pipeline.corpus.walk.nodes import rows_of
from pipeline.corpus.walk.state import GATHER, Float, Sink, Walk

# What claims to span more, or to fill more with its spans, is broken input, not a table.
_WIDEST_SPAN, _MOST_CELLS = 200, 100_000

Cell = tuple[str, int, int]
"""Text, columns, rows."""

_HEAD = "ltx_th_column"


def float_block(walk: Walk, node: Node) -> None:
    """A figure, table or algorithm with its caption: one block; what is nested in it follows."""
    if walk.sink.lost:
        return box(walk, node)
    classes = node.classes
    if "ltx_figure" in classes.split() and walk.sink.float is None:
        walk.found.figures += 1
    contents = Float(listing=is_algorithm(classes))
    sink = walk.gather(node, Sink(GATHER, anchor=node.id, breaks=LINE, float=contents))
    kind = "algorithm" if contents.listing else "table" if contents.grids else "caption"
    body = [*contents.grids, sink.text] if kind == "table" else [sink.text, *contents.grids]
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
    """A grid as Markdown. A grid within a cell is part of the cell's text."""
    outer = walk.sink
    if outer.cell or outer.lost:
        return box(walk, node)
    walk.found.tables += 1
    sink = walk.sink = Sink(GATHER, anchor=outer.anchor)
    rows = rows_of(node)
    first = [_spans(cell) for cell in rows[0] if not isinstance(cell, str)]
    heads = policies.head_rows(map(_is_head, rows), first, len(rows))
    table, repeated = _spread((_cells(walk, row) for row in rows), heads)
    grid = policies.markdown_table(table, heads)
    walk.found.repeated += repeated
    walk.sink = outer
    if outer.float is None:
        return walk.put(walk.block("table", node, grid, sink.errors), sink.after)
    outer.float.grids.append(grid)
    outer.float.errors += sink.errors
    outer.after.extend(sink.after)
    return None


def _is_head(row: Node) -> bool:
    """Whether a row says what stands in the columns below it: nothing but head cells, and some text."""
    cells = [child for child in row if not isinstance(child, str)]
    return all(_HEAD in cell.classes or not cell.text().strip() for cell in cells) and any(
        _HEAD in cell.classes for cell in cells
    )


def _cells(walk: Walk, row: Node) -> list[Cell]:
    cells = []
    for child in row:
        if not isinstance(child, str):
            cells.append((_cell(walk, child), *_spans(child)))
        elif not child.isspace():
            walk.lose("outside_cells", child)
    return cells


def _cell(walk: Walk, node: Node) -> str:
    raw = node.only_text()
    if raw is None:
        sink = walk.gather(node, Sink(GATHER, anchor=walk.sink.anchor, cell=True))
        walk.sink.after.extend(sink.after)
        raw = sink.raw
    if ERRED in raw:
        walk.sink.parts.append(ERRED * raw.count(ERRED))
    return policies.finish(raw)


def _spans(node: Node) -> tuple[int, int]:
    attributes = node.mould.attributes
    if "colspan" not in attributes and "rowspan" not in attributes:  # 19 cells of 20
        return 1, 1
    return _span(node.get("colspan")), _span(node.get("rowspan"))


def _spread(rows: Iterator[list[Cell]], heads: int) -> tuple[list[list[str]], int]:
    """The rows with empty cells where a cell spans more columns or rows than one, and characters that are repeated.

    In a head of several rows a cell that spans columns stands over each of them.
    """
    held: dict[int, int] = {}
    table: list[list[str]] = []
    size = repeated = 0
    for cells in rows:
        row: list[str] = []
        if size > _MOST_CELLS:
            held, cells = {}, [(text, 1, 1) for text, _, _ in cells]
        for text, columns, height in cells:
            if held:
                _fill(row, held)
            if height > 1:
                held.update(dict.fromkeys(range(len(row), len(row) + columns), height - 1))
            copy = policies.head_copy(text) if len(table) < heads > 1 else ""
            row += [text] + [copy] * (columns - 1)
            if copy:
                repeated += policies.visible(copy) * (columns - 1)
        _fill(row, held)
        size += len(row)
        table.append(row)
    return table, repeated


def _fill(row: list[str], held: dict[int, int]) -> None:
    while held.get(len(row), 0) > 0:
        held[len(row)] -= 1
        row.append("")


def _span(value: str) -> int:
    if not value:
        return 1
    return max(1, min(int(value[:4]), _WIDEST_SPAN)) if value.isdecimal() else 1
