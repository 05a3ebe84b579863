"""The text of a passage: its words, its citation markers, and what of it is embedded."""

from __future__ import annotations

import re
from collections.abc import Sequence

from pipeline.corpus.parse.policies import CITATION_MARKER, MISSING_MARKER, without_markers

FORM = "sections"
"""The headings in the text that is embedded. Collections and months record it, since earlier
versions could embed others.
"""

_ASCII_SIGNS = bytes(sign for sign in range(128) if not re.match(r"[\w\s]", chr(sign)))
_OTHER_SIGN = re.compile(r"[^\x00-\x7f\w]")
# Of scripts that are written without spaces, each Han character or kana counts as a word,
# as do four characters of Thai, Lao, Burmese, Khmer or Tibetan.
_IDEOGRAPHS = (
    "\u3005-\u3007\u3041-\u30ff\u31f0-\u31ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
)
_ABUGIDAS = "\u0e01-\u0eff\u0f40-\u0fff\u1000-\u109f\u1780-\u17ff"
UNSPACED = _IDEOGRAPHS + _ABUGIDAS
_UNSPACED = re.compile(f"[{UNSPACED}]")
_UNSPACED_WORD = re.compile(f"[{_IDEOGRAPHS}]|[{_ABUGIDAS}]{{1,4}}")
# `bytes.split` does not split at the four separators that `str.split` knows beside the usual white
# space.
_SEPARATORS_TO_SPACES = bytes.maketrans(b"\x1c\x1d\x1e\x1f", b"    ")


def embedded_text(title: str | None, section_path: Sequence[str], text: str) -> str:
    """The text that is embedded for a passage: title, section path, and the passage without
    citation markers.

    WikiChat's form, `Title: {title > sections}. {content}` (its preprocessing/README), with the
    headings on a line of their own.
    """
    return f"{' > '.join(filter(None, (title, *section_path)))}\n{without_markers(text)}"


def count_words(text: str) -> int:
    """Words between white space; citation markers and lone signs, such as the bars of a table, do
    not count. Of scripts without spaces, characters count.

    A marker separates words as a space does, so the words of a text are those of its parts,
    wherever white space or a marker separates them. Signs are removed from bytes, 11 ns a
    character; one pattern for all signs took 32.
    """
    if "[@" in text:
        text = " ".join(CITATION_MARKER.split(text))
    if "[?" in text:
        text = " ".join(MISSING_MARKER.split(text))
    if not text.isascii():
        text = _OTHER_SIGN.sub(lambda sign: " " if sign[0].isspace() else "", text)
        # One class of characters is searched for five times as fast as the pattern of two.
        if _UNSPACED.search(text):
            text = _UNSPACED_WORD.sub(r" \g<0> ", text)
    return len(text.encode().translate(_SEPARATORS_TO_SPACES, _ASCII_SIGNS).split())
