"""A judge of citations that calls no language model: a logistic regression over overlap of words
and sentence embeddings; facts overrule it.

It is the floor for judges that are language models, and judges citations where CITELOOM_JUDGES
names it first. Its facts are numbers, negations and directions; other contradictions it cannot see.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from math import log
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from pipeline.embedding.choice import make_embedder
from pipeline.embedding.lexical import term_id, words_of
from pipeline.evaluation.citation_support.claim_comparison import Comparison, Sentence, compare
from pipeline.evaluation.citation_support.claim_facts import Facts, Number, facts_of_passage
from pipeline.evaluation.citation_support.judge import Verdict

if TYPE_CHECKING:
    from pipeline.embedding.embedder import Embedder
    from pipeline.settings import Settings

MODEL_FILE = Path(__file__).with_name("overlap_model.json")
LABELS: tuple[Verdict, ...] = ("supported", "partly", "not")
# Weight of the cosine beside the share of words, for the sentence that is shown.
_COSINE_WEIGHT = 0.75
_NUMBERS_WEIGHT = 0.5
# Sentences that are embedded for a claim. Of a draft on full texts a claim has 13; with these four,
# 99 % of the quotes and verdicts on the tuned part of benchmarks/planted_changes.py are those of
# all, for a third of the time.
_EMBEDDED = 4
# Names, gene symbols, acronyms: words with two capitals, or with a capital or letter and a digit.
_NAME = re.compile(r"\b(?:\w*[A-Z]\w*[A-Z0-9]\w*|[a-z]+\d\w*)\b")


class WordWeights(NamedTuple):
    """How much a shared word tells. stems: stem → weight; rare: weight of all other words."""

    stems: dict[int, float]
    rare: float

    def total(self, stems: Iterable[int]) -> float:
        return sum(self.stems.get(stem, self.rare) for stem in stems)


class OverlapModel(NamedTuple):
    """The fitted model, by `python -m benchmarks.fit_overlap_judge`.

    mean, scale: of each feature. weights: for each of `LABELS`, of the scaled features and of 1.
    """

    words: WordWeights
    mean: list[float]
    scale: list[float]
    weights: list[list[float]]


@cache
def fitted_model() -> OverlapModel:
    """The committed model."""
    values = json.loads(MODEL_FILE.read_text())
    stems = {term_id(word): weight for word, weight in values["stems"].items()}
    words = WordWeights(stems, values["rare"])
    return OverlapModel(words, values["mean"], values["scale"], values["weights"])


def fingerprint() -> str:
    """SHA-256 of the fitted model."""
    return hashlib.sha256(MODEL_FILE.read_bytes()).hexdigest()


class Features(NamedTuple):
    """What the model sees of a claim and the passages.

    cosine: of claim and the nearest three sentences, their mean. words: share of the claim's words,
    by weight, that the passages have. names_missing: share of the claim's names that they lack.
    length: logarithm of the claim's words.
    """

    cosine: float
    words: float
    names_missing: float
    length: float


@dataclass(frozen=True, slots=True)
class OverlapVerdict:
    """A verdict, the sentence that overlaps most, and the comparison of facts."""

    label: Verdict
    sentence: Sentence | None
    comparison: Comparison


class OverlapJudge:
    """Judges claims by overlap with passages; fitted for MiniLM as embedder."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder

    @classmethod
    def of(
        cls, settings: Settings, make: Callable[[Settings], Embedder] = make_embedder
    ) -> OverlapJudge:
        """The judge with MiniLM, not the settings' embedder. Raises SettingError without MiniLM."""
        return cls(make(settings.model_copy(update={"embedder": "minilm"})))

    def verdicts(self, cases: Sequence[tuple[str, Sequence[str]]]) -> list[OverlapVerdict]:
        """Whether passages support claims, for several (claim, passages), embedded together."""
        return [
            decide(claim, sentences)
            for (claim, _), sentences in zip(cases, self.sentences(cases), strict=True)
        ]

    def sentences(self, cases: Sequence[tuple[str, Sequence[str]]]) -> list[list[Sentence]]:
        """The sentences of the passages of several (claim, passages), with their cosines.

        Embedded are the sentences that share most of a claim's words; the cosine of all others, and
        of cells of tables, is 0.
        """
        by_case = [
            [
                Sentence(facts, passage=place)
                for place, text in enumerate(passages)
                for facts in facts_of_passage(text)
            ]
            for _, passages in cases
        ]
        likely = [
            _likely_places(claim, sentences)
            for (claim, _), sentences in zip(cases, by_case, strict=True)
        ]
        texts = dict.fromkeys(claim for claim, _ in cases)
        for sentences, places in zip(by_case, likely, strict=True):
            texts |= dict.fromkeys(sentences[place].facts.text for place in places)
        encoded = self._embedder.encode(list(texts))
        vectors = {text: vector.dense for text, vector in zip(texts, encoded, strict=True)}
        for (claim, _), sentences, places in zip(cases, by_case, likely, strict=True):
            for place in places:
                sentence = sentences[place]
                cosine = float(vectors[claim] @ vectors[sentence.facts.text])
                sentences[place] = replace(sentence, cosine=cosine)
        return by_case


