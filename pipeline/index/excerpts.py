"""Choose the sentences of passages that fit a query best, and an excerpt around them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields

from pipeline.corpus.parse.policies import without_markers
from pipeline.corpus.passages.sentences import split_sentences
from pipeline.embedding.lexical import term_id, terms_of
from pipeline.index.scored import Hit

_MOST_SENTENCES = 2
# A second sentence is marked only if it is nearly as good as the best.
_LEAST_OF_BEST = 0.7
# Characters of a passage in a list of results.
_EXCERPT = 480
_WHOLE_KINDS = ("table", "list", "algorithm")


@dataclass(frozen=True, slots=True)
class RankedPassage(Hit):
    """A hit with its best sentences. text: without citation marks. best_sentences: parts of the
    text; none where no sentence shares a word with the query. excerpt: the best sentence and those
    around it; all of a table.
    """

    best_sentences: tuple[str, ...] = ()
    excerpt: str = ""


def rank_sentences(query: str, hits: Sequence[Hit]) -> list[RankedPassage]:
    """The hits with their best sentences: those with most of the query's stems, rare ones first."""

    def stems_of(text: str) -> set[int]:
        return set(map(term_id, terms_of(text)))

    stems = stems_of(query)
    texts = [without_markers(hit.text) for hit in hits]
    split = [split_sentences(text) for text in texts]
    shared = []
    having: Counter[int] = Counter()
    for sentences in split:
        parts = [stems & stems_of(sentence) for sentence in sentences]
        shared.append(parts)
        having.update(set[int]().union(*parts))
    weights = {stem: math.log(1 + len(texts) / having[stem]) for stem in having}
    return [
        _ranked(hit, text, sentences, _best_places(parts, weights))
        for hit, text, sentences, parts in zip(hits, texts, split, shared, strict=True)
    ]


def _ranked(hit: Hit, text: str, sentences: Sequence[str], best: Sequence[int]) -> RankedPassage:
    """The hit with its best sentences. best: their places, in the order of the text."""
    is_whole = hit.kind in _WHOLE_KINDS or len(text) <= _EXCERPT
    values = {field.name: getattr(hit, field.name) for field in fields(Hit)}
    values["text"] = text
    return RankedPassage(
        **values,
        best_sentences=tuple(sentences[place] for place in best),
        excerpt=text if is_whole else _sentences_around(sentences, best[0] if best else 0),
    )


def _best_places(shared: Sequence[set[int]], weights: Mapping[int, float]) -> list[int]:
    """The places of the best sentences, in order. shared: the query's stems in each sentence."""
    scores = [sum(weights[stem] for stem in stems) for stems in shared]
    least = _LEAST_OF_BEST * max(scores, default=0.0)
    good = [place for place, score in enumerate(scores) if score > 0 and score >= least]
    return sorted(sorted(good, key=lambda place: -scores[place])[:_MOST_SENTENCES])


def _sentences_around(sentences: Sequence[str], place: int) -> str:
    """The sentence at a place with those after it, then before it, up to a length."""
    first, last, length = place, place, len(sentences[place])
    while length < _EXCERPT and last + 1 < len(sentences):
        last += 1
        length += len(sentences[last])
    while length < _EXCERPT and first > 0:
        first -= 1
        length += len(sentences[first])
    before = "… " if first > 0 else ""
    after = " …" if last + 1 < len(sentences) else ""
    return f"{before}{' '.join(sentences[first : last + 1])}{after}"
