"""Marks and verdicts, which judges and people give alike, and whether a judge's quotes are
evidence.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean
from typing import Annotated, Any, Literal, get_args

from pydantic import Field

Mark = Annotated[int, Field(ge=1, le=5)]
ClaimVerdict = Literal["correct", "partly", "wrong", "not_checkable"]
GoldVerdict = Literal["held", "partly", "not"]
CLAIM_VERDICTS: tuple[ClaimVerdict, ...] = get_args(ClaimVerdict)
GOLD_VERDICTS: tuple[GoldVerdict, ...] = get_args(GoldVerdict)


# The arXivBot report gives partial points without saying how many: half a point is ours.
CLAIM_POINTS: Mapping[str, float] = {
    "correct": 1.0,
    "partly": 0.5,
    "wrong": 0.0,
    "not_checkable": 0.0,
}
GOLD_POINTS: Mapping[str, float] = {"held": 1.0, "partly": 0.5, "not": 0.0}

# A quote of fewer words is in nearly any paper: "the model" is no evidence.
_FEWEST_WORDS = 3
# Kinds of quotes and dashes; translated before NFKC, which makes a space and an accent of ´.
_QUOTES = dict.fromkeys(map(ord, '‘’‚‛“”„‟«»‹›`´"'), "'")
_DASHES = dict.fromkeys(map(ord, "‐‑‒–—―−﹣"), "-")
_ALIKE = str.maketrans(_QUOTES | _DASHES)
# Signs of TeX that prose has not: `$x_{i}$` may come back as x_i, \(x_i\) or xi.
_DELIMITER = re.compile(r"\\[()\[\]]")
_TEX = dict.fromkeys(map(ord, "$\\{}_^~"), "")
# Control signs, which a prompt leaves out, and signs that no reader sees.
_UNSEEN = dict.fromkeys([*range(32), 0x7F, 0xAD, 0x200B, 0x200C, 0x200D, 0x2060, 0xFEFF], "")
_DROPPED = str.maketrans(_TEX | _UNSEEN)
# Two dashes are TeX's one, and so are two single quotes.
_RUN = re.compile(r"(['-])\1+")
# Around a quote, what its writer put there to say that it is one, or goes on.
_AROUND = "'….[]()"


def verdict_shares(
    rows: Iterable[Mapping[str, Any]], points: Mapping[str, float], quoted: str
) -> tuple[float, float, float] | None:
    """Of the rows with a verdict: the share of points, of rows with a whole point, and of points
    whose quote is where it should be. None where no row has one.

    points: verdict → points. quoted: the column that says whether a quote is there.
    """
    judged = [row for row in rows if row["verdict"] is not None]
    if not judged:
        return None
    earned = [points[row["verdict"]] for row in judged]
    evidence = [row[quoted] and len(row["quote"].split()) >= _FEWEST_WORDS for row in judged]
    return (
        fmean(earned),
        fmean(each == 1 for each in earned),
        fmean(each if found else 0.0 for each, found in zip(earned, evidence, strict=True)),
    )


def place_of(quote: str, texts: Sequence[str]) -> int | None:
    """The first text that the quote is in; None without one, or without a letter or digit."""
    needle = _folded(quote).strip(_AROUND)
    if not any(sign.isalnum() for sign in needle):
        return None
    return next((place for place, text in enumerate(texts) if needle in _folded(text)), None)


def _folded(text: str) -> str:
    """The text with case, white space, kinds of quotes and dashes, and the signs of TeX made the
    same or taken out.

    White space goes wholly, as formulas are spaced at will, and a word may be parted at a line's
    end.
    """
    alike = unicodedata.normalize("NFKC", _DELIMITER.sub("", text).translate(_ALIKE))
    plain = alike.casefold().translate(_DROPPED)
    return _RUN.sub(r"\1", "".join(plain.split()))
