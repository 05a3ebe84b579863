"""Marks of sections and verdicts on answers, which judges and people give alike."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Generic, Literal, TypeVar, get_args

from pydantic import BaseModel, Field

Mark = Annotated[int, Field(ge=1, le=5)]
AnyMark = TypeVar("AnyMark")


class SixMarks(BaseModel, Generic[AnyMark]):
    """A mark for each of ChatCite's criteria, in the order of `tables.CRITERIA`."""

    consistency: AnyMark
    coherence: AnyMark
    comparative: AnyMark
    integrity: AnyMark
    fluency: AnyMark
    citation_accuracy: AnyMark


ClaimVerdict = Literal["correct", "partly", "wrong", "not_checkable"]
GoldVerdict = Literal["held", "partly", "not"]
CLAIM_VERDICTS: tuple[ClaimVerdict, ...] = get_args(ClaimVerdict)
GOLD_VERDICTS: tuple[GoldVerdict, ...] = get_args(GoldVerdict)

# The arXivBot report gives partial points without saying how many: half a point is ours.
CLAIM_POINTS: Mapping[str, float] = {
    "correct": 1.0,
    "partly": 0.5,
    "wrong": 0.0,
    "not_checkable": 0.0,
}
GOLD_POINTS: Mapping[str, float] = {"held": 1.0, "partly": 0.5, "not": 0.0}
