"""Parse an article's HTML, as Parsoid writes it, into a Paper; mwparserfromhtml classifies the elements.

This follows WikiChat and keeps more: sections by their headings, tables as separate blocks, prose by
`html_to_plaintext`, formulas as TeX, citations as markers, references as the bibliography. Page furniture (navigation,
notes to editors, hatnotes) is left out and counted. BeautifulSoup limits the speed to some MB a second.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pipeline.arxiv.identifiers import find_arxiv_id
from pipeline.corpus.parse import policies
from pipeline.corpus.parse.assembly import Findings, assemble
from pipeline.corpus.parse.grids import Cell, markdown_grid, span
from pipeline.corpus.parse.paper import BibliographyItem, Block, PageError, Paper, Section
from pipeline.corpus.parse.policies import LINE, TEX
from pipeline.corpus.quality import Quality, grade

if TYPE_CHECKING:
    from bs4 import Tag

# Elements that are not part of the text; they do not lower the grade of a page.
FURNITURE = ("navigation", "message_box", "hatnote", "edit_mark", "cleanup_mark", "reference_mark")

_INVISIBLE = ("style", "script", "template", "noscript", "link", "meta")
_BLOCKS = frozenset(
    {
        "p", "div", "section", "table", "ul", "ol", "dl", "figure", "figcaption", "blockquote", "pre", "center",
        "details", "hr", "h1", "h2", "h3", "h4", "h5", "h6", "article", "aside", "header", "footer", "main", "form",
    }
)  # fmt: skip
_HIDDEN = re.compile(r"display\s*:\s*none", re.IGNORECASE)
_NAVIGATION = frozenset(
    {"navbox", "vertical-navbox", "sidebar", "side-box", "sistersitebox", "portalbox", "toc", "noprint", "nomobile"}
)
_LISTS = ("ul", "ol", "dl")


def read_article(html: str) -> Paper:
    """The article that a page's HTML holds; sections and blocks as in `papers`, anchors those of the headings.

    Raises PageError: not_html, redirect, disambiguation, no_prose for a page without a paragraph, no_text, too_deep.
    """
    try:
        page = _page(html)
        _refuse(page)
        found = _ArticleReader(page.find("body") or page).read()
    except RecursionError:
        raise PageError("too_deep", "its elements nest deeper than the parser follows") from None
    if not any(block.kind == "paragraph" for block in found.blocks):
        raise PageError("no_prose", "it holds no paragraph of text")
    return assemble(found, html.encode(errors="surrogatepass"), errors=0, truncated="</html>" not in html[-200:])


def _page(html: str) -> Tag:
    from mwparserfromhtml.parse.article import Article

    try:
        # It raises a plain Exception for a page without the <base> that Parsoid writes.
        page: Tag = Article(html).wikistew.tag
    except RecursionError:
        raise
    except Exception as error:
        raise PageError("not_html", " ".join(str(error).split())) from error
    return page


def _refuse(page: Tag) -> None:
    """Raise PageError for a redirect or a disambiguation page, which MediaWiki marks by page properties."""
    from mwparserfromhtml.parse.elements import Note

    redirect = page.find("link", rel="mw:PageProp/redirect")
    if redirect is not None:
        raise PageError("redirect", f"to {str(redirect.get('href') or '').removeprefix('./')}"[:200])
    if page.find("meta", property="mw:PageProp/disambiguation") or page.find(Note.is_dmbox):
        raise PageError("disambiguation", "it lists what a name may mean")


def _classes(node: Tag) -> list[str]:
    value: Any = node.get("class") or []
    return value.split() if isinstance(value, str) else list(value)


def _tags(node: Tag) -> Iterator[Tag]:
    from bs4 import Tag

    return (child for child in list(node.children) if isinstance(child, Tag))


def _plain(node: Tag) -> str:
    """The text of an element as mwparserfromhtml reads it."""
    from mwparserfromhtml.parse.plaintext import html_to_plaintext

    return "".join(text for text, _, _, _ in html_to_plaintext(node))


def _furniture(node: Tag) -> str | None:
    """The kind of page furniture that an element is, or None."""
    from mwparserfromhtml.parse.elements import InlineCleanup, Messagebox, Navigation, Note

    classes = set(_classes(node))
    if InlineCleanup.is_inline_cleanup(node):
        return "cleanup_mark"
    if Navigation.is_navigation(node) or classes & _NAVIGATION:
        return "navigation"
    if Messagebox.is_message_box(node):
        return "message_box"
    if Note.is_note(node) or Note.is_hatnote(node) or Note.is_asbox(node) or "dablink" in classes:
        return "hatnote"
    if "mw-editsection" in classes:
        return "edit_mark"
    return "hidden" if _HIDDEN.search(str(node.get("style") or "")) else None


class _ArticleReader:
    """Reads one article: removes what is no text, then reads blocks in order, below the headings before them."""

    def __init__(self, body: Tag) -> None:
        self.body = body
        # The lead is read as prose like the rest, so there is no abstract.
        self.found = Findings(abstract="")
        self.headings: list[tuple[int, str]] = []
        """(level, title) of the headings above the present position."""
        self.anchor = ""

    def read(self) -> Findings:
        """What the page holds."""
        self.remove_invisible()
        self.read_formulas()
        text = self.body.get_text()
        self.found.seen = policies.visible(text) - text.count("$")
        self.drop_furniture(self.body)
        self.read_citations()
        self.read_references()
        self.read_below(self.body)
        return self.found

    # What is no text of the article.

    def remove_invisible(self) -> None:
        """Remove comments, scripts and other elements that are not displayed."""
        from bs4.element import PreformattedString

        for string in list(self.body.find_all(string=lambda text: isinstance(text, PreformattedString))):
            string.extract()
        for node in self.body.find_all(_INVISIBLE):
            node.decompose()

    def read_formulas(self) -> None:
        """Replace each formula by its TeX."""
        from mwparserfromhtml.parse.elements import Math

        formulas = [node for node in self.body.find_all("span") if Math.is_math(node)]
        for node in [node for node in formulas if node.find_parent(Math.is_math) is None]:
            source = _tex(node)
            tex = policies.tex_source(source or node.get_text())
            self.found.formulas += 1
            self.found.math_without_tex += not source
            inline = policies.inline_tex(tex)
            node.replace_with(f" {policies.display_math(inline, '')} " if _is_display(node) else inline)
        for string in self.body.find_all(string=re.compile(TEX)):
            string.replace_with(string.replace(TEX, "$"))

    def drop_furniture(self, around: Tag) -> None:
        for node in _tags(around):
            kind = _furniture(node)
            if kind is None:
                self.drop_furniture(node)
            else:
                self.lose(kind, node)

    def lose(self, kind: str, node: Tag) -> None:
        self.found.lost[kind].append(node.get_text())
        node.decompose()

    def read_citations(self) -> None:
        """Replace each citation by a marker."""
        from mwparserfromhtml.parse.elements import Citation

        for node in self.body.find_all("sup"):
            if not Citation.is_citation(node):
                continue
            link = node.find("a")
            key = policies.cited_key(str(link.get("href") or "")) if link else None
            marker = f"[@{key}]" if key else ""
            self.found.missing_citations += not key
            self.found.citations.append((marker, node.get_text()))
            node.replace_with(marker)

    def read_references(self) -> None:
        """Move the list of references into the bibliography."""
        for node in self.body.find_all("li"):
            text = node.find("span", class_="mw-reference-text")
            if text is None or not node.get("id"):
                continue
            raw = policies.fold(text.get_text())
            item = BibliographyItem(str(node["id"]), raw, arxiv_id=find_arxiv_id(raw + " " + " ".join(_links(text))))
            self.found.items.append(item)
            text.decompose()
            self.lose("reference_mark", node)

    # Text.

    def read_below(self, node: Tag) -> None:
        """Read the blocks below an element; words outside of any paragraph form one."""
        from bs4 import Tag

        loose: list[str] = []
        for child in list(node.children):
            if isinstance(child, Tag) and (child.name in _BLOCKS or child.find(_is_block)):
                self.add("paragraph", "".join(loose))
                loose.clear()
                self.read_block(child)
            else:
                loose.append(_lined(child) if isinstance(child, Tag) else str(child))
        self.add("paragraph", "".join(loose))

    def read_block(self, node: Tag) -> None:
        if node.name[0] == "h" and node.name[1:].isdecimal():
            self.read_heading(node)
        elif node.name == "p" and not node.find(_is_block):
            self.add("paragraph", _lined(node))
        elif node.name == "table":
            self.read_table(node)
        elif node.name in _LISTS:
            self.read_list(node)
        elif node.name == "pre":
            self.add("algorithm", node.get_text().replace("\n", LINE))
        elif node.name == "figcaption":
            self.found.figures += 1
            self.add("caption", _lined(node))
        else:
            self.read_below(node)

    def read_heading(self, node: Tag) -> None:
        level, title = int(node.name[1:]), policies.heading(_plain(node))
        while self.headings and self.headings[-1][0] >= level:
            self.headings.pop()
        self.headings.append((level, title))
        self.anchor = str(node.get("id") or "")
        self.found.sections.append(Section(self.anchor, None, title, len(self.headings), self.path))

    @property
    def path(self) -> tuple[str, ...]:
        return tuple(title for _, title in self.headings if title)

    def read_list(self, node: Tag) -> None:
        """A list; one that only indents (`:` in wikitext, as formulas are set) is paragraphs."""
        if node.name == "dl" and node.find("dt") is None and not node.find(_LISTS):
            for child in _tags(node):
                self.read_below(child)
        else:
            for table in node.find_all("table"):
                self.read_table(table.extract())
            self.add("list", _list_text(node))

    def read_table(self, node: Tag) -> None:
        """A table or infobox as Markdown below its caption; tables in it are words of its cells."""
        self.found.tables += 1
        caption = node.find("caption")
        title = policies.finish(_plain(caption.extract())) if caption else ""
        rows = [row for row in node.find_all("tr") if row.find_parent("table") is node]
        grid, repeated = markdown_grid([[_cell(cell) for cell in _tags(row)] for row in rows])
        self.found.repeated += repeated
        self.add("table", "\n".join(filter(None, (title, grid))), finished=True)

    def add(self, kind: str, raw: str, *, finished: bool = False) -> None:
        text = raw if finished else policies.finish(raw)
        if text:
            self.found.blocks.append(Block(kind, self.anchor, self.path, text, policies.cited_keys(text)))


def _is_block(node: Tag) -> bool:
    return node.name in _BLOCKS


def _is_display(node: Tag) -> bool:
    own = any(name.endswith("-block") for name in _classes(node))
    return own or bool(node.find("math", display="block") or node.find(class_="mwe-math-mathml-display"))


def _tex(node: Tag) -> str:
    """The TeX of a formula, without the braces and the style that MediaWiki sets around it."""
    annotation = node.find("annotation", encoding="application/x-tex")
    mathml, image = node.find("math"), node.find("img")
    source = annotation.get_text() if annotation else ""
    source = source or str((mathml and mathml.get("alttext")) or (image and image.get("alt")) or "")
    bare = policies.tex_source(source)
    styled = bare != " ".join(source.split())
    return bare.removeprefix("{").removesuffix("}").strip() if styled and bare.startswith("{") else bare


def _links(node: Tag) -> list[str]:
    return [str(link.get("href") or "") for link in node.find_all("a")]


def _lined(node: Tag) -> str:
    """The text of an element, with its line breaks."""
    for inner in [node] if node.name == "br" else node.find_all("br"):
        inner.append(LINE)
    return _plain(node)


def _list_text(node: Tag) -> str:
    """A line for each item, those of lists within it too."""
    lines = ""
    for place, item in enumerate(_tags(node), 1):
        inner = [_list_text(below.extract()) for below in item.find_all(_LISTS) if below.find_parent(_LISTS) is node]
        for below in item.find_all(("p", "div", "br")):
            below.append(" ")
        mark = {"ol": f"{place}.", "ul": "-"}.get(node.name, "" if item.name == "dt" else "-")
        words = " ".join(_plain(item).split())
        lines += f"{LINE}{mark} {words}" if words else ""
        lines += "".join(inner)
    return lines + LINE


def _cell(cell: Tag) -> Cell:
    """A cell on one line, with commas between its lines."""
    for inner in cell.find_all(("br", "li", "p", "div", "tr")):
        inner.append(LINE)
    columns, rows = (span(str(cell.get(name) or "")) for name in ("colspan", "rowspan"))
    return Cell(policies.joined_lines(_plain(cell)), columns, rows, is_head=cell.name == "th")


def grade_article(paper: Paper) -> Quality:
    """The grade of an article's text, where page furniture does not count as lost text."""
    furniture = sum(count for name, count in paper.losses.items() if name in FURNITURE)
    return grade(replace(paper, chars_seen=paper.chars_seen - furniture))
