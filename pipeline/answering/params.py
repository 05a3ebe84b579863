"""How much the answering systems search, read and write."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pipeline.settings import Settings


@dataclass(frozen=True, slots=True)
class Params:
    """The settings of answering. Where the arXivBot report gives a number it is the default: 3 passages, 2 hops."""

    context: int
    """Tokens that the model reads and writes in one call."""
    candidates: int = 20
    """Passages that a search finds, for the model to rank."""
    passages: int = 3
    """Best of them, which the model reads whole."""
    claims: int = 3
    """Claims kept of one hop: the report's six at two hops."""
    hops: int = 2
    tokens: int = 512
    """Longest answer."""
    evidence: int = 2
    """Passages that WikiChat checks a claim of the model by."""


def params_of(settings: Settings) -> Params:
    """The parameters as set."""
    return Params(
        context=settings.llm_context,
        candidates=settings.answer_candidates,
        passages=settings.answer_passages,
        hops=settings.answer_hops,
        tokens=settings.answer_tokens,
    )
