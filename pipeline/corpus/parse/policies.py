"""How bits of a page become text, the same for both parsers."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from html import unescape

from pipeline.text import one_line

# Set among the pieces of a text where its line must break. No page holds control characters:
# `source.py`.
LINE = "\0"
# Around the TeX of a formula, and around superscripts among author names.
TEX, MARK = "\1", "\2"
_KEY = "\3"
# Where a footnote, or a citation of nothing, was taken out of a sentence: the space before it may
# go with it.
GONE = "\6"
# Among author names: a new author, the edge of a grid's cell, a mark that leads to a footnote, a
# new line within a cell, an address that follows.
AUTHOR, CELL, NOTE, INNER, PLACE = "\x0e", "\x0f", "\x10", "\x12", "\x13"
# Where one of LaTeXML's error marks was among author names.
ERRED = "\x08"
# Before a superscript and a subscript of the text, and behind both.
RAISED, LOWERED, SCRIPT_END = "\x14", "\x15", "\x16"
# Where a line of code begins, or goes on behind its number: the spaces that follow are kept.
INDENT, _SPACE = "\x17", "\x18"

# Begins where a run of spaces does and never steps back: 30,000 footnotes in a row took 28 s
# otherwise.
_GAP = re.compile(rf"(?<!\s)\s*+{GONE}(?:\s*+{GONE})*+([.,;:!?)\]]?)")
_INDENTATION = re.compile(rf"( ?){INDENT}([ \t\xa0\n{INDENT}]*+)")
# White space around a line break is the markup's, not the code's.
_MARKUP_SPACE = re.compile(r"(?<![ \t])[ \t]*+\n[ \t]*+")
_COMMENTED_BREAK = re.compile(r"%\s*\n\s*")
_DOLLAR = re.compile(r"(?<!\\)\$")
# A citation in a formula, and what is around it in one that only raises it, as Nature does.
_CITE_IN_TEX = re.compile(r"\\cite\[[a-z]*\]\{")
_BRACE = re.compile(r"(?<!\\)[{}]")
_NOTHING_LEFT = re.compile(
    r"(?:\\(?:[a-z]*box|text[a-z]*|math[a-z]*|[a-z]*size|tiny|small|rm)|[\s{}^()\[\],~])*+"
)
_STYLE = re.compile(r"\\(?:displaystyle|textstyle|scriptstyle|scriptscriptstyle)(?![A-Za-z])\s*")
_DRAWN = re.compile(r"<(?:mn\b[^<>]*>([^<>]+)</mn|mtext\b[^<>]*>([^<>]+)</mtext)>")
_QUANTITY = re.compile(
    r"[-−]?\d(?:[-−±()\d.,°′″]|\\,|\\text\{(?:[^{}\\]|\\,)*\}|\\mathrm\{(?:[^{}\\]|\\[%&#$_])*\})*"
)
_QUANTITY_MACRO = re.compile(r"\\(?:text|mathrm)\{|\}|\\(?=[%&#$_])")
_THIN_SPACE, _TEXT = r"\text{\,}", re.compile("text|box")
# Signs that LaTeXML writes as macros of its own.
_SIGNS = {
    r"\SIUnitSymbolCelsius": "°C", r"\SIUnitSymbolOhm": "Ω", r"\SIUnitSymbolDegree": "°",
    r"\SIUnitSymbolArcminute": "′", r"\SIUnitSymbolArcsecond": "″", r"\SIUnitSymbolAngstrom": "Å",
    r"\SIUnitSymbolMicro": "µ", r"\lx@sectionsign": "§", r"\lx@paragraphsign": "¶",
    r"\char 37": r"\%",
}  # fmt: skip
_SIGN_MACRO = re.compile(f"({'|'.join(map(re.escape, _SIGNS))}) ?")
_BRACKETED = re.compile(rf"[\[(][^\[\](){_KEY}]*{_KEY}[^\[\]()]*[\])]")
_BARE = re.compile(rf"{_KEY}[^{_KEY}]*{_KEY}(?:[\s,;–—-]*{_KEY}[^{_KEY}]*{_KEY})*")
_KEYS = re.compile(rf"{_KEY}([^{_KEY}]*){_KEY}")
# Before the marker of a raised citation.
_GLUED = re.compile(r"([^\s(\[])(?=\[[@?])")
_DOUBLE_BRACKET = re.compile(r"[\[(]\s*(\[(?:@|\?(?=\w))[^\[\]]*\])\s*[\])]")
# No `\s?` before it: a pattern that begins with plain text is searched for eight times as fast.
CITATION_MARKER = re.compile(r"\[@[^\[\]]+\]")
# LaTeXML counts the items: all 1,306 of 41 pages have their place in the bibliography as number.
_ITEM_NUMBER = re.compile(r"@bib\.bib(\d+)(?=[;\]])")
# Of citations whose items the page does not have.
MISSING_MARKER = re.compile(r"\[\?[^\s\[\];]+(?:; \?[^\s\[\];]+)*\]")
_MARK_ALONE = re.compile(r"[\d\s,;–—*†‡§¶[\]()-]{1,16}")
_WORD, _DIGIT = re.compile(r"[^\W_]"), re.compile(r"\d")
# \textcircled{\raisebox{-.9pt}{1}}, as LaTeXML writes it.
_CIRCLED = re.compile("\\\\\u20dd" r"(?:raisebox\{[^{}]{0,9}\})?\{([^{}]{1,9})\}")
_GROUP = re.compile(r"\[(@[^\[\]]+)\]")
# The control characters that are no white space, of which all marks are made.
_OWN_MARKS = tuple(map(chr, (*range(9), *range(14, 25))))
# The bytes of UTF-8 that begin a character which takes a place: no white space, no mark above. `^`
# and `_` are left out, since `_script` puts them before superscripts and subscripts.
_CHARACTERS = bytes([*(set(range(33, 0x80)) - set(b"^_")), *range(0xC0, 0x100)])
_ASCII = bytes(range(0x80))
_WIDE_SPACE = re.compile(
    rb"\xc2[\x85\xa0]|\xe1\x9a\x80|\xe2(?:\x80[\x80-\x8a\xa8\xa9\xaf]|\x81\x9f)|\xe3\x80\x80",
)
_CARRIED = re.compile(r"[^\s\[\]();@<>\0-\x1f]+")
# A superscript or subscript without another one in it, and a fraction made of the two.
_SCRIPT = re.compile(rf"([{RAISED}{LOWERED}])([^{RAISED}{LOWERED}{SCRIPT_END}]*){SCRIPT_END}")
_FRACTION = re.compile(rf"(\d?){RAISED}(\w+){SCRIPT_END}\s*[/⁄∕]\s*{LOWERED}(\w+){SCRIPT_END}")
_WITHOUT_SCRIPTS = str.maketrans(dict.fromkeys((RAISED, LOWERED, SCRIPT_END)))
_SCRIPTS_AS_FORMULAS = str.maketrans({RAISED: "$^{", LOWERED: "$_{", SCRIPT_END: "}$"})
# What needs a sign to stay apart from the word that it hangs on: a word, or a number with its sign.
_NEEDS_SIGN = re.compile(r"[-+−–]?[.,]?\w")
_CITES = re.compile(r"[\[(]?\[[@?]")
# The exponents in 2^(n+1) and 7^(1/2).
_IS_SUM = re.compile(r"[-+−]?[\w^]{1,8}(?:[+−/]\w{1,8})+|\w?[^\W\d]-\d")
_ORDINAL = re.compile(r"st|nd|rd|th|er|re|ère|e?me|ème|[ºª]", re.IGNORECASE)
# The isotope in ^14C: one symbol of an element.
_ELEMENT = re.compile(r"[A-Z][a-z]?(?![a-z])")
# CO2, H2O and CaCl2 stay as chemists write them in plain text.
_ELEMENTS = re.compile(r"(?<![^\W_])(?:[A-Z][a-z]?\d*)+(?:\([A-Za-z\d]+\))?$", re.ASCII)
_LONGEST_FORMULA = 40
# The whole of a formula such as the one in CO$_2$, 10$^{6}$ or T5$_{\rm Large}$.
_SCRIPT_FORMULA = re.compile(
    r"\{\}([\^_])\{(?:([-+−±*\w.,]{1,20})|\\(?:text|math)?rm\{([\w.-]{1,20})\})\}"
)
_NUMBER_WORD = re.compile(r"^(?:appendix|chapter|part|section|annex|§)\s*", re.IGNORECASE)


def fold(text: str) -> str:
    """The text with every run of white space as one space, and LINE as a line break; empty lines
    vanish.

    No space stays before a full stop or the like where what was between the two is GONE. Formulas
    are in `$`, superscripts behind `^`, subscripts behind `_`, as `_script` says.
    """
    if TEX in text:
        text = text.replace(TEX, "$")
    if "\u20dd" in text:
        text = _CIRCLED.sub(r"\1", text).replace("\u20dd", "")
    if SCRIPT_END in text:
        text = with_signs(text)
    if GONE in text:
        text = _GAP.sub(lambda gap: gap[1] or gap[0].replace(GONE, ""), text)
    if LINE not in text:
        return one_line(text.replace(INDENT, "") if INDENT in text else text)
    if INDENT in text:
        text = _INDENTATION.sub(_spaces_of_indentation, text)
    lines = (one_line(line) for line in text.split(LINE))
    return "\n".join(line for line in lines if line.strip(_SPACE)).replace(_SPACE, " ")


def _spaces_of_indentation(indentation: re.Match[str]) -> str:
    """The spaces at an INDENT; behind a number one at least."""
    after_number = indentation[1]
    spaces = _MARKUP_SPACE.sub("", indentation[2]).expandtabs(4)
    count = spaces.count(" ") + spaces.count("\xa0")
    return after_number + _SPACE * (count - len(after_number))


def has_word(raw: str) -> bool:
    """Whether a raw text has a letter or digit outside of its formulas."""
    return any(map(_WORD.search, raw.split(TEX)[::2]))


def is_mark(text: str) -> bool:
    """Whether a text is numbers and signs only, like the mark of a note or a citation."""
    return _MARK_ALONE.fullmatch(text) is not None and not text.isspace()


def script(text: str, mark: str) -> str:
    """A superscript (RAISED) or subscript (LOWERED) of a text that is not folded yet."""
    return f"{mark}{text}{SCRIPT_END}" if text else ""


def with_signs(text: str) -> str:
    """The text with each superscript and subscript set off from what it hangs on."""
    text = _FRACTION.sub(
        lambda match: f"{match[1]}{' ' if match[1] else ''}{match[2]}/{match[3]}", text
    )
    count = 1
    while count:
        text, count = _SCRIPT.subn(_sign_of_script, text)
    return text.translate(_WITHOUT_SCRIPTS)


def _sign_of_script(match: re.Match[str]) -> str:
    """A superscript or subscript as plain text that keeps numbers apart.

    10<sup>6</sup> is 10^6, x<sub>1</sub> is x_1; 3rd and CO2 stay as they are, and so does a sign
    such as † or °. One that begins a line is the mark of a note, and a space follows it.
    """
    mark, text = match[1], match[2].strip()
    whole, start, end = match.string, match.start(), match.end()
    before, after = whole[start - 1 : start], whole[end : end + 1]
    space = " " if after.isalnum() else ""
    if _CITES.match(text):  # a citation in the style of Nature
        is_apart = not before or before in f"([{LINE}" or before.isspace()
        return f"{'' if is_apart else ' '}{text}{space}"
    if before in ("", LINE):
        return f"{text} "
    if not _NEEDS_SIGN.match(text):
        return match[2]
    if mark == RAISED:
        if _ORDINAL.fullmatch(text) and (before.isalnum() or before == "$"):
            return text + space
        if _IS_SUM.fullmatch(text):
            return f"^({text}){space}"
        is_isotope = not before.isalnum() and text.isdigit() and _ELEMENT.match(whole, end)
        return f"^{text}" if is_isotope else f"^{text}{space}"
    word = whole[max(0, start - _LONGEST_FORMULA) : start].translate(_WITHOUT_SCRIPTS)
    if text.isdigit() and not after.isdigit() and _ELEMENTS.search(word):
        return text
    return f"_{text}{space}"


def finish(raw: str) -> str:
    """The folded text of a block, without brackets around a lone citation marker."""
    text = fold(raw)
    return _DOUBLE_BRACKET.sub(r"\1", text) if "[@" in text or "[?" in text else text


def with_dollars(raw: str) -> str:
    """A raw text with its formulas as they are written in the end, its other marks as they are."""
    return as_formulas(raw).replace(ERRED, "")


def as_formulas(raw: str) -> str:
    """The text with its formulas in `$`, superscripts and subscripts too."""
    return raw.replace(TEX, "$").translate(_SCRIPTS_AS_FORMULAS)


def byline_grid(rows: Sequence[Sequence[str]]) -> str:
    """The text of a grid of authors: each of several columns as an author, or row by row where rows
    differ in length or there is one; a single column as a cell.
    """
    cells = [[cell.strip(LINE + " \n") for cell in row] for row in rows]
    if all(len(row) == 1 for row in cells):
        return f"{CELL}{INNER.join(cell for (cell,) in cells).replace(LINE, INNER)}{CELL}"
    is_of_columns = len({len(row) for row in cells}) == 1 and len(cells[0]) > 1
    if is_of_columns and (len(cells) > 1 or any(LINE in cell for cell in cells[0])):
        columns = (LINE.join(column) for column in zip(*cells, strict=True))
        return "".join(f"{AUTHOR}{column}" for column in columns) + AUTHOR
    return LINE.join(["", *map(CELL.join, cells), ""])


def mark(text: str) -> str:
    """A superscript among author names, between marks; one within it is part of it."""
    return f"{MARK}{text.replace(MARK, ' ')}{MARK}"


# Macros of classes that LaTeXML does not know: NeurIPS's \\And, ICLR's \\AND, sigplanconf's
# \\authorinfo, JMLR's \\name and \\addr.
_AUTHOR_MACRO_NAMES = (
    r"\AND \And \and \ANDA \nextauthor \alignauthor \authorinfo \aistatsauthor \AUTHORS"
    r" \SetAuthorBlock \name"
)
_PLACE_MACRO_NAMES = r"\addr \affaddr \affil \address \affiliation \aistatsaddress \institution"
_AUTHOR_MACROS = {
    **dict.fromkeys(_AUTHOR_MACRO_NAMES.split(), AUTHOR),
    **dict.fromkeys(_PLACE_MACRO_NAMES.split(), PLACE),
}


def author_macro(macro: str) -> str:
    """What an unknown macro among author names begins: AUTHOR, PLACE, or ""."""
    return _AUTHOR_MACROS.get(macro.strip(), "")


def is_several_words(text: str) -> bool:
    """Whether a text is more than one word, or long as where no spaces are written."""
    words = text.split()
    return _WORD.search(text) is not None and (len(words) > 1 or len(text.strip()) > 20)


def visible(text: str) -> int:
    """Characters that are neither white space nor marks of ours."""
    # 2.6 ns a character; to split the text into words takes 6. What is dropped is what there is
    # most of: what `translate` keeps, it copies byte by byte.
    encoded = text.encode(errors="surrogatepass")
    count = len(encoded) - len(encoded.translate(None, _CHARACTERS))
    if len(encoded) == len(text):
        return count
    return count - len(_WIDE_SPACE.findall(encoded.translate(None, _ASCII)))


def holds_marks(text: str) -> bool:
    """Whether a page's text holds any of the characters that citeloom marks texts with."""
    return any(mark in text for mark in _OWN_MARKS)


