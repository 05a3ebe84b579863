"""The reference parser: the way of the arXivBot report, BeautifulSoup for the structure and
mwparserfromhtml for text.

It applies the policies of `policies.py` to the soup itself (citations to markers, formulas to TeX,
footnotes out), then reads sections and paragraphs with `html_to_plaintext`. It shares the policies
and `kinds.py` with the fast parser, and no code that walks a page: what the two agree on, both have
read. `html_to_plaintext` is written for Wikipedia's HTML; on LaTeXML's it yields every string of an
element in document order, which is what is wanted here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from pipeline.corpus.parse import policies
from pipeline.corpus.parse.assembly import assemble
from pipeline.corpus.parse.bibliography import ItemParts
from pipeline.corpus.parse.byline_text import Byline
from pipeline.corpus.parse.findings import Findings
from pipeline.corpus.parse.grids import TableCell, markdown_grid, span
from pipeline.corpus.parse.html import has_front, read_front
from pipeline.corpus.parse.kinds import (
    HEADING_NAMES,
    NO_TEXT_KINDS,
    TEXT_KINDS,
    WITHIN_PARAGRAPHS,
    is_algorithm,
    kind_of,
    section_rank,
)
from pipeline.corpus.parse.parsed_page import Block, PageError, ParsedPage, Section
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
    TEX,
)
from pipeline.corpus.parse.source import (
    as_utf8,
    count_errors,
    is_html,
    is_truncated,
    whole_text,
    without_site,
)
from pipeline.corpus.parse.typed_references import is_title_of_references

if TYPE_CHECKING:
    from bs4 import BeautifulSoup, Tag

# Stand in the text for an element that was taken out of it, and for the id of the paragraph that
# begins there.
_ASIDE, _ANCHOR = "\4", "\5"
_SPACES = re.compile(r"(?<=>) {2,}(?=<)")
_ASIDES = re.compile(f"{_ASIDE}(\\d+){_ASIDE}")
_ANCHORS = re.compile(f"{_ANCHOR}([^{_ANCHOR}]*){_ANCHOR}")

# Elements whose text is a block, with the kind of the block.
_TEXT_BLOCKS = {"theorem": "theorem", "listing": "algorithm", "caption": "caption"}
_BLOCKS = frozenset({"note", "float", "tabular", "section"})
_INTERRUPTING = frozenset({"list", "theorem", "listing"})
_BROKEN = frozenset({"p", "box", "para", "textbox", "heading", "listing", "bib:author-year"})
_LINED = frozenset({"float", "listing", "personname", "contact"})
_UNLINED = frozenset({"caption", "note", "section", "list", "tabular", "abstract"})


def parse(html: bytes, authors: Sequence[str] = (), builder: str = "html.parser") -> ParsedPage:
    """The paper that a page of the dump holds. Raises PageError as the fast parser does.

    `authors` are as for the fast parser, `builder` is what BeautifulSoup builds its tree with.
    """
    from bs4 import BeautifulSoup

    page = without_site(as_utf8(html))
    if not is_html(page):
        raise PageError("not_html", "no <html>, <body> or <article> in its first 4,096 bytes")
    # BeautifulSoup makes one space of several between two tags, which are the indentation of code.
    text = _SPACES.sub(lambda spaces: spaces[0].replace(" ", "\xa0"), whole_text(page))
    soup = BeautifulSoup(text, builder)
    try:
        findings = _PageReading(soup).read_page()
    except RecursionError:
        raise PageError("too_deep", "its elements nest deeper than the parser follows") from None
    if has_front(findings):
        findings.front = read_front(page)
    return assemble(
        findings, html, authors, errors=count_errors(page), truncated=is_truncated(page)
    )


def _plain(node: Tag) -> str:
    """The text of an element as mwparserfromhtml reads it."""
    from mwparserfromhtml.parse.plaintext import html_to_plaintext

    return "".join(text for text, _, _, _ in html_to_plaintext(node))


def _kind(node: Tag) -> str:
    kind = node.attrs.get("data-kind")
    if kind is None:
        kind = kind_of(node.name, _classes(node), str(node.get("style") or ""))
        node.attrs["data-kind"] = kind
    return str(kind)


def _classes(node: Tag) -> str:
    value = node.get("class") or ""
    return value if isinstance(value, str) else " ".join(value)


def _id(node: Tag) -> str:
    return str(node.get("id") or "")


def _tags(node: Tag) -> Iterator[Tag]:
    from bs4 import Tag

    return (child for child in list(node.children) if isinstance(child, Tag))


def _outermost(node: Tag, kinds: frozenset[str]) -> Iterator[Tag]:
    """Elements of these kinds below a node, none of them within another."""
    for child in _tags(node):
        if _kind(child) in kinds:
            yield child
        else:
            yield from _outermost(child, kinds)


class _PageReading:
    """One page: first the policies on its soup, then its structure, then its text."""

    def __init__(self, soup: BeautifulSoup) -> None:
        self.body: Tag = soup.body or soup
        self.findings = Findings()
        self.aside: list[Tag] = []
        self.path: tuple[str, ...] = ()
        self.open_sections: list[tuple[int, int, tuple[str, ...]]] = []
        self.anchor = ""
        self.note_marks: dict[int, str] = {}

    def read_page(self) -> Findings:
        """The findings of the page."""
        self.prepare()
        self.read_bibliography()
        self.read_authors()
        self.findings.blocks = self.read(self.body)
        return self.findings

    # Policies on the soup.

    def prepare(self) -> None:
        """Apply every policy to the soup."""
        from bs4.element import PreformattedString

        for string in list(
            self.body.find_all(string=lambda text: isinstance(text, PreformattedString))
        ):
            string.extract()
        for node in self.of_kind("unseen"):
            node.decompose()
        self.read_formulas()
        self.findings.figures = sum(
            "ltx_figure" in _classes(node).split() and not _within_float(node)
            for node in self.of_kind("float")
        )
        self.take_textboxes()
        self.drop()
        for kind, script in (("raised", "superscript"), ("lowered", "subscript")):
            for node in self.of_kind(kind):
                node.attrs["data-kind"] = script if policies.is_mark(node.get_text()) else ""
        for node in self.of_kind("cite"):
            cited = policies.citation(list(self.citation_pieces(node)))
            self.findings.citations.append(cited)
            node.replace_with(cited[0])
        self.mark_scripts()
        self.break_lines()
        for node in self.of_kind("equation"):
            if node.find_parent(lambda above: _kind(above) == "equation") is None:
                node.replace_with(self.equation_text(node))
        for string in self.body.find_all(string=re.compile(TEX)):
            string.replace_with(string.replace(TEX, "$"))

    def of_kind(self, kind: str) -> list[Tag]:
        return [node for node in self.body.find_all(True) if _kind(node) == kind]

    def read_formulas(self) -> None:
        """Replace each formula by its TeX, and count the visible characters of the page."""
        for node in [node for node in self.of_kind("math") if not node.find_parent("math")]:
            given_tex = node.get("alttext") or node.get("alt") or _annotation(node)
            tex = policies.tex_source(str(given_tex or node.get_text()))
            self.findings.formulas += 1
            self.findings.math_without_tex += not given_tex
            cited = _citations_of(node) if "\\cite[" in str(given_tex) else ()
            node.replace_with(policies.inline_tex(tex), *cited)
        self.findings.seen = policies.visible(self.body.get_text())

    def take_textboxes(self) -> None:
        """Move boxes of text out of the drawings that they are in."""
        for picture in self.of_kind("picture"):
            if any(_is_lost(above) or _kind(above) == "picture" for above in picture.parents):
                continue
            boxes = list(_outermost(picture, frozenset({"textbox"})))
            is_frame = len(boxes) == 1 and policies.has_word(boxes[0].get_text())
            for box in boxes:
                if is_frame or any(_kind(below) in TEXT_KINDS for below in box.find_all(True)):
                    picture.insert_before(box.extract())

    def drop(self) -> None:
        """Take out what no reader of the text needs, counted by kind."""
        # Inner nodes first: what is dropped within what is lost counts by itself.
        for node in reversed(self.body.find_all(True)):
            if node.decomposed:
                continue
            name = _loss_of(node)
            if not name:
                continue
            self.findings.missing_citations += name == "missing_citation"
            if "ltx_note_mark" in _classes(node) and node.parent is not None:
                self.note_marks.setdefault(id(node.parent), policies.fold(node.get_text()))
            if name == "bibliography_tag":
                item = node.find_parent(lambda above: _kind(above) == "bibitem")
                if item is not None:
                    item["data-label"] = policies.fold(node.get_text())
            self.count_loss(name, node.get_text())
            if name == "missing_citation" and _is_cited(node):
                node.insert_before(policies.missing_key(node.get_text()))
            if name == "ltx_error" and node.find_parent(lambda above: _kind(above) == "personname"):
                node.insert_before(ERRED + policies.author_macro(node.get_text()))
            node.decompose()

    def count_loss(self, name: str, text: str) -> None:
        self.findings.lost[name].append(_ASIDES.sub("", text))

    def citation_pieces(self, node: Tag) -> Iterator[str | tuple[str, str]]:
        from bs4 import Tag

        for child in node.children:
            if not isinstance(child, Tag):
                yield str(child)
                continue
            key = policies.cited_key(str(child.get("href") or "")) if child.name == "a" else None
            inside = [(key, child.get_text())] if key else self.citation_pieces(child)
            if _kind(child) == "superscript" or (key and child.find("sup", recursive=False)):
                yield from (RAISED, *inside, SCRIPT_END)
            else:
                yield from inside

    def mark_scripts(self) -> None:
        """Put marks around superscripts and subscripts, but for those of bylines."""
        for kind, mark in (("superscript", RAISED), ("subscript", LOWERED)):
            for node in self.of_kind(kind):
                if node.find_parent(_is_of_byline) is None:
                    node.insert(0, mark)
                    node.append(SCRIPT_END)

    def break_lines(self) -> None:
        """Put a space, or LINE where lines matter, after every box and for every `br`."""
        for node in self.body.find_all(True):
            kind = _kind(node)
            if kind == "break":
                node.replace_with(_breaks(node))
            elif kind == "line":
                node.insert(0, LINE + INDENT)
                node.append(LINE)
            elif kind == "line_number":
                node.append(f" {INDENT}")
            elif kind == "address_part":
                node.append(LINE if _breaks(node) == LINE else ", ")
            elif kind in _BROKEN:
                node.append(_breaks(node))
                if kind == "p" and _id(node):
                    node.insert(0, f"{_ANCHOR}{_id(node)}{_ANCHOR}")
            if node.name == "pre":
                node.insert(0, INDENT)
                for string in node.find_all(string=True):
                    string.replace_with(string.replace("\n", LINE + INDENT))

    def equation_text(self, node: Tag) -> str:
        return "".join(f" {self.row_text(row)} " for row in _rows(node))

    def row_text(self, row: Tag) -> str:
        numbers = [node.extract().get_text() for node in row.find_all(True) if _kind(node) == "tag"]
        return policies.display_math(row.get_text(), " ".join(map(policies.fold, numbers)))

    # Text.

    def text_of(self, node: Tag, kinds: frozenset[str] = _BLOCKS) -> tuple[str, list[Block]]:
        """(raw text with lists as lines, blocks of these kinds that were in it) of an element."""
        self.set_aside(node, kinds)
        for inner in list(_outermost(node, frozenset({"list"}))):
            inner.replace_with(self.list_text(inner))
        text = _plain(node)
        return self.without_asides(text), self.read_asides(text)

    def read_asides(self, text: str) -> list[Block]:
        """The blocks that were set aside in a text."""
        return [
            block
            for place in _ASIDES.findall(text)
            for block in self.read_one(self.aside[int(place)])
        ]

    def without_asides(self, text: str) -> str:
        """The text itself; where a footnote was, the space before it may go."""
        kinds = (_kind(self.aside[int(place)]) for place in _ASIDES.findall(text))
        return _ANCHORS.sub("", _ASIDES.sub(lambda _: GONE if next(kinds) == "note" else "", text))

    def set_aside(self, node: Tag, kinds: frozenset[str]) -> None:
        for inner in list(_outermost(node, kinds)):
            self.aside.append(inner)
            inner.replace_with(f"{_ASIDE}{len(self.aside) - 1}{_ASIDE}")

    def list_text(self, node: Tag) -> str:
        text = ""
        for child in _tags(node):
            own_tags = list(_outermost(child, frozenset({"tag"})))[:1]
            tags = [inner.extract().get_text() for inner in own_tags]
            for inner in list(_outermost(child, frozenset({"list"}))):
                inner.replace_with(self.list_text(inner))
            begin = " " if child.name == "dd" else f"{LINE}{policies.list_mark(' '.join(tags))} "
            text += begin + _plain(child)
        return text + LINE

    def block(self, kind: str, anchor: str, raw: str, *, finished: bool = False) -> list[Block]:
        text = raw if finished else policies.finish(raw)
        if not text:
            return []
        keys = policies.cited_keys(text)
        return [Block(kind, anchor or self.anchor, self.path, text, keys)]

    # Structure.

    def read(self, node: Tag) -> list[Block]:
        """The blocks below a node that is no block itself."""
        blocks: list[Block] = []
        for child in list(node.children):
            from bs4 import Tag

            if isinstance(child, Tag):
                blocks += self.read_one(child)
            else:
                self.count_loss("outside_paragraphs", str(child))
        return blocks

    def read_one(self, node: Tag) -> list[Block]:
        """The blocks that an element makes."""
        kind = _kind(node)
        if kind in ("para", "p", "textbox"):
            return self.read_para(node)
        if kind in ("section", "acknowledgements"):
            return self.read_section(node, kind)
        if kind in _TEXT_BLOCKS:
            raw, after = self.text_of(node)
            return [*self.block(_TEXT_BLOCKS[kind], _id(node), raw), *after]
        if kind == "float":
            return self.read_float(node)
        if kind == "tabular":
            grid, after = self.grid_of(node)
            return [*self.block("table", _id(node), grid, finished=True), *after]
        if kind == "note":
            return self.read_note(node)
        if kind == "list":
            return self.read_list(node)
        if kind == "heading" and self.findings.title is None and "ltx_title_part" in _classes(node):
            return self.read_front(node, "title")
        if kind in ("title", "subtitle", "abstract"):
            return self.read_front(node, kind)
        is_paragraph = kind == "box" and self.is_unmarked_paragraph(node)
        return self.read_para(node) if is_paragraph else self.read(node)

    def is_unmarked_paragraph(self, node: Tag) -> bool:
        """Whether a box of an unknown class holds words, and nothing that makes a block."""
        kinds = {_kind(inner).partition(":")[0] for inner in node.find_all(True)}
        return kinds <= WITHIN_PARAGRAPHS | NO_TEXT_KINDS and policies.is_several_words(
            _ASIDES.sub("", node.get_text())
        )

    def read_para(self, node: Tag) -> list[Block]:
        """A paragraph; lists, theorems and listings in it cut it into several."""
        home = _id(node)
        self.anchor = home or self.anchor
        self.set_aside(node, _BLOCKS | _INTERRUPTING)
        text = _plain(node)
        blocks: list[Block] = []
        after: list[Block] = []
        start = 0
        for match in _ASIDES.finditer(text):
            inner = self.aside[int(match[1])]
            if _kind(inner) in _INTERRUPTING:
                blocks += [
                    *self.run(text[start : match.start()], home),
                    *after,
                    *self.read_one(inner),
                ]
                start, home, after = match.end(), "", []
            else:
                after += self.read_one(inner)
        return [*blocks, *self.run(text[start:], home), *after]

    def run(self, text: str, home: str) -> list[Block]:
        anchors = _ANCHORS.findall(text)
        return self.block("paragraph", home or next(iter(anchors), ""), self.without_asides(text))

    def read_section(self, node: Tag, kind: str) -> list[Block]:
        rank = section_rank(_classes(node)) if kind == "section" else 9
        self.anchor = _id(node) or self.anchor
        depth, path = next(
            ((d, p) for r, d, p in reversed(self.open_sections) if r < rank), (0, ())
        )
        raw, number, notes = self.read_headings(node)
        title = policies.heading(raw) or ("Acknowledgements" if kind != "section" else "")
        outer, self.path = self.path, (*path, title) if title else path
        self.open_sections.append((rank, depth + 1, self.path))
        self.findings.sections.append(Section(self.anchor, number, title, depth + 1, self.path))
        if is_title_of_references(title):
            self.note_typed_references(node)
        blocks = [note._replace(section_path=self.path) for note in notes]
        blocks += self.read(node) if kind == "section" else self.read_para(node)
        self.open_sections.pop()
        self.path = outer
        return blocks

    def note_typed_references(self, node: Tag) -> None:
        below = node.find_all(True)
        words = [policies.fold(_plain_bare(inner)) for inner in below if _kind(inner) == "emphasis"]
        self.findings.typed_emphases += filter(None, words)
        self.findings.typed_links += [
            (inner.get_text(), str(inner.get("href") or ""))
            for inner in below
            if _kind(inner) == "link"
        ]

    def read_headings(self, node: Tag) -> tuple[str, str | None, list[Block]]:
        raw, numbers, notes = "", [], list[Block]()
        for child in _tags(node):
            if child.name not in HEADING_NAMES:
                break
            numbers += [
                inner.extract().get_text()
                for inner in child.find_all(True)
                if _kind(inner) == "tag"
            ]
            text, after = self.text_of(child.extract())
            raw, notes = f"{raw}{text} ", notes + after
        return raw, policies.section_number(" ".join(numbers)), notes

    def read_front(self, node: Tag, kind: str) -> list[Block]:
        earlier = getattr(self.findings, kind)
        if earlier is not None and kind == "abstract":
            return self.read_para(node)
        raw, after = self.text_of(node)
        text = policies.finish(raw)
        if earlier is not None:
            self.count_loss("second_title", raw)
        else:
            setattr(self.findings, kind, text or None)
        return after

    def read_list(self, node: Tag) -> list[Block]:
        self.set_aside(node, _BLOCKS)
        raw = self.list_text(node)
        after = self.read_asides(raw)
        return [*self.block("list", _id(node), self.without_asides(raw)), *after]

    def read_note(self, node: Tag) -> list[Block]:
        raw, after = self.text_of(node)
        classes = _classes(node)
        if "ltx_role_institutetext" in classes or "ltx_role_email" in classes:
            self.findings.institutes.append(raw.replace(GONE, ""))
            return after
        return [
            *self.block("footnote", _id(node), "" if "footnotemark" in classes else raw),
            *after,
        ]

    def read_float(self, node: Tag) -> list[Block]:
        self.set_aside(node, frozenset({"section"}))
        # The listing of a float within this one is that float's.
        nested = _outermost(node, frozenset({"listing", "float"}))
        listing = is_algorithm(_classes(node)) or any(_kind(inner) == "listing" for inner in nested)
        captions, grids, after = list[str](), list[str](), list[Block]()
        # Captions within a table's cells are the float's, too.
        outermost = list(_outermost(node, frozenset({"caption"}) | _BLOCKS - {"tabular"}))
        for inner in [below for below in outermost if _kind(below) == "caption"]:
            raw, more = self.text_of(inner.extract())
            captions.append(policies.finish(raw))
            after += more
        for inner in [below for below in _outermost(node, _BLOCKS) if _kind(below) == "tabular"]:
            grid, more = self.grid_of(inner.extract())
            grids.append(grid)
            after += more
        raw, more = self.text_of(node)
        kind = "algorithm" if listing else "table" if grids else "caption"
        words = policies.finish(raw)
        parts = [*captions, *grids, words] if kind == "table" else [*captions, words, *grids]
        text = "\n".join(filter(None, parts))
        return [*self.block(kind, _id(node), text, finished=True), *after, *more]

    def grid_of(self, node: Tag) -> tuple[str, list[Block]]:
        self.findings.tables += 1
        after = list[Block]()
        nested: list[str] = []
        rows: list[list[TableCell]] = []
        for row in _rows(node):
            cells: list[TableCell] = []
            for cell in _tags(row):
                for inner in [
                    below for below in _outermost(cell, frozenset({"tabular"})) if _is_grid(below)
                ]:
                    grid, more = self.grid_of(inner)
                    inner.replace_with(" ")
                    nested.append(grid)
                    after += more
                raw, more = self.text_of(cell, _BLOCKS - {"tabular"})
                after += more
                classes = _classes(cell)
                cells.append(
                    TableCell(
                        policies.finish(raw.replace(LINE, " ")),
                        span(str(cell.get("colspan") or "")),
                        span(str(cell.get("rowspan") or "")),
                        "ltx_th_column" in classes,
                        "ltx_border_t" in classes,
                    )
                )
            rows.append(cells)
        grid, repeated = markdown_grid(rows)
        self.findings.repeated += repeated
        return "\n".join(filter(None, [grid, *nested])), after

    # Front and back matter.

    def read_bibliography(self) -> None:
        items = self.findings.printed_items
        for node in self.of_kind("bibitem"):
            item = ItemParts(
                key=_id(node) or f"bib.item{len(items) + 1}", raw=policies.finish(_plain_bare(node))
            )
            item.label = str(node.get("data-label") or "")
            below = node.find_all(True)
            item.links = [
                str(inner["href"])
                for inner in below
                if inner.get("href") and _kind(inner)[:4] in ("link", "bib:")
            ]
            item.blocks = [
                policies.fold(_plain_bare(inner)) for inner in below if _kind(inner) == "bibblock"
            ]
            emphases = [
                policies.fold(_plain_bare(inner)) for inner in below if _kind(inner) == "emphasis"
            ]
            item.emphases = [words for words in emphases if words]
            item.fields = [
                (_kind(inner)[4:], policies.fold(_plain_bare(inner)))
                for inner in below
                if _kind(inner)[:4] == "bib:"
            ]
            items.append(item)
            node.decompose()

    def read_authors(self) -> None:
        creators = [node for node in self.of_kind("creator") if "ltx_role_author" in _classes(node)]
        self.findings.bylines = [self.byline_of(node) for node in creators]
        notes = self.of_kind("note")
        outer_notes = [
            node for node in notes if node.find_parent(lambda above: _kind(above) == "note") is None
        ]
        for node in outer_notes:
            if "ltx_role_institutetext" in _classes(node) or "ltx_role_email" in _classes(node):
                inner = [below.extract() for below in node.find_all(True) if _kind(below) == "note"]
                self.findings.institutes += [_plain_bare(below) for below in [*inner, node]]
                node.extract()
        for node in [*self.of_kind("creator"), *self.of_kind("authors")]:
            node.clear()

    def byline_of(self, node: Tag) -> Byline:
        byline = Byline()
        for inner in [below for below in node.find_all(True) if _kind(below) == "note"]:
            if inner.find_parent(lambda above: _kind(above) == "personname"):
                mark = self.note_marks.get(id(inner), "")
                byline.add_note(mark, policies.with_dollars(_plain_bare(inner)))
                inner.replace_with(f"{MARK}{NOTE}{mark}{MARK}")
        names = [below for below in node.find_all(True) if _kind(below) == "personname"]
        for inner in [
            below
            for name in names
            for below in name.find_all(True)
            if _kind(below) == "superscript"
        ]:
            inner.replace_with(policies.mark(_plain_bare(inner)))
        for inner in [below for below in node.find_all(True) if _kind(below) == "contact"]:
            byline.contacts.append(
                (_role(inner), policies.with_dollars(_plain_bare(inner.extract())))
            )
        for grid in reversed([below for below in node.find_all(True) if _kind(below) == "tabular"]):
            rows = [[_plain_bare(cell) for cell in _tags(row)] for row in _rows(grid)]
            grid.replace_with(policies.byline_grid(rows))
        for inner in node.find_all(True):
            if _kind(inner) == "personname":
                byline.names += policies.as_formulas(_plain_bare(inner))
            elif _kind(inner) == "author_notes":
                byline.remarks.append(policies.finish(_plain_bare(inner)))
        return byline


def _loss_of(node: Tag) -> str:
    """The kind of loss that an element is; "" for one that stays, as one with a section does."""
    what, _, name = _kind(node).partition(":")
    if what == "picture":
        what, name = "lose", "picture"
    if what == "white" and node.find_parent(lambda above: _kind(above) == "tabular") is None:
        what, name = "lose", "hidden"
    if what not in ("drop", "lose"):
        return ""
    has_section = any(_kind(below) == "section" for below in node.find_all(True))
    return "" if has_section else name


def _is_cited(node: Tag) -> bool:
    """Whether an element is in a citation of the text, not of something lost."""
    above = map(_kind, node.parents)
    return "cite" in above and not any(map(_is_lost, node.parents))


def _is_lost(node: Tag) -> bool:
    return _kind(node).startswith(("drop:", "lose:", "picture"))


def _is_of_byline(node: Tag) -> bool:
    classes = _classes(node)
    return (
        _kind(node) in ("creator", "personname", "contact")
        or "ltx_role_institutetext" in classes
        or "ltx_role_email" in classes
    )


def _plain_bare(node: Tag) -> str:
    return _ANCHORS.sub("", _plain(node))


def _annotation(node: Tag) -> str:
    annotation = node.find("annotation", attrs={"encoding": "application/x-tex"})
    return annotation.get_text() if annotation else ""


def _citations_of(formula: Tag) -> list[Tag]:
    """The citations that are drawn in a formula, as one superscript."""
    from bs4 import Tag

    raised = Tag(name="sup")
    for cite in formula.find_all("cite"):
        if cite.find_parent(["annotation", "annotation-xml"]) is None:
            raised.append(cite.extract())
    return [raised]


def _breaks(node: Tag) -> str:
    """What ends a box: LINE within a float, a listing or a byline, a space elsewhere."""
    for above in [node, *node.parents]:
        kind = _kind(above)
        if kind in _LINED:
            return LINE
        if kind in _UNLINED and above is not node:
            return " "
    return " "


def _within_float(node: Tag) -> bool:
    above = node.find_parent(lambda above: _kind(above) in ("float", "section"))
    return above is not None and _kind(above) == "float"


def _is_grid(node: Tag) -> bool:
    """Whether a table has at least two rows of at least two cells."""
    return sum(len(list(_tags(row))) > 1 for row in _rows(node)) > 1


def _rows(node: Tag) -> list[Tag]:
    return list(_rows_below(node)) or [node]


def _rows_below(node: Tag) -> Iterator[Tag]:
    for child in _tags(node):
        classes = _classes(child)
        if child.name == "tr" or "ltx_tr" in classes or "ltx_eqn_row" in classes:
            yield child
        elif child.name in ("tbody", "thead", "tfoot", "table") or "ltx_t" in classes:
            yield from _rows_below(child)


def _role(node: Tag) -> str:
    roles = [
        name.removeprefix("ltx_role_")
        for name in _classes(node).split()
        if name.startswith("ltx_role_")
    ]
    return roles[0] if roles else ""
