"""How bits of a page become text, the same for both parsers. Not here: finding the bits in HTML."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

# Set among the pieces of a text where its line must break. No page holds NUL: `clean_bytes` takes it out.
LINE = "\0"
# Around the TeX inside a display equation, and around superscripts among author names.
TEX, MARK = "\1", "\2"
_KEY = "\3"
# Where a footnote, or a citation of nothing, was taken out of a sentence: the space before it may go with it.
GONE = "\6"

_OWN_MARKS = tuple(bytes([code]) for code in range(8))
_CONTROLS = bytes(code for code in range(32) if code not in b"\t\n\f\r")
_CONTROL_REFERENCE = re.compile(rb"&#(?:0*(?:[0-8]|1[4-9]|2\d|3[01])|[xX]0*(?:[0-8]|0?[eE]|1[0-9a-fA-F]));")
_SELF_CLOSED = re.compile(rb'<([A-Za-z][\w:-]*)((?:\s+[\w:-]+\s*=\s*"[^"]*")*)\s*/>')
_OPTION = re.compile(
    rb"""(class="ltx_ERROR[^>]*>\\[A-Za-z@]+)</span>(\s*(?:<(?:span|p)\b[^>]*>)?)"""
    rb"""(\[\d*\.?\d+(?:pt|em|ex|cm|mm|in)(?:/\d*\.?\d+(?:pt|em|ex|cm|mm|in))*\])"""
)
_VOID = frozenset(b"area base br col embed hr img input link meta param source track wbr".split())

_GAP = re.compile(rf"(?:\s*{GONE})+(?=[.,;:!?)\]])|{GONE}")
_COMMENTED_BREAK = re.compile(r"%\s*\n\s*")
_STYLE = re.compile(r"\s*\\(?:displaystyle|textstyle|scriptstyle|scriptscriptstyle)(?![A-Za-z])\s*")
_BRACKETED = re.compile(rf"[\[(][^\[\]()]*{_KEY}[^\[\]()]*[\])]")
_BARE = re.compile(rf"{_KEY}[^{_KEY}]*{_KEY}(?:[\s,;]*{_KEY}[^{_KEY}]*{_KEY})*")
_KEYS = re.compile(rf"{_KEY}([^{_KEY}]*){_KEY}")
_DOUBLE_BRACKET = re.compile(r"[\[(]\s*(\[@[^\[\]]*\])\s*[\])]")
_MARKER = re.compile(r"\s?\[@[^\[\]]+\]")
_GROUP = re.compile(r"\[(@[^\[\]]+)\]")
_NUMBER_WORD = re.compile(r"^(?:appendix|chapter|part|section|annex|§)\s*", re.IGNORECASE)
_FATAL = (b"Fatal error and exited abruptly", b"may be truncated or damaged")


def clean_bytes(html: bytes) -> bytes:
    """The page without control characters, and XHTML's `<x/>` written as HTML reads it, `<x></x>`.

    The length that a macro unknown to LaTeXML left behind as text, `\\hdashline[0.4pt/2pt]`, goes with its macro.
    """
    if any(mark in html for mark in _OWN_MARKS):
        html = html.translate(None, _CONTROLS)
    if b"&#" in html:
        html = _CONTROL_REFERENCE.sub(b"", html)
    if b'class="ltx_ERROR' in html:
        html = _OPTION.sub(rb"\1\3</span>\2", html)
    return _SELF_CLOSED.sub(_open_and_close, html) if b"<?xml" in html[:200] else html


def _open_and_close(match: re.Match[bytes]) -> bytes:
    name, attributes = match.groups()
    return match[0] if name.lower() in _VOID else b"<%b%b></%b>" % (name, attributes, name)


def is_html(html: bytes) -> bool:
    """Whether the bytes look like a page at all."""
    head = html[:4096].lower()
    return b"<html" in head or b"<body" in head or b"<article" in head or b"<!doctype html" in head


def is_truncated(html: bytes) -> bool:
    """Whether the page breaks off: no `</html>` at its end, or LaTeXML's own word that it gave up."""
    return b"</html>" not in html[-2048:].lower() or any(sign in html for sign in _FATAL)


def count_errors(html: bytes) -> int:
    """LaTeXML's error marks, those inside formulas included."""
    return html.count(b'class="ltx_ERROR')


def fold(text: str) -> str:
    """The text with every run of white space as one space, and LINE as a line break; empty lines vanish.

    No space stays before a full stop or the like where what stood between the two is GONE.
    """
    if GONE in text:
        text = _GAP.sub("", text)
    if LINE not in text:
        return " ".join(text.split())
    return "\n".join(filter(None, (" ".join(line.split()) for line in text.split(LINE))))


def bare(raw: str) -> str:
    """The raw text of a sink without the marks that citeloom set in it, for counting its characters."""
    return raw.replace(LINE, "").replace(MARK, "").replace(GONE, "")


