"""Relevance: whether a hit fits its query. Even random letters have a nearest passage.

The evidence is the cosine plus the weighted share of the query's words in the passage, so that a
name unknown to the model counts too. The bounds were fitted for each model on labelled sets
(`benchmarks.retrieval`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from pipeline.embedding.lexical import term_id, terms_of
from pipeline.embedding.minilm import NAME as MINILM

Relevance = Literal["strong", "weak", "none"]


@dataclass(frozen=True, slots=True)
class RelevanceBounds:
    """weak, strong: the least evidence. coverage: weight of the share of the query's words."""

    weak: float
    strong: float
    coverage: float

    def relevance(self, cosine: float, coverage: float) -> Relevance:
        """The relevance of a hit. coverage: the share of the query's words that it has."""
        evidence = cosine + self.coverage * coverage
        if evidence < self.weak:
            return "none"
        return "strong" if evidence >= self.strong else "weak"


# None for BGE-M3: its cosines lie in another range, and its weights were not available for a
# measurement.
BOUNDS: Mapping[str, RelevanceBounds] = {
    MINILM: RelevanceBounds(weak=0.52, strong=0.76, coverage=0.4)
}


def coverage(query: str, text: str) -> float:
    """The share of a query's distinct stems that a text has; 0 for a query without words."""
    stems = set(map(term_id, terms_of(query)))
    return len(stems & set(map(term_id, terms_of(text)))) / len(stems) if stems else 0.0


def relevance_of(model: str, query: str, text: str, cosine: float | None) -> Relevance | None:
    """The relevance of a hit; None if the model has no bounds or the cosine is unknown. text: as it
    was embedded.
    """
    bounds = BOUNDS.get(model)
    return (
        None
        if bounds is None or cosine is None
        else bounds.relevance(cosine, coverage(query, text))
    )
