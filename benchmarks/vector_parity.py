"""Compare BGE-M3's vectors by our engine with FlagEmbedding's, for `gpu_parts` and tests."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from pipeline.embedding.embedder import Vectors

_SENTENCE = (
    "Encoders read a passage once, and a question is compared with all of them;"
    " $\\mathbf{q}^{\\top}\\mathbf{d}$ ranks what they found, whether or not a word of it (rarely:"
    " all 27) is shared. "
)
TEXTS: Mapping[str, str] = {
    "empty": "",
    "one token": "a",
    "a question": "Which decoder leaves no source word untranslated?",
    "a sentence": _SENTENCE,
    "a word again and again": "beam beam Beam beam-search beams " * 4,
    "signs alone": "…?! §§ [] {} \\ ~ ^ _",
    "formulas": (
        "$\\mathcal{L}(\\theta) = -\\sum_{t=1}^{T} \\log p(y_t \\mid y_{<t}, x; \\theta)$ with $T"
        " \\le 512$"
    ),
    "emoji": "Kept 🧪, dropped 🗑️, family 👩‍👩‍👧, flag 🇫🇷.",
    "Chinese and Japanese": "束搜索保留最好的部分译文。ビームサーチは最良の候補を残す。",
    "Arabic and Hindi": "يحتفظ البحث الحزمي بأفضل الترجمات. बीम खोज सबसे अच्छे अनुवाद रखती है।",
    "control characters": "tab\there\x00null\x07bell\x1bescape\u200bzero width\ufeffmark\r\nend",
    "white space": "  \n\t  spaces   around \u00a0 and  within \u3000 ",
    "a passage": _SENTENCE * 6,
    "a long text": _SENTENCE * 25,
}


@dataclass(frozen=True, slots=True)
class Tolerances:
    """The bounds of equality: least cosine, and the greatest difference of weights.

    A token id that only one side has must weigh less than `faint` there.
    """

    dense: float
    weights: float
    faint: float


# Both in float32: they differ by the order in which sums are taken.
EXACT = Tolerances(dense=0.9999, weights=1e-3, faint=0.0)
# Ours in half precision: bfloat16 keeps 8 bits of a number, and a weight near 0 may fall on either
# side of it.
HALF = Tolerances(dense=0.999, weights=0.02, faint=0.02)


@dataclass(frozen=True, slots=True)
class TextComparison:
    """One text: cosine of the dense vectors, greatest difference of a weight, and whether both and
    the ids that only one side has are within the bounds.
    """

    dense: float
    weights: float
    holds: bool


@dataclass(frozen=True, slots=True, eq=False)
class ReferenceVectors:
    """One text's vectors by FlagEmbedding: dense (dimensions,), weights by token id."""

    dense: NDArray[np.float32]
    weights: Mapping[int, float]


def reference_of(model: Any, text: str, longest: int) -> ReferenceVectors:
    """One text alone by BGEM3FlagModel, so that nothing is padded."""
    options = {"return_dense": True, "return_sparse": True}
    output = model.encode([text], batch_size=2, max_length=longest, **options)
    weights = {int(key): float(weight) for key, weight in output["lexical_weights"][0].items()}
    return ReferenceVectors(output["dense_vecs"][0], weights)


def compare(ours: Vectors, theirs: ReferenceVectors, bounds: Tolerances) -> TextComparison:
    """Compare one text's vectors."""
    import numpy as np

    a, b = ours.dense.astype(np.float64), theirs.dense.astype(np.float64)
    dense = float(a @ b / (np.linalg.norm(a) * np.linalg.norm(b)))
    mine = dict(zip(ours.sparse.ids.tolist(), ours.sparse.weights.tolist(), strict=True))
    both, alone = mine.keys() & theirs.weights.keys(), mine.keys() ^ theirs.weights.keys()
    weights = max((abs(mine[number] - theirs.weights[number]) for number in both), default=0.0)
    faint = all(
        max(mine.get(number, 0.0), theirs.weights.get(number, 0.0)) < bounds.faint
        for number in alone
    )
    holds = dense >= bounds.dense and weights <= bounds.weights and faint
    return TextComparison(dense, weights, holds)