def finish(pieces: Iterable[str]) -> str:
    """The folded text of a block; a citation marker that stands alone in brackets loses the brackets."""
    text = fold("".join(pieces))
    return _DOUBLE_BRACKET.sub(r"\1", text) if "[@" in text else text


def joined_lines(raw: str) -> str:
    """The lines of an address on one line, with commas between."""
    return ", ".join(filter(None, (" ".join(line.split()).strip(" ,") for line in raw.split(LINE))))


def visible(text: str) -> int:
    """Characters that are not white space."""
    return len("".join(text.split()))


def tex_source(alttext: str) -> str:
    """The TeX of a formula on one line, without the style that LaTeXML puts first.

    LaTeXML 0.8.0-0.8.4 wraps long TeX with `%` at the line's end, which TeX reads as no break at all.
    """
    if "%" in alttext:
        alttext = _COMMENTED_BREAK.sub("", alttext)
    if "style" in alttext:
        alttext = _STYLE.sub(" ", alttext, count=1)
    return " ".join(alttext.split())


def inline_math(tex: str) -> str:
    """A formula within a sentence."""
    return f"${tex}$" if tex else ""


def display_math(row: str, number: str) -> str:
    """One row of a display equation as `$$TeX$$ (number)`; `row` has its formulas between TEX marks.

    Words between the formulas become `\\text{…}`; a row of words alone stays words.
    """
    pieces = row.split(TEX)
    formulas = [piece for piece in pieces[1::2] if piece]
    if not formulas:
        return fold(row)
    for place in range(0, len(pieces), 2):
        words = fold(pieces[place])
        pieces[place] = f"\\text{{{words}}}" if words else ""
    return f"$${' '.join(filter(None, pieces))}$$" + (f" {number}" if number else "")


def citation(pieces: Sequence[str | tuple[str, str]]) -> str:
    """The text of a `cite` element; a piece is words, or the (key, label) of a link to a bibliography item.

    What stands in brackets with a link becomes one marker `[@key1; @key2]`, notes such as "see" or "p. 22" go with
    it. Names outside brackets stay: "Smith et al. (2018)" becomes "Smith et al. [@key]". Brackets around nothing, left
    by a missing citation, are GONE.
    """
    text = "".join(_cited(pieces))
    if _KEY not in text:
        return text if any(letter.isalnum() for letter in text) else GONE
    return _BARE.sub(_marker, _BRACKETED.sub(_marker, text))


def _cited(pieces: Sequence[str | tuple[str, str]]) -> Iterable[str]:
    following: str | None = None
    shown: list[str] = []
    for piece in reversed(pieces):
        if isinstance(piece, str):
            shown.append(piece)
            continue
        key, label = piece
        # natbib links the names and then the year, both to the same item: the names stay words.
        names = key == following and not any(letter.isdigit() for letter in label)
        shown.append(label if names else f"{_KEY}{key}{_KEY}")
        following = key
    return reversed(shown)


def _marker(match: re.Match[str]) -> str:
    keys = dict.fromkeys(_KEYS.findall(match[0]))
    return f"[{'; '.join('@' + key for key in keys)}]"


def cited_keys(text: str) -> tuple[str, ...]:
    """The keys in a text's citation markers, each once, in order of first citation."""
    if "[@" not in text:
        return ()
    return tuple(dict.fromkeys(key.strip(" @") for group in _GROUP.findall(text) for key in group.split(";")))


def cited_key(href: str | None) -> str | None:
    """The id that a citation's link leads to."""
    return href.rpartition("#")[2] or None if href and "#" in href else None


def section_number(tag: str) -> str | None:
    """The number in a heading's tag: `1.2` of "1.2.", `A` of "Appendix A"."""
    return _NUMBER_WORD.sub("", fold(tag)).strip(" .:)(—-") or None


def heading(text: str) -> str:
    """A heading's words, without the full stop or colon of a run-in heading."""
    folded = fold(_MARKER.sub("", text))
    return folded.rstrip(".: ") or folded


def list_mark(tag: str) -> str:
    """What begins a list's item: its number, letter or word; any other mark becomes `-`."""
    mark = fold(tag)
    return mark if any(letter.isalnum() for letter in mark) else "-"


def markdown_table(rows: Sequence[Sequence[str]]) -> str:
    """A table as Markdown: the first row is its head; rows and columns without any text are left out."""
    filled = [[cell.replace("|", "\\|").replace("\n", " ") for cell in row] for row in rows if any(row)]
    width = max(map(len, filled), default=0)
    padded = [row + [""] * (width - len(row)) for row in filled]
    columns = [place for place in range(width) if any(row[place] for row in padded)]
    lines = [f"| {' | '.join(row[place] for place in columns)} |" for row in padded]
    if lines:
        lines.insert(1, "|" + " --- |" * len(columns))
    return "\n".join(lines)
