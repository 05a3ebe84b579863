"""The text of a byline: what a page prints of its authors, its marks, and its e-mail addresses."""

from __future__ import annotations

import re
from collections.abc import Container, Iterator
from dataclasses import dataclass, field

from pipeline.corpus.parse.policies import (
    AUTHOR,
    CELL,
    ERRED,
    INNER,
    LINE,
    MARK,
    NOTE,
    PLACE,
    fold,
)
from pipeline.text import MAYBE_SPACES

AFFILIATION_ROLES = frozenset(
    {"affiliation", "address", "institution", "institute", "organization"}
)
THANKS = "thanks"


@dataclass(slots=True)
class Byline:
    """One `ltx_creator`, in texts with the signs LINE, CELL, INNER, AUTHOR, PLACE, ERRED, MARK."""

    names: str = ""
    parts: list[tuple[str, str]] = field(default_factory=list)
    """(role, text) of what stands beside the names: LaTeXML's roles of contacts, THANKS, or NOTE
    and a mark for a footnote.
    """

    def texts(self) -> Iterator[str]:
        """Everything that it says."""
        yield self.names
        yield from (text for _, text in self.parts)


# Marks: superscripts, symbols, and formulas that are nothing but such.

_SYMBOLS = "*∗⋆★†‡§¶∥‖♯♭♮♠♣♥♦♡♢♤♧◇⋄☆✉✝∘△▲▽▼□■○●◆⊕⊗⊙∇❖⁰¹²³⁴⁵⁶⁷⁸⁹"
_SAME_MARK = str.maketrans("∗★☆‖✝◇⁰¹²³⁴⁵⁶⁷⁸⁹", "*⋆⋆∥†⋄0123456789")
# Of formulas whose mark may be a plain sign elsewhere; the others are known by their macros.
_TEX_SYMBOLS = {
    "dagger": "†",
    "dag": "†",
    "ddagger": "‡",
    "ddag": "‡",
    "ast": "*",
    "star": "⋆",
    "S": "§",
    "P": "¶",
    "diamond": "⋄",
    "parallel": "∥",
    "Letter": "✉",
}
_TEX_FONT = re.compile(r"(?:(?:text|math)[a-z]*|rm|it|bf|sf|q?quad)?")
# Signs, or numbers or letters in brackets, outside of what is a mark already.
_PLAIN_MARK = re.compile(
    rf"({MARK}[^{MARK}]*{MARK})|[{_SYMBOLS}]+|\s?[(\[](?:[a-z]|\d{{1,2}}(?:\s?,\s?\d{{1,2}})*)[)\]]"
)
_MARK_PARTS = re.compile(rf"{NOTE}?\d+|{NOTE}?[{_SYMBOLS}]|{NOTE}?[^\W\d_]+")
_MARK_ONLY = re.compile(rf"[{_SYMBOLS}\da-z,;()\s]+")
_MARKED = re.compile(f"{MARK}[^{MARK}]*{MARK}")
_FORMULA = re.compile(r"\$([^$]*)\$")
_TEX_COMMAND = re.compile(r"\\([A-Za-z]+)\s*|\\.")
_TEX_SPACE = re.compile(r"[\s~{}^_]+")
# What an unknown macro set as marks, such as SPIE's \\supit: the macro is an error, its argument is
# text.
_MARK_OF_UNKNOWN_MACRO = re.compile(
    rf"{ERRED}((?:[a-z]|\d{{1,2}})(?:,\s?(?:[a-z]|\d{{1,2}}))*)(?![a-z\d@./-])"
)
# What LaTeXML leaves of imsart's \\ead[label=e1]{…} behind a name, and the keys of elsarticle's
# \\affiliation[a]{organization=…, city=…}.
_KEY = re.compile(r"label=\w+\]|(?:[a-z]\w{1,20}\])?\b(?:organization|city|state|country)=")
# Patterns with white space take time quadratic in its length.
_WIDE_GAP = re.compile(r"([ \xa0]{4})[ \xa0]+")
# What LaTeXML makes of LNCS's \\inst{1} and \\inst{1,2}: each mark twice.
_MARKS_AT_END = re.compile(r"(?<![\d,])\d[\d,\s]{0,40}$")
_DOUBLED_MARK = re.compile(r"(\d{1,2}(?:,\s?\d{1,2}){0,5}?)\1")
# Wider ones part columns.
_THIN_SPACES = str.maketrans(dict.fromkeys(map(chr, range(0x2004, 0x200B)), " "))
_SIGNS = str.maketrans(dict.fromkeys((AUTHOR, CELL, INNER, LINE, MARK, NOTE, PLACE), " "))