def tex_source(alttext: str) -> str:
    """The TeX of a formula on one line, without the style that LaTeXML puts first and without
    dollar signs within: Re=$100$, \\text{for all $i$}.

    LaTeXML 0.8.0-0.8.4 wraps long TeX with `%` at the line's end, which TeX reads as no break at
    all.
    """
    if "%" in alttext:
        alttext = _COMMENTED_BREAK.sub("", alttext)
    if "style" in alttext:
        alttext = _STYLE.sub(" ", alttext, count=1)
    if "\\SIUnit" in alttext or "\\char" in alttext or "\\lx@" in alttext:
        alttext = _SIGN_MACRO.sub(lambda macro: _SIGNS[macro[1]], alttext)
    if "$" in alttext:
        alttext = _DOLLAR.sub("", alttext)
    if "\\cite[" in alttext:
        alttext = _without_citations(alttext)
    return one_line(alttext)


def with_drawn_words(tex: str, drawn: str) -> str:
    """The TeX of a formula with the words that its drawing alone has between two numbers: of
    siunitx's "10 to 20" LaTeXML writes the TeX 1020.

    drawn: the formula's MathML.
    """
    pieces, end, words = list[str](), 0, ""
    for number, text in _DRAWN.findall(drawn):
        if not number:
            words += text
            continue
        number = r"\,".join(number.split())
        place = tex.find(number, end)
        if place < 0:
            return tex
        between = tex[end:place].replace(_THIN_SPACE, "")
        is_missing = end and words.strip() and "\\" not in words and not _TEXT.search(between)
        pieces += [tex[end:place], f"\\text{{{words}}}" if is_missing else "", number]
        end, words = place + len(number), ""
    return "".join([*pieces, tex[end:]])


