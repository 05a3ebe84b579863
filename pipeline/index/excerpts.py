"""Choose the sentences and table rows of passages that fit a query best, and an excerpt around
them.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import groupby
from typing import Protocol

from pipeline.corpus.parse.policies import without_markers
from pipeline.corpus.passages.sentences import split_sentences
from pipeline.embedding.lexical import term_id, terms_of
from pipeline.index.scored import Hit

_MOST_BEST = 2
# A second sentence is marked only if it is nearly as good as the best.
_LEAST_OF_BEST = 0.7
# Characters of a passage in a list of results.
LISTED = 480
_WHOLE_KINDS = ("table", "list", "algorithm")
_FIRST_CELL = re.compile(r"\|(?:[^|\\]|\\.)*")


class Text(Protocol):
    """A passage. text: with citation marks."""

    @property
    def kind(self) -> str: ...
    @property
    def text(self) -> str: ...


@dataclass(frozen=True, slots=True)
class Excerpt:
    """A passage as a list of results shows it.

    text: of the passage, without citation marks. best: its best sentences and table rows, parts of
    the text; none where no sentence shares a word with the query. shown: the first of them and the
    sentences around it, or the caption and header above it; all of a short passage.
    """

    text: str
    best: tuple[str, ...]
    shown: str


@dataclass(frozen=True, slots=True)
class RankedPassage(Hit):
    """A hit with its best sentences, as `Excerpt` has them. text: without citation marks."""

    best_sentences: tuple[str, ...] = ()
    excerpt: str = ""


@dataclass(frozen=True, slots=True)
class _Piece:
    """A sentence, or the row of a table. header: the lines above the rows; empty for a sentence.
    shared: the query's stems in it.
    """

    text: str
    header: str
    shared: set[int]


def rank_sentences(query: str, hits: Sequence[Hit]) -> list[RankedPassage]:
    """The hits with their best sentences."""
    ranked = []
    for hit, excerpt in zip(hits, excerpts(query, hits, LISTED), strict=True):
        values = {field.name: getattr(hit, field.name) for field in fields(Hit)}
        values["text"] = excerpt.text
        ranked.append(RankedPassage(**values, best_sentences=excerpt.best, excerpt=excerpt.shown))
    return ranked


def excerpts(query: str, passages: Sequence[Text], length: int) -> list[Excerpt]:
    """An excerpt of each passage. The best sentences are those with most of the query's stems, rare
    ones first; a row counts where the query names it and a column of its table.

    length: characters of an excerpt of prose, up to the end of a sentence.
    """
    stems = _stems_of(query)
    texts = [without_markers(passage.text) for passage in passages]
    pieces = [list(_pieces(text, stems)) for text in texts]
    having: Counter[int] = Counter()
    for of_passage in pieces:
        having.update(set[int]().union(*(piece.shared for piece in of_passage)))
    weights = {stem: math.log(1 + len(texts) / having[stem]) for stem in having}
    return [
        _excerpt(passage.kind, text, of_passage, weights, length)
        for passage, text, of_passage in zip(passages, texts, pieces, strict=True)
    ]


def _stems_of(text: str) -> set[int]:
    return set(map(term_id, terms_of(text)))


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


def _excerpt(
    kind: str, text: str, pieces: Sequence[_Piece], weights: Mapping[int, float], length: int
) -> Excerpt:
    best = _best_places(pieces, weights)
    first = best[0] if best else 0
    if len(text) <= length or not pieces:
        shown = text
    elif pieces[first].header:
        caption = next((piece.text for piece in pieces[:first] if not piece.header), "")
        shown = "\n".join([caption, pieces[first].header, pieces[first].text]).strip()
    elif kind in _WHOLE_KINDS or any(piece.header for piece in pieces):
        shown = text
    else:
        shown = _sentences_around([piece.text for piece in pieces], first, length)
    return Excerpt(text, tuple(pieces[place].text for place in best), shown)


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