def normalize(names: str) -> str:
    """The text with formulas and symbols as marks, and e-mails over two lines whole."""
    text = names.translate(_THIN_SPACES)
    text = _MARK_OF_UNKNOWN_MACRO.sub(rf"{MARK}\1{MARK}", text).replace(ERRED, "")
    text = _WIDE_GAP.sub(r"\1", _KEY.sub(" ", text))
    text = _FORMULA.sub(_formula_as_mark, text)
    text = _PLAIN_MARK.sub(lambda sign: sign[1] or f"{MARK}{sign[0]}{MARK}", text)
    if "@" in text:
        text = _NEXT_AUTHOR.sub(rf"\1{AUTHOR}", text)
        text = _BROKEN_GROUP.sub(
            lambda match: match[0].replace(LINE, " "), _BROKEN_EMAIL.sub("@", text)
        )
    return text


def _formula_as_mark(formula: re.Match[str]) -> str:
    """A formula among names: a mark where it is nothing else, else its text."""
    tex = formula[1].replace("\\{", "{").replace("\\}", "}")
    if tex in ("{", "}"):
        return tex
    text = _TEX_SPACE.sub(" ", _TEX_COMMAND.sub(_sign_of_command, tex)).strip()
    if not text:
        return "  " if "quad" in tex else " "
    return f"{MARK}{text}{MARK}" if _MARK_ONLY.fullmatch(text) else formula[0]


def _sign_of_command(command: re.Match[str]) -> str:
    name = command[1] or ""
    return " " if _TEX_FONT.fullmatch(name) else _TEX_SYMBOLS.get(name, name)


def marks_of(text: str, places: Container[str] = ()) -> list[str]:
    """The single marks in a text, in order: "13" is 1 and 3 where these have places and 13 has
    none.
    """
    marks: list[str] = []
    for mark in _MARK_PARTS.findall(fold(text).translate(_SAME_MARK)):
        is_several = mark not in places and all(sign in places for sign in mark)
        marks += mark if is_several else [mark]
    return marks


def split_doubled_marks(text: str) -> tuple[str, str]:
    """(text without the marks that it ends in, each twice, and one of each of these)."""
    run = _MARKS_AT_END.search(text)
    marks = list(_DOUBLED_MARK.finditer(run[0])) if run else []
    if run is None or "".join(mark[0] for mark in marks) != run[0]:
        return text, ""
    return text[: run.start()].strip(), ",".join(mark[1] for mark in marks)


def without_signs(text: str) -> str:
    """The text on one line, without the signs that citeloom sets in bylines."""
    return fold(text.translate(_SIGNS))


def blank_marks(text: str) -> str:
    """The text with spaces in place of its marks: offsets stay."""
    return _MARKED.sub(lambda mark: " " * len(mark[0]), text)


def plain_line(line: str) -> str:
    """The words of a line, without marks and the spaces that these leave before commas."""
    return without_signs(blank_marks(line)).replace(" ,", ",")


def has_letters(text: str) -> bool:
    """Whether a text says anything beside its marks."""
    return any(map(str.isalpha, blank_marks(text)))


# E-mails and other addresses.

_EMAILS = re.compile(
    r"(?:[{(\[](?P<group>[^{}()\[\]@]*)[})\]]\s*@\s*|(?<![\w.+-])(?P<one>[\w.+-]++)@)"
    r"(?P<domain>[\w-]+(?:\.[\w-]+)+)"
)
_EMAIL_WORD = re.compile(
    r"\b(?:corresponding |contact )?e-?mails?(?: address(?:es)?)?\b\s*:?", re.IGNORECASE
)
_EMAIL_PARTS = re.compile(r"[,;|/\s]+")
_BROKEN_EMAIL = re.compile(rf"@\s*+{LINE}\s*+|{MAYBE_SPACES}{LINE}\s*+@")
_BROKEN_GROUP = re.compile(rf"\{{[^{{}}@]{{0,400}}{LINE}[^{{}}@]{{0,400}}\}}\s*@")
# "ann@foo.edu & Bo Roe": the classes of colt and jmlr part authors so.
_NEXT_AUTHOR = re.compile(r"(@[\w-]+(?:\.[\w-]+)+[)}\]]?)\s*(?:&|\\and\b)\s*(?=[^\W\d_a-z])")
_URL = re.compile(r"\b(?:https?://|www\.)\S+", re.IGNORECASE)
_ORCID = re.compile(
    r"(?:\borcid(?: id)?s?\W*)?(?<!\d)\d{4}-\d{4}-\d{4}-\d{3}[\dX]\b", re.IGNORECASE
)
EDGES = " ,;:-–—"


def find_emails(text: str) -> list[str]:
    """The e-mail addresses in a text; `{a, b}@x.org` is two."""
    return [
        f"{name}@{match['domain']}"
        for match in (_EMAILS.finditer(text) if "@" in text else ())
        for name in _EMAIL_PARTS.split(_MARKED.sub("", match["group"] or match["one"]))
        if name
    ]


def without_addresses(text: str) -> str:
    """The text without e-mails, addresses of pages, ORCIDs, and the words that announce them."""
    if "@" in text:
        text = _EMAIL_WORD.sub(" ", _EMAILS.sub(" ", text))
    if "://" in text or "www." in text or "-" in text:
        text = _ORCID.sub(" ", _URL.sub(" ", text))
    return text.strip(EDGES)
