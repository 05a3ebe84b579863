"""The score by which quotations are chosen: a logistic regression over a few plain features.

`benchmarks.fit_quotation_score` fits it on questions over real papers.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from pipeline.answering.question_words import NUMBER, asks_for_number, content_words
from pipeline.answering.quotations import Quotation, quotations_of
from pipeline.arxiv.titles import title_words
from pipeline.corpus.passage import Passage
from pipeline.embedding.lexical import term_id

if TYPE_CHECKING:
    from pipeline.embedding.embedder import Embedder

Similarities = Callable[[str, Sequence[str]], Sequence[float]]
"""A question and texts → the similarity of each text with the question."""
FloatArray = NDArray[np.float64]

# Feature → weight, in the order of the columns of the features; the similarity is the last.
WEIGHTS = {
    "share of the question's words": 0.634,
    "share of its passage": 0.692,
    "share near a number, if one is asked for": 1.493,
    "place of its passage in the search": -2.987,
    "more than one sentence": 0.110,
    "abstract": 0.316,
    "section on limitations, if asked for": 2.155,
    "word of a reason, if asked for": 0.958,
    "similarity of its tokens": 3.610,
}
CONSTANT = -3.714
LEAST_SCORE = -0.6
"""Nothing is quoted if the best score is lower. Right answers less twice the wrong ones are most
with this one (`benchmarks.fit_quotation_score`).
"""
LEAST_SCORE_OF_OTHERS = -2.5
"""Quotations behind the best one are left out below it: of 136 questions over real papers none lost
its right answer so.
"""
MOST_COMPARED = 32
"""Similarities are computed for so many quotations, those with the highest score without them.
Each takes 10 ms.
"""
_ASKS_FOR_REASON = re.compile(r"\bwhy\b|\bwhat made\b|\breasons?\b", re.IGNORECASE)
_REASON = re.compile(
    r"\b(?:because|since|due to|therefore|so that|to (?:avoid|prevent|ensure))\b", re.IGNORECASE
)
_LIMITATIONS = re.compile(r"limit|drawback|weakness|shortcoming", re.IGNORECASE)
_CLAUSE_END = re.compile(r"[.:]")
_MOST_HEADING_WORDS = 6
# A word is near a number if it is among so many words before or behind it.
_NEAR_BEFORE, _NEAR_BEHIND = 6, 3


def score_quotations(
    question: str, passages: Sequence[Passage], similarities: Similarities
) -> list[tuple[Quotation, float]]:
    """At most MOST_COMPARED quotations of passages with their scores, best first.

    passages: best first.
    """
    quotes, features = quotation_features(question, passages, similarities)
    scores = features @ np.array(list(WEIGHTS.values())) + CONSTANT
    order = np.argsort(-scores, kind="stable")
    return [(quotes[place], float(scores[place])) for place in order]


def quotation_features(
    question: str, passages: Sequence[Passage], similarities: Similarities
) -> tuple[list[Quotation], FloatArray]:
    """At most MOST_COMPARED quotations of passages, and their features of shape (quotations,
    features).

    passages: best first.
    """
    quotes = list(chain.from_iterable(map(quotations_of, passages)))
    if not quotes:
        return [], np.zeros((0, len(WEIGHTS)))
    features = _features_of_words(question, passages, quotes)
    scores = features @ np.array(list(WEIGHTS.values())[:-1])
    places = np.argsort(-scores, kind="stable")[:MOST_COMPARED]
    best = [quotes[place] for place in places]
    of_best = similarities(question, [quote.search_text() for quote in best])
    return best, np.column_stack([features[places], of_best])


def token_similarities(embedder: Embedder, question: str, texts: Sequence[str]) -> list[float]:
    """ColBERT's similarity of each text with a question (Khattab and Zaharia 2020): the mean over
    the question's tokens of the greatest cosine with a token of the text.

    The mean of all tokens of the texts, which is a part of each of their vectors, is subtracted
    before. embedder: one whose queries have ColBERT vectors.
    """
    of_question, *of_texts = (
        vectors.colbert[:-1]  # without the closing special token
        for vectors in embedder.encode_queries([question, *texts])
        if vectors.colbert is not None
    )
    mean = np.concatenate(of_texts).mean(axis=0)
    centred = _unit(of_question - mean)
    similarities = []
    for of_text in of_texts:
        cosines = centred @ _unit(of_text - mean).T
        similarities.append(float(cosines.max(axis=1).mean()))
    return similarities


def _unit(rows: NDArray[np.float32]) -> NDArray[np.float32]:
    lengths: NDArray[np.float32] = np.linalg.norm(rows, axis=1, keepdims=True)
    return rows / lengths


def _features_of_words(
    question: str, passages: Sequence[Passage], quotes: Sequence[Quotation]
) -> FloatArray:
    """All features of quotations except the similarity."""
    stems = [_stems(quote.search_text()) for quote in quotes]
    share = _share_of_words(question, stems)
    place_of, share_of_passage = {}, {}
    for place, passage in enumerate(passages):
        place_of[passage.passage_id] = place / len(passages)
        text = f"{passage.heading()} {passage.content()}"
        share_of_passage[passage.passage_id] = share(_stems(text))
    wants_number = asks_for_number(question)
    wants_limitations = _LIMITATIONS.search(question) is not None
    wants_reason = _ASKS_FOR_REASON.search(question) is not None
    rows = []
    for quote, own_stems in zip(quotes, stems, strict=True):
        passage = quote.passage
        headings = " ".join([*passage.section_path, _heading_in(passage.text)])
        rows.append(
            (
                share(own_stems),
                share_of_passage[passage.passage_id],
                share(_stems_near_numbers(quote)) if wants_number else 0.0,
                place_of[passage.passage_id],
                len(quote.sentences) > 1,
                passage.kind == "abstract",
                wants_limitations and _LIMITATIONS.search(headings) is not None,
                wants_reason and _REASON.search(quote.text) is not None,
            )
        )
    return np.array(rows, dtype=float)


def _share_of_words(
    question: str, stems_of_quotes: Sequence[set[int]]
) -> Callable[[set[int]], float]:
    """A function from the stems of a text to its share of the question's words, from 0 to 1.

    Words that few quotations have weigh more.
    """
    stems = {term_id(word) for word in content_words(question)}
    counts = Counter(chain.from_iterable(stems & of_quote for of_quote in stems_of_quotes))
    weights = {stem: math.log(1 + len(stems_of_quotes) / (1 + counts[stem])) for stem in stems}
    total = sum(weights.values())

    def share(stems_of_text: set[int]) -> float:
        if not total:
            return 0.0
        return sum(weights[stem] for stem in stems & stems_of_text) / total

    return share


def _heading_in(text: str) -> str:
    """The heading within a paragraph, "Limitations. We only …", or empty."""
    first_clause = _CLAUSE_END.split(text, maxsplit=1)[0]
    return first_clause if len(first_clause.split()) <= _MOST_HEADING_WORDS else ""


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
