"""Marks of sections and verdicts on answers, which judges and people give alike."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal, get_args

from pydantic import Field

Mark = Annotated[int, Field(ge=1, le=5)]
ClaimVerdict = Literal["correct", "partly", "wrong", "not_checkable"]
GoldVerdict = Literal["held", "partly", "not"]
CLAIM_VERDICTS: tuple[ClaimVerdict, ...] = get_args(ClaimVerdict)
GOLD_VERDICTS: tuple[GoldVerdict, ...] = get_args(GoldVerdict)


def split_verdicts(cell: str) -> list[str]:
    """The verdicts of one line of a sheet: several where the grader found several claims in it."""
    return [verdict.strip() for verdict in cell.split(",")]


def overall_verdict(cell: str) -> str:
    """The verdict on a line as a whole, by which graders are compared: partly where its claims have
    several.
    """
    verdicts = set(split_verdicts(cell))
    return verdicts.pop() if len(verdicts) == 1 else "partly"


# The arXivBot report gives partial points without saying how many: half a point is ours.
CLAIM_POINTS: Mapping[str, float] = {
    "correct": 1.0,
    "partly": 0.5,
    "wrong": 0.0,
    "not_checkable": 0.0,
}
GOLD_POINTS: Mapping[str, float] = {"held": 1.0, "partly": 0.5, "not": 0.0}
