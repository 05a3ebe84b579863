"""The reference parser: the way of the arXivBot report, BeautifulSoup for the structure and mwparserfromhtml for text.

It applies the policies of `policies.py` to the soup itself (citations to markers, formulas to TeX, footnotes out), then
reads sections and paragraphs with `html_to_plaintext`. It shares the policies and `kinds.py` with the fast parser, and
no code that walks a page: what the two agree on, both have read. `html_to_plaintext` is written for Wikipedia's HTML;
on LaTeXML's it yields every string of an element in document order, which is what is wanted here.

Not here: speed. `html.py` is some twenty times as fast.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from pipeline.corpus import policies
from pipeline.corpus.authors import Byline, read_bylines
from pipeline.corpus.bibliography import ItemParts, read_item
from pipeline.corpus.front_matter import find_abstract, without_empty
from pipeline.corpus.kinds import is_algorithm, kind_of, section_rank
from pipeline.corpus.paper import Author, BibliographyItem, Block, PageError, Paper, Section
from pipeline.corpus.policies import GONE, LINE, MARK, TEX

if TYPE_CHECKING:
    from bs4 import BeautifulSoup, Tag

# Stand in the text for an element that was taken out of it, and for the id of the paragraph that begins there.
_ASIDE, _ANCHOR = "\4", "\5"
_ASIDES = re.compile(f"{_ASIDE}(\\d+){_ASIDE}")
_ANCHORS = re.compile(f"{_ANCHOR}([^{_ANCHOR}]*){_ANCHOR}")

_BLOCKS = frozenset({"note", "float", "tabular", "section"})
_INTERRUPTING = frozenset({"list", "theorem", "listing"})
_LINED = frozenset({"float", "listing", "personname", "contact"})
_UNLINED = frozenset({"caption", "note", "section", "list", "tabular", "abstract"})


def parse(html: bytes) -> Paper:
    """The paper that a page of the dump holds. Raises PageError as the fast parser does."""
    from bs4 import BeautifulSoup

    if not policies.is_html(html):
        raise PageError("not_html", "no <html>, <body> or <article> in its first 4,096 bytes")
    soup = BeautifulSoup(policies.clean_bytes(html), "html.parser", from_encoding="utf-8")
    try:
        return _Reading(soup).paper(html)
    except RecursionError:
        raise PageError("too_deep", "its elements nest deeper than the parser follows") from None


def _plain(node: Tag) -> str:
    """The text of an element as mwparserfromhtml reads it."""
    from mwparserfromhtml.parse.plaintext import html_to_plaintext

    return "".join(text for text, _, _, _ in html_to_plaintext(node))


def _kind(node: Tag) -> str:
    known = node.attrs.get("data-kind")
    if known is None:
        known = node.attrs["data-kind"] = kind_of(node.name, _classes(node))
    return str(known)


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


class _Reading:
    """One page: first the policies on its soup, then its structure, then its text."""

    def __init__(self, soup: BeautifulSoup) -> None:
        self.body: Tag = soup.body or soup
        self.losses: Counter[str] = Counter()
        self.formulas = self.missing = self.tables = self.figures = self.tex_chars = 0
        self.aside: list[Tag] = []
        self.path: tuple[str, ...] = ()
        self.open_sections: list[tuple[int, int, tuple[str, ...]]] = []
        self.anchor = ""
        self.sections: list[Section] = []
        self.title: str | None = None
        self.abstract: str | None = None
        self.institutes: list[str] = []
        self.note_marks: dict[int, str] = {}

    def paper(self, html: bytes) -> Paper:
        """The page's paper. Raises PageError where there is no text."""
        seen = self.prepare()
        bibliography = self.read_bibliography()
        authors, notes = self.read_authors()
        blocks = [*notes, *self.read(self.body)]
        abstract, sections = self.abstract, self.sections
        if abstract is None:
            abstract, sections, blocks = find_abstract(sections, blocks)
        if not blocks and not abstract:
            raise PageError("no_text", "no paragraph, table, caption or abstract on the page")
        losses = {name: count for name, count in sorted(self.losses.items()) if count}
        return Paper(
            title=self.title,
            authors=authors,
            abstract=abstract,
            sections=tuple(without_empty(sections, blocks)),
            blocks=tuple(blocks),
            bibliography=bibliography,
            paragraphs=sum(block.kind == "paragraph" for block in blocks),
            tables=self.tables,
            figures=self.figures,
            formulas=self.formulas,
            chars_seen=seen,
            chars_kept=seen - sum(losses.values()),
            losses=losses,
            ltx_errors=policies.count_errors(html),
            missing_citations=self.missing,
            truncated=policies.is_truncated(html),
            html_bytes=len(html),
            html_sha256=hashlib.sha256(html).hexdigest(),
        )

    # Policies on the soup.

    def prepare(self) -> int:
        """Apply every policy to the soup; return the characters that a reader of the page sees."""
        from bs4.element import PreformattedString

        for string in list(self.body.find_all(string=lambda text: isinstance(text, PreformattedString))):
            string.extract()
        for node in self.of_kind("unseen"):
            node.decompose()
        seen = self.read_formulas()
        self.figures = sum(
            "ltx_figure" in _classes(node).split() and not _within_float(node) for node in self.of_kind("float")
        )
        self.drop()
        for node in self.of_kind("cite"):
            node.replace_with(self.citation_of(node))
        self.break_lines()
        for node in self.of_kind("equation"):
            if node.find_parent(lambda above: _kind(above) == "equation") is None:
                node.replace_with(self.equation_text(node))
        for string in self.body.find_all(string=re.compile(TEX)):
            string.replace_with(re.sub(f"{TEX}([^{TEX}]*){TEX}", lambda match: policies.inline_math(match[1]), string))
        return seen

    def of_kind(self, kind: str) -> list[Tag]:
        return [node for node in self.body.find_all(True) if _kind(node) == kind]

    def read_formulas(self) -> int:
        """Put each formula's TeX in its place, between TEX marks; return the visible characters of the page."""
        for node in self.of_kind("math"):
            if node.parent is None:
                continue
            tex = policies.tex_source(str(node.get("alttext") or node.get("alt") or _annotation(node)))
            self.formulas += 1
            node.replace_with(f"{TEX}{tex}{TEX}")
        return policies.visible(self.body.get_text().replace(TEX, ""))

    def drop(self) -> None:
        """Take out what no reader of the text needs, counted by kind."""
        for node in self.body.find_all(True):
            what, _, name = _kind(node).partition(":") if not node.decomposed else ("", "", "")
            if what not in ("drop", "lose") or any(_kind(below) == "section" for below in node.find_all(True)):
                continue
            self.missing += name == "missing_citation"
            if "ltx_note_mark" in _classes(node) and node.parent is not None:
                self.note_marks.setdefault(id(node.parent), policies.fold(node.get_text()))
            self.count_loss(name, node.get_text())
            node.decompose()

    def count_loss(self, name: str, text: str) -> None:
        self.losses[name] += policies.visible(re.sub(f"[{LINE}{MARK}{TEX}{GONE}]|{_ASIDE}\\d+{_ASIDE}|\\$", "", text))

    def citation_of(self, node: Tag) -> str:
        return policies.citation(list(self.citation_pieces(node)))

    def citation_pieces(self, node: Tag) -> Iterator[str | tuple[str, str]]:
        from bs4 import Tag

        for child in node.children:
            if not isinstance(child, Tag):
                yield str(child)
                continue
            key = policies.cited_key(str(child.get("href") or "")) if child.name == "a" else None
            if key:
                yield key, policies.fold(child.get_text())
            else:
                yield from self.citation_pieces(child)

    def break_lines(self) -> None:
        """Put a space, or LINE where lines matter, after every box and for every `br`."""
        for node in self.body.find_all(True):
            kind = _kind(node)
            if kind == "break":
                node.replace_with(_breaks(node))
            elif kind == "line":
                node.append(LINE)
            elif kind in ("p", "box", "para", "heading", "listing"):
                node.append(_breaks(node))
                if kind == "p" and _id(node):
                    node.insert(0, f"{_ANCHOR}{_id(node)}{_ANCHOR}")
            if node.name == "pre":
                for string in node.find_all(string=True):
                    string.replace_with(string.replace("\n", LINE))

    def equation_text(self, node: Tag) -> str:
        return "".join(f" {self.row_text(row)} " for row in _rows(node))

    def row_text(self, row: Tag) -> str:
        numbers = [node.extract().get_text() for node in row.find_all(True) if _kind(node) == "tag"]
        return policies.display_math(row.get_text(), " ".join(map(policies.fold, numbers)))

    # Text.

    def text_of(self, node: Tag) -> tuple[str, list[Block]]:
        """(raw text of an element, blocks that stood in it). Lists within it are lines of the text."""
        self.set_aside(node, _BLOCKS)
        for inner in list(_outermost(node, frozenset({"list"}))):
            inner.replace_with(self.list_text(inner))
        text = _plain(node)
        return self.without_asides(text), self.read_asides(text)

    def read_asides(self, text: str) -> list[Block]:
        """The blocks that were set aside in a text."""
        return [block for place in _ASIDES.findall(text) for block in self.read_one(self.aside[int(place)])]

    def without_asides(self, text: str) -> str:
        """The text itself; where a footnote stood the space before it may go."""
        kinds = (_kind(self.aside[int(place)]) for place in _ASIDES.findall(text))
        return _ANCHORS.sub("", _ASIDES.sub(lambda _: GONE if next(kinds) == "note" else "", text))

    def set_aside(self, node: Tag, kinds: frozenset[str]) -> None:
        for inner in list(_outermost(node, kinds)):
            self.aside.append(inner)
            inner.replace_with(f"{_ASIDE}{len(self.aside) - 1}{_ASIDE}")

    def list_text(self, node: Tag) -> str:
        text = ""
        for child in _tags(node):
            tags = [inner.extract().get_text() for inner in _own_tags(child)]
            for inner in list(_outermost(child, frozenset({"list"}))):
                inner.replace_with(self.list_text(inner))
            begin = " " if child.name == "dd" else f"{LINE}{policies.list_mark(' '.join(tags))} "
            text += begin + _plain(child)
        return text + LINE

    def block(self, kind: str, anchor: str, raw: str, *, finished: bool = False) -> list[Block]:
        text = raw if finished else policies.finish([raw])
        return [Block(kind, anchor or self.anchor, self.path, text, policies.cited_keys(text))] if text else []

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
        if kind in ("para", "p"):
            return self.read_para(node)
        if kind in ("section", "acknowledgements"):
            return self.read_section(node, kind)
        if kind in ("float", "tabular", "caption", "note", "list", "theorem", "listing"):
            return getattr(self, f"read_{kind}")(node)  # type: ignore[no-any-return]
        if kind == "heading" and self.title is None and "ltx_title_part" in _classes(node):
            return self.read_front(node, "title")
        if kind in ("title", "abstract"):
            return self.read_front(node, kind)
        return self.read(node)

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
                blocks += [*self.run(text[start : match.start()], home), *after, *self.read_one(inner)]
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
        depth, path = next(((d, p) for r, d, p in reversed(self.open_sections) if r < rank), (0, ()))
        raw, number, notes = self.read_headings(node)
        title = policies.heading(raw) or ("Acknowledgements" if kind != "section" else "")
        outer, self.path = self.path, (*path, title) if title else path
        self.open_sections.append((rank, depth + 1, self.path))
        self.sections.append(Section(self.anchor, number, title, depth + 1, self.path))
        blocks = [Block(b.kind, b.anchor, self.path, b.text, b.cited_keys) for b in notes]
        blocks += self.read(node) if kind == "section" else self.read_para(node)
        self.open_sections.pop()
        self.path = outer
        return blocks

    def read_headings(self, node: Tag) -> tuple[str, str | None, list[Block]]:
        raw, numbers, notes = "", [], list[Block]()
        for child in _tags(node):
            if child.name[0] != "h" or "ltx_title" not in _classes(child):
                break
            numbers += [inner.extract().get_text() for inner in child.find_all(True) if _kind(inner) == "tag"]
            text, after = self.text_of(child.extract())
            raw, notes = f"{raw}{text} ", notes + after
        return raw, policies.section_number(" ".join(numbers)), notes

    def read_front(self, node: Tag, kind: str) -> list[Block]:
        known = self.title if kind == "title" else self.abstract
        if known is not None and kind == "abstract":
            return self.read_para(node)
        raw, after = self.text_of(node)
        text = policies.finish([raw])
        if known is not None:
            self.count_loss("second_title", raw)
        elif kind == "title":
            self.title = text or None
        else:
            self.abstract = text or None
        return after

    def read_list(self, node: Tag) -> list[Block]:
        self.set_aside(node, _BLOCKS)
        raw = self.list_text(node)
        after = self.read_asides(raw)
        return [*self.block("list", _id(node), self.without_asides(raw)), *after]

    def read_theorem(self, node: Tag) -> list[Block]:
        raw, after = self.text_of(node)
        return [*self.block("theorem", _id(node), raw), *after]

    def read_listing(self, node: Tag) -> list[Block]:
        raw, after = self.text_of(node)
        return [*self.block("algorithm", _id(node), raw), *after]

    def read_note(self, node: Tag) -> list[Block]:
        raw, after = self.text_of(node)
        classes = _classes(node)
        if "ltx_role_institutetext" in classes or "ltx_role_email" in classes:
            self.institutes.append(raw.replace(GONE, ""))
            return after
        return [*self.block("footnote", _id(node), "" if "footnotemark" in classes else raw), *after]

    def read_caption(self, node: Tag) -> list[Block]:
        raw, after = self.text_of(node)
        return [*self.block("caption", _id(node), raw), *after]

    def read_tabular(self, node: Tag) -> list[Block]:
        grid, after = self.grid_of(node)
        return [*self.block("table", _id(node), grid, finished=True), *after]

    def read_float(self, node: Tag) -> list[Block]:
        self.set_aside(node, frozenset({"section"}))
        listing = is_algorithm(_classes(node)) or any(True for _ in _outermost(node, frozenset({"listing"})))
        captions, grids, after = list[str](), list[str](), list[Block]()
        for inner in list(_outermost(node, frozenset({"caption", "tabular"}) | _BLOCKS)):
            more: list[Block] = []
            if _kind(inner) == "caption":
                raw, more = self.text_of(inner.extract())
                captions.append(policies.finish([raw]))
            elif _kind(inner) == "tabular":
                grid, more = self.grid_of(inner.extract())
                grids.append(grid)
            after += more
        raw, more = self.text_of(node)
        kind = "algorithm" if listing else "table" if grids else "caption"
        rest = [policies.finish([raw]), *grids]
        parts = [*captions, *(reversed(rest) if kind == "table" else rest)]
        return [*self.block(kind, _id(node), "\n".join(filter(None, parts)), finished=True), *after, *more]

    def grid_of(self, node: Tag) -> tuple[str, list[Block]]:
        self.tables += 1
        after: list[Block] = []
        held: dict[int, int] = {}
        rows: list[list[str]] = []
        for row in _rows(node):
            cells: list[str] = []
            for cell in _tags(row):
                self.hold(cells, held)
                raw, more = self.cell_text(cell)
                after += more
                wide, high = _span(cell.get("colspan")), _span(cell.get("rowspan"))
                held.update({place: high - 1 for place in range(len(cells), len(cells) + wide) if high > 1})
                cells += [policies.finish([raw.replace(LINE, " ")]), *[""] * (wide - 1)]
            self.hold(cells, held)
            rows.append(cells)
        return policies.markdown_table(rows), after

    def cell_text(self, cell: Tag) -> tuple[str, list[Block]]:
        self.set_aside(cell, _BLOCKS - {"tabular"})
        for inner in list(_outermost(cell, frozenset({"list"}))):
            inner.replace_with(self.list_text(inner))
        text = _plain(cell)
        return self.without_asides(text), self.read_asides(text)

    def hold(self, cells: list[str], held: dict[int, int]) -> None:
        while held.get(len(cells), 0) > 0:
            held[len(cells)] -= 1
            cells.append("")

    # Front and back matter.

    def read_bibliography(self) -> tuple[BibliographyItem, ...]:
        items: list[BibliographyItem] = []
        for node in self.of_kind("bibitem"):
            item = ItemParts(key=_id(node) or f"bib.item{len(items) + 1}", raw=policies.finish([_plain_bare(node)]))
            below = node.find_all(True)
            item.links = [str(inner.get("href") or "") for inner in below if _kind(inner) == "link"]
            item.blocks = [policies.fold(_plain_bare(inner)) for inner in below if _kind(inner) == "bibblock"]
            item.emphases = [policies.fold(_plain_bare(inner)) for inner in below if _kind(inner) == "emphasis"]
            item.fields = [
                (_kind(inner)[4:], policies.fold(_plain_bare(inner))) for inner in below if _kind(inner)[:4] == "bib:"
            ]
            items.append(read_item(item))
            node.decompose()
        return tuple(items)

    def read_authors(self) -> tuple[tuple[Author, ...], list[Block]]:
        bylines = [self.byline_of(node) for node in self.of_kind("creator") if "ltx_role_author" in _classes(node)]
        for node in self.of_kind("note"):
            if "ltx_role_institutetext" in _classes(node) or "ltx_role_email" in _classes(node):
                inner = [below.extract() for below in node.find_all(True) if _kind(below) == "note"]
                self.institutes += [_plain_bare(below) for below in [*inner, node]]
                node.extract()
        for node in [*self.of_kind("creator"), *self.of_kind("authors")]:
            node.clear()
        authors, notes, lost = read_bylines(bylines, self.institutes)
        self.losses["author_mark"] += lost
        return authors, [Block("footnote", "authors", (), note) for note in notes]

    def byline_of(self, node: Tag) -> Byline:
        byline = Byline()
        for inner in [below for below in node.find_all(True) if _kind(below) == "note"]:
            if inner.find_parent(lambda above: _kind(above) == "personname"):
                mark = self.note_marks.get(id(inner), "")
                byline.add_note(mark, _plain_bare(inner))
                inner.replace_with(f"{MARK}{mark}{MARK}")
        for inner in [below for below in node.find_all(True) if _kind(below) == "mark"]:
            inner.insert(0, MARK)
            inner.append(MARK)
        for inner in [below for below in node.find_all(True) if _kind(below) == "contact"]:
            byline.contacts.append((_role(inner), policies.joined_lines(_plain_bare(inner.extract()))))
        for inner in node.find_all(True):
            if _kind(inner) == "personname":
                byline.names += _plain_bare(inner)
            elif _kind(inner) == "author_notes":
                byline.remarks.append(policies.finish([_plain_bare(inner)]))
        return byline


def _plain_bare(node: Tag) -> str:
    return _ANCHORS.sub("", _plain(node))


def _annotation(node: Tag) -> str:
    found = node.find("annotation", attrs={"encoding": "application/x-tex"})
    return (found or node).get_text()


def _own_tags(node: Tag) -> Iterable[Tag]:
    return list(_outermost(node, frozenset({"tag"})))[:1]


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


def _rows(node: Tag) -> list[Tag]:
    return list(_rows_below(node)) or [node]


def _rows_below(node: Tag) -> Iterator[Tag]:
    for child in _tags(node):
        classes = _classes(child)
        if child.name == "tr" or "ltx_tr" in classes or "ltx_eqn_row" in classes:
            yield child
        elif child.name in ("tbody", "thead", "tfoot", "table") or "ltx_t" in classes:
            yield from _rows_below(child)


def _span(value: object) -> int:
    text = str(value or "")
    return min(int(text), 200) if text.isdecimal() and int(text) > 0 else 1


def _role(node: Tag) -> str:
    roles = [name.removeprefix("ltx_role_") for name in _classes(node).split() if name.startswith("ltx_role_")]
    return roles[0] if roles else ""
