"""Agreement of annotators: Krippendorff's alpha.

Pure functions of numbers. What cannot be computed is None, never 0: no two annotators met, or all gave one and the same
value, so that chance alone would agree as well. The count of an estimate is that of the units which two annotators or
more annotated.

K. Krippendorff, Computing Krippendorff's Alpha-Reliability (2011), sections C to E: coincidences and the ordinal
difference. Intervals resample whole tasks or questions: what lies within one is annotated side by side, and so is not
independent.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

from pipeline.evaluation.statistics import Estimate, bootstrap_sums

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Level = Literal["nominal", "ordinal"]


def alpha(units: Sequence[Sequence[Any]], tasks: Sequence[str], level: Level = "ordinal") -> Estimate:
    """Krippendorff's alpha: 1 for perfect agreement, 0 for what chance would give.

    units: the values that each unit got, missing ones left out; a unit with one value says nothing and is passed over.
    Numbers, where the level is ordinal. tasks: the task of each unit. Raises ValueError if they differ in number.
    """
    import numpy as np

    compared = [(unit, task) for unit, task in zip(units, tasks, strict=True) if len(unit) > 1]
    if not compared:
        return Estimate(None)
    values = sorted({value for unit, _ in compared for value in unit})
    coincidences = np.zeros((len(compared), len(values), len(values)))
    for number, (unit, _) in enumerate(compared):
        # m values have m(m-1) ordered pairs, each counted 1/(m-1): a unit weighs as much as its values.
        counts = np.array([unit.count(value) for value in values], dtype=float)
        coincidences[number] = (np.outer(counts, counts) - np.diag(counts)) / (len(unit) - 1)

    def coefficient(sums: NDArray[np.float64]) -> NDArray[np.float64]:
        return _alpha(sums.reshape(*sums.shape[:-1], len(values), len(values)), values, level)

    clusters = [task for _, task in compared]
    return Estimate(*bootstrap_sums(coefficient, coincidences.reshape(len(compared), -1), clusters), len(compared))


def _alpha(coincidences: NDArray[np.float64], values: Sequence[Any], level: Level) -> NDArray[np.float64]:
    """Alpha of matrices of coincidences, shape (..., values, values); NaN where it is undefined."""
    import numpy as np

    counts = coincidences.sum(axis=-1)
    total = counts.sum(axis=-1)
    distances = _distances(counts, values, level)
    observed = (coincidences * distances).sum(axis=(-2, -1))
    expected = (counts[..., :, None] * counts[..., None, :] * distances).sum(axis=(-2, -1))
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(expected > 0, 1 - (total - 1) * observed / expected, np.nan)


def _distances(counts: NDArray[np.float64], values: Sequence[Any], level: Level) -> NDArray[np.float64]:
    """Squared distances of each two values, of a shape that broadcasts to (..., values, values).

    The ordinal one is the number of values from the one to the other, the two themselves counted by half.
    """
    import numpy as np

    if level == "nominal":
        return 1 - np.eye(len(values))
    position = np.cumsum(counts, axis=-1) - counts / 2
    distance: NDArray[np.float64] = position[..., :, None] - position[..., None, :]
    return distance**2
