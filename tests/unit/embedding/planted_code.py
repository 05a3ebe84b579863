"""Code hidden in a pickle.

Imported by name (`tests.unit.embedding.planted_code`).
"""

from pathlib import Path


class Planted:
    """Writes a file where it is unpickled."""

    def __init__(self, trace):
        self.trace = trace

    def __reduce__(self):
        return Path.touch, (self.trace,)