def _without_citations(tex: str) -> str:
    """The TeX of a formula without the citations in it; "" where nothing else is in it."""
    pieces, done = list[str](), 0
    while match := _CITE_IN_TEX.search(tex, done):
        pieces.append(tex[done : match.start()])
        depth, done = 1, len(tex)
        for brace in _BRACE.finditer(tex, match.end()):
            depth += 1 if brace[0] == "{" else -1
            if not depth:
                done = brace.end()
                break
    rest = "".join([*pieces, tex[done:]])
    return "" if _NOTHING_LEFT.fullmatch(rest) else rest


def inline_tex(tex: str) -> str:
    """A formula between TEX marks, as in a text not folded yet; "" for an empty one. One that
    raises or lowers a word or number is a superscript or subscript, and one that is numbers with
    units and words is words: 3 s to 5 s.
    """
    if "\\text{" in tex and _QUANTITY.fullmatch(tex):
        return _QUANTITY_MACRO.sub("", tex.replace("\\,", " ").replace(" ,", ","))
    bare = _SCRIPT_FORMULA.fullmatch(tex) if tex.startswith("{}") else None
    if bare:
        return script(bare[2] or bare[3], RAISED if bare[1] == "^" else LOWERED)
    return f"{TEX}{tex}{TEX}" if tex else ""


