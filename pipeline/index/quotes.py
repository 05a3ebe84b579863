"""Find where a sentence or quote is from: by its exact words, by nearly the same words, or else by
its meaning.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import replace
from typing import TYPE_CHECKING

from pipeline.corpus.nouns import Hit, Passage, Reason, Results
from pipeline.corpus.parse.policies import (
    CITATION_MARKER,
    MISSING_MARKER,
    with_printed_citations,
    without_markers,
)
from pipeline.errors import SettingError
from pipeline.index.excerpts import with_excerpts
from pipeline.index.papers import papers_of
from pipeline.index.search import search
from pipeline.index.search_options import check_length

if TYPE_CHECKING:
    from pipeline.engine.stage import Workspace

# Passages whose words are compared with the quote's. The passage that a quote is from shares all
# its words, so that lexical search ranks it high: benchmarks/quotes.py measures the recall.
_CANDIDATES = 50
# The least share of equal characters of a near match, in percent. Two changed words of a sentence
# of ten leave 80 or more; sentences of other passages of a paper seldom reach 70.
_LEAST_SIMILARITY = 78
_FEWEST_WORDS = 4
# Words of a quote that may leave out others at one place: fewer stand in many texts.
_FEWEST_OF_SHORTENED = 8
_WORD = re.compile(r"\w+")
_MARKER = re.compile(f"{CITATION_MARKER.pattern}|{MISSING_MARKER.pattern}")


def find_quote(workspace: Workspace, quote: str, limit: int = 5) -> Results:
    """The passages that a quote may be from, best first: exact matches (the same words in the same
    order; case, punctuation and citation marks aside), then near ones, and only if there are none,
    passages that fit by meaning.

    `score` of exact and near ones is the share of equal characters; the matching part of a passage
    is its excerpt. Raises SettingError for a quote of fewer than four words or of more than 10,000
    characters, and as `search` does.
    """
    check_length(quote, "the quote")
    words = [_normalize(word) for word in _WORD.findall(without_markers(quote))]
    if len(words) < _FEWEST_WORDS:
        raise SettingError(f"the quote has {len(words)} words: give at least {_FEWEST_WORDS}")
    ranking = search(workspace, quote, limit=_CANDIDATES, by="lexical")
    matches = sorted(
        filter(None, (_compare(words, scored.item) for scored in ranking)),
        key=lambda match: (-match[0], match[1].passage_id),
    )
    reason: Reason | None = None
    if not matches:
        reason = "meaning"
        ranking = [scored for scored in search(workspace, quote, limit=limit) if scored.fits]
        passages = with_excerpts(quote, [scored.item for scored in ranking])
        matches = list(zip((scored.score for scored in ranking), passages, strict=True))
    papers = papers_of(workspace, [passage for _, passage in matches[:limit]])
    hits = [
        Hit(paper, score, reason or ("exact" if score == 1 else "near"), (passage,))
        for paper, (score, passage) in zip(papers, matches, strict=False)
    ]
    note = "" if hits else "no passage has these words or their meaning"
    return Results(quote, "passages", tuple(hits), note=note)


def _compare(quote: list[str], passage: Passage) -> tuple[float, Passage] | None:
    """(share of equal characters, the passage with the part as excerpt that resembles the quote);
    None if no part does.
    """
    from rapidfuzz import fuzz

    text = passage.text
    bare = _MARKER.sub(lambda marker: " " * len(marker[0]), text)
    spans = [match.span() for match in _WORD.finditer(bare)]
    words = [_normalize(text[start:end]) for start, end in spans]
    needle, haystack = f" {' '.join(quote)} ", f" {' '.join(words)} "
    similarity = 1.0
    start = haystack.find(needle)
    end = start + len(needle)
    if start < 0:
        similarity = 0.99
        start, end = _find_shortened(quote, haystack)
    if start < 0:
        alignment = fuzz.partial_ratio_alignment(needle, haystack, score_cutoff=_LEAST_SIMILARITY)
        if alignment is None:
            return None
        # A quote that ends in the middle of a passage's word is no exact match, though all its
        # characters are equal.
        similarity = min(alignment.score / 100, 0.999)
        start, end = alignment.dest_start, alignment.dest_end
    # A space stands before each word.
    first, last = (haystack.count(" ", 0, place) - 1 for place in (start + 1, end - 1))
    part = with_printed_citations(text[spans[first][0] : spans[last][1]])
    return similarity, replace(passage, excerpt=part, best_sentences=(part,))


def _find_shortened(quote: list[str], haystack: str) -> tuple[int, int]:
    """(start, end) of the part of which a quote leaves out words at one place; start is -1 where
    there is none.
    """
    cuts = range(2, len(quote) - 1) if len(quote) >= _FEWEST_OF_SHORTENED else ()
    for cut in cuts:
        head, after, _ = haystack.rpartition(f" {' '.join(quote[cut:])} ")
        start = f"{head} ".rfind(f" {' '.join(quote[:cut])} ")
        if start >= 0:
            return start, len(head) + len(after)
    return -1, -1


def _normalize(word: str) -> str:
    return unicodedata.normalize("NFKC", word).casefold()
