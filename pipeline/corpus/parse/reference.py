"""The reference parser: the way of the arXivBot report, BeautifulSoup for the structure and
mwparserfromhtml for text.

It yields words alone: title, abstract, sections with their text in document order, bibliography.
Lists, tables, captions and footnotes are words of their section; authors are those of metadata. It
applies the policies of `policies.py` to the soup itself (citations to markers, formulas to TeX) and
shares no code that walks a page with the fast parser: tests compare the words of both.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from pipeline.corpus.parse import policies
from pipeline.corpus.parse.assembly import assemble
from pipeline.corpus.parse.bibliography import ItemParts
from pipeline.corpus.parse.findings import Findings
from pipeline.corpus.parse.kinds import HEADING_NAMES, TEXT_KINDS, kind_of, section_rank
from pipeline.corpus.parse.parsed_page import Author, Block, PageError, ParsedPage, Section
from pipeline.corpus.parse.policies import LOWERED, RAISED, SCRIPT_END, TEX
from pipeline.corpus.parse.source import (
    as_utf8,
    count_errors,
    is_html,
    is_truncated,
    whole_text,
    without_site,
)

if TYPE_CHECKING:
    from bs4 import BeautifulSoup, Tag

_FRONT = frozenset({"title", "subtitle", "abstract"})
_SECTIONS = frozenset({"section", "acknowledgements"})
# What an element without a meaning of its own is opened for; any other is one stretch of text.
_STRUCTURE = _FRONT | _SECTIONS | {"para", "p", "float", "list", "theorem", "listing", "tabular"}
_BROKEN = frozenset({
    "address_part", "bib:author-year", "box", "break", "equation", "heading", "line", "line_number",
    "listing", "note", "p", "para", "textbox",
})  # fmt: skip


def parse(html: bytes, authors: Sequence[str] = (), builder: str = "html.parser") -> ParsedPage:
    """The words of a page of the dump. Raises PageError as the fast parser does.

    `authors` are the paper's authors as arXiv's metadata names them; without them the paper has
    none. `builder` is what BeautifulSoup builds its tree with.
    """
    from bs4 import BeautifulSoup

    page = without_site(as_utf8(html))
    if not is_html(page):
        raise PageError("not_html", "no <html>, <body> or <article> in its first 4,096 bytes")
    soup = BeautifulSoup(whole_text(page), builder)
    try:
        findings = _PageReading(soup).read_page()
    except RecursionError:
        raise PageError("too_deep", "its elements nest deeper than the parser follows") from None
    paper = assemble(findings, html, errors=count_errors(page), truncated=is_truncated(page))
    return replace(paper, authors=tuple(map(Author, authors)))


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


class _PageReading:
    """One page: first the policies on its soup, then its text by sections."""

    def __init__(self, soup: BeautifulSoup) -> None:
        self.body: Tag = soup.body or soup
        self.findings = Findings()
        self.path: tuple[str, ...] = ()
        self.open_sections: list[tuple[int, tuple[str, ...]]] = []

    def read_page(self) -> Findings:
        """The findings of the page."""
        self.apply_policies()
        self.read_bibliography()
        for node in [*self.of_kind("creator"), *self.of_kind("authors")]:
            node.clear()
        self.read(self.body)
        return self.findings

    def of_kind(self, kind: str) -> list[Tag]:
        return [node for node in self.body.find_all(True) if _kind(node) == kind]

    # Policies on the soup.

    def apply_policies(self) -> None:
        """Leave out what no reader of the text needs; put text in place of formulas, citations and
        scripts.
        """
        from bs4.element import PreformattedString

        for string in list(
            self.body.find_all(string=lambda text: isinstance(text, PreformattedString))
        ):
            string.extract()
        for node in self.of_kind("unseen"):
            node.decompose()
        self.read_formulas()
        self.findings.seen = policies.visible(self.body.get_text())
        self.drop()
        for node in self.of_kind("cite"):
            text, _ = policies.citation(list(self.citation_pieces(node)))
            node.replace_with(text)
        for kind, mark in (("superscript", RAISED), ("subscript", LOWERED)):
            for node in self.of_kind(kind):
                node.insert(0, mark)
                node.append(SCRIPT_END)
        for node in self.body.find_all(True):
            if _kind(node) in _BROKEN:
                node.insert_before(" ")
                node.append(" ")
        for string in self.body.find_all(string=re.compile(TEX)):
            string.replace_with(string.replace(TEX, "$"))

    def read_formulas(self) -> None:
        """Replace each formula by its TeX."""
        for node in [node for node in self.of_kind("math") if not node.find_parent("math")]:
            given_tex = node.get("alttext") or node.get("alt") or _annotation(node)
            self.findings.formulas += 1
            self.findings.math_without_tex += not given_tex
            node.replace_with(
                policies.inline_tex(policies.tex_source(str(given_tex or node.get_text())))
            )

    def drop(self) -> None:
        """Take out raw macros, marks, navigation and the like, and drawings without text."""
        for node in reversed(self.body.find_all(True)):
            if node.decomposed:
                continue
            what, _, name = _kind(node).partition(":")
            if what not in ("drop", "lose", "picture"):
                continue
            kinds = _kinds_below(node)
            if "section" in kinds or (what == "picture" and kinds & TEXT_KINDS):
                continue
            if name == "missing_citation":
                self.findings.missing_citations += 1
                if node.find_parent(lambda above: _kind(above) == "cite"):
                    node.insert_before(policies.missing_key(node.get_text()))
            node.decompose()

    def citation_pieces(self, node: Tag) -> Iterator[str | tuple[str, str]]:
        from bs4 import Tag

        for child in node.children:
            if not isinstance(child, Tag):
                yield str(child)
                continue
            key = policies.cited_key(str(child.get("href") or "")) if child.name == "a" else None
            inside = [(key, child.get_text())] if key else self.citation_pieces(child)
            if _kind(child) == "superscript":
                yield from (RAISED, *inside, SCRIPT_END)
            else:
                yield from inside

    # Text.

    def read(self, node: Tag) -> None:
        """Read what is below an element that is no text itself."""
        for child in _tags(node):
            kind, below = _kind(child), _kinds_below(child)
            if kind in _SECTIONS:
                self.read_section(child)
            elif kind in _FRONT and getattr(self.findings, kind) is None:
                setattr(self.findings, kind, policies.finish(_plain(child)) or None)
            elif "section" in below or (kind in ("", "box") and below & _STRUCTURE):
                self.read(child)
            elif kind not in ("", "heading"):
                self.add_block(child)

    def add_block(self, node: Tag) -> None:
        """Add the text of an element, if it has any; of an unknown box only several words."""
        text = policies.finish(_plain(node))
        if policies.is_several_words(text) if _kind(node) == "box" else text:
            keys = policies.cited_keys(text)
            self.findings.blocks.append(Block("paragraph", _id(node), self.path, text, keys))

    def read_section(self, node: Tag) -> None:
        """Read a section: it belongs to the last one above it of a lower rank."""
        is_section = _kind(node) == "section"
        rank = section_rank(_classes(node)) if is_section else 9
        above = next((path for lower, path in reversed(self.open_sections) if lower < rank), ())
        heading = next((child for child in _tags(node) if child.name in HEADING_NAMES), None)
        number, title = None, "" if is_section else "Acknowledgements"
        if heading is not None:
            tags = [inner for inner in heading.find_all(True) if _kind(inner) == "tag"]
            number = policies.section_number(" ".join(tag.extract().get_text() for tag in tags))
            title = policies.heading(_plain(heading.extract())) or title
        outer, self.path = self.path, (*above, title) if title else above
        depth = len(above) + 1
        self.open_sections.append((rank, self.path))
        self.findings.sections.append(Section(_id(node), number, title, depth, self.path))
        self.read(node)
        self.open_sections.pop()
        self.path = outer

    def read_bibliography(self) -> None:
        """Take the bibliography items out, as the page lays them out."""
        items = self.findings.printed_items
        for node in self.of_kind("bibitem"):
            below = node.find_all(True)

            def texts(kind: str, below: Sequence[Tag] = below) -> list[str]:
                found = [policies.fold(_plain(inner)) for inner in below if _kind(inner) == kind]
                return [text for text in found if text]

            items.append(
                ItemParts(
                    _id(node) or f"bib.item{len(items) + 1}",
                    policies.finish(_plain(node)),
                    texts("bibblock"),
                    texts("emphasis"),
                    [str(inner["href"]) for inner in below if inner.get("href")],
                )
            )
            node.decompose()


def _kinds_below(node: Tag) -> set[str]:
    return {_kind(inner) for inner in node.find_all(True)}


def _annotation(node: Tag) -> str:
    annotation = node.find("annotation", attrs={"encoding": "application/x-tex"})
    return annotation.get_text() if annotation else ""
