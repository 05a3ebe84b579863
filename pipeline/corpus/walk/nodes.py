"""Questions to a node: its rows, headings, role, TeX."""

from __future__ import annotations

from collections.abc import Iterator

from pipeline.corpus import policies
from pipeline.corpus.tree import Node

_ROW_GROUPS = frozenset({"tbody", "thead", "tfoot", "table"})


def rows_of(node: Node) -> list[Node]:
    """The rows of a table or display equation; the node itself where it is not laid out in rows."""
    return list(_rows_below(node)) or [node]


def _rows_below(node: Node) -> Iterator[Node]:
    for child in node.elements():
        name, classes = child.mould.name, child.classes
        if name == "tr" or "ltx_tr" in classes or "ltx_eqn_row" in classes:
            yield child
        elif name in _ROW_GROUPS or "ltx_t" in classes:
            yield from _rows_below(child)


def headings_of(node: Node) -> list[Node]:
    """The headings that a section begins with."""
    found = []
    for child in node.elements():
        if child.mould.name[0] != "h" or "ltx_title" not in child.classes:
            break
        found.append(child)
    return found


def annotation_of(node: Node) -> str:
    """The TeX in a formula's annotation, or "" where it has none."""
    for child in node.elements():
        if child.mould.kind == "annotation" and child.get("encoding") == "application/x-tex":
            return child.text()
        inner = annotation_of(child)
        if inner:
            return inner
    return ""


def note_mark_of(node: Node) -> str:
    """The mark of a footnote, such as 1 or †; "" where it has none."""
    mark = next((child for child in node.elements() if child.mould.name == "sup"), None)
    return policies.fold(mark.text()) if mark is not None else ""


def role_of(node: Node) -> str:
    """The first `ltx_role_…` of a node without the prefix, or ""."""
    roles = (name.removeprefix("ltx_role_") for name in node.classes.split() if name.startswith("ltx_role_"))
    return next(roles, "")
