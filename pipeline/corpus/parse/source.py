"""A page's bytes made ready for a parser: in UTF-8, without control characters, its formulas taken
out of line.

Only bytes and text are known here, never an element's meaning: tags become a tree in `tree.py` and
`browser.py`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from pipeline.corpus.parse.policies import holds_marks, marked_tex, with_drawn_words

# Stands in the text as a tag of its own for a formula that was taken out. No page holds it:
# `without_controls`.
FORMULA = "\7"
_FORMULA = FORMULA.encode()
_FORMULA_TAG = b"<" + _FORMULA + b">"

_CONTROLS = bytes(code for code in range(32) if code not in b"\t\n\f\r")
_CONTROL_REFERENCE = re.compile(
    rb"&#(?:0*(?:[0-8]|1[4-9]|2\d|3[01])|[xX]0*(?:[0-8]|0?[eE]|1[0-9a-fA-F]));"
)
# Leftmost first, so that none of them is sought inside another.
_RAW = re.compile(
    rb"<!--.*?(?:-->|\Z)|<(script|style)\b[^<>]*>.*?(?:</\1\s*>|\Z)", re.DOTALL | re.IGNORECASE
)
# What a macro unknown to LaTeXML left behind as text: the length of `\hdashline[0.4pt/2pt]`, the
# color of `\cellcolor[HTML]{EFEFEF}`. No color that may have a cell's number behind it, glued.
_LENGTH = r"(?:\d++(?:\.\d++)?|\.\d++)(?:pt|em|ex|cm|mm|in)"
_COLOR = (
    r"\[HTML\][\dA-Fa-f]{6}|(?:\[gray\]0?\.\d\d?|\[(?:rgb|RGB|cmyk)\][\d.]++(?:,[\d.]++)++"
    r"|[a-z]++![1-9]\d)(?![\d.,]|</)"
)
_OPTION = re.compile(
    r"""(class="ltx_ERROR[^>]{0,1000}+>\\[A-Za-z@]+)</span>(\s*(?:<(?:span|p)\b[^>]*>)?)"""
    rf"""(\[{_LENGTH}(?:/{_LENGTH})*\]|{_COLOR})"""
)
_BETWEEN_NUMBERS = re.compile(
    r"""<span(?<=\d<span)(?: id="[^"<>]*+")? class="ltx_ERROR[^<>]*+>(\\[A-Za-z@]+)</span>"""
    r"(?=(?:<span[^<>]*>)*\.?\d)"
)
_BOMS = ((b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be"))
_ARTICLE = re.compile(rb'<article\b[^<>]*\bclass="ltx_document')
_ARTICLE_END, _BODY = b"</article>", b"<body"
# What arXiv's own site, and no page of the dump, has before the article: its styles, its base
# address, its watermark.
_SITE_SIGNS = (
    b"/static/browse/",
    b'<base href="/html/',
    b'id="watermark-tr"',
    b'class="arxiv-html-header"',
)
# A citation in a formula, which is drawn before its TeX. Sought before the last `</cite>` only, or
# each of many `<cite>` that are never closed would be read to the end.
_CITATION = re.compile(rb"<cite\b[^<>]*>.*?</cite>", re.DOTALL)
_ERROR_MARK = b'class="ltx_ERROR'
_FATAL = (b"Fatal error and exited abruptly", b"may be truncated or damaged")


@dataclass(frozen=True, slots=True)
class PageSource:
    """A page ready to be parsed. `text` has a FORMULA tag where each of `formulas` was, in their
    order.

    A formula is its TeX between marks, as `policies.marked_tex` writes it.
    """

    text: str
    formulas: list[str]
    is_xml: bool
    """Whether it is XHTML, where `<x/>` is an element with nothing in it."""
    errors: int
    """LaTeXML's error marks, those inside formulas included."""
    truncated: bool


def read_source(html: bytes, *, nested: bool = False) -> PageSource:
    """A UTF-8 page as text and formulas; `nested` also finds formulas within formulas."""
    rest, alttexts = _take_formulas(html, nested=nested)
    if (_FORMULA in html and rest.count(_FORMULA) > len(alttexts)) or holds_marks(
        _text(b"".join(alttexts))
    ):
        return read_source(without_controls(html), nested=nested)
    errors = count_errors(html)
    text = _text(rest)
    return PageSource(
        text=_with_options(text) if errors else text,
        formulas=[marked_tex(_text(alttext)) for alttext in alttexts],
        is_xml=b"<?xml" in rest[:200],
        errors=errors,
        truncated=is_truncated(rest),
    )


def _text(html: bytes) -> str:
    return html.decode(errors="replace")


def _take_formulas(html: bytes, *, nested: bool) -> tuple[bytes, list[bytes]]:
    """The page with a FORMULA tag for each formula that has an alttext, and those alttexts as they
    are. Citations in a formula follow it, raised.

    The trees below `math` are 16-96 % of a page's bytes and say the same TeX again: 9 of 13 MB in
    21 real pages, cut out in 10 ms. A formula without `alttext="…"` stays as it is, and so does all
    that follows one that has no end.
    """
    pieces: list[bytes] = []
    alttexts: list[bytes] = []
    done = 0
    words = html.find(b"<mtext")
    for start, text, close, end in _spans(html, nested=nested):
        alttexts.append(html[text:close])
        if 0 <= words < end:
            alttexts[-1] = with_drawn_words(_text(alttexts[-1]), _text(html[close:end])).encode()
            words = html.find(b"<mtext", end)
        pieces += (html[done:start], _FORMULA_TAG)
        if b"\\cite[" in alttexts[-1]:
            drawn = html[close:end].partition(b"<annotation")[0]
            closed = drawn.rfind(b"</cite>") + 7
            pieces += (b"<sup>", *_CITATION.findall(drawn, 0, closed), b"</sup>")
        done = end
    pieces.append(html[done:])
    return b"".join(pieces), alttexts


def _spans(html: bytes, *, nested: bool) -> Iterator[tuple[int, int, int, int]]:
    """(start, start of alttext, its end, end) of each formula with an alttext."""
    find = html.find
    start = find(b"<math ")
    while start >= 0:
        end = find(b"</math>", start)
        inner = find(b"<math ", start + 6, end) if nested else -1
        while 0 <= inner < end:
            inner, end = find(b"<math ", inner + 6, end), find(b"</math>", end + 7)
        if end < 0:
            return
        text = find(b'alttext="', start, end) + 9
        close = find(b'"', text, end) if text > 8 else -1
        if close >= 0:
            yield start, text, close, end + 7
        start = find(b"<math ", end)


def as_utf8(html: bytes) -> bytes:
    """The page in UTF-8: UTF-16 is re-encoded, a byte-order mark removed."""
    for mark, encoding in _BOMS:
        if html.startswith(mark):
            return html[2:].decode(encoding, errors="replace").encode()
    return html.removeprefix(b"\xef\xbb\xbf")


def without_site(html: bytes) -> bytes:
    """A page of arXiv's own site without what is around the article, which is no text of the paper.

    Navigation, notices and forms would else count as text that the parser lost: some 3,000
    characters of each paper. Any other page stays as it is.
    """
    article = _ARTICLE.search(html)
    if article is None:
        return html
    start, end = article.start(), html.rfind(_ARTICLE_END)
    body = html.find(b">", html.find(_BODY)) + 1
    if not 0 < body <= start < end:
        return html
    if not any(html.find(sign, 0, start) >= 0 for sign in _SITE_SIGNS):
        return html
    after = html.find(b"</body>", end)
    rest = html[after:] if after >= 0 else b""
    return html[:body] + html[start : end + len(_ARTICLE_END)] + rest


def without_controls(html: bytes) -> bytes:
    """The page without control characters, among them the marks that citeloom sets in a text."""
    return html.translate(None, _CONTROLS)


def whole_text(html: bytes) -> str:
    """A page of UTF-8 as clean text, its formulas left in line."""
    return _with_options(
        _CONTROL_REFERENCE.sub(b"", without_controls(html)).decode(errors="replace")
    )


def without_raw(html: bytes) -> bytes:
    """The page without comments, scripts, styles and control characters."""
    return _CONTROL_REFERENCE.sub(b"", _RAW.sub(b"", without_controls(html)))


def _with_options(text: str) -> str:
    """The text with the option of an unknown macro inside its error mark; one between two numbers
    is a word: 3 \\mypm 4.
    """
    return _BETWEEN_NUMBERS.sub(r" \1 ", _OPTION.sub(r"\1\3</span>\2", text))


def is_html(html: bytes) -> bool:
    """Whether the bytes look like a page at all."""
    head = html[:4096].lower()
    return b"<html" in head or b"<body" in head or b"<article" in head or b"<!doctype html" in head


def is_truncated(html: bytes) -> bool:
    """Whether the page breaks off: no `</html>`, or LaTeXML's message that it gave up."""
    return b"</html>" not in html[-2048:].lower() or any(sign in html for sign in _FATAL)


def count_errors(html: bytes) -> int:
    """LaTeXML's error marks, those inside formulas included."""
    return html.count(_ERROR_MARK)
