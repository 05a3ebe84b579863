"""Questions to a node of lexbor's tree: its rows, headings, role, TeX. Not here: anything that a walk remembers."""

from __future__ import annotations

from collections.abc import Iterator

from selectolax.lexbor import LexborNode

from pipeline.corpus import policies


def elements(node: LexborNode) -> Iterator[LexborNode]:
    """The children of a node that are elements, which excludes what lexbor names `-text`, `-comment` and `!doctype`."""
    child = node.first_child
    while child is not None:
        if child.tag is not None and child.tag[0] not in "-!":
            yield child
        child = child.next


def classes_of(node: LexborNode) -> str:
    """The class attribute as it stands, or ""."""
    return node.attributes.get("class") or ""


def id_of(node: LexborNode) -> str:
    """The id, or ""."""
    return node.attributes.get("id") or ""


def rows_of(node: LexborNode) -> Iterator[LexborNode]:
    """The rows of a table or display equation; the node itself where it is not laid out in rows."""
    found = False
    for row in _rows_below(node):
        found = True
        yield row
    if not found:
        yield node


def _rows_below(node: LexborNode) -> Iterator[LexborNode]:
    for child in elements(node):
        classes = classes_of(child)
        if child.tag == "tr" or "ltx_tr" in classes or "ltx_eqn_row" in classes:
            yield child
        elif child.tag in ("tbody", "thead", "tfoot", "table") or "ltx_t" in classes:
            yield from _rows_below(child)


def headings_of(node: LexborNode) -> list[LexborNode]:
    """The headings that a section begins with."""
    found = []
    for child in elements(node):
        if (child.tag or "")[0] != "h" or "ltx_title" not in classes_of(child):
            break
        found.append(child)
    return found


def annotation_of(node: LexborNode) -> str:
    """The TeX of a formula without alttext: its annotation, else the characters of its presentation."""
    for below in node.css("annotation"):
        if below.attributes.get("encoding") == "application/x-tex":
            return below.text()
    return node.text()


def note_mark_of(node: LexborNode) -> str:
    """The mark of a footnote, such as 1 or †; "" where it has none."""
    mark = node.first_child
    while mark is not None and mark.tag != "sup":
        mark = mark.next
    return policies.fold(mark.text()) if mark is not None else ""


def role_of(node: LexborNode) -> str:
    """The first `ltx_role_…` of a node without the prefix, or ""."""
    for name in classes_of(node).split():
        if name.startswith("ltx_role_"):
            return name.removeprefix("ltx_role_")
    return ""
