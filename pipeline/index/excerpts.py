"""Choose the sentences and table rows of passages that fit a query best, and an excerpt around
them.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from pipeline.corpus.nouns import Passage
from pipeline.corpus.parse.policies import with_printed_citations, without_markers
from pipeline.corpus.passages.sentences import split_sentences
from pipeline.embedding.lexical import term_id, terms_of

_MOST_BEST = 2
# A second sentence is marked only if it is nearly as good as the best.
_LEAST_OF_BEST = 0.7
# Characters of a passage in a list of results.
LISTED = 480
_WHOLE_KINDS = ("table", "list", "algorithm", "front_matter")
_FIRST_CELL = re.compile(r"\|(?:[^|\\]|\\.)*")


@dataclass(frozen=True, slots=True)
class _Piece:
    """A sentence, or the row of a table. header: the lines above the rows; empty for a sentence.
    shared: the query's stems in it.
    """

    text: str
    header: str
    shared: set[int]


def with_excerpts(query: str, passages: Sequence[Passage], length: int = LISTED) -> list[Passage]:
    """The passages with their best sentences and table rows, none where no sentence shares a word
    with the query, and the sentences around the first of them, or the caption and header above it;
    all of a short passage.

    The best sentences are those with most of the query's stems, rare ones first; a row counts where
    the query names it and a column of its table. length: characters of an excerpt of prose, up to
    the end of a sentence.
    """
    stems = _stems_of(query)
    pieces = [list(_pieces(passage.text, stems)) for passage in passages]
    having: Counter[int] = Counter()
    for of_passage in pieces:
        having.update(set[int]().union(*(piece.shared for piece in of_passage)))
    weights = {stem: math.log(1 + len(pieces) / having[stem]) for stem in having}
    excerpts = []
    for passage, of_passage in zip(passages, pieces, strict=True):
        places = _best_places(of_passage, weights)
        first = places[0] if places else 0
        shown = with_printed_citations(_excerpt(passage, of_passage, first, length))
        best = tuple(with_printed_citations(of_passage[place].text) for place in places)
        excerpts.append(replace(passage, excerpt=shown, best_sentences=best))
    return excerpts


def _stems_of(text: str) -> set[int]:
    return set(map(term_id, terms_of(without_markers(text))))


def _pieces(text: str, stems: set[int]) -> Iterator[_Piece]:
    """The sentences and table rows of a text, in order. stems: of the query."""
    for is_table, group in groupby(text.splitlines(), lambda line: line.startswith("|")):
        lines = list(group)
        if not is_table:
            for sentence in split_sentences("\n".join(lines)):
                yield _Piece(sentence, "", stems & _stems_of(sentence))
            continue
        header = "\n".join(lines[:2])
        columns = stems & _stems_of(header)
        for row in lines[2:]:
            label = _FIRST_CELL.match(row)
            has_values = label is not None and row[label.end() :].strip("| ")
            named = stems & _stems_of(label[0]) if label and has_values else set()
            yield _Piece(row, header, named | columns if named and columns else set())


def _excerpt(passage: Passage, pieces: Sequence[_Piece], first: int, length: int) -> str:
    """What is shown of a passage. first: place of its first best piece."""
    if len(passage.text) <= length or not pieces:
        return passage.text
    if pieces[first].header:
        caption = next((piece.text for piece in pieces[:first] if not piece.header), "")
        return "\n".join([caption, pieces[first].header, pieces[first].text]).strip()
    if passage.kind in _WHOLE_KINDS or any(piece.header for piece in pieces):
        return passage.text
    return _sentences_around([piece.text for piece in pieces], first, length)


def _best_places(pieces: Sequence[_Piece], weights: Mapping[int, float]) -> list[int]:
    """The places of the best pieces, in order."""
    scores = [sum(weights[stem] for stem in piece.shared) for piece in pieces]
    least = _LEAST_OF_BEST * max(scores, default=0.0)
    good = [place for place, score in enumerate(scores) if score > 0 and score >= least]
    return sorted(sorted(good, key=lambda place: -scores[place])[:_MOST_BEST])


def _sentences_around(sentences: Sequence[str], place: int, length: int) -> str:
    """The sentence at a place with those after it, then before it, up to a length."""
    first, last, chosen = place, place, len(sentences[place])
    while chosen < length and last + 1 < len(sentences):
        last += 1
        chosen += len(sentences[last])
    while chosen < length and first > 0:
        first -= 1
        chosen += len(sentences[first])
    before = "… " if first > 0 else ""
    after = " …" if last + 1 < len(sentences) else ""
    return f"{before}{' '.join(sentences[first : last + 1])}{after}"
