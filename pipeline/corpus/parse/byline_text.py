"""The text of a byline: what a page prints of its authors, its marks, and its e-mail addresses."""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Iterator, Sequence
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
from pipeline.identity.people import KnownNames
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
}
_TEX_FONT = re.compile(r"(?:(?:text|math)[a-z]*|rm|it|bf|sf|q?quad)?")
# Signs, or numbers or letters in brackets, outside of what is a mark already.
_PLAIN_MARK = re.compile(
    rf"({MARK}[^{MARK}]*{MARK})|[{_SYMBOLS}]+|\s?[(\[](?:[a-z]|\d{{1,2}}(?:\s?,\s?\d{{1,2}})*)[)\]]"
)
_MARK_PARTS = re.compile(rf"{NOTE}?\d+|{NOTE}?[{_SYMBOLS}]|{NOTE}?[^\W\d_]+")
_MARK_ONLY = re.compile(rf"[{_SYMBOLS}\da-z,;()\s]+")
_MARKED = re.compile(f"{MARK}[^{MARK}]*{MARK}")
_FORMULA = re.compile(r"\$(?:\\([{}])|([^$]*))\$")
_TEX_COMMAND = re.compile(r"\\([A-Za-z]+)\s*|\\.")
_TEX_SPACE = re.compile(r"[\s~{}^_]+")
# What LaTeXML leaves of imsart's \\ead[label=e1]{…} behind a name, and the keys of elsarticle's
# \\affiliation[a]{organization=…, city=…}.
_KEY = re.compile(r"label=\w+\]|(?:[a-z]\w{1,20}\])?\b[a-z]{4,}=")
# LaTeX's column sign left over from \\And, as in "&Ann Lee", or the macro itself.
_NEXT_AUTHOR = re.compile(rf"(?:(?<=[\s{LINE}{MARK}{AUTHOR}])|^)&(?=[^\s&])|\\(?:And|AND|and)\b")
# A name once more, in its own script, as in "Zhao Yiming (赵一鸣)".
_OTHER_SCRIPT = re.compile(rf"{MAYBE_SPACES}\([\u3040-\u9fff\uac00-\ud7af ·・]{{1,20}}\)")
# What LaTeXML makes of LNCS's \\inst{1} and \\inst{1,2}: each mark twice.
_DOUBLED_MARK = re.compile(r"(\d{1,2}(?:,\s?\d{1,2}){0,5}?)\1")
_DOUBLED_MARKS = re.compile(rf"(?<![\d,])(?:{_DOUBLED_MARK.pattern}){{1,6}}$")
_SIGNS = str.maketrans(dict.fromkeys((AUTHOR, CELL, INNER, LINE, MARK, NOTE, PLACE), " "))


def normalize(names: str) -> str:
    """The text with formulas and symbols as marks, AUTHOR for what parts authors, and e-mails over
    two lines whole.
    """
    text = _ORCID.sub(" ", names) if "-" in names else names
    if "(" in text:
        text = _OTHER_SCRIPT.sub("", text)
    text = text.replace(ERRED, "")
    if "=" in text:
        text = _KEY.sub(" ", text)
    text = _FORMULA.sub(_formula_as_mark, text)
    text = _PLAIN_MARK.sub(lambda sign: sign[1] or f"{MARK}{sign[0]}{MARK}", text)
    if "@" in text:
        text = _BROKEN_EMAIL.sub("@", text)
    return _NEXT_AUTHOR.sub(AUTHOR, text)


def _formula_as_mark(formula: re.Match[str]) -> str:
    """A formula among names: a mark or a brace where it is nothing else, else its text."""
    brace, tex = formula.groups()
    if brace:
        return brace
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
    run = _DOUBLED_MARKS.search(text)
    if run is None:
        return text, ""
    return text[: run.start()].strip(), ",".join(_DOUBLED_MARK.findall(run[0]))


def blank_marks(text: str) -> str:
    """The text with spaces in place of its marks: offsets stay."""
    return _MARKED.sub(lambda mark: " " * len(mark[0]), text)


def plain_line(line: str) -> str:
    """The words of a line, without marks, the spaces that these leave before commas, and the signs
    that citeloom sets in bylines.
    """
    return fold(blank_marks(line).translate(_SIGNS)).replace(" ,", ",")


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
_OTHER_ADDRESS = re.compile(
    r"\b(?:(?:https?://|www\.)\S+|(?:tel|fax|phone)\b[\s.:(+]*\d[\d\s()/-]*)", re.IGNORECASE
)
_ORCID = re.compile(
    r"(?:(?:https?://)?\borcid\W{1,9}(?:org/)?)?(?<!\d)\d{4}-\d{4}-\d{4}-\d{3}[\dX](?!\d)",
    re.IGNORECASE,
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
    """The text without e-mails, addresses of pages, numbers of phones, and the words that announce
    them.
    """
    if "@" in text:
        text = _EMAIL_WORD.sub(" ", _EMAILS.sub(" ", text))
    return _OTHER_ADDRESS.sub(" ", text).strip(EDGES)


# Bylines that LaTeXML did not mark as such.

# Bylines of unknown classes in the suite and the real pages have 1 to 25 lines before the abstract.
_MOST_LINES, _MOST_TITLE_LINES, _MOST_WORDS, _LONGEST_LINE = 60, 3, 30, 500
_ABSTRACT = re.compile(rf"(?:^|[{LINE}{CELL}])\s*(?:[Aa]bstract|ABSTRACT)\b")
_NEXT_PLACE = re.compile(r"\n(?=\n|[\[(]?\d{1,2}[\])])")
_NO_LETTER = re.compile(r"[^\w]+|_+")


def before_prose(paragraphs: Iterable[str]) -> list[str]:
    """The paragraphs up to the abstract, or to one that is too long for a byline."""
    front: list[str] = []
    for paragraph in paragraphs:
        head, *abstract = _ABSTRACT.split(paragraph, maxsplit=1)
        if any(
            len(line) > _LONGEST_LINE or line.count(" ") > _MOST_WORDS for line in lines_of(head)
        ):
            break
        front.append(head)
        if abstract:
            break
    return front


def find_byline(paragraphs: Sequence[str], known: Sequence[str]) -> tuple[str, str] | None:
    """(title, byline) in the paragraphs before the abstract, or None.

    The byline is the lines from the first known name on, where they print at least half of the
    names; up to three lines before it are the title.
    """
    lines = [line for paragraph in paragraphs for line in lines_of(paragraph) if letters_of(line)]
    names = [KnownNames(known).find(plain_line(line)) for line in lines[:_MOST_LINES]]
    start = next((number for number, places in enumerate(names) if places), len(lines))
    count = len({place.name for places in names for place in places})
    if start > _MOST_TITLE_LINES or not count or 2 * count < len({*known}):
        return None
    return plain_line(" ".join(lines[:start])), LINE.join(lines[start:])


def lines_of(paragraph: str) -> list[str]:
    """The lines of a paragraph, and those of the source where unknown macros are for authors, or a
    number in brackets begins one.
    """
    if AUTHOR in paragraph:
        paragraph = paragraph.replace("\n", LINE)
    elif ERRED in paragraph:
        paragraph = _NEXT_PLACE.sub(LINE, paragraph)
    return normalize(paragraph).split(LINE)


def letters_of(text: str) -> str:
    """The letters and digits of a text alone, marks left out."""
    return _NO_LETTER.sub("", text)