def marked_tex(alttext: str) -> str:
    """`inline_tex` of a formula by its attribute."""
    return inline_tex(tex_source(unescape(alttext) if "&" in alttext else alttext))


def display_math(row: str, number: str) -> str:
    """One row of a display equation as `$$TeX$$ (number)`; `row` has its formulas between TEX
    marks.

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


def citation(pieces: Sequence[str | tuple[str, str]]) -> tuple[str, str]:
    """(text of a `cite` element, what the page shows for it); a piece is words, or the (key, label)
    of a link.

    What is in brackets with a link becomes one marker `[@key1; @key2]`, notes such as "see" or "p.
    22" go with it. Names outside brackets stay: "Smith et al. (2018)" becomes "Smith et al.
    [@key]". Keys of `missing_key`, without an item, become `[?key1; ?key2]`. Brackets around
    nothing are GONE.
    """
    text = "".join(_cited(pieces))
    if _KEY in text:
        bare = text.translate(_WITHOUT_SCRIPTS) if SCRIPT_END in text else text
        marked = _BARE.sub(_marker, _BRACKETED.sub(_marker, bare))
        begins_raised = text.startswith(RAISED)
        text = _raised(marked, begins_raised=begins_raised) if RAISED in text else marked
    elif not _WORD.search(text):
        text = GONE
    shown = "".join([piece if isinstance(piece, str) else piece[1] for piece in pieces])
    return text, _KEYS.sub("", shown)


def missing_key(key: str) -> str:
    """A key without an item, as a piece of a citation; GONE where a marker cannot hold it."""
    key = key.strip()
    return f"{_KEY}?{key}{_KEY}" if _CARRIED.fullmatch(key) else GONE


def _raised(text: str, *, begins_raised: bool) -> str:
    """The text of a citation that has a superscript, which is set apart from the word before it.

    begins_raised: whether the superscript begins the citation, as in "<sup>see 12</sup>".
    """
    if text.startswith(("[@", "[?")):
        return script(text, RAISED)
    spaced = _GLUED.sub(r"\1 ", text)
    return f" {spaced}" if begins_raised else spaced


def without_markers(text: str) -> str:
    """The text without citation markers, `[@key; @key]` and `[?key]`, and the spaces before
    them.
    """
    return without_missing_markers(_without(CITATION_MARKER, text) if "[@" in text else text)


def with_printed_citations(text: str) -> str:
    """The text with its citations as readers know them: `[12, 3]` for `[@bib.bib12; @bib.bib3]`,
    `[…]` where the keys are no numbers.
    """
    return CITATION_MARKER.sub(
        lambda marker: f"[{', '.join(_ITEM_NUMBER.findall(marker[0])) or '…'}]", text
    )


def without_missing_markers(text: str) -> str:
    """The text without markers `[?key]` of items which the page does not have."""
    return _without(MISSING_MARKER, text) if "[?" in text else text


def _without(marker: re.Pattern[str], text: str) -> str:
    *before, last = marker.split(text)
    return "".join([piece[:-1] if piece[-1:].isspace() else piece for piece in before]) + last


def _cited(pieces: Sequence[str | tuple[str, str]]) -> Iterable[str]:
    following: str | None = None
    shown: list[str] = []
    for piece in reversed(pieces):
        if isinstance(piece, str):
            shown.append(piece)
            continue
        key, label = piece
        # natbib links the names and then the year, both to the same item: the names stay words.
        names = key == following and not _DIGIT.search(label)
        shown.append(label if names else f"{_KEY}{key}{_KEY}")
        following = key
    return reversed(shown)


def _marker(match: re.Match[str]) -> str:
    keys = dict.fromkeys(_KEYS.findall(match[0]))
    missing = [key for key in keys if key[0] == "?"]
    cited = [f"@{key}" for key in keys if key[0] != "?"]
    return " ".join(f"[{'; '.join(group)}]" for group in (cited, missing) if group)


def cited_keys(text: str) -> tuple[str, ...]:
    """The keys in a text's citation markers, each once, in order of first citation."""
    if "[@" not in text:
        return ()
    return tuple(
        dict.fromkeys(key.strip(" @") for group in _GROUP.findall(text) for key in group.split(";"))
    )


