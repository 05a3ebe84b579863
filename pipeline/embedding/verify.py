"""Compare the vectors of BGE-M3 by this project's engine with FlagEmbedding's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from pipeline.embedding.bge_m3 import find_model
from pipeline.embedding.choice import make_embedder
from pipeline.embedding.flag_embedding import make_flag_model
from pipeline.errors import SettingError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from pipeline.embedding.embedder import Vectors
    from pipeline.settings import Settings

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
    """The bounds of equality: least cosines, and the greatest difference of weights.

    A token id that only one side has must weigh less than `faint` there.
    """

    dense: float
    colbert: float
    weights: float
    faint: float


# Both in float32: they differ by the order in which sums are taken.
EXACT = Tolerances(dense=0.9999, colbert=0.999, weights=1e-3, faint=0.0)
# Ours in half precision: bfloat16 keeps 8 bits of a number, and a weight near 0 may fall on either
# side of it.
HALF = Tolerances(dense=0.999, colbert=0.99, weights=0.02, faint=0.02)


@dataclass(frozen=True, slots=True)
class TextComparison:
    """One text: cosine of the dense vectors, least cosine of ColBERT's, greatest difference of a
    weight, ids that only one side has, and whether all this is within the bounds.
    """

    text: str
    dense: float
    colbert: float
    weights: float
    ids: int
    other_ids: int
    holds: bool


@dataclass(frozen=True, slots=True)
class Verdict:
    """The comparison of a model, with the devices and precision of our engine."""

    model: str
    devices: Sequence[str]
    precision: str
    bounds: Tolerances
    texts: Sequence[TextComparison]

    @property
    def holds(self) -> bool:
        return all(compared.holds for compared in self.texts)

    def as_json(self) -> dict[str, Any]:
        """The fields and `holds` as plain values."""
        return asdict(self) | {"holds": self.holds}


def verify_model(settings: Settings, *, longest: bool = False) -> Verdict:
    """Compare BGE-M3's vectors with those that FlagEmbedding gives for the same files, in float32.

    longest: also a text beyond what the model reads, which takes minutes on a CPU. Raises
    SettingError where the embedder is another one, or the model is not there.
    """
    if settings.embedder != "bge-m3":
        raise SettingError(
            f"CITELOOM_EMBEDDER is {settings.embedder}, and only BGE-M3 has FlagEmbedding to"
            " compare with: set it to bge-m3, and CITELOOM_EMBEDDER_PATH to the model's folder"
        )
    embedder = make_embedder(settings.model_copy(update={"embedder_colbert": True}))
    texts = dict(TEXTS)
    if longest:
        texts["beyond the longest"] = _SENTENCE * (embedder.max_tokens // 30)
    ours = embedder.encode(list(texts.values()))
    facts = embedder.last_facts
    devices, precision = (facts.devices, facts.precision) if facts else (("cpu",), "fp32")
    flag_model = make_flag_model(find_model(settings.embedder_path), devices[0], "fp32")
    theirs = [reference_of(flag_model, text, embedder.max_tokens) for text in texts.values()]
    bounds = EXACT if precision == "fp32" else HALF
    compared = [compare(name, a, b, bounds) for name, a, b in zip(texts, ours, theirs, strict=True)]
    return Verdict(embedder.name, devices, precision, bounds, compared)


@dataclass(frozen=True, slots=True, eq=False)
class ReferenceVectors:
    """One text's vectors by FlagEmbedding: dense (dimensions,), weights by token id, ColBERT."""

    dense: NDArray[np.float32]
    weights: Mapping[int, float]
    colbert: NDArray[np.float32]


def reference_of(model: Any, text: str, longest: int) -> ReferenceVectors:
    """One text alone by BGEM3FlagModel, so that nothing is padded."""
    options = {"return_dense": True, "return_sparse": True, "return_colbert_vecs": True}
    output = model.encode([text], batch_size=2, max_length=longest, **options)
    weights = {int(key): float(weight) for key, weight in output["lexical_weights"][0].items()}
    return ReferenceVectors(output["dense_vecs"][0], weights, output["colbert_vecs"][0])


def compare(
    name: str, ours: Vectors, theirs: ReferenceVectors, bounds: Tolerances
) -> TextComparison:
    """Compare one text's vectors."""
    import numpy as np

    dense = float(_cosines(ours.dense, theirs.dense))
    colbert = -1.0
    if ours.colbert is not None and ours.colbert.shape == theirs.colbert.shape:
        colbert = float(np.min(_cosines(ours.colbert, theirs.colbert), initial=1.0))
    mine = dict(zip(ours.sparse_ids.tolist(), ours.sparse_weights.tolist(), strict=True))
    both, alone = mine.keys() & theirs.weights.keys(), mine.keys() ^ theirs.weights.keys()
    weights = max((abs(mine[number] - theirs.weights[number]) for number in both), default=0.0)
    faint = all(
        max(mine.get(number, 0.0), theirs.weights.get(number, 0.0)) < bounds.faint
        for number in alone
    )
    holds = (
        dense >= bounds.dense and colbert >= bounds.colbert and weights <= bounds.weights and faint
    )
    return TextComparison(name, dense, colbert, weights, len(both), len(alone), holds)


def _cosines(a: NDArray[Any], b: NDArray[Any]) -> NDArray[np.float64]:
    import numpy as np

    a, b = a.astype(np.float64), b.astype(np.float64)
    product = np.sum(a * b, axis=-1)
    cosines: NDArray[np.float64] = product / (
        np.linalg.norm(a, axis=-1) * np.linalg.norm(b, axis=-1)
    )
    return cosines
