"""Whether a paper is of one of the categories that a run keeps."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pipeline.settings import Settings

# One subject under several names: all of arXiv's aliases, and cmp-lg, which went into cs.CL
# (CATEGORY_ALIASES and ARCHIVES_SUBSUMED of arxiv-base 0.17.8). Old records still have either name
# alone.
_SAME = (
    frozenset({"cs.SY", "eess.SY"}),
    frozenset({"cs.NA", "math.NA"}),
    frozenset({"cs.IT", "math.IT"}),
    frozenset({"cs.CL", "cmp-lg"}),
    frozenset({"math-ph", "math.MP"}),
    frozenset({"math.ST", "stat.TH"}),
    frozenset({"econ.GN", "q-fin.EC"}),
)


def verdict(categories: Sequence[str], primary: str, settings: Settings) -> tuple[bool, str]:
    """Whether a paper is kept, and the reason where it is not (`""` where it is).

    `categories` are all of a paper's categories, `primary` its first. Setting `categories` names
    archives (`cs`) or categories (`cs.CL`), matched whole: `cs` does not match `physics.optics`.
    Setting `category_match` says whether any category may match or the primary one alone. Reason:
    `not_computer_science` where just `cs` is asked for, else `other_category`. A category counts
    under each of its aliases, so eess.SY is computer science too.
    """
    candidates = [primary] if settings.category_match == "primary" else [primary, *categories]
    if any(matches(category, settings.categories) for category in candidates):
        return True, ""
    return False, "not_computer_science" if settings.categories == ("cs",) else "other_category"


def matches(category: str, selection: Iterable[str]) -> bool:
    """Whether a category, under any of its names, is of a selection or of an archive of it."""
    names = _names(category)
    archives = {name.partition(".")[0] for name in names}
    return any(word in archives or not names.isdisjoint(_names(word)) for word in selection)


def _names(category: str) -> frozenset[str]:
    return next((same for same in _SAME if category in same), frozenset({category}))
