"""Measures of a judge against labels: confusion matrix, macro-F1, accuracy of each class, with 95 % intervals."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from pydantic import BeforeValidator

from pipeline.evaluation.judge_check.labelled_claims import LABELS, Label
from pipeline.evaluation.statistics import Estimate, bootstrap_sums

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

# Files of earlier versions have [value, low, high].
Figure = Annotated[
    Estimate | None, BeforeValidator(lambda found: Estimate(*found) if isinstance(found, list) else found)
]
"""None where it is undefined, or there is one document alone."""
UNREADABLE = "unreadable"
"""In place of a verdict: an answer that could not be read. It counts as wrong."""
SUPPORT_OR_NOT = ("SUPPORT", "NOT")


@dataclass(frozen=True, slots=True)
class ClassMeasures:
    """Of one class: how many claims have it, and the share of these that the judge gives it (accuracy), and F1."""

    claims: int
    accuracy: Figure
    f1: Figure


@dataclass(frozen=True, slots=True)
class Measures:
    """A judge's verdicts on one set.

    confusion: label → the judge's own verdict → claims. support_macro_f1, support: macro-F1 and measures of two
    classes, SUPPORT and all else. macro_f1, classes: of the three labels; None and empty where the verdicts do not tell
    them apart.
    """

    claims: int
    confusion: Mapping[str, Mapping[str, int]]
    support_macro_f1: Figure
    support: Mapping[str, ClassMeasures]
    macro_f1: Figure
    classes: Mapping[str, ClassMeasures]


def measure(
    labels: Sequence[Label],
    verdicts: Sequence[str],
    clusters: Sequence[str],
    *,
    supported: str,
    label_of: Mapping[str, Label] | None,
) -> Measures:
    """Measures of verdicts on claims. clusters: the document of each, which is resampled as a whole. supported: the
    verdict that stands for SUPPORT; label_of: verdict → label, None where three labels are not told apart."""
    two = ["SUPPORT" if label == "SUPPORT" else "NOT" for label in labels]
    given = [UNREADABLE if v == UNREADABLE else "SUPPORT" if v == supported else "NOT" for v in verdicts]
    support_macro_f1, support = _of_classes(two, given, SUPPORT_OR_NOT, clusters)
    macro_f1: Estimate | None = None
    classes: dict[str, ClassMeasures] = {}
    if label_of is not None:
        mapped = [label_of.get(verdict, UNREADABLE) for verdict in verdicts]
        macro_f1, classes = _of_classes(labels, mapped, LABELS, clusters)
    pairs = Counter(zip(labels, verdicts, strict=True))
    confusion: dict[str, dict[str, int]] = {label: {} for label in LABELS}
    for (label, verdict), count in sorted(pairs.items()):
        confusion[label][verdict] = count
    return Measures(len(labels), confusion, support_macro_f1, support, macro_f1, classes)


def _of_classes(
    labels: Sequence[str], given: Sequence[str], classes: Sequence[str], clusters: Sequence[str]
) -> tuple[Estimate | None, dict[str, ClassMeasures]]:
    """Macro-F1 and the measures of each class."""
    import numpy as np

    has = np.array([[label == name for name in classes] for label in labels], dtype=float)
    gets = np.array([[label == name for name in classes] for label in given], dtype=float)
    both = has * gets

    def ratio(numerators: NDArray[np.float64], denominators: NDArray[np.float64]) -> Estimate | None:
        """The ratio of two sums; the mean of several such ratios, where they have several columns."""
        width = numerators.shape[1]

        def mean_ratio(sums: NDArray[np.float64]) -> NDArray[np.float64]:
            above, below = sums[..., :width], sums[..., width:]
            known = below > 0
            ratios = np.divide(above, below, out=np.zeros_like(above), where=known)
            count = known.sum(axis=-1)
            return np.where(count > 0, ratios.sum(axis=-1) / np.maximum(count, 1), np.nan)

        value, low, high = bootstrap_sums(mean_ratio, np.hstack([numerators, denominators]), clusters)
        return None if value is None or low is None else Estimate(value, low, high, len(clusters))

    measures = {}
    for place, name in enumerate(classes):
        column = slice(place, place + 1)
        measures[name] = ClassMeasures(
            claims=int(has[:, place].sum()),
            accuracy=ratio(both[:, column], has[:, column]),
            f1=ratio(2 * both[:, column], has[:, column] + gets[:, column]),
        )
    return ratio(2 * both, has + gets), measures
