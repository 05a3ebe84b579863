"""Kinds of the elements of a LaTeXML page, by tag and classes.

The class names are LaTeXML's
(https://math.nist.gov/~BMiller/LaTeXML/manual/customization/customization.html, and
LaTeXML-html5.xsl): `ltx_` + the name of the XML element it came from, `ltx_role_…` for its role.
"""

from __future__ import annotations

import re

# How deep each kind of section belongs. An environment that LaTeXML found open nests the rest of
# the paper below one of its elements (2306.17806: eight sections inside a table), so a section's
# place follows from its rank, not its depth.
SECTION_RANKS = {
    "ltx_part": 0,
    "ltx_chapter": 1,
    "ltx_section": 2,
    "ltx_appendix": 2,
    "ltx_subsection": 3,
    "ltx_subsubsection": 4,
    "ltx_paragraph": 5,
    "ltx_subparagraph": 6,
}

# Visible, but no text of the paper, or text that no column has a place for. Counted as lost under
# these names.
_LOST = {
    # Room that \phantom takes: a 5 aligned by a phantom 0 would read 05.
    "ltx_phantom": "hidden",
    "ltx_page_footer": "page_footer",
    "ar5iv-footer": "page_footer",
    "ltx_page_header": "page_header",
    "ltx_page_navbar": "navigation",
    "ltx_TOC": "table_of_contents",
    "ltx_toclist": "table_of_contents",
    "ltx_date": "date",
    "ltx_dates": "date",
    "ltx_keywords": "keywords",
    "ltx_classification": "classification",
    "ltx_pagination": "pagination",
    "ltx_rdf": "rdf",
    "ltx_bib_cited": "bib_cited",
    "ltx_index": "index",
    "ltx_glossary": "glossary",
}

# Raw macro names and marks that repeat what is said elsewhere: dropped from the sentence they are
# in.
_DROPPED = {
    "ltx_ERROR": "ltx_error",
    "ltx_missing_citation": "missing_citation",
    "ltx_missing_label": "missing_label",
    "ltx_note_mark": "note_mark",
    "ltx_note_type": "note_mark",
    "ltx_tag_note": "note_mark",
    "ltx_listing_data": "listing_data",
    "ltx_tag_bibitem": "bibliography_tag",
    "ltx_bibtag": "bibliography_tag",
    "ltx_note_name": "note_mark",
    "ltx_author_before": "author_mark",
    "ltx_contact_name": "author_mark",
}

# Notes that say how a paper was published, set by classes such as acmart and elsarticle.
_PUBLICATION_DATA_ROLES = [
    "article", "articlenumber", "articleseq", "cc-license", "ccs", "citation", "code",
    "conference", "copyright", "copyrightinfo", "copyrightyear", "data", "doi", "eprint",
    "firstpage", "heading", "isbn", "issn", "issue", "journal", "journalvolume", "journalnumber",
    "journalyear", "journalmonth", "number", "pii", "preprint", "price", "publicationid",
    "publisher", "pubyear", "received", "shortheadings", "revised", "accepted", "submissionid",
    "volume", "year",
]  # fmt: skip
_PUBLICATION_DATA = frozenset(f"ltx_role_{role}" for role in _PUBLICATION_DATA_ROLES)

_BY_CLASS = {
    "ltx_cite": "cite",
    "ltx_note": "note",
    "ltx_pubnote": "note",
    "ltx_para": "para",
    "ltx_tabular": "tabular",
    "ltx_equation": "equation",
    "ltx_equationgroup": "equation",
    "ltx_itemize": "list",
    "ltx_enumerate": "list",
    "ltx_description": "list",
    "ltx_theorem": "theorem",
    "ltx_proof": "theorem",
    "ltx_listing": "listing",
    "ltx_verbatim": "listing",
    "ltx_listingline": "line",
    "ltx_caption": "caption",
    "ltx_figure": "float",
    "ltx_table": "float",
    "ltx_float": "float",
    "ltx_abstract": "abstract",
    "ltx_authors": "authors",
    "ltx_creator": "creator",
    "ltx_personname": "personname",
    "ltx_contact": "contact",
    "ltx_author_notes": "author_notes",
    "ltx_title_document": "title",
    "ltx_subtitle": "subtitle",
    "ltx_acknowledgements": "acknowledgements",
    "ltx_bibliography": "bibliography",
    "ltx_bibitem": "bibitem",
    "ltx_bibblock": "bibblock",
    "ltx_picture": "picture",
    "ltx_title_bibliography": "drop:bibliography_title",
    "ltx_title_abstract": "drop:abstract_title",
}

# Numbers that are words of the title they are in; any other is set aside where a heading or item
# asks for it.
_TAGS_IN_TEXT = frozenset({"ltx_tag_theorem", "ltx_tag_figure", "ltx_tag_table", "ltx_tag_float"})

HEADING_NAMES = frozenset({"h1", "h2", "h3", "h4", "h5", "h6"})
_BY_TAG = {
    "math": "math",
    "br": "break",
    "a": "link",
    "sup": "superscript",
    "sub": "subscript",
    "svg": "picture",
    "foreignobject": "textbox",
    "text": "textbox",
    "nav": "lose:navigation",
    "footer": "lose:page_footer",
    "script": "unseen",
    "style": "unseen",
    "template": "unseen",
    "annotation": "annotation",
    "annotation-xml": "annotation",
    "em": "emphasis",
    "i": "emphasis",
    **dict.fromkeys(HEADING_NAMES, "heading"),
}

# The tag of an item whose style cites by names and year: its names and year are nowhere else.
_NAMES_OF_ITEM = "ltx_bib_author-year"

