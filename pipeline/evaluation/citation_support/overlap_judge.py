"""A judge of citations that calls no model: overlap of words and of sentence embeddings, with
fitted thresholds.

It is the floor for judges that are language models, and judges citations where CITELOOM_JUDGES
names it first. It cannot see a contradiction: a negated claim overlaps as much as the claim itself.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pipeline.corpus.passages.sentences import split_sentences
from pipeline.embedding.choice import make_embedder
from pipeline.embedding.lexical import term_id, words_of
from pipeline.related_work.support_check import Verdict

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from pipeline.embedding.embedder import Embedder
    from pipeline.settings import Settings

# Weight of the embeddings beside that of words, and the lowest scores of the two better verdicts:
# fitted for MiniLM to the highest mean macro-F1 on the training parts of Citation-Integrity (three
# classes) and SciFact (two).
EMBEDDING_WEIGHT, SUPPORTED_FROM, PARTLY_FROM = 0.75, 0.64, 0.46


def fingerprint() -> str:
    """SHA-256 of the fitted constants."""
    return hashlib.sha256(
        repr((EMBEDDING_WEIGHT, SUPPORTED_FROM, PARTLY_FROM)).encode()
    ).hexdigest()


@dataclass(frozen=True, slots=True)
class Overlap:
    """How far passages overlap with a claim.

    words: share, 0 to 1, of the claim's word stems that the passages have. cosine: of the claim and
    the nearest sentence, by embeddings. sentence: the one that overlaps most; empty where there is
    none.
    """

    words: float
    cosine: float
    sentence: str


@dataclass(frozen=True, slots=True)
class OverlapVerdict:
    """A verdict, the score from 0 to 1 behind it, and the sentence that overlaps most."""

    label: Verdict
    score: float
    sentence: str


class OverlapJudge:
    """Judges claims by overlap with passages; thresholds are fitted for MiniLM as embedder."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder

    @classmethod
    def of(
        cls, settings: Settings, make: Callable[[Settings], Embedder] = make_embedder
    ) -> OverlapJudge:
        """The judge with MiniLM, not the settings' embedder. Raises SettingError without MiniLM."""
        return cls(make(settings.model_copy(update={"embedder": "minilm"})))

    def verdict(self, claim: str, passages: Sequence[str]) -> OverlapVerdict:
        """Whether passages support a claim; "not" where there are none."""
        return self.verdicts([(claim, passages)])[0]

    def verdicts(self, cases: Sequence[tuple[str, Sequence[str]]]) -> list[OverlapVerdict]:
        """Verdicts on several (claim, passages), embedded together."""
        return [decide(overlap) for overlap in self.overlaps(cases)]

    def overlaps(self, cases: Sequence[tuple[str, Sequence[str]]]) -> list[Overlap]:
        """How far the passages of several cases overlap with their claims."""
        sentences = [
            [sentence for text in passages for sentence in split_sentences(text)]
            for _, passages in cases
        ]
        distinct = list(dict.fromkeys(sentence for of_case in sentences for sentence in of_case))
        place = {sentence: number for number, sentence in enumerate(distinct)}
        vectors = [each.dense for each in self._embedder.encode(distinct)]
        claims = [
            query.dense for query in self._embedder.encode_queries([claim for claim, _ in cases])
        ]
        return [
            _overlap(claim, of_case, vector, [vectors[place[sentence]] for sentence in of_case])
            for (claim, _), of_case, vector in zip(cases, sentences, claims, strict=True)
        ]


def _overlap(
    claim: str,
    sentences: Sequence[str],
    vector: NDArray[np.float32],
    vectors: Sequence[NDArray[np.float32]],
) -> Overlap:
    if not sentences:
        return Overlap(0.0, 0.0, "")
    stems = _stems(claim)
    shared = [stems & _stems(sentence) for sentence in sentences]
    cosines = [float(vector @ of_sentence) for of_sentence in vectors]
    count = max(len(stems), 1)
    best = max(
        range(len(sentences)),
        key=lambda number: score(len(shared[number]) / count, cosines[number]),
    )
    return Overlap(len(set().union(*shared)) / count, max(cosines), sentences[best])


def _stems(text: str) -> set[int]:
    return {term_id(word) for word in words_of(text)}


def score(words: float, cosine: float, weight: float = EMBEDDING_WEIGHT) -> float:
    """The score of a share of words and a cosine, 0 to 1."""
    return weight * max(cosine, 0.0) + (1 - weight) * words


def decide(overlap: Overlap) -> OverlapVerdict:
    """The verdict that follows from an overlap."""
    value = score(overlap.words, overlap.cosine)
    label: Verdict = "not"
    if value >= SUPPORTED_FROM:
        label = "supported"
    elif value >= PARTLY_FROM:
        label = "partly"
    return OverlapVerdict(label, value, overlap.sentence)
