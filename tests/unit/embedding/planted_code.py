"""Code hidden in a pickle.

Imported by name (`tests.unit.embedding.planted_code`).
"""

from __future__ import annotations

from pathlib import Path


class Planted:
    """Writes a file where it is unpickled."""

    def __init__(self, trace: Path) -> None:
        self.trace = trace

    def __reduce__(self) -> tuple[object, tuple[object, ...]]:
        return Path.touch, (self.trace,)
