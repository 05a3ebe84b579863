"""What the processor that runs the tests can multiply."""

from __future__ import annotations

from pipeline.embedding.device import pick_precision
from pipeline.errors import SettingError


def has_precision(precision: str) -> bool:
    """Whether an embedder may compute in it on this machine's CPU."""
    try:
        pick_precision(precision, "cpu", ())
    except SettingError:
        return False
    return True
