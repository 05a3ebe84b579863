"""How good a page's text is: a grade with its reasons, a pure function of a Paper's facts. Never reads HTML.

The grade is the worst that any fact asks for. Thresholds were set with a passage in mind (200 words): A, a reader meets
a flaw in fewer than one passage of five; B, in fewer than every one; C, several in each, or a part of the paper is
missing; D, a flaw every other sentence, or most of the text is gone. Of 21 real pages 19 are A and 2 B (setup code left
in the text; formulas without TeX), of the 28 samples 22 are A, 5 B (one citation of nine missing; two error marks) and
one C (cut off): each was read.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass

from pipeline.corpus.paper import Paper
from pipeline.tables import GRADES

# Where B, C and D begin. A bound that is never reached says that the fact alone cannot make it that bad.
_FLAWS_PER_1000_WORDS = (1.0, 5.0, 20.0)
_SHARE_OF_CITATIONS_MISSING = (0.05, 0.5, 2.0)
_SHARE_OF_TEXT_LOST = (0.1, 0.25, 0.5)
# Phantoms of a formula come to 36 characters in one real page; a sentence meant for no human reader has more than 200.
_HIDDEN_CHARACTERS = (200, float("inf"), float("inf"))
_FEWEST_WORDS = 100


@dataclass(frozen=True, slots=True)
class Quality:
    """A grade, A (clean) to D (broken), and the names of the facts that lowered it, worst first."""

    grade: str
    reasons: tuple[str, ...]


def grade(paper: Paper) -> Quality:
    """The grade of a page's text, with `reasons` among: ltx_errors, unconverted_macros, math_without_tex (counted
    together), missing_citations, text_lost, hidden_text, truncated, hardly_any_text."""
    lowered = sorted((found for found in _judge(paper) if found[0]), key=lambda found: -found[0])
    worst = lowered[0][0] if lowered else 0
    return Quality(GRADES[worst], tuple(reason for _, reason in lowered))


def _judge(paper: Paper) -> Iterator[tuple[int, str]]:
    """(how many grades below A, the fact that says so) of every fact."""
    words = sum(block.text.count(" ") + 1 for block in paper.blocks)  # near enough, in a tenth of the time of `split`
    flaws = {name: getattr(paper, name) for name in ("ltx_errors", "unconverted_macros", "math_without_tex")}
    flawed = bisect_right(_FLAWS_PER_1000_WORDS, 1000 * sum(flaws.values()) / max(words, 1))
    yield from ((flawed, name) for name, count in flaws.items() if count)
    cited = sum(len(block.cited_keys) for block in paper.blocks) + paper.missing_citations
    yield bisect_right(_SHARE_OF_CITATIONS_MISSING, paper.missing_citations / max(cited, 1)), "missing_citations"
    lost = (paper.chars_seen - paper.chars_kept) / max(paper.chars_seen, 1)
    yield bisect_right(_SHARE_OF_TEXT_LOST, lost), "text_lost"
    yield bisect_right(_HIDDEN_CHARACTERS, paper.losses.get("hidden", 0)), "hidden_text"
    yield GRADES.index("C") * paper.truncated, "truncated"
    yield GRADES.index("C") * (words < _FEWEST_WORDS), "hardly_any_text"
