"""How far raters agree: Krippendorff's alpha and Fleiss' kappa.

Pure functions on numbers. What cannot be computed is None, never 0: no two raters met, or all gave one and the same
mark, so that chance alone would agree as well.

Alpha: K. Krippendorff, Computing Krippendorff's Alpha-Reliability (2011), sections C to E: coincidences and the ordinal
difference. Kappa: J. L. Fleiss, Measuring nominal scale agreement among many raters, Psychological Bulletin 76 (1971);
with different numbers of raters each subject counts with its own pairs. Intervals draw tasks with everything that was
said of them, never single marks: the sections of one task are marked side by side, and so are not independent.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Level = Literal["nominal", "ordinal", "interval"]

# The ends of an interval of 2,000 draws move by about a twentieth of its width from seed to seed.
DRAWS = 2_000
_SEED = 20_240_301


@dataclass(frozen=True, slots=True)
class Agreement:
    """A coefficient with its 95 % interval over tasks. `units`: things that two raters or more spoke of.

    value is None where nothing can be said; low and high where fewer than two tasks were drawn from.
    """

    value: float | None
    low: float | None
    high: float | None
    units: int


def krippendorff_alpha(units: Sequence[Sequence[int]], level: Level = "ordinal") -> float | None:
    """Krippendorff's alpha: 1 for perfect agreement, 0 for what chance would give.

    units: for each thing that was marked the marks it got, absent ones left out; one mark alone says nothing and is
    passed over. None where no unit has two marks, or all marks are the same.
    """
    values = sorted({mark for unit in units for mark in unit})
    found = _coincidences(units, values).sum(axis=0)
    return _plain(_alpha(found[None], values, level)[0])


def alpha(units: Sequence[Sequence[int]], tasks: Sequence[str], level: Level = "ordinal") -> Agreement:
    """Krippendorff's alpha with its bootstrap interval. tasks: the task of each unit, whose units are drawn together.

    Draws in which all marks are the same have no alpha, and are passed over. Raises ValueError where units and tasks
    are not as many.
    """
    values = sorted({mark for unit in units for mark in unit})
    each = _coincidences(units, values)
    met = [len(unit) > 1 for unit in units]
    weights = _weights([task for task, counts in zip(tasks, met, strict=True) if counts])
    value = _plain(_alpha(each.sum(axis=0)[None], values, level)[0])
    if value is None or weights is None:
        return Agreement(value, None, None, sum(met))
    kept = each[[place for place, counts in enumerate(met) if counts]]
    drawn = _alpha((weights @ kept.reshape(len(kept), -1)).reshape(len(weights), *kept.shape[1:]), values, level)
    low, high = _ends(drawn, value)
    return Agreement(value, low, high, sum(met))


def fleiss_kappa(counts: Sequence[Sequence[int]]) -> float | None:
    """Fleiss' kappa: agreement on categories, over what chance would give.

    counts: for each subject (a task) how many raters chose each category (a system). A subject that fewer than two
    rated is passed over. None where no subject is left, or all choices are of one category.
    """
    return kappa(counts, [str(place) for place in range(len(counts))]).value


def kappa(counts: Sequence[Sequence[int]], tasks: Sequence[str]) -> Agreement:
    """Fleiss' kappa with its bootstrap interval over tasks; counts as `fleiss_kappa` takes them."""
    import numpy as np

    kept = [(row, task) for row, task in zip(counts, tasks, strict=True) if sum(row) > 1]
    if not kept:
        return Agreement(None, None, None, 0)
    table = np.array([row for row, _ in kept], dtype=float)
    raters = table.sum(axis=1)
    agreeing = (table * (table - 1)).sum(axis=1) / (raters * (raters - 1))
    value = _plain(_kappa(np.ones((1, len(kept))), table, agreeing)[0])
    weights = _weights([task for _, task in kept])
    if value is None or weights is None:
        return Agreement(value, None, None, len(kept))
    low, high = _ends(_kappa(weights, table, agreeing), value)
    return Agreement(value, low, high, len(kept))


def _coincidences(units: Sequence[Sequence[int]], values: Sequence[int]) -> NDArray[np.float64]:
    """How often each two values met in each unit, float64 of shape (units, values, values).

    A unit with m marks has m(m-1) ordered pairs, each counted 1/(m-1), so that it weighs as much as its marks.
    """
    import numpy as np

    place = {value: number for number, value in enumerate(values)}
    found = np.zeros((len(units), len(values), len(values)))
    for number, unit in enumerate(units):
        if len(unit) > 1:
            counts = np.bincount([place[mark] for mark in unit], minlength=len(values)).astype(float)
            found[number] = (np.outer(counts, counts) - np.diag(counts)) / (len(unit) - 1)
    return found


def _alpha(found: NDArray[np.float64], values: Sequence[int], level: Level) -> NDArray[np.float64]:
    """Alpha of each of several matrices of coincidences, shape (matrices, values, values); nan where there is none."""
    import numpy as np

    counts = found.sum(axis=2)
    total = counts.sum(axis=1)
    apart = _differences(counts, values, level)
    observed = (found * apart).sum(axis=(1, 2))
    expected = (counts[:, :, None] * counts[:, None, :] * apart).sum(axis=(1, 2))
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(expected > 0, 1 - (total - 1) * observed / expected, np.nan)


def _differences(counts: NDArray[np.float64], values: Sequence[int], level: Level) -> NDArray[np.float64]:
    """Squared differences of each two values, shape (matrices, values, values).

    The ordinal one is the number of marks from the one value to the other, the two themselves counted by half.
    """
    import numpy as np

    if level == "nominal":
        return np.broadcast_to(1 - np.eye(len(values)), (len(counts), len(values), len(values)))
    along = np.cumsum(counts, axis=1) - counts / 2 if level == "ordinal" else np.array(values, dtype=float)[None]
    difference: NDArray[np.float64] = along[:, :, None] - along[:, None, :]
    return difference**2


def _kappa(
    weights: NDArray[np.float64], table: NDArray[np.float64], agreeing: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Kappa of each of several draws of subjects; weights of shape (draws, subjects); nan where there is none."""
    import numpy as np

    observed = weights @ agreeing / weights.sum(axis=1)
    shares = weights @ table
    expected = ((shares / shares.sum(axis=1, keepdims=True)) ** 2).sum(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        # Where all choices are of one category, their share differs from 1 in the last digit at most.
        return np.where(expected < 1 - 1e-12, (observed - expected) / (1 - expected), np.nan)


def _weights(tasks: Sequence[str]) -> NDArray[np.float64] | None:
    """How often each unit counts in each draw of tasks with replacement, shape (draws, units); None for one task."""
    import numpy as np

    names, of_unit = np.unique(np.array(tasks, dtype=str), return_inverse=True)
    if len(names) < 2:
        return None
    drawn = np.random.default_rng(_SEED).multinomial(len(names), np.full(len(names), 1 / len(names)), size=DRAWS)
    weights: NDArray[np.float64] = drawn[:, of_unit].astype(float)
    return weights


def _ends(drawn: NDArray[np.float64], value: float) -> tuple[float, float] | tuple[None, None]:
    import numpy as np

    some = drawn[np.isfinite(drawn)]
    if not len(some):
        return None, None
    low, high = np.percentile(some, [2.5, 97.5])
    return min(float(low), value), max(float(high), value)


def _plain(value: Any) -> float | None:
    """A number of numpy's as Python's; None for nan."""
    return float(value) if value == value else None