# Text that no reader sees: authors hide answers, prompts and keywords so.
_HIDDEN = re.compile(
    r"(?:^|;)(?:display:none|visibility:hidden|font-size:(?:0(?:\.0*)?(?:px|pt|em|rem|%)?|0?\.\d+(?:px|pt)|0?\.[01]\d*r?em|1(?:\.\d+)?(?:px|pt|%)))(?:;|!|$)"
)
_WHITE = re.compile(r"(?:^|;)color:(?:white|#fff|#ffffff|rgb\(255,255,255\))(?:;|!|$)")

# A verbatim line of fancyvrb is a span as wide as the page, and the number of a line one without
# width: nothing else says so.
_FULL_WIDTH = re.compile(r"(?:^|;)width:(?:[2-9]\d\d(?:\.\d+)?pt|[2-9]\d(?:\.\d+)?em|100%)")
_NO_WIDTH = re.compile(r"(?:^|;)width:0(?:\.0)?pt")

# Boxes that \raisebox moves up or down.
_MOVED = re.compile(r"position:relative;bottom:(?P<down>-)?[\d.]*[1-9]")

_BOXES = frozenset({
    "div", "p", "td", "th", "tr", "li", "dd", "dt", "section", "article", "blockquote", "figure",
    "table", "tbody", "thead", "tfoot", "ul", "ol", "dl", "pre", "main", "header", "aside",
})  # fmt: skip
_BOX_CLASSES = frozenset({"ltx_p", "ltx_td", "ltx_tr", "ltx_title", "ltx_minipage"})


def kind_of(tag: str, classes: str, style: str = "") -> str:
    """The kind of an element: one word, `drop:NAME`, `lose:NAME`, or "" for inline text that means
    nothing more.

    `tag` is in lower case, `classes` and `style` are the attributes as they are.
    """
    if style and _HIDDEN.search(_compact(style)):
        return "lose:hidden"
    names = classes.split()
    if _NAMES_OF_ITEM in names:
        return "bib:author-year"
    dropped = next((_DROPPED[name] for name in names if name in _DROPPED), None)
    if dropped is not None:
        return f"drop:{dropped}"
    lost = next((_LOST[name] for name in names if name in _LOST), None)
    if lost is not None:
        return f"lose:{lost}"
    kind = _of_class(tag, names) if names else _of_tag(tag)
    if not kind and style.startswith("width:") and "ltx_inline-block" in names:
        # \makebox[3cm] or \parbox: columns of words; without a width it may be part of a word
        return "box"
    return kind or (_of_style(_compact(style), names) if style else "")


def _of_style(style: str, names: list[str]) -> str:
    if _WHITE.search(style) and "background" not in style:
        return "white"
    if "ltx_text" in names and _FULL_WIDTH.search(style):
        return "line"
    if "ltx_text" in names and _NO_WIDTH.search(style):
        return "line_number"
    moved = _MOVED.search(style)
    if moved is None:
        return ""
    return "lowered" if moved["down"] else "raised"


def _compact(style: str) -> str:
    return style.lower().replace(" ", "")


def _of_class(tag: str, names: list[str]) -> str:
    # A verbatim span is in a sentence; a verbatim block is a listing.
    if "ltx_verbatim" in names and tag not in ("pre", "div"):
        return ""
    if _PUBLICATION_DATA.intersection(names) and ("ltx_note" in names or "ltx_pubnote" in names):
        return "lose:publication_data"
    kind = next((_BY_CLASS[name] for name in names if name in _BY_CLASS), None)
    if kind is not None:
        return kind
    if any(name.startswith("ltx_affiliation_") for name in names):
        return "address_part"
    if "ltx_tag" in names:
        if "ltx_tag_listingline" in names:
            return "line_number"
        return "" if _TAGS_IN_TEXT.intersection(names) else "tag"
    if tag in ("section", "div") and not SECTION_RANKS.keys().isdisjoint(names):
        return "section"
    field = next((name for name in names if name.startswith("ltx_bib_")), None)
    if field is not None:
        return f"bib:{field.removeprefix('ltx_bib_')}"
    return _of_role(tag, names)


def _of_role(tag: str, names: list[str]) -> str:
    if "ltx_p" in names:
        return "p"
    if "ltx_title" in names:
        return "heading"
    if "ltx_Math" in names and tag == "img":
        return "math"
    if tag not in _BY_TAG and "ltx_font_italic" in names:
        return "emphasis"
    return _of_tag(tag) or ("" if _BOX_CLASSES.isdisjoint(names) else "box")


def _of_tag(tag: str) -> str:
    return _BY_TAG.get(tag) or ("box" if tag in _BOXES else "")


# Elements of a picture that hold text of the paper, not labels of the drawing.
TEXT_KINDS = frozenset({"p", "para", "list", "listing", "tabular", "theorem", "equation", "float"})
# Kinds that a paragraph may hold. A box that holds no others is a paragraph.
WITHIN_PARAGRAPHS = frozenset({
    "", "box", "break", "cite", "emphasis", "heading", "link", "lowered", "math", "note", "raised",
    "subscript", "superscript", "tag",
})  # fmt: skip
NO_TEXT_KINDS = frozenset({"drop", "lose", "unseen"})


def section_rank(classes: str) -> int:
    """The rank of a section by its classes: 0 for a part, 2 for a section, 6 for the least."""
    return min(
        (SECTION_RANKS[name] for name in classes.split() if name in SECTION_RANKS), default=2
    )


def is_algorithm(classes: str) -> bool:
    """Whether a float holds an algorithm or a listing (`ltx_float_algorithm`, …)."""
    return "algorithm" in classes or "ltx_lstlisting" in classes or "ltx_float_listing" in classes
