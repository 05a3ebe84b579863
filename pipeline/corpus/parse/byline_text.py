"""The text of a byline: what a page prints of its authors, its marks, and its e-mail addresses."""

from __future__ import annotations

import re
from collections.abc import Container, Iterator
from dataclasses import dataclass, field

from pipeline.corpus.parse.policies import (
    AUTHOR,
    CELL,
    EMAIL,
    ERRED,
    INNER,
    LINE,
    MARK,
    NOTE,
    PLACE,
    fold,
)

AFFILIATION_ROLES = frozenset(
    {"affiliation", "address", "institution", "institute", "organization"}
)


@dataclass(slots=True)
class Byline:
    """One `ltx_creator`. `names` holds LINE, CELL, INNER, AUTHOR, PLACE, ERRED, MARK."""

    names: str = ""
    contacts: list[tuple[str, str]] = field(default_factory=list)
    """(role, text) of affiliations, e-mails and the like, with LINE between lines."""
    notes: list[tuple[str, str]] = field(default_factory=list)
    """(mark, text) of footnotes on the names."""
    remarks: list[str] = field(default_factory=list)

    def add_note(self, mark: str, text: str) -> None:
        """Keep a footnote on a name where it says anything."""
        if fold(text):
            self.notes.append((mark, text))

    def texts(self) -> Iterator[str]:
        """Everything that it says."""
        yield self.names
        yield from self.remarks
        yield from (text for _, text in (*self.contacts, *self.notes))


# Marks: superscripts, symbols, and formulas that are nothing but such.

_SYMBOLS = "*∗⋆★†‡§¶∥‖♯♭♮♠♣♥♦♡♢♤♧◇⋄☆✉✝∘△▲▽▼□■○●◆⊕⊗⊙∇❖"
_SAME_MARK = str.maketrans({"∗": "*", "★": "⋆", "☆": "⋆", "‖": "∥", "✝": "†", "◇": "⋄"})
_TEX_SYMBOLS = {
    "dagger": "†",
    "ddagger": "‡",
    "ast": "*",
    "star": "⋆",
    "bigstar": "⋆",
    "S": "§",
    "P": "¶",
    "diamond": "⋄",
    "Diamond": "⋄",
    "dag": "†",
    "ddag": "‡",
    "sharp": "♯",
    "natural": "♮",
    "flat": "♭",
    "clubsuit": "♣",
    "spadesuit": "♠",
    "heartsuit": "♥",
    "diamondsuit": "♦",
    "parallel": "∥",
    "circ": "∘",
    "bullet": "•",
    "cdot": "·",
    "Letter": "✉",
    "alpha": "α",
    "beta": "β",
    "gamma": "γ",
    "delta": "δ",
}
_SYMBOL_RUN = re.compile(f"[{_SYMBOLS}]+")
_MARK_PARTS = re.compile(rf"{NOTE}?\d+|{NOTE}?[{_SYMBOLS}]|{NOTE}?[^\W\d_]+")
_MARK_ONLY = re.compile(rf"[{_SYMBOLS}\da-zα-δ,;()\s]+")
_MARKED = re.compile(f"{MARK}[^{MARK}]*{MARK}")
_FORMULA = re.compile(r"\$([^$]*)\$")
_TEX_COMMAND = re.compile(r"\\([A-Za-z]+)\s*|\\.")
_TEX_SPACE = re.compile(r"[\s~{}^_]+")
_BRACKETED_MARK = re.compile(r"\s?[(\[](\d{1,2}(?:\s?,\s?\d{1,2})*)[)\]]")
# What an unknown macro set as marks, such as SPIE's \\supit: the macro is an error, its argument is
# text.
_MARK_OF_UNKNOWN_MACRO = re.compile(
    rf"{ERRED}((?:[a-z]|\d{{1,2}})(?:,\s?(?:[a-z]|\d{{1,2}}))*)(?![a-z\d@./-])"
)
# What LaTeXML leaves of imsart's \\ead[label=e1]{…} behind a name.
_EMAIL_LABEL = re.compile(r"label=\w+\]")
# Patterns with white space take time quadratic in its length.
_WIDE_GAP = re.compile(r"([ \xa0]{4})[ \xa0]+")
_SUPERSCRIPT_DIGITS = re.compile("[⁰¹²³⁴⁵⁶⁷⁸⁹]+")
_DIGITS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹", "0123456789")
# What LaTeXML makes of LNCS's \\inst{1} and \\inst{1,2}: each mark twice.
_DOUBLED_MARKS = re.compile(r"(?:(\d{1,2}(?:,\s?\d{1,2}){0,5}?)\1){1,12}")
_LONGEST_MARKS = 100
_MARKS_AT_END = re.compile(r"(?<![\d,])\d[\d,\s]{0,99}$")
_DOUBLED_MARK = re.compile(r"(\d{1,2}(?:,\s?\d{1,2}){0,5}?)\1(?!\d{0,24}\1)")
_SIGNS = str.maketrans(dict.fromkeys((AUTHOR, CELL, EMAIL, INNER, LINE, MARK, NOTE, PLACE), " "))