def citation_marker(keys: Iterable[str]) -> str:
    """The marker `[@key1; @key2]` of a citation."""
    return f"[{'; '.join(f'@{key}' for key in keys)}]"


def cited_key(href: str | None) -> str | None:
    """The id that a citation links to; None where a marker `[@key]` cannot hold it."""
    key = href.rpartition("#")[2] if href and "#" in href else ""
    return key if _CARRIED.fullmatch(key) else None


def section_number(tag: str) -> str | None:
    """The number in a heading's tag: `1.2` of "1.2.", `A` of "Appendix A"."""
    return _NUMBER_WORD.sub("", fold(tag)).strip(" .:)(—-") or None


def heading(text: str) -> str:
    """A heading's words, without the full stop or colon of a run-in heading."""
    folded = fold(MISSING_MARKER.sub(GONE, CITATION_MARKER.sub(GONE, text)))
    return folded.rstrip(".: ") or folded


def join_subtitle(title: str | None, subtitle: str | None) -> str | None:
    """A title with its subtitle behind a colon, unless the title ends with a mark of its own."""
    if not title or not subtitle:
        return title or subtitle
    return f"{title} {subtitle}" if title[-1] in ":?!.–—" else f"{title}: {subtitle}"


def list_mark(tag: str) -> str:
    """What begins a list's item: its number, letter or word; any other mark becomes `-`."""
    mark = fold(tag)
    return mark if _WORD.search(mark) else "-"
