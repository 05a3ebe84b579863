"""Fit the score by which quotations are chosen, on questions over the real papers.

    python -m benchmarks.fit_quotation_score [--data FOLDER] [--root FOLDER]

A logistic regression over the features of `quotation_score`. A quotation is as right as the share
of the answer's words that it has (`benchmarks.real_papers`). Prints the weights for
`quotation_score.py`, and the outcomes of the questions for some least scores, with weights that
were fitted without the questions on the same paper. The parts that are kept for reports are not
read.
"""

from __future__ import annotations

import argparse
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.real_papers import DATA, Row, all_labels, holds_answer, make_corpus
from pipeline.answering.extractive import (
    distinct_quotes,
    passages_to_read,
    search_query,
    similarities_of,
    subject_of,
)
from pipeline.answering.facts import facets_of
from pipeline.answering.front_matter import FrontMatterTables
from pipeline.answering.model_calls import StepLog, Tools
from pipeline.answering.quotation_score import (
    WEIGHTS,
    FloatArray,
    Similarities,
    quotation_features,
)
from pipeline.answering.quotations import Quotation
from pipeline.answering.retriever import PassageSearch, index_search
from pipeline.answering.user_question import UserQuestion
from pipeline.engine.stage import Workspace
from pipeline.llm.loop import run

FITTED_PARTS = ("tuned", "fresh", "tuned2", "held")
FOLDS, RIDGE, STEPS = 10, 10.0, 30
# Wrong quotations of a question weigh so many times as much as the right ones.
WEIGHT_OF_WRONG = 3.0
LEAST_SCORES = (-9.0, -1.0, -0.8, -0.6, -0.4, -0.2, 0.0)


@dataclass(frozen=True)
class Labelled:
    """A question, its quotations, their features, and the share of its answer that each has."""

    row: Row
    quotes: list[Quotation]
    features: FloatArray
    shares: FloatArray


async def label(row: Row, tools: Tools, similarities: Similarities) -> Labelled | None:
    """The quotations of a question; None if it is answered from tables."""
    question = UserQuestion(row["question"])
    subject = await subject_of(question, tools)
    if facets_of(question.question):
        return None
    query = search_query(question, subject)
    passages, _ = await passages_to_read(query, subject, tools, StepLog())
    quotes, features = quotation_features(query, passages, similarities)
    shares = []
    for quote in quotes:
        text = quote.display_text()
        groups = [holds_answer(text, [spellings]) for spellings in row["right"]]
        shares.append(sum(groups) / max(len(groups), 1))
    return Labelled(row, quotes, features, np.array(shares))


def fit(questions: Sequence[Labelled]) -> tuple[FloatArray, float]:
    """Weights of the features, and the constant, by Newton's method."""
    with_quotes = [question for question in questions if question.quotes]
    features = np.vstack([question.features for question in with_quotes])
    targets = np.concatenate([question.shares for question in with_quotes])
    importance = np.concatenate([_importance(question.shares) for question in with_quotes])
    mean, scale = features.mean(axis=0), features.std(axis=0) + 1e-9
    inputs = np.c_[(features - mean) / scale, np.ones(len(features))]
    ridge = np.full(inputs.shape[1], RIDGE)
    ridge[-1] = 0
    weights = np.zeros(inputs.shape[1])
    for _ in range(STEPS):
        shares = 1 / (1 + np.exp(-inputs @ weights))
        gradient = inputs.T @ (importance * (shares - targets)) + ridge * weights
        spread = importance * shares * (1 - shares)
        curvature = (inputs.T * spread) @ inputs + np.diag(ridge)
        weights = weights - np.linalg.solve(curvature, gradient)
    unscaled = weights[:-1] / scale
    return unscaled, float(weights[-1] - unscaled @ mean)


def _importance(shares: FloatArray) -> FloatArray:
    """The weight of each quotation: right ones of a question weigh 1 in all."""
    right = shares > 0
    of_right = 1 / max(int(right.sum()), 1)
    of_wrong = WEIGHT_OF_WRONG / max(int((~right).sum()), 1)
    return np.where(right, of_right, of_wrong)


def scores_over_folds(questions: Sequence[Labelled]) -> list[FloatArray]:
    """The scores of each question's quotations, fitted without the questions on its paper."""
    papers = sorted({str(question.row["paper"]) for question in questions})
    order = np.random.default_rng(0).permutation(len(papers))
    fold_of = {papers[place]: number % FOLDS for number, place in enumerate(order)}
    folds = [fold_of[str(question.row["paper"])] for question in questions]
    scores: list[FloatArray] = [np.zeros(0)] * len(questions)
    for fold in range(FOLDS):
        others = [question for number, question in enumerate(questions) if folds[number] != fold]
        weights, constant = fit(others)
        for number, question in enumerate(questions):
            if folds[number] == fold:
                scores[number] = question.features @ weights + constant
    return scores


def outcome(question: Labelled, scores: FloatArray, least: float) -> str:
    """`right`, `wrong` or `abstained`, as in `benchmarks.real_papers`."""
    right = question.row["right"]
    if len(scores) == 0 or scores.max() < least:
        return "abstained" if right else "right"
    ranked = [question.quotes[place] for place in np.argsort(-scores, kind="stable")]
    text = " ".join(quote.display_text() for quote in distinct_quotes(ranked))
    return "right" if right and holds_answer(text, right) else "wrong"


def label_all(workspace: Workspace) -> list[Labelled]:
    """The fitted questions that are answered by quotations."""
    similarities = similarities_of(workspace.settings)
    tools = Tools(
        None,
        PassageSearch(index_search(workspace)),
        workspace.settings,
        FrontMatterTables(workspace),
    )
    labelled = []
    for row in all_labels("questions"):
        if row["part"] in FITTED_PARTS:
            question = run(label(row, tools, similarities))
            if question is not None:
                labelled.append(question)
    return labelled


def main() -> None:
    """Fit, and print the weights and the outcomes over folds."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--root", type=Path, default=None)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        questions = label_all(make_corpus(options.data, Path(folder), options.root))
    weights, constant = fit(questions)
    for name, weight in zip(WEIGHTS, weights, strict=True):
        print(f"{weight:8.3f}  {name}")
    print(f"{constant:8.3f}  constant")
    scores = scores_over_folds(questions)
    for least in LEAST_SCORES:
        outcomes = Counter(
            outcome(question, of_question, least)
            for question, of_question in zip(questions, scores, strict=True)
        )
        print(
            f"least score {least}: {outcomes['right']} right, {outcomes['wrong']} wrong,"
            f" {outcomes['abstained']} abstained of {len(questions)}"
        )


if __name__ == "__main__":
    main()
