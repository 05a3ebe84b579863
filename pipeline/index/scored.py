"""Items with their scores."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

NOTHING_FITS = "nothing in this corpus fits well; these are the nearest"
Item = TypeVar("Item", covariant=True)


@dataclass(frozen=True, slots=True)
class Scored(Generic[Item]):
    """An item of a ranking. score: comparable only within the ranking. fits: whether the item fits
    its query at all; true where that is unknown.
    """

    item: Item
    score: float
    fits: bool = True
