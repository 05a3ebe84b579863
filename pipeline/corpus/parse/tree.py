"""A page as a light tree, built in one pass over its tags; elements that mean nothing leave only
their children.

LaTeXML writes XML out as HTML, so tags nest as written: one regular expression splits the page at
its tags, and what a tag means is looked up by the tag itself, of which a page of 5,000 has some 100
different ones once ids and addresses are off. Where a page is not that regular, `grow` raises
Irregular, and `browser.py` reads it as a browser would. The kinds of elements are in `kinds.py`;
what becomes of an element is never decided here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from html import unescape

from pipeline.corpus.parse.kinds import kind_of
from pipeline.corpus.parse.policies import holds_marks
from pipeline.corpus.parse.source import FORMULA, PageSource

# Real pages nest 40 deep at most; each level takes up to four of Python's 1,000 frames in the walk.
DEEPEST = 250
# 20 MB in a process that has read for days; a picture written into its tag is read anew wherever it
# is.
_MOST_TAG_TYPES, _LONGEST_TAG = 50_000, 1_000

# A `<` within a tag makes it one that nobody knows; to leave it out of the class here would double
# the time.
_TAGS = re.compile(r"<([^>]+)>")
_OPENING = re.compile(r"""([A-Za-z][\w:.-]*)((?:\s+[\w:.-]+(?:="[^"]*"|='[^']*')?)*)\s*(/?)""")
# The title of a link repeats the headings above what it leads to; nothing reads it.
_LINK = re.compile(r"""([A-Za-z][\w:.-]*) href="[^"]*"(?: title="([^"]*)")?(?=[\s/]|\Z)""")
_ATTRIBUTE = re.compile(r"""(?<![\w:.-])([\w:.-]++)=(?:"([^"]*)"|'([^']*)')""")
_BODY = re.compile(r"<body\b[^<>]*>")
_RAW_NAMES = frozenset(
    {"script", "style", "textarea", "title", "xmp", "iframe", "noembed", "noframes", "noscript"}
)
VOID = frozenset({
    "area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "source",
    "track", "wbr",
})  # fmt: skip
# HTML lets these alone close themselves.
_PICTURE_PARTS = frozenset({
    "circle", "ellipse", "feblend", "image", "line", "marker", "path", "polygon", "polyline",
    "rect", "stop", "use",
})  # fmt: skip


class Irregular(Exception):
    """A page whose tags do not simply nest: only a browser's rules tell what it holds."""


@dataclass(slots=True)
class TagType:
    """What elements of one opening tag have in common. `kind` and `detail` are the two halves of
    `kind_of`.

    `end` is the closing tag without its brackets, "" for an element that has none.
    """

    name: str
    kind: str
    detail: str
    end: str
    attributes: dict[str, str] = field(default_factory=dict)


class Node(list["str | Node"]):
    """One element that means something: the list of its texts and elements, in document order.

    A list itself, and without a constructor of its own, since 1,200 of them are made for each page:
    4 ms of 33.
    """

    __slots__ = ("tag", "tag_type")
    tag_type: TagType
    tag: str

    @property
    def id(self) -> str:
        """The id, or ""."""
        return _value(self.tag, ' id="')

    @property
    def href(self) -> str:
        """The address that a link leads to, or ""."""
        return _value(self.tag, ' href="') or self.tag_type.attributes.get("href", "")

    @property
    def classes(self) -> str:
        """The class attribute as it is, or ""."""
        return self.tag_type.attributes.get("class", "")

    def get(self, name: str) -> str:
        """An attribute other than the id and the address, or ""."""
        return self.tag_type.attributes.get(name, "")

    def only_text(self) -> str | None:
        """The text of a node that holds nothing else, else None."""
        if len(self) == 1:
            return self[0] if isinstance(self[0], str) else None
        for child in self:
            if not isinstance(child, str):
                return None
        return "".join(self)  # type: ignore[arg-type]

    def elements(self) -> Iterator[Node]:
        """The children that are elements."""
        return (child for child in self if isinstance(child, Node))

    def text(self) -> str:
        """All text below the node, formulas as `policies.inline_tex` marks them."""
        return "".join(child if isinstance(child, str) else child.text() for child in self)


def _value(tag: str, name: str) -> str:
    """The value of an attribute that elements do not share; `name` is ` id="` or the like."""
    value = tag.partition(name)[2].partition('"')[0]
    return unescape(value) if "&" in value else value


_PAGE_TAG_TYPE = TagType("body", "box", "", "/body")
# By the tag without its id and address; XHTML's apart, where the same tag may mean another thing.
_tag_types: dict[bool, dict[str, TagType]] = {False: {}, True: {}}


def node_of(tag_type: TagType, tag: str = "") -> Node:
    """A node with nothing in it yet."""
    node = Node()
    node.tag_type, node.tag = tag_type, tag
    return node


def root() -> Node:
    """The node that stands for the page's body."""
    return node_of(_PAGE_TAG_TYPE)


def grow(source: PageSource) -> tuple[Node, str]:
    """The body of a page, and all its text without the formulas. Raises Irregular."""
    body_text = _body_of(source.text)
    # What follows the last tag is apart: a tag that the page's end cut off is no tag, and is not
    # sought in vain.
    end = body_text.rfind(">") + 1
    pieces = _TAGS.split(body_text[:end])
    pieces[-1] += body_text[end:].partition("<")[0]
    text = "".join(pieces[::2])
    if "<" in text or holds_marks(text):
        raise Irregular("a < that begins no tag, or a control character")
    body, formulas = root(), iter(source.formulas)
    unclosed = _fill(body, pieces, formulas, is_xml=source.is_xml)
    if unclosed and not source.truncated:
        raise Irregular(f"{unclosed} elements are never closed")
    if next(formulas, None) is not None:
        raise Irregular("a formula outside of the body")
    return body, unescape(text)


def _body_of(text: str) -> str:
    """The text between `<body>` and `</body>`."""
    start = _BODY.search(text)
    if start is None:
        raise Irregular("no <body>")
    end = text.rfind("</body>", start.end())
    if end >= 0 and text[end + 7 :].strip() not in ("</html>", ""):
        raise Irregular("something follows the </body>")
    return text[start.end() : end if end >= 0 else len(text)]


def _fill(node: Node, pieces: list[str], formulas: Iterator[str], *, is_xml: bool) -> int:
    """Put a split page's elements and texts into the node; return how many elements are left open.

    Every tag of 2 million pages goes through this loop, in 0.2 µs: two list operations and one
    look-up for each. What did not make it faster: `str.split("<")` with `partition`, elements
    without elements as one match of the pattern, spans that mean nothing taken out beforehand, one
    stack for both.
    """
    tag_types = _tag_types[is_xml]
    known = tag_types.get
    ends: list[str] = [""]
    around: list[Node] = []
    rest = iter(pieces)
    node.append(unescape(next(rest)))
    for tag, text in zip(rest, rest, strict=True):
        if tag[0] == "/":
            if ends.pop() != tag:
                raise Irregular(f"<{tag[:40]}> closes nothing")
            node = around.pop()
        elif tag == FORMULA:
            node.append(next(formulas, ""))
        else:
            tag_type = known(tag)
            if tag_type is None:
                # `_shared` written out, since most tags come here.
                parts = tag.split('"', 2)
                tag_type = known(f'{parts[0]}"{parts[-1]}') or _tag_type_of(
                    tag, tag_types, is_xml=is_xml
                )
            end = tag_type.end
            if end:
                ends.append(end)
                around.append(node)
            if tag_type.kind:
                child = Node()
                child.tag_type = tag_type
                child.tag = tag
                node.append(child)
                node = child if end else node
                if len(around) > DEEPEST and end:
                    raise Irregular("too deep to be what LaTeXML writes")
        if text:
            node.append(text if "&" not in text else unescape(text))
    return len(around)


def _tag_type_of(tag: str, tag_types: dict[str, TagType], *, is_xml: bool) -> TagType:
    """The tag_type of a tag that was not met before, or only with other ids and addresses."""
    before, _, after = tag.partition(' id="')
    bare = before + after.partition('"')[2]
    link = _LINK.match(bare)
    if link:
        bare = link[1] + bare[link.end() :]
    if len(bare) > _LONGEST_TAG:
        return _read_tag(bare, is_xml=is_xml)
    tag_type = tag_types.get(bare)
    if tag_type is None:
        if len(tag_types) > _MOST_TAG_TYPES:
            tag_types.clear()
        tag_type = tag_types[bare] = _read_tag(bare, is_xml=is_xml)
    if link and link[2]:
        return tag_type
    if tag.startswith((' id="', ' href="'), len(tag_type.name)):
        tag_types[_shared(tag)] = tag_type
    return tag_type


def _shared(tag: str) -> str:
    """The tag without its first attribute's value, such as an id or address."""
    parts = tag.split('"', 2)  # two of a broken tag, which is its own
    return f'{parts[0]}"{parts[-1]}'


def _read_tag(tag: str, *, is_xml: bool) -> TagType:
    read = _OPENING.fullmatch(tag)
    if read is None:
        raise Irregular(f"<{tag[:40]}> is no tag as LaTeXML writes them")
    written, listed, slash = read.groups()
    name = written.lower()
    if name in _RAW_NAMES or (slash and not is_xml and name not in VOID | _PICTURE_PARTS):
        raise Irregular(f"<{name}> has rules of its own")
    attributes = {
        key.lower(): unescape(value or other)
        for key, value, other in reversed(_ATTRIBUTE.findall(listed))
    }
    return tag_type_of(name, attributes, end="" if slash or name in VOID else f"/{written}")


def tag_type_of(name: str, attributes: dict[str, str], end: str) -> TagType:
    """What elements of this name and these attributes have in common."""
    kind, _, detail = _kind_of(
        name, attributes.get("class", ""), attributes.get("style", "")
    ).partition(":")
    return TagType(name, kind, detail, end, attributes)


_kind_of = lru_cache(maxsize=8192)(kind_of)
