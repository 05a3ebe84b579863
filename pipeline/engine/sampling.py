"""Which of many things are taken where not all can be."""

from __future__ import annotations


def spread(count: int, most: int) -> list[int]:
    """Which of `count` things are taken where `most` are at most: all, else as many evenly over the whole.

    The middle of each of `most` equal stretches, so that neither the beginning nor the end is favoured.
    """
    if count <= most:
        return list(range(count))
    return [(2 * place + 1) * count // (2 * most) for place in range(most)]
