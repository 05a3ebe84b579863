"""Fit the judge that calls no model on the training part of Citation-Integrity, and write its file.

    python -m benchmarks.fit_overlap_judge [--labelled FOLDER] [--write]

A multinomial logistic regression over the features of `overlap_judge`. Offsets of the labels are
chosen for the highest macro-F1 of probabilities that each claim gets from a model fitted without
its fold; the macro-F1 that is printed has these offsets chosen without the fold too. No other part
is read.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Sequence
from math import log
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.labelled_claims import LABELLED, LABELS, LabelledClaim, read_sets
from pipeline.embedding.lexical import term_id, words_of
from pipeline.evaluation.citation_support.claim_comparison import Sentence
from pipeline.evaluation.citation_support.overlap_judge import (
    MODEL_FILE,
    OverlapJudge,
    WordWeights,
    features,
)
from pipeline.settings import load_settings

FOLDS, RIDGE, STEPS, RATE, MOMENTUM = 5, 3.0, 300, 0.5, 0.9
# Words in fewer sentences count as rare: a table of all words would be ten times as long.
FEWEST_SENTENCES = 8

Matrix = NDArray[np.float64]
Labels = NDArray[np.int64]


def word_weights(sentences: Sequence[str]) -> tuple[dict[str, float], float]:
    """A word of each stem that occurs often → log of inverse frequency; and that of rare words."""
    count: Counter[int] = Counter()
    word_of: dict[int, str] = {}
    for sentence in sentences:
        words = {term_id(word): word for word in words_of(sentence)}
        count.update(words.keys())
        for stem, word in words.items():
            word_of.setdefault(stem, word)
    weights = {
        word_of[stem]: round(log(len(sentences) / times), 2)
        for stem, times in count.most_common()
        if times >= FEWEST_SENTENCES
    }
    rare = sum(times for times in count.values() if times < FEWEST_SENTENCES)
    kinds = sum(times < FEWEST_SENTENCES for times in count.values())
    return weights, round(log(len(sentences) * kinds / rare), 2)


def fit(features: Matrix, labels: Labels) -> Matrix:
    """Weights [labels, features + 1] of scaled features and a constant."""
    inputs = np.c_[features, np.ones(len(features))]
    targets = np.eye(len(LABELS))[labels]
    weights = np.zeros((inputs.shape[1], len(LABELS)))
    ridge = np.full((inputs.shape[1], 1), RIDGE)
    ridge[-1] = 0
    step = np.zeros_like(weights)
    for _ in range(STEPS):
        error = probabilities(features, weights.T) - targets
        gradient = (inputs.T @ error + ridge * weights) / len(labels)
        step = MOMENTUM * step - RATE * gradient
        weights = weights + step
    return weights.T


def probabilities(features: Matrix, weights: Matrix) -> Matrix:
    """Probabilities [claims, labels]."""
    values = np.c_[features, np.ones(len(features))] @ weights.T
    exponents = np.exp(values - values.max(axis=1, keepdims=True))
    shares: Matrix = exponents / exponents.sum(axis=1, keepdims=True)
    return shares


def macro_f1(labels: Labels, judged: Labels) -> float:
    """Mean F1 of the labels."""
    scores = []
    for label in range(len(LABELS)):
        has_label, is_judged = labels == label, judged == label
        agreed = int((has_label & is_judged).sum())
        total = int(has_label.sum() + is_judged.sum())
        scores.append(2 * agreed / max(total, 1))
    return float(np.mean(scores))


def best_offsets(shares: Matrix, labels: Labels) -> Matrix:
    """The offsets of the logarithms of probabilities that give the highest macro-F1."""
    grid = [
        np.array([0.0, refute, nothing])
        for refute in np.arange(0, 2.01, 0.1)
        for nothing in np.arange(0, 3.01, 0.1)
    ]
    return max(
        grid, key=lambda offsets: macro_f1(labels, (np.log(shares) + offsets).argmax(axis=1))
    )


def fit_model(
    claims: Sequence[LabelledClaim], sentences: Sequence[list[Sentence]], labels: Labels
) -> tuple[dict[str, Any], float]:
    """The values of the judge's file, and the macro-F1 over folds."""
    texts = [sentence.facts.text for of_claim in sentences for sentence in of_claim]
    stems, rare = word_weights(texts)
    words = WordWeights({term_id(word): weight for word, weight in stems.items()}, rare)
    unscaled = np.array(
        [
            features(claim.claim, of_claim, words)
            for claim, of_claim in zip(claims, sentences, strict=True)
        ]
    )
    mean, scale = unscaled.mean(axis=0), unscaled.std(axis=0) + 1e-9
    scaled = (unscaled - mean) / scale
    fold = np.random.default_rng(0).integers(0, FOLDS, len(labels))
    shares = np.zeros((len(labels), len(LABELS)))
    for each in range(FOLDS):
        weights = fit(scaled[fold != each], labels[fold != each])
        shares[fold == each] = probabilities(scaled[fold == each], weights)
    judged = np.zeros_like(labels)
    for each in range(FOLDS):
        offsets = best_offsets(shares[fold != each], labels[fold != each])
        judged[fold == each] = (np.log(shares[fold == each]) + offsets).argmax(axis=1)
    weights = fit(scaled, labels)
    weights[:, -1] += best_offsets(shares, labels)
    values = {
        "mean": np.round(mean, 4).tolist(),
        "scale": np.round(scale, 4).tolist(),
        "weights": np.round(weights, 4).tolist(),
        "rare": rare,
        "stems": stems,
    }
    return values, macro_f1(labels, judged)


def main() -> None:
    """Fit, print the macro-F1 over folds, and write the file where asked to."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--labelled", type=Path, default=LABELLED)
    parser.add_argument("--write", action="store_true", help="write the judge's file")
    options = parser.parse_args()
    claims = read_sets(options.labelled, "train")["Citation-Integrity"]
    judge = OverlapJudge.of(load_settings(_env_file=None))
    sentences = judge.sentences([(claim.claim, claim.passages) for claim in claims])
    labels = np.array([LABELS.index(claim.label) for claim in claims])
    values, macro = fit_model(claims, sentences, labels)
    print(f"macro-F1 over {FOLDS} folds of the training part: {macro:.3f}")
    if options.write:
        MODEL_FILE.write_text(json.dumps(values, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
