"""Evenly spaced samples."""

from __future__ import annotations


def evenly_spaced(count: int, most: int) -> list[int]:
    """Positions of at most `most` of `count` items: all of them, or the middles of `most` equal
    stretches.
    """
    if count <= most:
        return list(range(count))
    return [(2 * place + 1) * count // (2 * most) for place in range(most)]