def normalize(names: str) -> str:
    """The text with formulas and symbols as marks, and e-mails over two lines whole."""
    text = _MARK_OF_UNKNOWN_MACRO.sub(rf"{MARK}\1{MARK}", names).replace(ERRED, "")
    text = _WIDE_GAP.sub(r"\1", _EMAIL_LABEL.sub(" ", text))
    text = _FORMULA.sub(_formula_as_mark, text)
    pieces = text.split(MARK)
    pieces[::2] = [_SYMBOL_RUN.sub(rf"{MARK}\g<0>{MARK}", piece) for piece in pieces[::2]]
    text = _BRACKETED_MARK.sub(rf"{MARK}\1{MARK}", MARK.join(pieces))
    text = _SUPERSCRIPT_DIGITS.sub(lambda match: f"{MARK}{match[0].translate(_DIGITS)}{MARK}", text)
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
    plain = _TEX_COMMAND.sub(lambda command: _TEX_SYMBOLS.get(command[1] or "", " "), tex)
    text = _TEX_SPACE.sub(" ", plain).strip()
    if text in ("•", "·", "|", "&"):
        return text
    if not text:
        return "  " if "quad" in tex else " "
    return f"{MARK}{text}{MARK}" if _MARK_ONLY.fullmatch(text) else formula[0]


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
    run = _MARKS_AT_END.search(text[-_LONGEST_MARKS:])
    # Digits can be split in many ways: a hostile text of 200 characters takes 14 s.
    if run is None or not _DOUBLED_MARKS.fullmatch(run[0]):
        return text, ""
    marks = ",".join(match[1] for match in _DOUBLED_MARK.finditer(run[0]))
    return text.removesuffix(run[0]).strip(), marks


def without_signs(text: str) -> str:
    """The text on one line, without the signs that citeloom sets in bylines."""
    return fold(text.translate(_SIGNS))


def plain_line(line: str) -> str:
    """The words of a line, without marks and the spaces that these leave before commas."""
    return without_signs(_MARKED.sub(" ", line)).replace(" ,", ",")


def has_letters(text: str) -> bool:
    """Whether a text says anything beside its marks."""
    return any(map(str.isalpha, _MARKED.sub(" ", text)))


# E-mails and other addresses.

_EMAILS = re.compile(
    r"[{(\[](?P<group>[^{}()\[\]@]*)[})\]]\s*@\s*(?P<domain>[\w-]+(?:\.[\w-]+)+)"
    r"|(?<![\w.+-])[\w.+-]++@[\w-]+(?:\.[\w-]+)+"
)
_EMAIL_WORD = re.compile(
    r"\b(?:corresponding |contact )?e-?mails?(?: address(?:es)?)?\b\s*:?", re.IGNORECASE
)
_EMAIL_PARTS = re.compile(r"[,;|/\s]+")
# `\s*` before a sign, tried once for a run of spaces, not again for each space of it.
_SPACES = r"(?:(?<!\s)\s++)?"
_BROKEN_EMAIL = re.compile(rf"@\s*+{LINE}\s*+|{_SPACES}{LINE}\s*+@")
_BROKEN_GROUP = re.compile(rf"\{{[^{{}}@]{{0,400}}{LINE}[^{{}}@]{{0,400}}\}}\s*@")
# "ann@foo.edu & Bo Roe": the classes of colt and jmlr part authors so.
_NEXT_AUTHOR = re.compile(r"(@[\w-]+(?:\.[\w-]+)+[)}\]]?)\s*(?:&|\\and\b)\s*(?=[^\W\d_a-z])")
_SPELLED_AT = re.compile(rf"{_SPACES}[\[(<{{]\s*+(?:at|@)\s*+[\])>}}]\s*+", re.IGNORECASE)
_SPELLED_DOT = re.compile(rf"{_SPACES}[\[(<{{]\s*+dot\s*+[\])>}}]\s*+", re.IGNORECASE)
_URL = re.compile(r"\b(?:https?://|www\.)\S+", re.IGNORECASE)
_ORCID = re.compile(
    r"(?:\borcid(?: id)?s?\W*)?(?<!\d)\d{4}-\d{4}-\d{4}-\d{3}[\dX]\b", re.IGNORECASE
)
EDGES = " ,;:-–—"


def find_emails(*texts: str) -> list[str]:
    """The e-mail addresses in some texts; `{a, b}@x.org` is two."""
    return [email for text in texts for email in take_emails(text)[1]]


def take_emails(text: str) -> tuple[str, list[str]]:
    """The text with EMAIL in place of each e-mail address, and the addresses."""
    if "@" not in text and not ("dot" in text and _SPELLED_AT.search(text)):
        return text, []
    emails: list[str] = []

    def take(match: re.Match[str]) -> str:
        group = _EMAIL_PARTS.split(without_signs(_MARKED.sub("", match["group"] or "")))
        addresses = [f"{name}@{match['domain']}" for name in group if name] or [match[0]]
        emails.extend(addresses)
        return EMAIL * len(addresses)

    return _EMAILS.sub(take, _SPELLED_DOT.sub(".", _SPELLED_AT.sub("@", text))), emails


def without_addresses(text: str) -> str:
    """The text without e-mails, addresses of pages, ORCIDs, and the words that announce them."""
    text = take_emails(text)[0]
    if EMAIL in text:
        text = _EMAIL_WORD.sub(" ", text.replace(EMAIL, " "))
    if "://" in text or "www." in text or "-" in text:
        text = _ORCID.sub(" ", _URL.sub(" ", text))
    return text.strip(EDGES)
