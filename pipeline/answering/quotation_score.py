"""The score by which quotations are chosen: a logistic regression over a few plain features.

`benchmarks.fit_quotation_score` fits it on questions over real papers.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from pipeline.answering.question_words import NUMBER, asks_for_number, content_words
from pipeline.answering.quotations import Quotation, quotations_of
from pipeline.arxiv.titles import title_words
from pipeline.corpus.passage import Passage
from pipeline.embedding.lexical import term_id

Cosines = Callable[[str, Sequence[str]], Sequence[float]]
"""A question and texts → the cosine of each text's vector with the question's."""
Matrix = NDArray[np.float64]

# Feature → weight, in the order of the columns. The cosine is last.
WEIGHTS = {
    "share of the question's words": 2.034,
    "share of its passage": 0.852,
    "share near a number, if one is asked for": 2.420,
    "place of its passage in the search": -1.841,
    "more than one sentence": 0.434,
    "abstract": 0.690,
    "section on limitations, if asked for": 2.798,
    "cosine": 1.086,
}
CONSTANT = -3.380
LEAST_SCORE = -0.3
"""Nothing is quoted if the best score is lower."""
MOST_COMPARED = 100
"""Cosines are computed of so many quotations, those with the highest score without them."""
_LIMITATIONS = re.compile(r"limit|drawback|weakness|shortcoming", re.IGNORECASE)
# A word is near a number if it is among so many words before or behind.
_NEAR_BEFORE, _NEAR_BEHIND = 6, 3


def score_quotations(
    question: str, passages: Sequence[Passage], cosines: Cosines
) -> list[tuple[Quotation, float]]:
    """The quotations of passages with their scores, best first. passages: best first."""
    quotes, features = compared_quotations(question, passages, cosines)
    scores = features @ np.array(list(WEIGHTS.values())) + CONSTANT
    order = np.argsort(-scores, kind="stable")
    return [(quotes[place], float(scores[place])) for place in order]


def compared_quotations(
    question: str, passages: Sequence[Passage], cosines: Cosines
) -> tuple[list[Quotation], Matrix]:
    """At most MOST_COMPARED quotations of passages, and their features [quotes, WEIGHTS]."""
    quotes = list(chain.from_iterable(map(quotations_of, passages)))
    if not quotes:
        return [], np.zeros((0, len(WEIGHTS)))
    features = _features(question, passages, quotes)
    scores = features @ np.array(list(WEIGHTS.values())[:-1])
    places = np.argsort(-scores, kind="stable")[:MOST_COMPARED]
    compared = [quotes[place] for place in places]
    close = cosines(question, [quote.compared() for quote in compared])
    return compared, np.column_stack([features[places], close])


def _features(question: str, passages: Sequence[Passage], quotes: Sequence[Quotation]) -> Matrix:
    """The features of quotations but the cosine [quotes, WEIGHTS - 1]."""
    stems = [_stems(quote.compared()) for quote in quotes]
    share = _share_of_words(question, stems)
    place_of, share_of_passage = {}, {}
    for place, passage in enumerate(passages):
        place_of[passage.passage_id] = place / len(passages)
        text = " ".join((passage.title, *passage.section_path, passage.content()))
        share_of_passage[passage.passage_id] = share(_stems(text))
    wants_number = asks_for_number(question)
    wants_limitations = _LIMITATIONS.search(question) is not None
    rows = []
    for quote, own_stems in zip(quotes, stems, strict=True):
        passage = quote.passage
        sections = " ".join(passage.section_path)
        rows.append(
            (
                share(own_stems),
                share_of_passage[passage.passage_id],
                share(_stems_near_numbers(quote)) if wants_number else 0.0,
                place_of[passage.passage_id],
                len(quote.sentences) > 1,
                passage.kind == "abstract",
                wants_limitations and _LIMITATIONS.search(sections) is not None,
            )
        )
    return np.array(rows, dtype=float)


def _share_of_words(
    question: str, stems_of_quotes: Sequence[set[int]]
) -> Callable[[set[int]], float]:
    """A function that gives the share of the question's words that some stems have, from 0 to 1.
    Words that few of the quotations have count more.
    """
    stems = {term_id(word) for word in content_words(question)}
    counts = Counter(chain.from_iterable(stems & of_quote for of_quote in stems_of_quotes))
    weights = {stem: math.log(1 + len(stems_of_quotes) / (1 + counts[stem])) for stem in stems}
    total = sum(weights.values())

    def share(some: set[int]) -> float:
        return sum(weights[stem] for stem in stems & some) / total if total else 0.0

    return share


def _stems_near_numbers(quote: Quotation) -> set[int]:
    """Stems of the words around the numbers of a sentence, or of the labels of a cell's number."""
    if quote.labels:
        return _stems(" ".join(quote.labels)) if NUMBER.search(quote.text) else set()
    words = quote.text.split()
    near: list[str] = []
    for place, word in enumerate(words):
        if NUMBER.search(word):
            near += words[max(place - _NEAR_BEFORE, 0) : place + 1 + _NEAR_BEHIND]
    return _stems(" ".join(near))


def _stems(text: str) -> set[int]:
    return {term_id(word) for word in title_words(text.replace("_", " "))}
