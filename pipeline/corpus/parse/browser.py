"""A page as a browser would read it, for pages that are not what LaTeXML writes: selectolax's
lexbor, to our own nodes.

HTML's rules for tags that do not nest are lexbor's alone; here is what must not reach it, and the
way back.
"""

from __future__ import annotations

import re
from collections import Counter
from html import escape
from typing import TYPE_CHECKING

from pipeline.corpus.parse.parsed_page import PageError
from pipeline.corpus.parse.source import FORMULA, PageSource
from pipeline.corpus.parse.tree import DEEPEST, VOID, Node, node_of, root, tag_type_of

if TYPE_CHECKING:
    from selectolax.lexbor import LexborNode

# lexbor takes time by the square of a tag's attributes and of the depth: 25 s for 200,000 of
# either.
_LONG_TAG = re.compile(r"<([A-Za-z][\w:-]*+)([^<>]{1000,}+)>")
_NEEDED = re.compile(
    r"""\s(?:id|class|style|href|alt|alttext|encoding|colspan|rowspan)\s*=\s*(?:"[^"]*"|'[^']*')"""
)
_MOST_OPEN = 2_000
_TAG = re.compile(r"<(/?)([A-Za-z][\w:-]*)([^<>]*)")
# Elements that end where another of their kind begins.
_SELF_ENDING = frozenset(
    {"p", "li", "dt", "dd", "td", "th", "tr", "option", "tbody", "thead", "tfoot", "html", "body"}
)
_PLACE = "data-formula"
_SELF_CLOSED = re.compile(r'<([A-Za-z][\w:-]*)((?:\s+[\w:-]+\s*=\s*"[^"]*")*)\s*/>')


def browse(source: PageSource) -> tuple[Node, str]:
    """The body of a page, and its text without formulas. Raises PageError if too deep."""
    from selectolax.lexbor import LexborHTMLParser

    page = _LONG_TAG.sub(_shortened, source.text)
    _refuse_depth(page)
    if source.is_xml:
        page = _SELF_CLOSED.sub(_open_and_close, page)
    places = iter(range(len(source.formulas)))
    page = re.sub(f"<{FORMULA}>", lambda _: f'<math {_PLACE}="{next(places)}"></math>', page)
    body = LexborHTMLParser(page).body
    if body is None:
        raise PageError("not_html", "no body")
    return _copied(body, source.formulas)


def _shortened(match: re.Match[str]) -> str:
    """A long tag with what we read of it alone."""
    return f"<{match[1]}{''.join(_NEEDED.findall(match[2])[:12])}>"


def _refuse_depth(page: str) -> None:
    """Raise PageError for a page with too many open elements; a few are left open by mistake."""
    depth, opened = 0, Counter[str]()
    for match in _TAG.finditer(page):
        name = match[2].lower()
        if match[1]:
            depth -= opened[name] > 0
            opened[name] -= opened[name] > 0
        elif name not in VOID and name not in _SELF_ENDING and not match[3].endswith("/"):
            opened[name] += 1
            depth += 1
            if depth > _MOST_OPEN:
                raise PageError("too_deep", f"more than {_MOST_OPEN} elements are open at once")


def _open_and_close(match: re.Match[str]) -> str:
    name, attributes = match.groups()
    return match[0] if name.lower() in VOID else f"<{name}{attributes}></{name}>"


def _copied(body: LexborNode, formulas: list[str]) -> tuple[Node, str]:
    """lexbor's tree as ours, and its text."""
    top, texts = root(), list[str]()
    waiting: list[tuple[LexborNode | None, Node, int]] = [(body.first_child, top, 0)]
    while waiting:
        child, into, depth = waiting.pop()
        if child is None:
            continue
        waiting.append((child.next, into, depth))
        if child.tag == "-text":
            texts.append(child.text_content or "")
            into.append(texts[-1])
        elif child.tag and child.tag[0] not in "-!":
            inner = _opened(child, into, formulas)
            if depth >= DEEPEST:
                raise PageError("too_deep", f"its elements nest more than {DEEPEST} deep")
            if inner is not None:
                waiting.append((child.first_child, inner, depth + (inner is not into)))
    return top, "".join(texts)


def _opened(element: LexborNode, into: Node, formulas: list[str]) -> Node | None:
    """The node that an element's children go to; None where none of them is read."""
    attributes = {name: value or "" for name, value in element.attributes.items()}
    if _PLACE in attributes:
        into.append(formulas[int(attributes[_PLACE])])
        return None
    tag_type = tag_type_of((element.tag or "").lower(), attributes, end="")
    if tag_type.kind == "unseen":
        return None
    if not tag_type.kind:
        return into
    node = node_of(tag_type, f' id="{escape(attributes.get("id", ""))}"')
    into.append(node)
    return node