def _likely_places(claim: str, sentences: Sequence[Sentence]) -> list[int]:
    """Places of the sentences in prose that share most of a claim's words, by weight."""
    stems, words = stems_of(claim), fitted_model().words
    prose = [place for place, sentence in enumerate(sentences) if not sentence.facts.is_cell]
    return sorted(
        prose,
        key=lambda place: words.total(stems & stems_of(sentences[place].facts.text)),
        reverse=True,
    )[:_EMBEDDED]


def decide(
    claim: str, sentences: Sequence[Sentence], everywhere: Sequence[Number] | None = None
) -> OverlapVerdict:
    """The verdict on a claim by sentences of the cited work.

    everywhere: the numbers of the whole work; None where the sentences are all there is. A claim
    that a sentence contradicts is "not" supported.
    """
    if everywhere is None:
        everywhere = [number for sentence in sentences for number in sentence.facts.numbers]
    comparison = compare(claim, sentences, everywhere)
    if not sentences:
        return OverlapVerdict("not", None, comparison)
    values = _values(features(claim, sentences, fitted_model().words))
    label = LABELS[values.index(max(values))]
    if comparison.clash:
        label = "not"
    return OverlapVerdict(label, _nearest(claim, sentences), comparison)


def features(claim: str, sentences: Sequence[Sentence], words: WordWeights) -> Features:
    """The features of a claim beside sentences, of which there is at least one."""
    cosines = sorted((sentence.cosine for sentence in sentences), reverse=True)[:3]
    names = {name.lower() for name in _NAME.findall(claim)}
    text = " ".join(sentence.facts.text for sentence in sentences).lower()
    return Features(
        cosine=sum(cosines) / len(cosines),
        words=share_of_words(claim, sentences, words),
        names_missing=sum(name not in text for name in names) / max(len(names), 1),
        length=log(len(claim.split()) + 1),
    )


@lru_cache(maxsize=1 << 14)
def stems_of(text: str) -> frozenset[int]:
    """The stems of a text's words."""
    return frozenset(term_id(word) for word in words_of(text))


def _values(unscaled: Features) -> list[float]:
    """The value of each label; the highest decides."""
    model = fitted_model()
    scaled = [
        (value - mean) / scale
        for value, mean, scale in zip(unscaled, model.mean, model.scale, strict=True)
    ]
    return [
        sum(weight * value for weight, value in zip(of_label, [*scaled, 1.0], strict=True))
        for of_label in model.weights
    ]


def _nearest(claim: str, sentences: Sequence[Sentence]) -> Sentence:
    """The sentence to show: by cosine, share of words, and share of the claim's numbers."""
    stems = stems_of(claim)
    numbers = Facts(claim).numbers

    def overlap(sentence: Sentence) -> float:
        share = len(stems & stems_of(sentence.facts.text)) / max(len(stems), 1)
        stated = sum(
            any(number.same_value(other) for other in sentence.facts.numbers) for number in numbers
        ) / max(len(numbers), 1)
        by_words = _COSINE_WEIGHT * max(sentence.cosine, 0.0) + (1 - _COSINE_WEIGHT) * share
        return by_words + _NUMBERS_WEIGHT * stated if share else by_words

    return max(sentences, key=overlap)


def share_of_words(claim: str, sentences: Sequence[Sentence], words: WordWeights) -> float:
    """Share of a claim's words, by weight, that sentences have."""
    stems = stems_of(claim)
    theirs = frozenset().union(*(stems_of(sentence.facts.text) for sentence in sentences))
    return words.total(stems & theirs) / (words.total(stems) or 1.0)
