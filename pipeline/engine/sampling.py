"""Samples and orders that follow from their arguments alone, the same on every machine."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable


def evenly_spaced(count: int, most: int) -> list[int]:
    """Positions of at most `most` of `count` items, evenly spaced."""
    if count <= most:
        return list(range(count))
    return [(2 * place + 1) * count // (2 * most) for place in range(most)]


def shuffled(seed: int, purpose: str, names: Iterable[str]) -> list[str]:
    """Names in an order that follows from seed and purpose."""
    return sorted(names, key=lambda name: shuffle_key(seed, purpose, name))


def shuffle_key(seed: int, purpose: str, name: str) -> bytes:
    """The key by which `shuffled` sorts a name."""
    return hashlib.sha256(f"{seed}\0{purpose}\0{name}".encode()).digest()
