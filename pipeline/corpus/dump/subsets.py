"""Which severity of conversion a page is of, by the folder it lies in or else by its zip's name. Only names here."""

from __future__ import annotations

import re
from functools import lru_cache

UNRATED = "unrated"
_PATTERNS = (
    (re.compile(r"no[-_ ]?problems?", re.IGNORECASE), "no_problem"),
    (re.compile(r"warnings?", re.IGNORECASE), "warning"),
    (re.compile(r"errors?", re.IGNORECASE), "error"),
    (re.compile(UNRATED, re.IGNORECASE), UNRATED),
)


@lru_cache(maxsize=1024)
def subset_named(name: str) -> str | None:
    """The subset that a name holds the word of (`ar5iv-04-2024-no-problem.zip`); None where it holds none."""
    return next((subset for pattern, subset in _PATTERNS if pattern.search(name)), None)


def subset_of(folder: str | None, zip_name: str) -> str:
    """The subset of a page: as its folder says, or else its zip, or else `unrated`."""
    return subset_named(folder or "") or subset_named(zip_name) or UNRATED


def is_subset_folder(name: str) -> bool:
    """Whether a folder beside the zips is named after a subset and nothing else."""
    return any(pattern.fullmatch(name) for pattern, _ in _PATTERNS)
