"""Quality of a page's text: a grade with its reasons, and what CITELOOM_PAGE_ERRORS drops of it.

The grade is the worst that any fact asks for. Thresholds were set with a passage in mind (200
words): A, a reader meets a flaw in fewer than one passage of five; B, in fewer than every one; C,
several in each, or a part of the paper is missing; D, a flaw every other sentence, or most of the
text is gone. Of 21 real pages 19 are A and 2 B (setup code left in the text; formulas without TeX),
of the 28 samples 22 are A, 5 B (one citation of nine missing; two error marks) and one C (cut off):
each was read.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace

from pipeline.corpus.parse.measures import kept_characters
from pipeline.corpus.parse.parsed_page import PageError, ParsedPage
from pipeline.corpus.passages.text import count_words
from pipeline.tables import GRADES

# Where B, C and D begin. A bound that is never reached means that the fact alone cannot lower the
# grade so far.
_FLAWS_PER_1000_WORDS = (1.0, 5.0, 20.0)
_SHARE_OF_CITATIONS_MISSING = (0.05, 0.5, 2.0)
_SHARE_OF_TEXT_LOST = (0.1, 0.25, 0.5)
# Phantoms of a formula come to 36 characters in one real page; a sentence meant for no human reader
# has more than 200.
_HIDDEN_CHARACTERS = (200, float("inf"), float("inf"))
_FEWEST_WORDS = 100
_LONGEST_MEAN_WORD = 15

DROPPED = "dropped_for_errors"


@dataclass(frozen=True, slots=True)
class Quality:
    """A grade, A (clean) to D (broken), and the names of the facts that lowered it, worst first."""

    grade: str
    reasons: tuple[str, ...]


def grade(paper: ParsedPage) -> Quality:
    """The grade of a page's text, with `reasons` among: ltx_errors, unconverted_macros,
    math_without_tex (counted together), missing_citations, text_lost, hidden_text, truncated,
    hardly_any_text.
    """
    lowered = sorted((fact for fact in _grade_facts(paper) if fact[0]), key=lambda fact: -fact[0])
    worst = lowered[0][0] if lowered else 0
    return Quality(GRADES[worst], tuple(reason for _, reason in lowered))


def _grade_facts(paper: ParsedPage) -> Iterator[tuple[int, str]]:
    """(grades below A, name) of every fact."""
    # Nearly the words of `count_words`, in a tenth of the time, but for scripts without spaces.
    words = sum(block.text.count(" ") + 1 for block in paper.blocks)
    if words * _LONGEST_MEAN_WORD < paper.chars_kept:
        words = sum(count_words(block.text) for block in paper.blocks)
    flaws = {
        name: getattr(paper, name)
        for name in ("ltx_errors", "unconverted_macros", "math_without_tex")
    }
    flawed = bisect_right(_FLAWS_PER_1000_WORDS, 1000 * sum(flaws.values()) / max(words, 1))
    yield from ((flawed, name) for name, count in flaws.items() if count)
    cited = sum(len(block.cited_keys) for block in paper.blocks) + paper.missing_citations
    yield (
        bisect_right(_SHARE_OF_CITATIONS_MISSING, paper.missing_citations / max(cited, 1)),
        "missing_citations",
    )
    lost = (paper.chars_seen - paper.chars_kept) / max(paper.chars_seen, 1)
    yield bisect_right(_SHARE_OF_TEXT_LOST, lost), "text_lost"
    yield bisect_right(_HIDDEN_CHARACTERS, paper.losses.get("hidden", 0)), "hidden_text"
    if paper.truncated:
        yield GRADES.index("C"), "truncated"
    if words < _FEWEST_WORDS:
        yield GRADES.index("C"), "hardly_any_text"


def apply_error_policy(policy: str, paper: ParsedPage) -> ParsedPage:
    """A paper as CITELOOM_PAGE_ERRORS wants it: keep, drop_paragraphs or drop_page.

    Raises PageError (page_has_errors) where the page is dropped, (no_text) where no block and no
    abstract is left.
    """
    if policy == "keep" or not paper.ltx_errors:
        return paper
    if policy == "drop_page":
        raise PageError("page_has_errors", f"LaTeXML marked {paper.ltx_errors} errors on it")
    broken = [block for block in paper.blocks if block.errors]
    sound = tuple(block for block in paper.blocks if not block.errors)
    if not broken:
        return paper
    if not sound and not paper.abstract:
        raise PageError("no_text", "every block of it holds errors")
    dropped = kept_characters(None, 0, None, (), broken, ())
    kept = Counter(paper.kept) - Counter(dropped)
    chars = kept.total()
    return replace(
        paper,
        blocks=sound,
        paragraphs=sum(block.kind == "paragraph" for block in sound),
        chars_kept=chars,
        kept={kind: kept[kind] for kind in paper.kept if kept[kind]},
        losses={**paper.losses, DROPPED: paper.chars_kept - chars},
    )
